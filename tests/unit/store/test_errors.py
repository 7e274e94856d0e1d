from codespace.store.errors import StoreError


def test_the_message_is_what_an_operator_reads() -> None:
    error = StoreError("Move it away.", full=True)
    assert (str(error), error.message, error.full) == ("Move it away.", "Move it away.", True)
