"""A tool as one value: what every consumer (MCP, command line, docs, scripts) needs and no more."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import models_json_schema

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.workspace import Workspace

Json = Mapping[str, object]


class Effect(StrEnum):
    """What a call can change. Policy, hints and replay rules follow from it."""

    INSPECT = "inspect"
    """Looks at the gateway's own records; touches no file and no process of a workspace."""
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Params(BaseModel):
    """Base of every tool's arguments: strict types, unknown arguments ignored.

    Ignored, not refused: `approved: true` must neither fail nor grant (contract, section 2).
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", use_attribute_docstrings=True
    )


class Result(BaseModel):
    """Base of every tool's result."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class ToolError(BaseModel):
    """A refused or failed call. `code` says which kind; `details` help to mend the call."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str
    details: dict[str, object] | None = None
    operation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is given beside its arguments: the workspace that policy let through.

    `workspace` is `None` for a tool that names none.
    """

    workspace: Workspace | None = None

    @property
    def permitted(self) -> Workspace:
        """The permitted workspace of a tool that always names one."""
        if self.workspace is None:
            raise CodeSpaceError(ErrorCode.INTERNAL, "The call names no workspace.")
        return self.workspace


@dataclass(frozen=True, slots=True)
class BoundCall:
    """Valid arguments, ready to run once policy agreed to `workspace_id`."""

    workspace_id: WorkspaceId | None
    run: Callable[[Call], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Has no type parameters: the tools of another server are the same kind of value.

    Attributes:
        name: as a client calls it.
        effect: what a call can change.
        title: for people.
        description: for the model.
        input_schema: JSON Schema with a flat root.
        output_schema: JSON Schema that admits a result or a `ToolError`.
        idempotent: the same call again changes nothing more.
        bind: validates arguments; raises INVALID_ARGUMENT.
    """

    name: str
    effect: Effect
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    idempotent: bool
    bind: Callable[[Json], BoundCall]


P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


def define(
    name: str,
    effect: Effect,
    params: type[P],
    result: type[R],
    handler: Callable[[P, Call], Awaitable[R]],
    *,
    title: str,
    idempotent: bool = False,
) -> Tool:
    """Make a tool of ours. The handler's docstring is the tool's description."""

    def bind(arguments: Json) -> BoundCall:
        try:
            checked = params.model_validate(arguments)
        except ValidationError as error:
            raise invalid_argument(name, error) from None

        async def run(call: Call) -> Json:
            return (await handler(checked, call)).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )

        named = cast("str | None", getattr(checked, "workspace_id", None))
        return BoundCall(None if named is None else WorkspaceId(named), run)

    return Tool(
        name=name,
        effect=effect,
        title=title,
        description=inspect.getdoc(handler) or "",
        input_schema=params.model_json_schema(),
        output_schema=_output_schema(result),
        idempotent=idempotent,
        bind=bind,
    )


def invalid_argument(tool: str, error: ValidationError) -> CodeSpaceError:
    """Turn pydantic's findings into one error that names places and never repeats values."""
    problems = [
        {"path": _place(item["loc"]), "problem": _without_value(item["msg"])}
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ][:20]
    first = problems[0]
    where = first["path"] or "the arguments"
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT,
        f"{tool}: {where}: {first['problem']}.",
        details={"path": first["path"], "problems": problems},
    )


def _place(location: tuple[int | str, ...]) -> str:
    # A key of a mapping is the client's own text: shown, but cut.
    return ".".join(str(part)[:100] for part in location)


def _without_value(message: str) -> str:
    return re.sub(r"\s+", " ", message).strip().rstrip(".")


def _output_schema(result: type[Result]) -> Json:
    # Some clients validate an error result against the output schema, too: the root admits both.
    refs, definitions = models_json_schema(
        [(result, "serialization"), (ToolError, "serialization")], ref_template="#/$defs/{model}"
    )
    return {
        "type": "object",
        "anyOf": [refs[(result, "serialization")], refs[(ToolError, "serialization")]],
        "$defs": definitions["$defs"],
    }
