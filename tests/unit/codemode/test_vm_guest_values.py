"""What crosses between a script and its tools, and what may not."""

# ruff: noqa: E501 -- scripts stand on one line, as models write them

import json
from typing import cast

import pytest

from codespace.codemode.protocol import Image, Limits, Status, Stored
from doubles.machines import run


def echo(arguments: object) -> object:
    return arguments


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2", 3),
        ("undefined", None),
        ("{a: undefined, b: [undefined]}", {"b": [None]}),
        ("12345678901234567890123n", 12345678901234567890123),
        ("{a: -1n, b: 2n ** 64n}", {"a": -1, "b": 2**64}),
        ("'\\ud800 \\u{1F600} \\u2028'", "\ufffd \U0001f600 \u2028"),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("{a: {toJSON() { return 'json' }}, get b() { return 'got' }}", {"a": "json", "b": "got"}),
        ('JSON.parse(\'{"__proto__": {"a": 1}}\')', {"__proto__": {"a": 1}}),
        (
            "Object.assign(new RangeError('far'), {extra: 1})",
            {"name": "RangeError", "message": "far", "extra": 1},
        ),
        ("[Object(1), Object('s'), Object(true), Object(7n)]", [1, "s", True, 7]),
        ("Promise.resolve(5)", 5),
        ("{then(resolve) { resolve(7) }}", 7),
        ("(function () { return arguments })(1, 2)", {"0": 1, "1": 2}),
    ],
)
def test_a_value_arrives_as_it_is(expression: str, expected: object) -> None:
    assert run(f"return {expression}").value == expected


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("{list: [1, {rate: NaN}]}", "arguments.list[1].rate is NaN"),
        ("{huge: 1e400}", "arguments.huge is infinite"),
        ("{a: {on_done: () => 1}}", "arguments.a.on_done is a function"),
        ("[Symbol('s')]", "arguments[0] is a symbol"),
        (
            "(() => { const n = {child: {}}; n.child.parent = n; return n })()",
            "arguments.child.parent is part of a cycle",
        ),
        ("{m: new Map([['k', 1]])}", "arguments.m is a Map; use Object.fromEntries"),
        ("{s: new Set([1])}", "arguments.s is a Set; use [...set]"),
        ("{p: Promise.resolve(1)}", "arguments.p is a Promise; await it first"),
        ("{r: /x/}", "arguments.r is a RegExp"),
        ("{b: new Uint8Array(2)}", "arguments.b is a typed array"),
        ("{i: [1].values()}", "arguments.i is an iterator"),
        ("{g: (function* () {})()}", "arguments.g is an iterator"),
        ("{n: 10n ** 5000n}", "arguments.n is a BigInt of more than"),
    ],
)
def test_what_json_cannot_hold_is_a_type_error_that_names_the_path(
    expression: str, path: str
) -> None:
    code = f"try {{ await tools.echo({expression}) }} catch (e) {{ return [e.name, e.message] }}"
    value = run(code, {"echo": echo}).value
    assert isinstance(value, list)
    assert value[0] == "TypeError"
    assert str(value[1]).startswith(path)  # pyright: ignore[reportUnknownArgumentType] -- from JSON


def test_a_bad_return_value_fails_the_run_and_names_the_path() -> None:
    outcome = run("return {rows: [{price: NaN}]}")
    assert outcome.status is Status.FAILED
    assert outcome.problem.message.startswith("result.rows[0].price is NaN")


