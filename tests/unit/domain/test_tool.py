"""Arguments are bound to a tool: what is accepted, what is refused, and what a refusal says."""

import json
import math
from collections.abc import Mapping
from typing import Annotated, Literal, cast

import pytest
from pydantic import Field

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import WorkspaceId
from codespace.domain.tool import Call, Effect, Json, Params, Result, Tool, define
from codespace.domain.workspace import Root, Workspace
from schemas import fits

WORKSPACE = Workspace(WorkspaceId("demo"), Root("/", 1, 2))
SECRET = "hunter2-hunter2"


class Everything(Params):
    """Arguments of every kind."""

    workspace_id: str | None = None
    """The workspace."""
    text: str = "x"
    count: Annotated[int, Field(ge=0, le=100)] = 0
    maybe: Annotated[int, Field(ge=1)] | None = None
    ratio: float = 0.5
    flag: bool = False
    words: list[str] = Field(default_factory=list)
    table: dict[str, Annotated[str, Field(pattern="^[a-z]+$")]] = Field(default_factory=dict)
    kind: Literal["one", "two"] = "one"
    key: Annotated[str, Field(min_length=1, max_length=5)] = "k"


class Echo(Result):
    """What came in."""

    text: str
    count: int | None = None
    source: str | None = Field(default=None, serialization_alias="from")


async def echo(params: Everything, call: Call) -> Echo:
    """Say it again.

    The form is:

        *** Begin
        -  indented
        +    more
    """
    return Echo(text=params.text, count=params.maybe, source=params.kind)


def tool() -> Tool:
    return define("echo", Effect.READ, Everything, Echo, echo, title="Echo")


def refused(**arguments: object) -> CodeSpaceError:
    with pytest.raises(CodeSpaceError) as caught:
        tool().bind(arguments)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    return caught.value


async def ran(**arguments: object) -> Json:
    return await tool().bind(arguments).run(Call())


@pytest.mark.anyio
async def test_a_result_is_json_with_the_wires_names_and_without_what_is_absent() -> None:
    assert await ran(text="hello") == {"text": "hello", "from": "one"}
    assert await ran(maybe=3) == {"text": "x", "count": 3, "from": "one"}


def test_the_named_workspace_is_known_before_anything_runs() -> None:
    assert tool().bind({"workspace_id": "demo"}).workspace_id == "demo"
    assert tool().bind({}).workspace_id is None
    assert tool().bind({"workspace_id": None}).workspace_id is None


def test_unknown_arguments_are_ignored() -> None:
    bound = tool().bind({"approved": True, "network": True, "user_id": 1, "deep": [[["x"]]]})
    assert bound.workspace_id is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", 1),
        ("text", None),
        ("text", ["a"]),
        ("text", b"bytes"),
        ("count", "1"),
        ("count", True),
        ("count", None),
        ("count", 1.5),
        ("count", -1),
        ("count", -1.0),
        ("count", 101),
        ("count", 101.0),
        ("count", 2**64),
        ("count", 1e300),
        ("count", math.nan),
        ("count", math.inf),
        ("count", -math.inf),
        ("maybe", 0),
        ("maybe", True),
        ("maybe", "1"),
        ("maybe", 0.0),
        ("flag", 1),
        ("flag", "true"),
        ("flag", 1.0),
        ("flag", None),
        ("words", "abc"),
        ("words", {"a": 1}),
        ("table", [["a", "b"]]),
        ("kind", "three"),
        ("key", ""),
        ("key", "toolong"),
        ("workspace_id", 7),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(name: str, value: object) -> None:
    error = refused(**{name: value})
    assert error.details["path"] == name
    assert error.message.startswith(f"echo: {name}: ")
    assert error.message.endswith(".")
    assert error.message.count("\n") == 0


@pytest.mark.parametrize("value", [0, 7, 100, 7.0, 0.0, -0.0, 100.0])
def test_a_whole_number_is_an_integer_however_its_json_is_written(value: float) -> None:
    assert tool().bind({"count": value, "maybe": 1.0}).workspace_id is None


@pytest.mark.anyio
async def test_a_whole_number_reaches_the_handler_as_an_integer() -> None:
    answer = await ran(maybe=5.0)
    assert type(answer["count"]) is int


def test_a_number_that_is_not_for_an_integer_is_left_alone() -> None:
    assert Everything.model_validate({"ratio": 2.0}).ratio == 2.0
    assert refused(text=1.0).details["path"] == "text"


@pytest.mark.parametrize("arguments", [None, 1, "text", ["a"]])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        tool().bind(cast("Json", arguments))
    assert caught.value.message.startswith("echo: the arguments: ")
    assert caught.value.details["path"] == ""


def test_places_inside_a_value_are_named() -> None:
    assert refused(words=["a", "b", 3]).details["path"] == "words.2"
    assert refused(table={"a": "ok", "b": "NO"}).details["path"] == "table.b"
    assert refused(table={"a": None}).details["path"] == "table.a"


def test_every_problem_is_told_but_not_thousands() -> None:
    both = refused(text=1, count="x")
    problems = cast("list[Mapping[str, str]]", both.details["problems"])
    assert [problem["path"] for problem in problems] == ["text", "count"]
    assert all(problem["problem"] for problem in problems)
    many = refused(words=list(range(5_000)))
    assert len(cast("list[object]", many.details["problems"])) == 20


