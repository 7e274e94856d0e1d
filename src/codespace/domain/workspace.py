"""A directory that the operator registered, and what the operator permits in it."""

from dataclasses import dataclass
from enum import StrEnum

from codespace.domain.approval import Resolver
from codespace.domain.ids import WorkspaceId


class Profile(StrEnum):
    """What a client may do in a workspace."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"


class Network(StrEnum):
    """The network policy of a workspace's commands."""

    RESTRICTED = "restricted"
    ENABLED = "enabled"


class Approvals(StrEnum):
    """Whether a permitted mutation waits for a confirmation."""

    OFF = "off"
    CONFIRM = "confirm"


class Environment(StrEnum):
    """Where a workspace's files and commands live. Selected by the operator alone."""

    HOST = "host"
    LINUX_CONTAINER = "linux-container"


@dataclass(frozen=True, slots=True)
class Root:
    """A directory on disk and its identity at registration.

    The identity is compared before each use: a root that was deleted, replaced or mounted over is
    refused, not followed.
    """

    path: str
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """One registered directory and the policy for it."""

    workspace_id: WorkspaceId
    root: Root
    profile: Profile = Profile.READ_ONLY
    network: Network = Network.RESTRICTED
    approvals: Approvals = Approvals.OFF
    environment: Environment = Environment.HOST
    approvals_granted_by: Resolver = Resolver.CALLER
