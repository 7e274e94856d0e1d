import pytest

from codespace.codemode.typescript import (
    DOC_CHARS,
    NEVER,
    NULL,
    UNKNOWN,
    Array,
    Atom,
    Field,
    Record,
    Tuple,
    Type,
    bare_words,
    both,
    choice,
    comment,
    is_optional,
    key,
    literal,
    method,
    without,
    write,
)

STRING, NUMBER = Atom("string"), Atom("number")
POINT = Record((Field("x", NUMBER, required=True), Field("y", NUMBER, required=False)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (choice([STRING, choice([NUMBER, STRING])]), "string | number"),
        (choice([STRING, UNKNOWN]), "unknown"),
        (choice([]), "never"),
        (choice([NEVER, STRING]), "string"),
        (both([UNKNOWN, STRING]), "string"),
        (both([]), "unknown"),
        (both([STRING, NEVER]), "never"),
        (
            both([POINT, choice([POINT, NULL])]),
            "{ x: number; y?: number } & ({ x: number; y?: number } | null)",
        ),
        (Array(choice([STRING, NULL])), "(string | null)[]"),
        (Array(Array(STRING)), "string[][]"),
        (Tuple((STRING, NUMBER), 1, None), "[string, number?]"),
        (Tuple((choice([STRING, NULL]),), 0, NUMBER), "[(string | null)?, ...number[]]"),
        (Record(()), "Record<string, unknown>"),
        (Record((), NEVER), "Record<string, never>"),
        (Record((), NUMBER), "{ [key: string]: number }"),
        (
            Record((Field("a-b", STRING, required=True),), NUMBER),
            '{ "a-b": string } & { [key: string]: number }',
        ),
    ],
)
def test_a_type_is_written(kind: Type, text: str) -> None:
    assert write(kind) == text


def test_an_object_with_other_properties_is_one_type_wherever_it_stands() -> None:
    mixed = Record((Field("a", STRING, required=True),), NUMBER)
    inner = "{ a: string } & { [key: string]: number }"
    assert write(Array(mixed)) == f"({inner})[]"
    assert write(Tuple((mixed,), 0, mixed)) == f"[({inner})?, ...({inner})[]]"
    assert write(both([mixed, POINT])).startswith(inner)


def test_comments_put_properties_on_lines_of_their_own() -> None:
    kind = Record((Field("a", Array(POINT), required=True, doc="first\nsecond"),))

    assert write(kind) == (
        "{\n  /**\n   * first\n   * second\n   */\n  a: { x: number; y?: number }[];\n}"
    )


def test_a_wide_object_is_broken_into_lines() -> None:
    kind = Record(tuple(Field(f"property_{n}", STRING, required=True) for n in range(5)))

    assert write(kind).count("\n") == 6


def test_deep_nesting_is_written_in_reasonable_time() -> None:
    kind: Type = STRING
    for _ in range(200):
        kind = Record((Field("inner", kind, required=True, doc="d"),))

    assert write(kind).count("inner") == 200


def test_a_comment_cannot_be_ended_from_inside() -> None:
    assert comment("a */ b") == "/** a *\\/ b */\n"
    assert comment("") == ""
    assert "\u2028" not in comment("a\u2028b\x00c\ud800")


def test_a_long_comment_is_cut() -> None:
    assert len(comment("x" * 5000)) < DOC_CHARS + 20


def test_names_are_quoted_where_they_must_be() -> None:
    assert [key("a1"), key("a-b"), key("1a"), key("")] == ["a1", '"a-b"', '"1a"', '""']
    assert [method("new"), method("delete"), method("日本")] == ['"new"', "delete", "日本"]


def test_a_literal_has_no_character_that_ends_a_line() -> None:
    assert literal('"\n\u2028\ud800') == '"\\"\\n\\u2028\\ud800"'


def test_only_objects_without_required_properties_may_be_left_out() -> None:
    assert is_optional(Record(()))
    assert not is_optional(POINT)
    assert not is_optional(UNKNOWN)


def test_bare_words_are_those_outside_of_objects_and_arrays() -> None:
    kind = choice(
        [STRING, both([Atom("a"), POINT]), Array(Atom("b")), Tuple((Atom("c"),), 1, None)]
    )

    assert list(bare_words(kind)) == ["string", "a"]


def test_a_type_without_some_words_says_unknown_for_them() -> None:
    assert without(Atom("a"), {"a"}) == UNKNOWN
    assert without(both([Atom("a"), POINT]), {"a"}) == POINT
    assert without(choice([Atom("a"), POINT]), {"a"}) == UNKNOWN
    assert without(Array(Atom("a")), {"a"}) == Array(Atom("a"))
