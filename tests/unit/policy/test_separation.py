"""What must be apart, decided on identities alone."""

import pytest

from codespace.policy.separation import Ground, OwnFile, problems

TOP, A, B, OUT = (1, 1), (1, 2), (1, 3), (1, 4)


def ground(name: str, *way: tuple[int, int], writable: bool = True) -> Ground:
    """Return a workspace whose directory is the last on its way."""
    return Ground(name, way[-1], frozenset(way), writable)


def file(*way: tuple[int, int], secret: bool = True) -> OwnFile:
    return OwnFile("operations_db", "/x/ledger.db", frozenset(way), secret)


def test_directories_beside_each_other_and_files_outside_are_no_problem() -> None:
    grounds = [ground("a", TOP, A), ground("b", TOP, B, writable=False)]
    assert list(problems(grounds, [file(TOP, OUT)])) == []


def test_a_directory_has_one_lease_also_where_nothing_is_written() -> None:
    for writable in (True, False):
        grounds = [ground("one", TOP, A), ground("two", TOP, OUT, A, writable=writable)]
        (problem,) = problems(grounds, [])
        assert problem.startswith("workspaces.two.root: is the same directory as that of 'one'")


@pytest.mark.parametrize("turned", [True, False])
def test_the_outer_of_two_must_not_be_writable(*, turned: bool) -> None:
    for writable in (True, False):
        grounds = [ground("outer", TOP, A, writable=writable), ground("inner", TOP, A, B)]
        found = list(problems(grounds[::-1] if turned else grounds, []))
        assert [text.split(":")[0] for text in found] == ["workspaces.inner.root"] * writable


def test_a_workspace_reached_through_a_writable_one_counts_as_inside() -> None:
    grounds = [ground("outer", TOP, A), ground("inner", TOP, A, OUT)]
    assert len(list(problems(grounds, []))) == 1


@pytest.mark.parametrize(
    ("secret", "writable", "refused"),
    [(True, True, True), (True, False, True), (False, True, True), (False, False, False)],
)
def test_what_clients_could_read_or_change_is_named_with_its_setting(
    *, secret: bool, writable: bool, refused: bool
) -> None:
    grounds = [ground("b", TOP, B), ground("a", TOP, A, writable=writable)]
    found = list(problems(grounds, [file(TOP, A, OUT, secret=secret)]))
    assert [text.startswith("operations_db: '/x/ledger.db' lies in") for text in found] == [
        True
    ] * refused
    assert all("'a'" in text for text in found)


def test_a_root_that_went_away_is_not_where_anything_lies() -> None:
    gone = Ground("gone", None, frozenset({TOP}), writable=True)
    assert list(problems([gone, gone, ground("a", TOP, A)], [file(TOP)])) == []
