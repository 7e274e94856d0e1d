"""Scripts that want to harm, hang or confuse.

Each ends by itself or is stopped, and none can reach another VM, the host, or the truth of what
the host is told.
"""

# ruff: noqa: E501 -- scripts stand on one line, as models write them

import gc
import random
import resource

import pytest

from codespace.codemode import protocol
from codespace.codemode.protocol import Image, Limits, Returned, Status
from codespace.codemode.vm import Vm
from doubles.machines import START_MS, Outcome, machine, opening, run

MIB = 1024 * 1024


def echo(arguments: object) -> object:
    return arguments


def attempt(code: str, *, memory_bytes: int = 64 * MIB, seconds: float = 0.1) -> Outcome:
    """Run a hostile script, and then prove that a new VM and an old one still work."""
    neighbour = Vm(machine())
    neighbour.step(opening("return (await tools.echo({})) + 1", tools={"echo": echo}))
    outcome = run(code, {"echo": echo}, memory_bytes=memory_bytes, seconds=seconds)
    assert run("return 1").value == 1
    assert Returned(2) in neighbour.step(protocol.step_input(START_MS, [protocol.resolve(1, 1)]))
    return outcome


POLLING = [
    "while (true) {}",
    "for (;;) { try { while (true) {} } catch (e) {} finally { continue } }",
    "while (true) await null",
    "const f = () => Promise.resolve().then(f); await f()",
    "(function flood() { for (let i = 0; i < 100; i++) queueMicrotask(flood) })(); await new Promise(() => {})",
    'return /^(a+)+$/.test("a".repeat(40) + "b")',
    "return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
    "function* g() { while (true) yield 1 } for (const x of g());",
    "async function* g() { while (true) yield 1 } for await (const x of g());",
    "const s = new Proxy({}, {get(t, k, r) { return r[k + 1] }}); try { s.a } catch {} while (1);",
    "class A { static { while (true) {} } }",
    "return {toJSON() { while (true) {} }}",
    "console.log('x'); for (;;) Date.now()",
    "[3, 2, 1].sort(() => { while (true) {} })",
    "'x'.replace(/x/, () => { while (true) {} })",
    "JSON.parse('[1]', () => { while (true) {} })",
    "for (;;) try { await tools.echo(() => 1) } catch {}",
    "for (;;) try { tools.nope } catch {}",
    "const end = Date.now() + 10; while (Date.now() < end);",
]

NEVER_POLLING = [
    'return new Array(2 ** 32 - 1).join("").length',
    "const a = []; a.length = 2 ** 32 - 1; return a.reverse().length",
    "return Array.prototype.splice.call({length: 2 ** 53 - 1}, 0, 1).length",
    "return [].concat.call({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true}).length",
    "return (7n ** 300000n).toString().length",
    "let v = []; for (let i = 0; i < 1e5; i++) v = [v]; JSON.stringify(v)",
]

RECURSIVE = [
    "function f() { return f() + 1 } f()",
    "const o = {get a() { return this.a }}; o.a",
    "const p = new Proxy({}, {get: (t, k, r) => r[k]}); p.x",
    "const f = () => [1, 2].sort(f); f()",
    "const f = () => 'a'.replace(/a/, f); f()",
    "const f = s => eval('f(s)'); f(1)",
    "function* g() { yield* g() } g().next()",
    "class A { constructor() { new A() } } new A()",
    "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()",
    "const a = []; a[0] = a; a.toString(); const f = () => `${{toString: f}}`; f()",
    "new Function('('.repeat(50000) + '1' + ')'.repeat(50000))()",
    "eval('['.repeat(50000))",
    "JSON.parse('['.repeat(100000))",
    "new RegExp('('.repeat(50000) + ')'.repeat(50000))",
    "const {[(() => { throw new RangeError('x') })()]: x} = {}",
]

