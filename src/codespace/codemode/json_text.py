"""JSON text as it goes into a VM (pure)."""

import json
import json.encoder
from collections.abc import Callable


def _encoder() -> Callable[[object], str]:
    # `JSONEncoder.encode` makes the same inner encoder anew for each value, which takes longer than
    # a small value does. Where the library has no such inner one, that is what is left.
    make = getattr(json.encoder, "c_make_encoder", None)
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
    if make is None:
        return plain.encode
    escaped = json.encoder.encode_basestring
    inner = make(None, plain.default, escaped, None, ":", ",", False, False, True)  # noqa: FBT003 -- a C function
    return lambda value: "".join(inner(value, 0))


text_of_json = _encoder()
"""JSON text of a value, without blanks; raises as `encode` does."""


def encode(value: object) -> bytes:
    """Return `value` as JSON bytes; a lone surrogate becomes U+FFFD.

    Raises:
        TypeError: it is no JSON value.
        RecursionError: it is nested too deep, or holds itself.
    """
    return utf8(text_of_json(value))


def utf8(text: str) -> bytes:
    """Return `text` as UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
