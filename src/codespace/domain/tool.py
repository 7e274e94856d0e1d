"""A tool as one value: what every consumer (MCP, command line, docs, scripts) needs and no more."""

import inspect
import re
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypedDict, TypeVar, Unpack, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import ErrorDetails

from codespace.domain.attribute_docs import Described
from codespace.domain.coordination import (
    ARGUMENT,
    ARGUMENT_SCHEMA,
    FIELD,
    FIELD_SCHEMA,
    Coordination,
    named_work,
)
from codespace.domain.effect import Effect
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkId, WorkspaceId
from codespace.domain.near import near
from codespace.domain.unicode_text import broken_text
from codespace.domain.workspace import Workspace

Json = Mapping[str, object]

PROBLEMS_MAX = 20
"""An INVALID_ARGUMENT tells of at most this many places."""


class Params(Described):
    """Base of every tool's arguments: strict types, unknown arguments ignored.

    Ignored, not refused: `approved: true` must neither fail nor grant (contract, section 2).
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _integers_as_json_has_them(cls, data: object) -> object:
        # In JSON Schema 1.0 is an integer, and some clients write it so; to Python it is not.
        if not isinstance(data, Mapping):
            return data
        given = cast("Json", data)
        whole = {
            name: int(value)
            for name, value in given.items()
            if isinstance(value, float) and value.is_integer() and cls._takes_integer(name)
        }
        return {**given, **whole}

    @classmethod
    def _takes_integer(cls, name: str) -> bool:
        field = cls.model_fields.get(name)
        return field is not None and _admits_integer(field.annotation)


class Result(Described):
    """Base of every tool's result."""

    model_config = ConfigDict(frozen=True)


class ToolError(BaseModel):
    """A refused or failed call. `code` says which kind; `details` help to mend the call."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str
    details: dict[str, object] | None = None
    operation_id: str | None = None
    approval_id: str | None = None


Report = Callable[[int, int], Awaitable[None]]
"""Called with how many parts of the work are done, and how many are known so far."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is given beside its arguments.

    Attributes:
        workspace: the one that policy let through; `None` for a tool that names none.
        report: tells whoever waits how far the work is; `None` when nobody wants to know.
        owned: the caller is a script: what a call has begun ends when the call is cancelled. A
            client that goes away, in contrast, changes nothing.
        work_id: the open work that the call is part of.
    """

    workspace: Workspace | None = None
    report: Report | None = None
    owned: bool = False
    work_id: WorkId | None = None

    @property
    def permitted(self) -> Workspace:
        """The permitted workspace of a tool that always names one."""
        if self.workspace is None:
            raise RuntimeError("a tool that names no workspace asked for the permitted one")
        return self.workspace


@dataclass(frozen=True, slots=True)
class BoundCall:
    """Valid arguments, ready to run once policy agreed to `workspace_id`, in an open work.

    Attributes:
        workspace_id: where the call is to happen.
        run: makes the call.
        work_id: the work that it is a part of.
        mutates: whether this very call waits for a confirmation, where the operator wants one.
        known: says what is known without doing anything: the recorded result of the same call, a
            refusal that is certain, or `None`. Such a call is never held.
        given: the arguments with their defaults, and without those that the tool does not know.
    """

    workspace_id: WorkspaceId | None
    run: Callable[[Call], Awaitable[Json]]
    work_id: WorkId | None = None
    mutates: bool = False
    known: Callable[[Call], Awaitable[Json | None]] | None = None
    given: Callable[[], Json] = dict


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
        takes_lease: a call needs the workspace's mutation lease.
        show: makes a result into MCP content blocks for a reader; its JSON is shown when absent.
        search_words: what else a search of a script finds it by; no client is shown them.
    """

    name: str
    effect: Effect
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    idempotent: bool
    bind: Callable[[Json], BoundCall]
    takes_lease: bool = False
    show: Callable[[Json], Sequence[Json]] | None = None
    search_words: str = ""


P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


class ToolOptions(TypedDict, Generic[P, R], total=False):
    """What can be said of a tool of ours beside the rest; see `Tool`.

    Attributes:
        idempotent: as `Tool` has it.
        takes_lease: as `Tool` has it.
        show: as `Tool` has it.
        search_words: as `Tool` has it.
        description: in place of the handler's docstring.
        nulls: a field without a value is in the result as `null`, not left out.
        of_work: it takes `work_id`, and its result then has `coordination`.
        mutates: as `BoundCall` has it, for these arguments; no call does when it is left out.
        known: as `BoundCall` has it.
    """

    idempotent: bool
    takes_lease: bool
    show: Callable[[Json], Sequence[Json]]
    search_words: str
    description: str
    nulls: bool
    of_work: bool
    mutates: Callable[[P], bool]
    known: Callable[[P, Call], Awaitable[R | None]]