HUNGRY = [
    'const k = []; for (;;) k.push(new Array(100000).fill("x"))',
    "new ArrayBuffer(1e9)",
    "let s = 'x'; for (;;) s += s",
    "'x'.repeat(2 ** 30 - 1)",
    "const k = []; for (;;) k.push({a: k.length})",
    "const k = []; for (;;) k.push(Symbol('s' + k.length))",
    "const k = []; for (;;) k.push(new Promise(() => {}))",
    "new Array(2 ** 32 - 1).fill(0)",
    "Array.from({length: 2 ** 32 - 1})",
    "const m = new Map(); for (;;) m.set({}, {})",
    "let o = {}; for (let i = 0; ; i++) o['key' + i] = i",
    "'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e6))",
    "const k = []; for (;;) k.push(() => k)",
    "const k = []; for (;;) { try { k.push(new Array(1e5).fill(1)) } catch { k.push(0) } }",
]

TAMPERING = [
    "Object.prototype.then = function (r) { r('hijack') }; const r = await tools.echo({a: 1}); delete Object.prototype.then; return r.a",
    "JSON.stringify = JSON.parse = () => { throw 1 }; return (await tools.echo({a: 1})).a",
    "Array.prototype.push = Array.prototype.map = () => { throw 1 }; return (await tools.echo({a: 1})).a",
    "Promise.prototype.then = () => { throw 1 }; return (await tools.echo({a: 1})).a",
    "globalThis.Promise = class { constructor() { throw 1 } }; return (await tools.echo({a: 1})).a",
    "Object.defineProperty(Object.prototype, 'a', {set() { throw 1 }, configurable: true}); return (await tools.echo({a: 1})).a",
    "Object.setPrototypeOf(Object.prototype.__proto__ ?? {}, null); return (await tools.echo({a: 1})).a",
    "globalThis.text = console.log = () => { throw 1 }; return (await tools.echo({a: 1})).a",
    "ToolError.prototype.toJSON = () => { throw 1 }; return (await tools.echo({a: 1})).a",
    "Function.prototype.call = Function.prototype.apply = null; return (await tools.echo({a: 1})).a",
    "Array.prototype[Symbol.iterator] = null; return (await tools.echo({a: 1})).a",
    "const {echo} = tools; globalThis.tools = null; return (await echo.call(null, {a: 1})).a",
    "return (await Reflect.apply(tools.echo, undefined, [{a: 1}])).a",
    "return (await (async () => { await null; return tools.echo({a: 1}) })()).a",
    "Object.freeze(Object.prototype); Object.freeze(Array.prototype); return (await tools.echo({a: 1})).a",
    "delete globalThis.Error; delete globalThis.Promise; return (await tools.echo({a: 1})).a",
]

STRANGE_THROWS = [
    "throw null",
    "throw undefined",
    "throw Symbol('s')",
    "throw 10n ** 50000n",
    "const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); throw proxy",
    "throw new Proxy(new Error('x'), {get() { while (true); }})",
    "throw {get message() { while (true); }, get name() { throw 1 }, get stack() { throw 1 }}",
    "throw Object.assign(new Error('a'.repeat(1e6)), {name: 'b'.repeat(1e6), stack: 'c'.repeat(1e6)})",
    "class E extends Error { get name() { while (true); } } throw new E('x')",
    "Error.prepareStackTrace = () => { while (true); }; null.x",
    "Error.prepareStackTrace = () => { throw 1 }; null.x",
    "Error.stackTraceLimit = {valueOf() { while (true); }}; null.x",
    "throw Object.create(null)",
    "throw () => 1",
    "const e = new Error('x'); e.stack = 5; throw e",
    "const e = new Error('x'); Object.defineProperty(e, 'message', {get() { while (true); }}); throw e",
    "throw new AggregateError([new Error('a')], 'many')",
    "}); throw new Error('out of the wrapper'); (async function () {",
    "await import('fs')",
    "return import.meta",
]


