"""What the runs of a sandbox may use."""

from dataclasses import asdict, dataclass, fields
from typing import ClassVar, TypedDict

from codespace.domain.sizes import KIB, MIB

LIMIT_MAX = 2**30
"""Of any limit: the engine counts in 32 bits."""
MEMORY_MIB_MIN, MEMORY_MIB_MAX = 2, 4_096
"""The empty engine takes almost two MiB; WebAssembly has addresses for four GiB."""


class LimitOptions(TypedDict, total=False):
    """The same names as in `RunLimits`, each of them optional."""

    concurrency: int
    memory_mib: int
    step_ms: int
    engine_ms: int
    timeout_ms: int
    max_calls: int
    argument_bytes: int
    result_bytes: int
    code_bytes: int
    output_chars: int
    written_bytes: int
    store_value_chars: int
    store_total_chars: int
    store_keys: int
    runs: int
    mutation_wait_ms: int


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a sandbox and of its runs. Each breach is an error that names the limit.

    Raises:
        ValueError: a limit is no positive number, or one that the engine cannot count.
    """

    # For pydantic, where limits are settings; its import costs more than a process's first run.
    __pydantic_config__: ClassVar[dict[str, object]] = {
        "extra": "forbid",
        "use_attribute_docstrings": True,
    }

    concurrency: int = 4
    """Calls of one run that execute at a time."""
    memory_mib: int = 64
    """The VM's linear memory, from 2 to 4096."""
    step_ms: int = 5_000
    """Engine time without a pause."""
    engine_ms: int = 60_000
    """Engine time of a whole run."""
    timeout_ms: int = 300_000
    """Time of a run, from its first step to its end."""
    max_calls: int = 5_000
    """Calls of one run."""
    argument_bytes: int = MIB
    """JSON of one call's arguments."""
    result_bytes: int = 16 * MIB
    """JSON of one result, and of the value that the script returns."""
    code_bytes: int = 256 * KIB
    """The script."""
    output_chars: int = 40_000
    """Output that a model gets to see: longer output keeps its start and its end."""
    written_bytes: int = 4 * MIB
    """All that a script may write; one that writes more fails."""
    store_value_chars: int = 262_144
    """JSON of one value that a script stores."""
    store_total_chars: int = 1_048_576
    """JSON of all values of one owner."""
    store_keys: int = 10_000
    """Keys of one owner: each run reads them all."""
    runs: int = 32
    """Runs at once; more wait for their turn."""
    mutation_wait_ms: int = 10_000
    """How long a call waits for a workspace that somebody outside the run keeps busy."""

    def options(self) -> LimitOptions:
        """Return the limits by name."""
        return LimitOptions(**asdict(self))

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"the limit {field.name} must be an integer from 1")
            if value > LIMIT_MAX:
                raise ValueError(f"the limit {field.name} must be at most {LIMIT_MAX}")
        if not MEMORY_MIB_MIN <= self.memory_mib <= MEMORY_MIB_MAX:
            raise ValueError("the limit memory_mib must be from 2 to 4096")
