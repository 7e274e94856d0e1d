"""`codespace stored`: what scripts keep between runs, for the operator to see and to delete."""

from contextlib import ExitStack, closing
from typing import Annotated

from cyclopts import App, Parameter

from codespace.cli.flags import Flags, load_settings
from codespace.domain.ids import WorkspaceId
from codespace.gateway.script_values import owner_of
from codespace.settings import Loaded, SettingsError
from codespace.store.engine import Store
from codespace.store.inspection import inspect
from codespace.store.values import ScriptValues, lengths_beside

stored = App(name="stored", help="List or delete what scripts keep between runs.")


@stored.command(name="list")
def list_values(*, flags: Flags | None = None) -> int:
    """Print the keys that each workspace's scripts keep, with the length of their JSON."""
    loaded = load_settings(None, flags, serves=False)
    path, holder = _database(loaded)
    with ExitStack() as ending:
        if holder is None:
            ending.enter_context(closing(Store(path)))
        # Beside a gateway the store is only read, which disturbs nobody.
        lengths = lengths_beside(path)
    for workspace_id in loaded.workspace_ids:
        for key, length in lengths.get(owner_of(workspace_id), {}).items():
            print(f"{workspace_id}\t{key}\t{length}")
    return 0


@stored.command(name="clear")
def clear_values(
    workspace: Annotated[str, Parameter(help="The workspace whose scripts' values go.")],
    *,
    flags: Flags | None = None,
) -> int:
    """Delete all that the scripts of one workspace keep."""
    loaded = load_settings(None, flags, serves=False)
    name = WorkspaceId(workspace)
    if name not in loaded.workspace_ids:
        raise SettingsError(f"WORKSPACE takes one of: {', '.join(sorted(loaded.workspace_ids))}")
    path, holder = _database(loaded)
    if holder is not None:
        raise SettingsError(
            f"the gateway of process {holder} uses {path!r}: end it first, or run a script there"
            " that deletes with store(key, undefined)"
        )
    with closing(Store(path)) as store:
        print(f"{ScriptValues(store).clear(owner_of(name))} values deleted")
    return 0


def _database(loaded: Loaded) -> tuple[str, str | None]:
    """Return the database, and the process that has it in use."""
    path = loaded.settings.operations_db
    if path is None:
        raise SettingsError("no operations_db is set: what scripts keep ends with the gateway")
    seen = inspect(path)
    if not seen.exists:
        raise SettingsError(f"there is no database at {path!r}")
    return path, seen.holder