LYING_IMAGES = [
    "let n = 0; image({get data() { return n++ ? undefined : 'AAAA' }, mimeType: 'image/png'})",
    "let n = 0; image({data: 'AAAA', get mimeType() { return n++ ? 'text/html' : 'image/png' }})",
    "image({data: 'AAAA', mimeType: 'image/png', toJSON() { return null }})",
    "image({data: 'AAAA', mimeType: 'image/png', type: 'text', text: 'x'})",
    "image(new (class { get data() { return 'AAAA' } get mimeType() { return 'image/png' } })())",
    "let n = 0; image(new Proxy({}, {get: (t, k) => n++ > 1 ? 5 : k === 'data' ? 'AAAA' : 'image/png'}))",
    "image(Object.assign([], {data: 'AAAA', mimeType: 'image/png'}))",
]
"""The block was read twice: once to be checked, and once to be written."""

WRITING_INTO_WHAT_IS_WRITTEN = [
    (
        "const o = {a: {toJSON() { delete o.b; o.z = 9; return 1 }}, b: 2, c: 3}; return o",
        {"a": 1, "c": 3},
    ),
    ("const a = [{toJSON() { a.length = 1; return 1 }}, 2]; return a", [1, None]),
    (
        "const a = [{toJSON() { for (let i = 0; i < 99; i++) a.push({}); return 1 }}, 2]; return a",
        [1, 2],
    ),
    (
        "const o = {x: {toJSON() { o.x = o.y = null; return {k: 1} }}, y: {z: 1}}; return o",
        {"x": {"k": 1}, "y": None},
    ),
    (
        "return [{get b() { Object.prototype.toJSON = () => 'hi'; return 1 }}, {c: 1}]",
        [{"b": 1}, "hi"],
    ),
    ("const s = new String('a'); s.toString = () => '\"]}'; return s", '"]}'),
    (
        "return new Proxy([], {get: (t, k) => k === 'length' ? 2 : k === 'toJSON' ? undefined : k})",
        ["0", "1"],
    ),
    ("exit({toJSON() { exit(5) }})", 5),
    ("return {toJSON() { exit(7) }}", 7),
    ("try { exit(1) } finally { exit(2) }", 1),
    (
        "Object.defineProperty(Array.prototype, 0, {set() { throw 1 }}); return (await tools.echo({a: [1, 2]})).a",
        [1, 2],
    ),
]


@pytest.mark.parametrize("code", LYING_IMAGES)
def test_an_image_is_what_was_checked(code: str) -> None:
    told = run(code).operations
    assert Image({"type": "image", "data": "AAAA", "mimeType": "image/png"}) in told


@pytest.mark.parametrize(("code", "value"), WRITING_INTO_WHAT_IS_WRITTEN)
def test_a_value_that_changes_while_it_is_written_is_still_one_value(
    code: str, value: object
) -> None:
    outcome = run(code, {"echo": echo})
    assert [each for each in outcome.operations if isinstance(each, Returned)] == [Returned(value)]


def test_a_failure_that_throws_nothing_is_told_as_what_it_is() -> None:
    outcome = run("return '\ufdfa'.repeat(3e5).normalize('NFKD').length", memory_bytes=32 * MIB)
    assert outcome.problem.limit == "memory"


@pytest.mark.parametrize("code", POLLING)
def test_an_endless_script_is_stopped_and_cannot_catch_it(code: str) -> None:
    outcome = attempt(code)
    assert outcome.status is Status.INTERRUPTED
    assert outcome.problem.message == "interrupted"


@pytest.mark.parametrize("code", NEVER_POLLING)
def test_an_engine_that_does_not_listen_is_killed(code: str) -> None:
    assert attempt(code).status in {Status.LOST, Status.INTERRUPTED, Status.FAILED, Status.DONE}


@pytest.mark.parametrize("code", RECURSIVE)
def test_too_deep_is_an_error_that_a_script_can_catch(code: str) -> None:
    caught = attempt(f"try {{ {code} }} catch (e) {{ return e instanceof Error }}", seconds=5.0)
    assert caught.value in (True, None)
    assert attempt(code, seconds=5.0).status in {Status.FAILED, Status.DONE}


