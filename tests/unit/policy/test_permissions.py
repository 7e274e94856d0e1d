"""Profile and environment against effect."""

import itertools

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.tool import Effect
from codespace.domain.workspace import Environment, Profile, Root, Workspace
from codespace.policy.permissions import authorize, permits

HOST, CONTAINER = Environment.HOST, Environment.LINUX_CONTAINER
READ_ONLY, WRITE = Profile.READ_ONLY, Profile.WORKSPACE_WRITE

PERMITTED = {
    (HOST, READ_ONLY, Effect.INSPECT),
    (HOST, READ_ONLY, Effect.READ),
    (HOST, WRITE, Effect.INSPECT),
    (HOST, WRITE, Effect.READ),
    (HOST, WRITE, Effect.WRITE),
    (HOST, WRITE, Effect.EXECUTE),
    (CONTAINER, READ_ONLY, Effect.INSPECT),
    (CONTAINER, WRITE, Effect.INSPECT),
    # A script's calls are judged one by one.
    *itertools.product(Environment, Profile, [Effect.SCRIPT]),
    *itertools.product(Environment, Profile, [Effect.STEER]),
}


def workspace(environment: Environment, profile: Profile) -> Workspace:
    return Workspace(
        WorkspaceId("demo"), Root("/secret/place", 1, 2), profile=profile, environment=environment
    )


@pytest.mark.parametrize(
    ("environment", "profile", "effect"), [*itertools.product(Environment, Profile, Effect)]
)
def test_only_what_the_table_permits_is_permitted(
    environment: Environment, profile: Profile, effect: Effect
) -> None:
    asked = workspace(environment, profile)
    expected = (environment, profile, effect) in PERMITTED
    assert permits(asked, effect) is expected
    if expected:
        authorize(asked, effect)
        return
    with pytest.raises(CodeSpaceError) as caught:
        authorize(asked, effect)
    assert caught.value.code is ErrorCode.UNAUTHORIZED
    assert caught.value.details == {
        "workspace_id": "demo",
        "profile": profile.value,
        "environment": environment.value,
    }
    assert "/secret/place" not in str(caught.value.body())


def test_a_workspace_is_read_only_unless_the_operator_says_otherwise() -> None:
    silent = Workspace(WorkspaceId("demo"), Root("/", 1, 2))
    assert permits(silent, Effect.READ)
    assert not permits(silent, Effect.WRITE)
    assert not permits(silent, Effect.EXECUTE)


def test_a_refusal_says_which_setting_is_in_the_way() -> None:
    with pytest.raises(CodeSpaceError, match="profile 'read-only'"):
        authorize(workspace(HOST, READ_ONLY), Effect.WRITE)
    with pytest.raises(CodeSpaceError, match="environment 'linux-container'"):
        authorize(workspace(CONTAINER, WRITE), Effect.READ)
