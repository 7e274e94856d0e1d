import pytest

from codespace.codemode.near import refuse_unknown

KNOWN = ("timeout_ms", "memory_mib")


def test_names_that_are_known_pass() -> None:
    refuse_unknown("limit", ["memory_mib"], KNOWN)


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError, match="no limit 'timout_ms'; did you mean 'timeout_ms'"):
        refuse_unknown("limit", ["timout_ms"], KNOWN)


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(TypeError, match="no limit 'x'; known are timeout_ms, memory_mib"):
        refuse_unknown("limit", ["x"], KNOWN)