def test_values_nested_up_to_the_limit_pass_and_deeper_ones_are_refused() -> None:
    code = "let v = {end: 1}; for (let i = 0; i < DEPTH; i++) v = {v};\ntry { return (await tools.echo(v)).v !== undefined } catch (e) { return e.name }"
    assert run(code.replace("DEPTH", "398"), {"echo": echo}).value is True
    assert run(code.replace("DEPTH", "400"), {"echo": echo}).value == "RangeError"


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (9007199254740993, "typeof r === 'bigint' && r === 9007199254740993n"),
        (-(2**70), "r === -(2n ** 70n)"),
        (9007199254740991, "typeof r === 'number' && r === Number.MAX_SAFE_INTEGER"),
        (-0.0, "Object.is(r, -0)"),
        (float("inf"), "r === Infinity"),
        (float("nan"), "Number.isNaN(r)"),
        ('{"a": 1}', "typeof r === 'string' && r === '{\"a\": 1}'"),
        (["123", "null", ""], "r.join('|') === '123|null|'"),
        (
            {"__proto__": {"x": 1}, "constructor": 2},
            "Object.keys(r).join() === '__proto__,constructor' && ({}).x === undefined",
        ),
        ({"then": 1}, "r.then === 1"),
        ("a\ud800b", "r === 'a\\ufffdb'"),
        (None, "r === null"),
        (True, "r === true"),
    ],
)
def test_an_answer_arrives_without_loss(answer: object, check: str) -> None:
    assert (
        run(f"const r = await tools.get({{}}); return {check}", {"get": lambda _: answer}).value
        is True
    )


def test_integers_beyond_the_doubles_go_round_without_loss() -> None:
    code = "const r = await tools.get({}); return await tools.echo({id: r.id, list: [r.id, 5n]})"
    found = {"id": 2**63 + 1}
    assert run(code, {"get": lambda _: found, "echo": echo}).value == {
        "id": 2**63 + 1,
        "list": [2**63 + 1, 5],
    }


def test_an_answer_that_is_not_json_rejects_the_call() -> None:
    code = "try { await tools.get({}) } catch (e) { return e.name }"
    assert run(code, {"get": lambda _: b'{"a": nope}'}).value == "SyntaxError"


def test_arguments_are_read_when_the_call_is_made() -> None:
    code = "const a = {n: 1}; const p = tools.echo(a); a.n = 2; return (await p).n"
    assert run(code, {"echo": echo}).value == 1


def test_arguments_above_their_limit_are_refused_by_name() -> None:
    code = (
        "try { await tools.echo({s: 'x'.repeat(2000)}) } catch (e) { return [e.name, e.message] }"
    )
    value = run(code, {"echo": echo}, limits=Limits(arguments_bytes=1000)).value
    assert value == ["RangeError", "the arguments are larger than argument_bytes allows (1000)"]


def test_calls_above_their_limit_are_refused_at_once() -> None:
    outcome = run("for (;;) tools.echo({})", {"echo": echo}, limits=Limits(calls=50))
    assert outcome.status is Status.FAILED
    assert (outcome.problem.name, outcome.problem.limit) == ("RangeError", "calls")


def test_text_shows_json_and_console_shows_anything() -> None:
    code = """
    text("plain"); text({obj: 5, at: new Date(0)}); text(new Map([["k", [1]]]));
    console.log("l", 1, {a: [true, "x"]}, new Set([1, "x"]), () => 1, undefined, 5n, Symbol("s"));
    console.warn(new Error("boo")); const o = {}; o.self = o; console.error(o, [1, , 3], [new TypeError("in")]);
    console.info(class A {}, new (class Point { x = 1 }), Promise.reject(3).catch(() => 1), /a/g, new Uint8Array(2));
    """
    lines = run(code).text.splitlines()
    assert lines[:4] == [
        "plain",
        '{"obj":5,"at":"1970-01-01T00:00:00.000Z"}',
        'Map(1) {"k" => [1]}',
        'l 1 {"a":[true,"x"]} Set(2) {1, "x"} [Function] undefined 5n Symbol(s)',
    ]
    assert lines[4] == "Error: boo"
    assert "script.js:4:" in lines[5]
    assert lines[6] == '{"self":[Circular]} Array {"0":1,"2":3} [[TypeError: in]]'
    assert lines[7] == '[Function: A] Point {"x":1} Promise {<pending>} /a/g Uint8Array(2) [0,0]'


def test_looking_at_a_value_runs_none_of_its_code() -> None:
    code = """
    let ran = 0;
    const spy = {get a() { ran++ }, toString() { ran++ }, toJSON() { ran++ }, [Symbol.toPrimitive]() { ran++ }};
    console.log(spy, new Proxy({}, {get() { ran++ }, ownKeys() { ran++ }}), [spy]);
    return ran
    """
    assert run(code).value == 0


