import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.outcome import ImageItem, Item, TextItem
from codespace.codemode.output import MARK_CHARS, cut, joined, kept_chars, text_of, total_chars

IMAGE = ImageItem({"type": "image", "data": "AA==", "mimeType": "image/png"})


def test_neighbouring_texts_become_one() -> None:
    items: list[Item] = [TextItem("a"), TextItem("b"), IMAGE, TextItem("c")]

    assert joined(items) == [TextItem("a\nb"), IMAGE, TextItem("c")]
    assert text_of(items) == "a\nb\n[image]\nc"


def test_output_within_the_limit_is_left_alone() -> None:
    items: list[Item] = [TextItem("abc"), IMAGE]

    assert cut(items, 3) == items


def test_a_long_text_keeps_its_start_and_its_end() -> None:
    text = "A-FIRST " + "x" * 10_000 + " Z-LAST"

    (kept,) = cut([TextItem(text)], 1_000, path="/outputs/1.txt")

    assert isinstance(kept, TextItem)
    assert kept.text.startswith("A-FIRST xxx")
    assert kept.text.endswith("xxx Z-LAST")
    assert (
        "characters of output are left out here; the whole output is in /outputs/1.txt" in kept.text
    )
    assert len(kept.text) <= 1_000


def test_images_stay_where_they_were() -> None:
    items: list[Item] = [
        TextItem("a" * 900),
        IMAGE,
        TextItem("b" * 900),
        IMAGE,
        TextItem("c" * 900),
    ]

    kept = cut(items, 1_000)

    assert [item for item in kept if isinstance(item, ImageItem)] == [IMAGE, IMAGE]
    assert isinstance(kept[0], TextItem)
    assert kept[0].text.startswith("a" * 400)
    assert kept[-1] == TextItem("c" * 420)


@given(
    st.lists(st.text(min_size=1, max_size=300).map(TextItem) | st.just(IMAGE), max_size=12),
    st.integers(1, 900),
)
def test_a_cut_is_never_longer_than_its_limit_and_its_mark(items: list[Item], limit: int) -> None:
    whole = joined(items)

    kept = cut(whole, limit)

    assert total_chars(kept) <= max(limit, MARK_CHARS)
    assert kept.count(IMAGE) == whole.count(IMAGE)
    if total_chars(whole) > limit:
        assert sum("left out here" in item.text for item in kept if isinstance(item, TextItem)) == 1


@pytest.mark.parametrize("limit", [1, 50])
def test_a_tiny_limit_still_says_what_is_missing(limit: int) -> None:
    (kept,) = cut([TextItem("x" * 500)], limit)

    assert kept == TextItem("[… 500 characters of output are left out here …]")


@pytest.mark.parametrize(
    ("chars", "limit", "kept"), [(100, 100, 100), (101, 100, 0), (900, 500, 340)]
)
def test_what_is_kept_is_counted_without_the_line_that_says_so(
    chars: int, limit: int, kept: int
) -> None:
    assert kept_chars(chars, limit) == kept
    assert text_of(cut([TextItem("x" * chars)], limit)).count("x") == kept