@pytest.mark.parametrize(
    "arguments",
    [
        {"count": SECRET},
        {"maybe": SECRET},
        {"flag": SECRET},
        {"ratio": SECRET},
        {"kind": SECRET},
        {"key": SECRET},
        {"words": SECRET},
        {"words": [{SECRET: SECRET}]},
        {"table": SECRET},
        {"table": {"a": SECRET}},
        {"text": [SECRET]},
        {"text": f"{SECRET}\ud800"},
        {"words": [f"{SECRET}\udfff"]},
        {"workspace_id": {"id": SECRET}},
    ],
)
def test_a_refusal_never_repeats_a_value(arguments: dict[str, object]) -> None:
    error = refused(**arguments)
    assert SECRET not in json.dumps(error.body())
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"text": "a\ud800"}, "text"),
        ({"key": "\udc00"}, "key"),
        ({"words": ["fine", "\ud83d"]}, "words.1"),
        ({"workspace_id": "\udcff"}, "workspace_id"),
    ],
)
def test_half_a_character_is_refused_since_no_file_can_hold_it(
    arguments: dict[str, object], place: str
) -> None:
    error = refused(**arguments)
    assert error.details["path"] == place
    json.dumps(error.body(), ensure_ascii=False).encode()


def test_half_a_character_in_a_key_is_refused_too() -> None:
    error = refused(table={"\ud800": "ok"})
    assert error.details["path"] == "table.\\ud800"
    json.dumps(error.body(), ensure_ascii=False).encode()


def test_whole_characters_beyond_the_basic_plane_are_fine() -> None:
    assert tool().bind({"text": "😀", "words": ["é"], "table": {"ß": "ok"}}).workspace_id is None


def test_half_a_character_in_an_ignored_argument_is_ignored() -> None:
    assert tool().bind({"nonsense": "\ud800"}).workspace_id is None


def test_a_clients_key_is_shown_on_one_line_and_cut() -> None:
    error = refused(table={"a\nb" + "c" * 1_000: 1})
    assert error.details["path"] == "table.a\\nb" + "c" * 97
    assert "\n" not in error.message


def test_a_missing_argument_is_named() -> None:
    class Needs(Params):
        path: str

    async def handler(params: Needs, call: Call) -> Echo:
        return Echo(text=params.path)

    needs = define("needs", Effect.READ, Needs, Echo, handler, title="Needs")
    with pytest.raises(CodeSpaceError) as caught:
        needs.bind({})
    assert caught.value.details["path"] == "path"
    assert "required" in caught.value.message


def test_the_description_is_the_docstring_with_its_block_kept() -> None:
    assert tool().description.splitlines() == [
        "Say it again.",
        "",
        "The form is:",
        "",
        "    *** Begin",
        "    -  indented",
        "    +    more",
    ]


def test_texts_under_fields_reach_the_client() -> None:
    properties = cast("Mapping[str, Mapping[str, object]]", tool().input_schema["properties"])
    assert properties["workspace_id"]["description"] == "The workspace."


def test_the_input_schema_has_a_flat_root_and_refuses_no_extra_argument() -> None:
    schema = tool().input_schema
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "additionalProperties"} & set(schema)


def test_the_input_schema_tells_the_bounds_of_an_integer() -> None:
    properties = cast("Mapping[str, Mapping[str, object]]", tool().input_schema["properties"])
    assert properties["count"]["type"] == "integer"
    assert (properties["count"]["minimum"], properties["count"]["maximum"]) == (0, 100)


@pytest.mark.anyio
async def test_the_output_schema_admits_results_and_errors_and_nothing_else() -> None:
    schema = tool().output_schema
    assert schema["type"] == "object"
    assert fits(schema, await ran(maybe=2))
    assert fits(schema, refused(text=1).body())
    assert fits(schema, refused(text=1).of_operation("op-1").body())
    assert not fits(schema, {"unrelated": 1})


def test_a_call_that_names_a_workspace_has_the_permitted_one() -> None:
    assert Call(WORKSPACE).permitted is WORKSPACE


def test_asking_for_a_workspace_that_was_not_permitted_is_a_bug() -> None:
    with pytest.raises(RuntimeError):
        _ = Call().permitted


@pytest.mark.anyio
async def test_a_tool_may_keep_its_nulls_and_have_words_and_a_view_of_its_own() -> None:
    def show(body: Json) -> list[Json]:
        return [{"type": "text", "text": str(body["text"])}]

    made = define(
        "echo",
        Effect.READ,
        Everything,
        Echo,
        echo,
        title="Echo",
        description="In other words.",
        nulls=True,
        show=show,
        takes_lease=True,
    )
    body = await made.bind({"text": "a"}).run(Call())
    assert body == {"text": "a", "count": None, "from": "one"}
    assert (made.description, made.takes_lease) == ("In other words.", True)
    assert made.show is not None
    assert made.show(body) == [{"type": "text", "text": "a"}]
    assert (tool().show, tool().takes_lease) == (None, False)


class Named(Params):
    """Two arguments that must be there."""

    path: str
    command: str


async def named(params: Named, call: Call) -> Echo:
    """Say the path."""
    return Echo(text=params.path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pth": "a", "command": "x", "other": 1}, "Field required; 'pth' is no argument of it"),
        ({"cmd": "a", "path": "x"}, "Field required; 'cmd' is no argument of it"),
        ({"script": "a", "path": "x"}, "Field required; 'script' is no argument of it"),
        ({"a": 1, "b": 2, "path": "x"}, "Field required"),
        ({"path": "x"}, "Field required"),
        ({"pth\ud800\n": "a", "command": "x"}, r"Field required; 'pth\\ud800\\n' is no argument"),
    ],
)
def test_a_name_that_was_given_in_place_of_a_missing_one_is_told(given: Json, said: str) -> None:
    refused = define("named", Effect.READ, Named, Echo, named, title="Named")
    with pytest.raises(CodeSpaceError) as caught:
        refused.bind(given)
    assert said in caught.value.message
    assert ("no argument" in caught.value.message) == ("no argument" in said)
