"""Profile and environment against effect: yes, or UNAUTHORIZED. Nothing a client sends matters."""

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.tool import Effect
from codespace.domain.workspace import Environment, Profile, Workspace

_NEEDS_NOTHING = frozenset({Effect.INSPECT, Effect.SCRIPT, Effect.STEER})
_NEEDS_WRITE = frozenset({Effect.WRITE, Effect.EXECUTE})


def permits(workspace: Workspace, effect: Effect) -> bool:
    """Say whether the operator's policy lets a call with `effect` through."""
    if effect in _NEEDS_NOTHING:
        return True
    if workspace.environment is not Environment.HOST:
        return False
    return effect not in _NEEDS_WRITE or workspace.profile is Profile.WORKSPACE_WRITE


def authorize(workspace: Workspace, effect: Effect) -> None:
    """Return when the call is permitted.

    Raises:
        CodeSpaceError: UNAUTHORIZED, saying which setting of the operator does not permit it.
    """
    if permits(workspace, effect):
        return
    if workspace.environment is not Environment.HOST:
        reason = (
            f"has the environment {workspace.environment.value!r}, for which no backend exists yet"
        )
    else:
        reason = f"has the profile {workspace.profile.value!r}"
    raise CodeSpaceError(
        ErrorCode.UNAUTHORIZED,
        f"The workspace {str(workspace.workspace_id)!r} {reason};"
        f" only its operator can permit {effect.value} calls.",
        details={
            "workspace_id": workspace.workspace_id,
            "profile": workspace.profile.value,
            "environment": workspace.environment.value,
        },
    )
