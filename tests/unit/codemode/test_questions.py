from collections.abc import Sequence
from typing import cast

import pytest

from codespace.codemode.discovery import SEARCH_MAX, Catalogue
from codespace.codemode.protocol import Question
from codespace.codemode.questions import answer
from codespace.codemode.tool import Tool, ToolError


async def _nothing(arguments: dict[str, object]) -> object:
    return None


CATALOGUE = Catalogue(
    [Tool(f"mcp__hub__issue_{number}", _nothing) for number in range(SEARCH_MAX + 10)]
    + [Tool("issue", _nothing)]
)


def _found(*arguments: object) -> list[object]:
    return cast("list[object]", answer(CATALOGUE, Question.SEARCH, arguments))


@pytest.mark.parametrize("question", Question)
@pytest.mark.parametrize("arguments", [[], [None], [3], [["issue"]]])
def test_a_question_without_a_text_is_refused(
    question: Question, arguments: Sequence[object]
) -> None:
    with pytest.raises(ToolError, match=f"INVALID_ARGUMENT: {question.value}"):
        answer(CATALOGUE, question, arguments)


def test_a_search_gives_as_many_as_asked_for_and_no_flood() -> None:
    assert len(_found("issue", {"limit": 2})) == 2
    assert len(_found("issue", {"limit": 2.9})) == 2
    assert len(_found("issue", {"limit": 1e300})) == SEARCH_MAX


def test_a_search_may_stay_within_a_namespace() -> None:
    assert len(_found("issue", {"namespace": "own"})) == 1
    assert _found("issue", {"namespace": "nowhere"}) == []


@pytest.mark.parametrize("limit", [0, -1, "3", True, float("nan")])
def test_a_limit_that_is_no_number_from_one_is_refused(limit: object) -> None:
    with pytest.raises(ToolError, match="limit"):
        _found("issue", {"limit": limit})


def test_a_namespace_that_is_no_text_is_refused() -> None:
    with pytest.raises(ToolError, match="namespace"):
        _found("issue", {"namespace": 1})


def test_tools_and_namespaces_are_described_by_name() -> None:
    tool = cast("dict[str, object]", answer(CATALOGUE, Question.TOOL, ["issue"]))
    space = cast("dict[str, object]", answer(CATALOGUE, Question.NAMESPACE, ["hub"]))

    assert (tool["name"], tool["namespace"]) == ("issue", "own")
    assert len(cast("list[object]", space["tools"])) == SEARCH_MAX + 10


@pytest.mark.parametrize("question", list(Question))
def test_a_question_is_a_few_words(question: Question) -> None:
    with pytest.raises(ToolError, match="at most 1000 characters"):
        answer(CATALOGUE, question, ["issue " * 200])
