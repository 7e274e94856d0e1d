"""What can be wrong with a database, as one sentence for the operator."""


class StoreError(Exception):
    """The database cannot be used. It is not a client's error: the gateway decides what to say.

    Attributes:
        message: one plain sentence that says what to do. It may name the database's path.
        full: the disk or the database has no room left.
    """

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.full = full


def damaged(path: str, reason: object) -> StoreError:
    """The file is broken, or was never a database."""
    return StoreError(
        f"The operations database {path!r} is damaged or is no database ({reason}). Move it"
        " away, or give another one with CODESPACE_OPERATIONS_DB."
    )


def foreign(path: str) -> StoreError:
    """The database holds something else."""
    return StoreError(
        f"{path!r} is a database of another program; give CODESPACE_OPERATIONS_DB a file of its"
        " own."
    )


def too_new(path: str) -> StoreError:
    """The database has had migrations that this version does not know."""
    return StoreError(
        f"The operations database {path!r} was written by a newer version of CodeSpace. Upgrade"
        " this one, or give it another database with CODESPACE_OPERATIONS_DB."
    )
