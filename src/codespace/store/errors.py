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
