"""The one form of a section's refusal."""

from codespace.domain.errors import ErrorCode
from codespace.patching.refusal import Spot, cut


def test_a_refusal_names_its_section():
    error = Spot(2, "a b").refused(ErrorCode.FILE_NOT_FOUND, "no file is there")
    assert error.code is ErrorCode.FILE_NOT_FOUND
    assert error.message == "Section 2 ('a b'): no file is there."
    assert error.details == {"path": "a b", "section": 2}


def test_a_refusal_names_its_chunk_and_keeps_its_own_details():
    spot = Spot(1, "a", chunk=3, line=9)
    error = spot.refused(ErrorCode.INVALID_PATCH, "no match", details={"nearest": {}})
    assert error.message == "Section 1 ('a'), chunk 3: no match."
    assert error.details == {"path": "a", "section": 1, "chunk": 3, "line": 9, "nearest": {}}


def test_long_lines_are_cut():
    assert cut("x" * 200) == "x" * 200
    assert cut("x" * 201) == "x" * 200 + "…"