def define(
    name: str,
    effect: Effect,
    params: type[P],
    result: type[R],
    handler: Callable[[P, Call], Awaitable[R]],
    *,
    title: str,
    **options: Unpack[ToolOptions[P, R]],
) -> Tool:
    """Make a tool of ours. The handler's docstring is the tool's description."""
    nulls, of_work = options.get("nulls", False), options.get("of_work", False)
    mutates, recorded = options.get("mutates"), options.get("known")

    def told(result: R) -> Json:
        return result.model_dump(mode="json", by_alias=True, exclude_none=not nulls)

    def bind(arguments: Json) -> BoundCall:
        try:
            checked = params.model_validate(arguments)
        except ValidationError as error:
            taken = {*params.model_fields, ARGUMENT} if of_work else params.model_fields
            raise invalid_argument(name, error, _unmeant(taken, arguments)) from None
        _require_unicode(name, vars(checked))
        work_id = _work(name, arguments) if of_work else None

        async def run(call: Call) -> Json:
            return told(await handler(checked, call))

        async def known(call: Call) -> Json | None:
            result = None if recorded is None else await recorded(checked, call)
            return None if result is None else told(result)

        named = cast("str | None", getattr(checked, "workspace_id", None))
        return BoundCall(
            None if named is None else WorkspaceId(named),
            run,
            work_id,
            mutates=mutates is not None and mutates(checked),
            known=known,
            given=lambda: checked.model_dump(mode="json"),
        )

    return Tool(
        name=name,
        effect=effect,
        title=title,
        description=options.get("description") or inspect.getdoc(handler) or "",
        input_schema=_input_schema(params, of_work=of_work),
        output_schema=_output_schema(result, of_work=of_work),
        idempotent=options.get("idempotent", False),
        bind=bind,
        takes_lease=options.get("takes_lease", False),
        show=options.get("show"),
        search_words=options.get("search_words", ""),
    )


def invalid_argument(
    tool: str, error: ValidationError, unmeant: Sequence[str] = ()
) -> CodeSpaceError:
    """Turn pydantic's findings into one error that names places and never repeats values.

    `unmeant` are the names that were given and are none of the tool's: where one is much like a
    name that is missing, that is said.
    """
    return _misfit(
        tool,
        [
            {"path": _place(item["loc"]), "problem": _problem(item, unmeant)}
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ],
    )


def _problem(item: ErrorDetails, unmeant: Sequence[str]) -> str:
    said = re.sub(r"\s+", " ", item["msg"]).rstrip(". ")
    if item["type"] != "missing" or len(item["loc"]) != 1:
        return said
    mistaken = near(str(item["loc"][0]), unmeant) or (unmeant if len(unmeant) == 1 else ())
    return f"{said}; {_place((mistaken[0],))!r} is no argument of it" if mistaken else said


def _unmeant(known: Container[str], arguments: object) -> list[str]:
    if not isinstance(arguments, Mapping):
        return []
    given = islice(map(str, cast("Json", arguments)), PROBLEMS_MAX)
    return [name for name in given if name not in known]


def _misfit(tool: str, problems: list[dict[str, str]]) -> CodeSpaceError:
    first = problems[0]
    where = first["path"] or "the arguments"
    return CodeSpaceError(
        ErrorCode.INVALID_ARGUMENT,
        f"{tool}: {where}: {first['problem']}.",
        details={"path": first["path"], "problems": problems[:PROBLEMS_MAX]},
    )


def _place(location: tuple[int | str, ...]) -> str:
    # A key of a mapping is the client's own text: shown, but escaped and cut.
    return ".".join(repr(str(part)[:100])[1:-1] for part in location)


def _admits_integer(annotation: object) -> bool:
    return annotation is int or any(_admits_integer(part) for part in get_args(annotation))


def _require_unicode(tool: str, arguments: Json) -> None:
    # JSON can carry half a surrogate pair; UTF-8, and so every file, pipe and database, cannot.
    broken = broken_text(arguments)
    if broken is not None:
        problem = "Text should be valid Unicode, without lone surrogates"
        raise _misfit(tool, [{"path": _place(broken), "problem": problem}])


def _work(tool: str, arguments: Json) -> WorkId | None:
    try:
        work_id = named_work(arguments)
    except TypeError:
        problem = "Input should be a valid string"
        raise _misfit(tool, [{"path": ARGUMENT, "problem": problem}]) from None
    _require_unicode(tool, {ARGUMENT: work_id})
    return work_id


def _input_schema(params: type[Params], *, of_work: bool) -> Json:
    schema = params.model_json_schema()
    if of_work:
        schema["properties"][ARGUMENT] = dict(ARGUMENT_SCHEMA)
    return schema


def _output_schema(result: type[Result], *, of_work: bool) -> Json:
    # Some clients validate an error result against the output schema, too: the root admits both.
    parts = [result, ToolError, *([Coordination] if of_work else [])]
    refs, definitions = models_json_schema(
        [(part, "serialization") for part in parts], ref_template="#/$defs/{model}"
    )
    if of_work:
        definitions["$defs"][result.__name__]["properties"][FIELD] = dict(FIELD_SCHEMA)
    return {
        "type": "object",
        "anyOf": [refs[(result, "serialization")], refs[(ToolError, "serialization")]],
        "$defs": definitions["$defs"],
    }
