"""`codespace stored`: what scripts keep between runs, for the operator to see and to delete."""

from typing import Annotated

from cyclopts import App, Parameter

from codespace.cli.flags import Flags, load_settings
from codespace.domain.ids import WorkspaceId
from codespace.gateway.script_values import owner_of
from codespace.settings import Loaded, SettingsError
from codespace.store.engine import Store
from codespace.store.inspection import inspect
from codespace.store.values import ScriptValues

stored = App(name="stored", help="List or delete what scripts keep between runs.")


@stored.command(name="list")
def list_values(*, flags: Flags | None = None) -> int:
    """Print the keys that each workspace's scripts keep, with the length of their JSON."""
    loaded = load_settings(None, flags)
    store = _open(loaded)
    try:
        values = ScriptValues(store)
        for workspace_id in loaded.workspace_ids:
            for key, text in values.read(owner_of(workspace_id)).items():
                print(f"{workspace_id}\t{key}\t{len(text)}")
    finally:
        store.close()
    return 0


@stored.command(name="clear")
def clear_values(
    workspace: Annotated[str, Parameter(help="The workspace whose scripts' values go.")],
    *,
    flags: Flags | None = None,
) -> int:
    """Delete all that the scripts of one workspace keep."""
    loaded = load_settings(None, flags)
    name = WorkspaceId(workspace)
    if name not in loaded.workspace_ids:
        raise SettingsError(f"WORKSPACE takes one of: {', '.join(sorted(loaded.workspace_ids))}")
    store = _open(loaded)
    try:
        print(f"{ScriptValues(store).clear(owner_of(name))} values deleted")
    finally:
        store.close()
    return 0


def _open(loaded: Loaded) -> Store:
    path = loaded.settings.operations_db
    if path is None:
        raise SettingsError("no operations_db is set: what scripts keep ends with the gateway")
    if not inspect(path).exists:
        raise SettingsError(f"there is no database at {path!r}")
    return Store(path)
