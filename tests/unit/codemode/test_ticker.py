import threading
import time

import pytest
import wasmtime

from codespace.codemode.ticker import LINGER_SECONDS, TICK_SECONDS, Ticker

LOOP = bytes(wasmtime.wat2wasm('(module (func (export "f") (loop br 0)))'))


def engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


def test_a_call_that_is_open_gets_its_ticks_for_longer_than_the_ticker_lingers() -> None:
    of = engine()
    ticker, call = Ticker(of), object()
    store = wasmtime.Store(of)
    store.set_epoch_deadline(int(3 * LINGER_SECONDS / TICK_SECONDS))
    function = wasmtime.Instance(store, wasmtime.Module(of, LOOP), []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    ticker.opened(call)
    with pytest.raises(wasmtime.Trap):
        function(store)
    ticker.closed(call)


def test_the_ticker_rests_when_nothing_runs_and_wakes_again() -> None:
    ticker, call = Ticker(engine()), object()
    for _ in range(2):
        ticker.opened(call)
        ticker.closed(call)
        deadline = time.monotonic() + 5
        while not ticker.resting:
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)


def test_one_thread_ticks_for_all() -> None:
    ticker = Ticker(engine())
    before = threading.active_count()
    for _ in range(5):
        ticker.opened(object())
    assert threading.active_count() == before + 1


def test_a_call_on_a_workers_thread_gets_its_ticks() -> None:
    of = engine()
    ticker, call = Ticker(of), object()
    store = wasmtime.Store(of)
    store.set_epoch_deadline(2)
    function = wasmtime.Instance(store, wasmtime.Module(of, LOOP), []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    ticker.away(call, time.monotonic() + 3600)
    with pytest.raises(wasmtime.Trap):
        function(store)
    ticker.closed(call)


def test_the_ticker_says_whether_it_had_to_be_woken() -> None:
    ticker, call = Ticker(engine()), object()
    assert not ticker.opened(call)
    assert ticker.opened(call)
    ticker.closed(call)