def test_images_and_texts_keep_their_order() -> None:
    block = '{type: "image", data: "aGk=", mimeType: "image/png"}'
    outcome = run(
        f'text("a"); image({block}); console.log("b"); try {{ image({{}}) }} catch (e) {{ text(e.name) }}'
    )
    kinds = [type(o).__name__ for o in outcome.operations[:4]]
    assert kinds == ["Text", "Image", "Text", "Text"]
    assert Image({"type": "image", "data": "aGk=", "mimeType": "image/png"}) in outcome.operations
    assert outcome.text.endswith("TypeError")


def test_the_store_gives_copies_and_reports_only_what_was_written() -> None:
    code = """
    const v = {list: [1, 2]}; store("k", v); v.list.push(3);
    const a = load("k"); a.list.push(4);
    store("gone", 1); store("gone", undefined);
    return [load("k"), load("missing") === undefined, load("gone") === undefined]
    """
    outcome = run(code)
    assert outcome.value == [{"list": [1, 2]}, True, True]
    stored = [o for o in outcome.operations if isinstance(o, Stored)]
    assert stored == [
        Stored("k", deleted=False, value={"list": [1, 2]}),
        Stored("gone", deleted=True, value=None),
    ]


def test_a_failed_run_reports_no_store() -> None:
    outcome = run("store('half', 1); throw new Error('no')")
    assert not [o for o in outcome.operations if isinstance(o, Stored)]


def test_the_store_is_limited_by_value_and_in_all() -> None:
    code = """
    const names = [];
    store("fits", "x".repeat(262000));
    try { store("big", "x".repeat(262200)) } catch (e) { names.push(e.name) }
    try { for (let i = 0; i < 9; i++) store("k" + i, "x".repeat(200000)) } catch (e) { names.push(e.message) }
    return [names, load("big") === undefined, load("fits").length]
    """
    value = run(code).value
    assert value == [
        ["RangeError", "the whole store may hold 1048576 characters of JSON (store_total_chars)"],
        True,
        262000,
    ]


def test_exit_ends_at_once_with_its_value() -> None:
    code = """
    store("kept", 1);
    try { exit({done: true}) } catch (e) { console.log("caught") } finally { console.log("finally") }
    return 1
    """
    outcome = run(code)
    assert (outcome.status, outcome.value, outcome.text) == (Status.EXITED, {"done": True}, "")
    assert Stored("kept", deleted=False, value=1) in outcome.operations


@pytest.mark.parametrize(
    "code",
    [
        "[1].map(() => exit(5)); console.log('after')",
        "await (async () => exit(5))(); console.log('after')",
        "new Promise(() => exit(5)); console.log('after')",
        "Promise.resolve().then(() => exit(5)).catch(() => console.log('caught')); await null; await null; await null; await null",
        "JSON.stringify({toJSON() { exit(5) }})",
        "await tools.echo({toJSON() { exit(5) }})",
        "for (const x of (function* () { try { yield 1 } finally { console.log('finally') } })()) exit(5)",
        "await {then() { exit(5) }}",
        "return {toJSON() { exit(5) }}",
    ],
)
def test_exit_cannot_be_caught_anywhere(code: str) -> None:
    outcome = run(code, {"echo": echo})
    assert (outcome.status, outcome.value, outcome.text) == (Status.EXITED, 5, "")


def test_web_helpers_are_there() -> None:
    code = """
    const u = new URL("/b?x=1", "https://h.example:8443/a/");
    u.searchParams.append("q", "a b&c");
    const d = structuredClone(new Map([[1, {when: new Date(5), set: new Set([1])}]]));
    return [u.href, atob(btoa("hi")), new TextDecoder().decode(new TextEncoder().encode("€😀")),
            d.get(1).when.getTime(), d.get(1).set.has(1), new URLSearchParams({a: "1 2"}).toString()]
    """
    expected = ["https://h.example:8443/b?x=1&q=a+b%26c", "hi", "€😀", 5, True, "a=1+2"]
    assert run(code).value == expected


def test_what_cannot_be_cloned_is_said() -> None:
    code = (
        "try { structuredClone({f() {}}) } catch (e) { return [e.name, e instanceof DOMException] }"
    )
    assert run(code).value == ["DataCloneError", True]


