"""What a script has told so far, sorted; its calls and questions are the driver's matter."""

from codespace.codemode.json_text import encode
from codespace.codemode.json_values import Json, as_text
from codespace.codemode.outcome import ImageItem, Item, TextItem
from codespace.codemode.protocol import (
    Failed,
    Image,
    Lost,
    Operation,
    Problem,
    Returned,
    Stored,
    Text,
    Unhandled,
)
from codespace.domain.sizes import MIB

IMAGES_MAX = 50
IMAGE_CHARS_MAX = 4 * MIB
"""Of all images of a run together, as base64."""


class Gathered:
    """The operations of a run that only have to be kept.

    Attributes:
        output: what it wrote, in order.
        value: what it returned.
        returned: it returned something, be it null.
        failed: the error that ended it.
        unhandled: rejections that nobody handled; `more` counts those beyond them.
        stored: keys that it wrote, with their JSON texts; None: deleted.
        images_left_out: how many images there was no room for.
    """

    def __init__(self) -> None:
        self.output: list[Item] = []
        self.value: object = None
        self.returned = False
        self.failed: Problem | None = None
        self.unhandled: list[Unhandled] = []
        self.more = 0
        self.stored: dict[str, str | None] = {}
        self.images_left_out = 0
        self._images = self._image_chars = 0

    def add(self, operation: Operation) -> None:
        """Keep an operation; calls and questions are ignored."""
        match operation:
            case Text():
                self.output.append(TextItem(operation.text))
            case Image():
                self._add_image(_image(operation.block))
            case Returned():
                self.value, self.returned = operation.value, operation.given
            case Failed():
                self.failed = operation.problem
            case Unhandled():
                self.unhandled.append(operation)
            case Lost():
                self.more = operation.rejections
            case Stored():
                text = None if operation.deleted else encode(operation.value).decode()
                self.stored[operation.key] = text
            case _:
                pass

    def _add_image(self, block: Json) -> None:
        chars = len(as_text(block["data"]))
        if self._images >= IMAGES_MAX or self._image_chars + chars > IMAGE_CHARS_MAX:
            self.images_left_out += 1
            return
        self._images += 1
        self._image_chars += chars
        self.output.append(ImageItem(block))


def _image(block: Json) -> Json:
    # Whatever else the script wrote into it might make a block of another type.
    return {"type": "image", "data": block["data"], "mimeType": block["mimeType"]}
