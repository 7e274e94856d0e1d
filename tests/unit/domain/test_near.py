"""Which word was probably meant."""

from codespace.domain.near import meant, near


def test_the_most_like_come_first_and_the_unlike_not_at_all() -> None:
    assert near("pth", ["path", "patch", "query"], most=3) == ["path", "patch"]


def test_a_question_names_one_word_or_is_not_asked() -> None:
    assert meant("max_byte", ["path", "max_bytes"]) == " (did you mean max_bytes?)"
    assert meant("approved", ["path", "max_bytes"]) == ""


def test_a_word_of_any_length_is_looked_at_only_so_far() -> None:
    assert meant("x" * 10_000_000, ["x" * 90]) == f" (did you mean {'x' * 90}?)"