@pytest.mark.parametrize("code", HUNGRY)
def test_a_hungry_script_meets_its_limit_and_nobody_else_does(code: str) -> None:
    outcome = attempt(code, memory_bytes=32 * MIB, seconds=1.0)
    assert outcome.status in {Status.FAILED, Status.INTERRUPTED, Status.LOST}
    if outcome.status is Status.FAILED:
        too_long = "string too long", "invalid string length", "Invalid string length"
        assert outcome.problem.limit == "memory" or outcome.problem.message in too_long


@pytest.mark.parametrize("code", TAMPERING)
def test_tampering_changes_nothing_for_the_host(code: str) -> None:
    outcome = run(code, {"echo": echo})
    assert outcome.value == 1, outcome.operations


@pytest.mark.parametrize("code", STRANGE_THROWS)
def test_whatever_is_thrown_is_reported_without_running_it(code: str) -> None:
    outcome = attempt(code, seconds=1.0)
    assert outcome.status in {Status.FAILED, Status.INTERRUPTED}
    assert len(outcome.problem.message) <= 2000


def test_a_chain_without_a_check_loses_only_its_own_vm() -> None:
    code = "let i = [1].values(); for (let n = 0; n < 1e5; n++) i = i.map(x => x); return [...i]"
    assert attempt(code, seconds=5.0).status in {Status.LOST, Status.FAILED}


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("for (;;) tools.echo({a: 1})", "calls"),
        ("for (;;) console.log('x'.repeat(1000))", "output"),
        ("for (;;) text('x')", "output"),
        ("for (let i = 0; ; i++) store('k' + i, 'x'.repeat(100))", "store"),
        ("for (;;) searchTools('x')", "calls"),
        ("return 'x'.repeat(100000)", "value"),
        ("return new Array(1e6).fill(1)", "value"),
    ],
)
def test_a_flood_meets_the_limit_that_is_named(code: str, limit: str) -> None:
    limits = Limits(value_bytes=10_000, output_bytes=100_000)
    outcome = run(code, {"echo": echo}, limits=limits)
    assert outcome.status is Status.FAILED
    assert (outcome.problem.name, outcome.problem.limit) == ("RangeError", limit)


def test_a_script_cannot_forge_a_broken_limit() -> None:
    outcome = run("throw Object.assign(new RangeError('memory'), {limit: 'memory'})")
    assert outcome.problem.limit == ""


def test_running_out_of_memory_says_memory() -> None:
    outcome = run(HUNGRY[0], memory_bytes=32 * MIB)
    assert (outcome.problem.limit, outcome.problem.message) == ("memory", "out of memory")


def test_the_constructor_of_functions_leads_nowhere() -> None:
    code = """
    const F = tools.echo.constructor;
    return [F("return typeof process + typeof require + typeof fetch")(), F("return this")() === globalThis]
    """
    assert run(code, {"echo": echo}).value == ["undefinedundefinedundefined", True]


@pytest.mark.slow
def test_a_soak_of_hostile_and_honest_scripts_keeps_memory_flat() -> None:
    source = random.Random(7)
    hostile = [*POLLING, *RECURSIVE, *HUNGRY, *STRANGE_THROWS]
    peaks: list[int] = []
    for number in range(1200):
        if number % 3 == 0:
            run(source.choice(hostile), {"echo": echo}, memory_bytes=24 * MIB, seconds=0.02)
        else:
            assert run("return (await tools.echo({a: 1})).a", {"echo": echo}).value == 1
        if number % 300 == 299:
            gc.collect()
            peaks.append(resident_kib())
    assert peaks[-1] - peaks[1] < 40_000, peaks


def resident_kib() -> int:
    """Return what this process holds now, in KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- Path.read_text allocates more
        return int(file.read().split()[1]) * resource.getpagesize() // 1024
