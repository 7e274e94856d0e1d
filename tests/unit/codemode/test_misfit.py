from codespace.codemode.misfit import PART_CHARS, SHOWN_MAX, Misfit, details_of, place


def test_a_sentence_names_the_place_or_the_whole() -> None:
    assert Misfit("a.0", "must be text").sentence == "a.0 must be text"
    assert Misfit("", "must be object").sentence == "the value must be object"


def test_a_path_joins_names_and_numbers() -> None:
    assert place(["items", 3, "name"]) == "items.3.name"
    assert place([]) == ""


def test_a_propertys_name_cannot_break_the_line_or_fill_the_page() -> None:
    assert place(["a\nb"]) == "a\\nb"
    assert len(place(["x" * 5_000])) == PART_CHARS


def test_details_show_the_first_places_and_not_a_flood() -> None:
    many = [Misfit(str(number), "is odd") for number in range(SHOWN_MAX + 5)]

    details = details_of(many)

    assert details["path"] == "0"
    assert details["problems"] == [
        {"path": str(number), "problem": "is odd"} for number in range(SHOWN_MAX)
    ]
