import pytest

from codespace.store.errors import StoreError, damaged, foreign, too_new


def test_the_message_is_what_an_operator_reads() -> None:
    error = StoreError("Move it away.", full=True)
    assert (str(error), error.message, error.full) == ("Move it away.", "Move it away.", True)


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (damaged("/x/l.db", "why"), "is damaged or is no database (why)"),
        (foreign("/x/l.db"), "of another program"),
        (too_new("/x/l.db"), "by a newer version"),
    ],
)
def test_each_trouble_names_the_file_and_what_to_do(error: StoreError, trouble: str) -> None:
    assert "'/x/l.db'" in error.message
    assert trouble in error.message
    assert "CODESPACE_OPERATIONS_DB" in error.message
