from codespace.codemode.gathered import IMAGE_CHARS_MAX, IMAGES_MAX, Gathered
from codespace.codemode.outcome import ImageItem, TextItem
from codespace.codemode.protocol import (
    Failed,
    Image,
    Level,
    Operation,
    Pending,
    Problem,
    Returned,
    Stored,
    Text,
    Unhandled,
)

IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
PROBLEM = Problem("Error", "no", 1, 1, "", 0, "", "")


def test_what_a_script_tells_is_kept_in_order() -> None:
    told: list[Operation] = [
        Text(Level.LOG, "a"),
        Image(IMAGE),
        Text(Level.TEXT, "b"),
        Returned({"n": 1}),
        Failed(PROBLEM),
        Unhandled(PROBLEM),
        Stored("k", deleted=False, value=[1, "é"]),
        Stored("gone", deleted=True, value=None),
        Pending(1, 1, 1),
    ]
    gathered = Gathered()

    for each in told:
        gathered.add(each)

    assert gathered.output == [TextItem("a"), ImageItem(IMAGE), TextItem("b")]
    assert gathered.value == {"n": 1}
    assert gathered.failed == PROBLEM
    assert gathered.unhandled == [Unhandled(PROBLEM)]
    assert gathered.stored == {"k": '[1,"é"]', "gone": None}


def test_an_image_is_an_image_whatever_else_the_script_wrote_into_it() -> None:
    gathered = Gathered()
    gathered.add(Image({**IMAGE, "type": "text", "annotations": 5, "more": [1]}))
    assert gathered.output == [ImageItem(IMAGE)]


def test_so_many_images_are_kept_and_the_rest_is_counted() -> None:
    gathered = Gathered()
    for _ in range(IMAGES_MAX + 2):
        gathered.add(Image(IMAGE))
    assert (len(gathered.output), gathered.images_left_out) == (IMAGES_MAX, 2)


def test_images_have_room_together() -> None:
    gathered = Gathered()
    large = {**IMAGE, "data": "A" * (IMAGE_CHARS_MAX - 4)}
    for block in (large, large, IMAGE):
        gathered.add(Image(block))
    assert gathered.output == [ImageItem(large), ImageItem(IMAGE)]
    assert gathered.images_left_out == 1
