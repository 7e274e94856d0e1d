import pytest

from codespace.domain.coordination import named_work


def test_a_call_need_not_be_part_of_a_work() -> None:
    assert named_work({}) is None
    assert named_work({"work_id": None}) is None


def test_a_call_names_its_work() -> None:
    assert named_work({"work_id": "work-1"}) == "work-1"


@pytest.mark.parametrize("value", [1, True, ["work-1"], {"work_id": "work-1"}])
def test_a_work_is_named_by_text_alone(value: object) -> None:
    with pytest.raises(TypeError):
        named_work({"work_id": value})