def test_nothing_of_a_host_is_there() -> None:
    names = [
        "fetch", "require", "process", "setTimeout", "setInterval", "WebAssembly", "Worker", "performance",
        "SharedArrayBuffer", "Atomics", "navigator", "std", "os", "module", "exports", "Deno", "Bun",
    ]  # fmt: skip
    code = f"return {names!r}.filter(k => k in globalThis || eval('typeof ' + k) !== 'undefined')"
    assert run(code).value == []
    hidden = "return Object.getOwnPropertyNames(globalThis).filter(k => /^_/.test(k))"
    assert run(hidden).value == []


def test_args_is_frozen_and_cannot_be_replaced() -> None:
    code = "args = 5; args.x = 1; return [typeof args, Object.isFrozen(args), args.x === undefined]"
    assert run(code).value == ["object", True, True]


FROZEN = """
const all = v => typeof v !== "object" || v === null
  || (Object.isFrozen(v) && Object.getOwnPropertyNames(v).every(k => all(v[k])));
const tried = [() => args.rows[0].tags.push(1), () => { "use strict"; args.rows[1].id = 9 },
  () => { "use strict"; delete args.deep.a }, () => { "use strict"; args.empty.x = 1 }]
  .map(change => { try { change(); return "changed" } catch (e) { return e.name } });
return [all(args), tried, JSON.stringify(args), args.rows.map(row => row.id), {...args.rows[1]}];
"""


def test_args_are_frozen_to_their_last_level() -> None:
    rows = [{"id": number, "tags": ["a", {"b": number}]} for number in range(4)]
    given: dict[str, object] = {"rows": rows, "empty": {}, "0": "text"}
    given["deep"] = json.loads('{"a": {"7": [[], {}]}}')
    all_frozen, tried, text, ids, copy = cast("list[object]", run(FROZEN, {}, args=given).value)
    assert all_frozen is True
    assert tried == ["TypeError"] * 4
    assert json.loads(str(text)) == given
    assert ids == [0, 1, 2, 3]
    assert copy == rows[1]


def test_results_can_be_changed_after_frozen_args_of_the_same_shape() -> None:
    rows = [{"id": 1, "more": {"a": 1}}]
    code = "const got = await tools.rows({}); got[0].id = 5; got[0].more.b = 2; return [got, args]"
    changed = [{"id": 5, "more": {"a": 1, "b": 2}}]
    assert run(code, {"rows": lambda _: rows}, args=rows).value == [changed, rows]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ('{data: "aGk=", mimeType: "text/html"}', "mimeType of image() is image/png"),
        ('{data: "aGk", mimeType: "image/png"}', "data: base64"),
        ('{data: "a=k=", mimeType: "image/png"}', "data: base64"),
        ('{data: "", mimeType: "image/png"}', "data: base64"),
        ('{data: "aéé=", mimeType: "image/png"}', "data: base64"),
        ('{data: new Uint8Array(4), mimeType: "image/png"}', "data: base64"),
        ('{data: "aGk="}', "mimeType of image() is image/png"),
        ('"aGk="', "data: base64"),
    ],
)
def test_what_is_no_image_is_refused(block: str, said: str) -> None:
    outcome = run(f"image({block})", {})
    assert outcome.problem.name == "TypeError"
    assert said in outcome.problem.message


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_images_of_the_usual_types_are_taken(kind: str) -> None:
    block = {"type": "image", "data": "AA==", "mimeType": f"image/{kind}"}
    assert Image(block) in run(f"image({json.dumps(block)})", {}).operations


@pytest.mark.parametrize("key", ["\\ud800", "a\\udc00", "\\ud83d\\ud83d\\ude00"])
def test_a_key_of_the_store_with_half_a_pair_is_refused(key: str) -> None:
    for use in (f"store('{key}', 1)", f"load('{key}')"):
        problem = run(use, {}).problem
        assert (problem.name, "surrogate" in problem.message) == ("TypeError", True)


def test_a_key_of_the_store_may_hold_whole_pairs_and_the_replacement_character() -> None:
    code = "store('\\ud83d\\ude00\\ufffd', 1); return load('\\ud83d\\ude00\\ufffd')"
    assert run(code, {}).value == 1
