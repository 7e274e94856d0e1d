"""What a script asks about its tools, checked and answered (pure)."""

from collections.abc import Sequence

from codespace.codemode.discovery import SEARCH_LIMIT, SEARCH_MAX, Catalogue
from codespace.codemode.json_values import as_object
from codespace.codemode.protocol import Question
from codespace.codemode.tool import ToolError

WORDS_CHARS_MAX = 1_000
"""A question is a few words, or a name."""


def answer(catalogue: Catalogue, question: Question, arguments: Sequence[object]) -> object:
    """Return the answer to a question.

    Raises:
        ToolError: INVALID_ARGUMENT.
    """
    first = arguments[0] if arguments else None
    if not isinstance(first, str):
        raise ToolError("INVALID_ARGUMENT", f"{question.value} takes a text as its first argument.")
    if len(first) > WORDS_CHARS_MAX:
        problem = f"{question.value} takes at most {WORDS_CHARS_MAX} characters."
        raise ToolError("INVALID_ARGUMENT", problem)
    match question:
        case Question.SEARCH:
            options = as_object(arguments[1] if len(arguments) > 1 else None)
            return catalogue.search(
                first, limit=_limit(options.get("limit")), namespace=_namespace(options)
            )
        case Question.TOOL:
            return catalogue.describe_tool(first)
        case Question.NAMESPACE:
            return catalogue.describe_namespace(first)


def _limit(given: object) -> int:
    if given is None:
        return SEARCH_LIMIT
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 1:
        raise ToolError("INVALID_ARGUMENT", "limit must be a number from 1.")
    return int(min(given, SEARCH_MAX))


def _namespace(options: object) -> str:
    given = as_object(options).get("namespace")
    if given is None:
        return ""
    if not isinstance(given, str):
        raise ToolError("INVALID_ARGUMENT", "namespace must be a text.")
    return given
