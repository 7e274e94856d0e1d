"""Who may begin when: as a state machine against a plain model."""

from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.schedule import Schedule


def test_so_many_run_at_a_time_and_the_rest_follow_in_order() -> None:
    schedule = Schedule(2)
    for call_no in (1, 2, 3, 4):
        schedule.add(call_no, None)

    assert [schedule.take(), schedule.take(), schedule.take()] == [1, 2, None]
    schedule.done(2)
    assert [schedule.take(), schedule.take()] == [3, None]


def test_calls_with_one_key_run_one_after_another_and_hold_up_nobody_else() -> None:
    schedule = Schedule(4)
    for call_no, key in ((1, "w"), (2, "w"), (3, None), (4, "v"), (5, "w")):
        schedule.add(call_no, key)

    assert [schedule.take() for _ in range(4)] == [1, 3, 4, None]
    schedule.done(1)
    assert [schedule.take(), schedule.take()] == [2, None]
    schedule.done(2)
    assert schedule.take() == 5


def test_quiet_means_that_nothing_runs_and_nothing_could() -> None:
    schedule = Schedule(1)
    assert schedule.quiet

    schedule.add(1, "k")
    assert not schedule.quiet
    schedule.take()
    assert not schedule.quiet
    schedule.done(1)
    assert schedule.quiet
    assert schedule.running == 0


@given(
    st.integers(1, 4),
    st.lists(st.sampled_from([None, "a", "b"]), max_size=25),
    st.randoms(use_true_random=False),
)
def test_every_call_runs_once_and_no_rule_is_ever_broken(
    most: int, keys: list[str | None], chance: object
) -> None:
    schedule = Schedule(most)
    pick = getattr(chance, "choice")  # noqa: B009 -- its type is not worth a cast
    waiting = dict(enumerate(keys, 1))
    running: dict[int, str | None] = {}
    order: list[int] = []
    for call_no, key in waiting.items():
        schedule.add(call_no, key)
    while waiting or running:
        call_no = schedule.take()
        if call_no is None:
            done = pick(sorted(running))
            running.pop(done)
            schedule.done(done)
            continue
        running[call_no] = waiting.pop(call_no)
        order.append(call_no)
        held = [key for key in running.values() if key is not None]
        assert len(running) <= most
        assert len(held) == len(set(held))
        blocked = set(held)
        free = [no for no, key in waiting.items() if no < call_no and key not in blocked]
        assert not free  # whoever could have begun before it has begun

    assert sorted(order) == list(range(1, len(keys) + 1))
