from typing import cast

import pytest

from codespace.codemode.discovery import OBSERVED_MAX, OWN, Catalogue
from codespace.codemode.protocol import Question
from codespace.codemode.questions import answer
from codespace.codemode.tool import Tool, ToolError


async def _nothing(arguments: object) -> None:
    return None


def _tool(name: str, description: str = "", *parameters: str) -> Tool:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return Tool(name, _nothing, description=description, input_schema=schema)


CATALOGUE = Catalogue(
    [
        _tool("read", "Reads a file of the workspace.", "path"),
        _tool("mcp__hub__list-issues", "Lists issues.\nMore about it.", "state", "repository"),
        _tool("mcp__hub__create_issue", "Creates an issue.", "title"),
        _tool("mcp__mail__send", "Sends a mail to a person.", "recipient"),
    ],
    instructions={"hub": "Be gentle."},
)


def _found(query: str, **options: object) -> list[str]:
    found = answer(CATALOGUE, Question.SEARCH, [query, options])
    return [str(each["name"]) for each in cast("list[dict[str, object]]", found)]


def test_search_finds_by_names_descriptions_and_parameters() -> None:
    assert _found("list issue")[0] == "mcp__hub__list_issues"
    assert _found("send a mail")[0] == "mcp__mail__send"
    assert _found("recipient") == ["mcp__mail__send"]
    assert _found("xyzzy") == []


def test_search_keeps_to_a_namespace_and_a_limit() -> None:
    assert _found("issue file mail", namespace="mail") == ["mcp__mail__send"]
    assert _found("path", namespace=OWN) == ["read"]
    assert len(_found("issue file mail", limit=2)) == 2


def test_a_hit_has_all_that_a_call_needs() -> None:
    hit = CATALOGUE.search("list issues")[0]

    assert hit["description"] == "Lists issues.\nMore about it."
    assert "mcp__hub__list_issues(args?: { state?: string;" in str(hit["declaration"])


@pytest.mark.parametrize("name", ["mcp__hub__list-issues", "mcp__hub__list_issues"])
def test_a_tool_is_described_under_both_of_its_names(name: str) -> None:
    assert CATALOGUE.describe_tool(name)["namespace"] == "hub"


def test_an_unknown_tool_is_refused_with_near_names() -> None:
    with pytest.raises(ToolError) as refusal:
        CATALOGUE.describe_tool("mcp__mail__sent")

    assert refusal.value.code == "INVALID_ARGUMENT"
    assert "mcp__mail__send" in refusal.value.message


def test_a_namespace_tells_its_instructions_and_its_tools() -> None:
    told = CATALOGUE.describe_namespace("hub")

    assert told["instructions"] == "Be gentle."
    assert told["tools"] == [
        {"name": "mcp__hub__list_issues", "description": "Lists issues."},
        {"name": "mcp__hub__create_issue", "description": "Creates an issue."},
    ]
    with pytest.raises(ToolError, match="hub, mail, own"):
        CATALOGUE.describe_namespace("none")


def test_every_tool_is_listed() -> None:
    assert [each["name"] for each in CATALOGUE.entries()] == list(CATALOGUE.identifiers.values())


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        (Question.SEARCH, []),
        (Question.TOOL, [5]),
        (Question.SEARCH, ["a", {"limit": 0}]),
        (Question.SEARCH, ["a", {"limit": True}]),
        (Question.SEARCH, ["a", {"namespace": 5}]),
    ],
)
def test_a_question_without_sense_is_refused(question: Question, arguments: list[object]) -> None:
    with pytest.raises(ToolError, match="INVALID_ARGUMENT"):
        answer(CATALOGUE, question, arguments)


def test_results_of_a_tool_without_output_schema_are_observed_a_few_times() -> None:
    catalogue = Catalogue([_tool("t")])
    tool = catalogue.tools[0]

    for number in range(OBSERVED_MAX + 5):
        catalogue.observe(tool, {f"key_{number}": number})

    text = str(catalogue.describe_tool("t")["declaration"])
    assert "/* observed */ { key_0?: number;" in text
    assert f"key_{OBSERVED_MAX}" not in text


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are named 'a'"):
        Catalogue([_tool("b"), _tool("a"), _tool("a")])


def test_the_text_shows_own_tools_and_how_to_find_the_others() -> None:
    text = CATALOGUE.text(budget=20)

    assert "read(args?: { path?: string })" in text
    assert "tools of hub (2), mail (1)" in text
