"""The values of one owner's scripts, kept in the gateway's database."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from codespace.codemode.store import StoreFullError
from codespace.domain.ids import WorkspaceId
from codespace.store.values import ScriptValues

CALLER = "gateway"
"""Whoever may call the gateway: it knows one credential, and so one caller."""


def owner_of(workspace_id: WorkspaceId) -> str:
    """Return the owner of what the scripts of a workspace keep."""
    return f"{CALLER}/workspace/{workspace_id}"


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The store of scripts of one owner; survives a restart where the database does."""

    values: ScriptValues
    owner: str

    async def read(self) -> Mapping[str, str]:
        """Return all values."""
        return await anyio.to_thread.run_sync(self.values.read, self.owner)

    async def write(self, changes: Mapping[str, str | None], *, most_chars: int) -> None:
        """Keep the changes of one run.

        Raises:
            StoreFullError: there would be more than `most_chars` characters of JSON.
        """
        work = partial(self.values.write, self.owner, changes, most_chars=most_chars)
        if not await anyio.to_thread.run_sync(work):
            raise StoreFullError
