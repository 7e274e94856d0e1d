"""The guest's own JSON writer and reader against the engine's JSON.stringify and JSON.parse."""

# ruff: noqa: E501 -- scripts stand on one line, as models write them

import json
import random

import pytest

from doubles.machines import run

BATCH = 150
SAMPLES = [0, 1, -1, 0.5, 1e21, 1e-7, 123456789012, 2**31, -(2**31), 2**53 - 1, 5e-324, 1.5e300]
TEXTS = ["", "a", 'quote"', "back\\slash", "\n\t\x01\x7f", "é", "ÿĀ", "€", "😀", "</script>", "0"]
KEYS = [
    "a",
    "b",
    "id",
    "name",
    "0",
    "7",
    "-1",
    "__proto__",
    "constructor",
    "toString",
    "é",
    'q"',
    "",
]


def value(source: random.Random, depth: int = 0) -> object:
    """Return a random JSON value, often a list of rows with the same keys."""
    kind = source.randrange(9 if depth < 4 else 5)
    if kind < 5:
        return [None, True, source.choice(SAMPLES), source.choice(TEXTS), source.random()][kind]
    if kind == 5:
        return [value(source, depth + 1) for _ in range(source.randrange(4))]
    if kind == 6:
        keys = source.sample(KEYS, source.randrange(1, 4))
        rows = [{key: value(source, depth + 2) for key in keys} for _ in range(3)]
        if source.randrange(2):
            rows[1].pop(keys[0])
        if source.randrange(2):
            rows[2]["more"] = 1
        return rows
    return {source.choice(KEYS): value(source, depth + 1) for _ in range(source.randrange(5))}


def spoil(source: random.Random, text: str) -> str:
    """Return the text with a character changed, dropped or added."""
    at = source.randrange(len(text) + 1)
    return (
        text[:at]
        + source.choice(['"', "}", ",", "]", "1", "\\", ":", " ", "{"])
        + text[at + source.randrange(2) :]
    )


READ = """
const same = (a, b) => {
  if (typeof a === "bigint") return Number(a) === b;
  if (typeof a !== "object" || a === null || b === null) return Object.is(a, b);
  const ka = Object.keys(a), kb = Object.keys(b);
  return Array.isArray(a) === Array.isArray(b) && Object.getPrototypeOf(a) === Object.getPrototypeOf(b)
    && ka.length === kb.length && ka.every((k, i) => k === kb[i] && same(a[k], b[k]))
    && Object.getOwnPropertyNames(a).join() === Object.getOwnPropertyNames(b).join();
};
const change = v => {
  if (typeof v !== "object" || v === null) return;
  for (const k of Object.keys(v)) change(v[k]);
  const first = Object.keys(v)[0];
  if (first !== undefined && !Array.isArray(v)) { delete v[first]; v.added = 1; v[first] = 2; }
  if (Array.isArray(v)) { v.push(1); v.shift(); }
  Object.freeze(v);
};
const wrong = [];
for (let i = 0; i < args_count; i++) {
  const text = await tools.text({i});
  let expected, failed = false, got;
  try { expected = JSON.parse(text) } catch { failed = true }
  try { got = await tools.value({i}); if (failed) wrong.push([text, "accepted"]) }
  catch (e) { if (!failed || e.name !== "SyntaxError") wrong.push([text, String(e)]); continue }
  if (!same(got, expected)) wrong.push([text, JSON.stringify(got, (k, v) => typeof v === "bigint" ? String(v) : v)]);
  change(got); change(expected);
  if (!failed && !same(got, expected)) wrong.push([text, "after changes"]);
}
return wrong;
"""


@pytest.mark.parametrize("seed", range(8))
def test_what_the_reader_takes_and_makes_is_what_json_parse_takes_and_makes(seed: int) -> None:
    source = random.Random(seed)
    texts: list[str] = []
    for number in range(BATCH):
        dense = bool(source.randrange(2))
        text = json.dumps(
            value(source),
            ensure_ascii=bool(source.randrange(2)),
            separators=(",", ":") if dense else (", ", " : "),
        )
        texts.append(spoil(source, text) if number % 4 == 0 else text)
    outcome = run(
        READ.replace("args_count", str(BATCH)),
        {
            "text": lambda arguments: texts[index(arguments)],
            "value": lambda arguments: texts[index(arguments)].encode(),
        },
    )
    assert outcome.value == []


def index(arguments: object) -> int:
    """Return the `i` of a call's arguments."""
    assert isinstance(arguments, dict)
    return int(str(arguments["i"]))  # pyright: ignore[reportUnknownArgumentType] -- from JSON


def expression(source: random.Random, depth: int = 0) -> str:
    """Return the source of a random JavaScript value that JSON.stringify can write."""
    kind = source.randrange(16 if depth < 4 else 6)
    inner = [expression(source, depth + 1) for _ in range(source.randrange(4))] if kind > 5 else []
    if kind < 6:
        plain = ["null", "true", "undefined", repr(source.random() * 10**9), "-0", "1e21"]
        return source.choice(
            [*plain, json.dumps(source.choice(TEXTS)), str(source.choice(SAMPLES))]
        )
    if kind in (6, 7):
        return f"[{','.join(inner)}]"
    pairs = ",".join(f"[{json.dumps(source.choice(KEYS))}]:{item}" for item in inner)
    if kind < 12:
        return f"({{{pairs}}})"
    first = inner[0] if inner else "1"
    return source.choice(
        [
            f"({{get a(){{return {first}}},{pairs}}})",
            f"({{toJSON(key){{return [{first},key]}},{pairs}}})",
            f"Object.assign(Object.create({{inherited:1}}),{{{pairs}}})",
            f"(()=>{{const o={{x:1,y:{first},{pairs}}};delete o.x;o.z={first};return o}})()",
            f"Object.freeze({{{pairs}}})",
            f"new Proxy({{{pairs}}},{{}})",
            f"new Proxy([{','.join(inner)}],{{}})",
            "Object('boxed'),",
            "Object(5),",
            "new Date(1e12),",
            f"(()=>{{const o={{a:{{toJSON(){{o.b=1;delete o.c;return 1}}}},c:2,{pairs}}};return o}})()",
            f"(()=>{{const a=[{{toJSON(){{a.length=1;return 1}}}},2,3,{first}];return a}})()",
            "[1,,3],",
            f"Object.defineProperty({{{pairs}}},'hidden',{{value:1,enumerable:false}})",
            f"({{[Symbol('s')]:1,'3':1,b:2,'1':{first}}})",
            f"new (class K{{f={first}; #p=1}})",
        ]
    ).rstrip(",")


@pytest.mark.parametrize("seed", range(8))
def test_what_the_writer_writes_is_what_json_stringify_writes(seed: int) -> None:
    source = random.Random(1000 + seed)
    made = ",\n".join(f"() => ({expression(source)})" for _ in range(BATCH))
    outcome = run(
        f"for (const make of [{made}]) await tools.pair({{s: JSON.stringify({{v: make()}}), v: make()}})",
        {"pair": compare},
    )
    assert outcome.value is None


def compare(arguments: object) -> None:
    assert isinstance(arguments, dict)
    expected = json.loads(str(arguments["s"]))  # pyright: ignore[reportUnknownArgumentType] -- from JSON
    assert list(map(repr, [expected])) == list(
        map(repr, [{k: v for k, v in arguments.items() if k == "v"}])  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType] -- from JSON
    )


# A replacer of null and a reviver that changes nothing keep the engine to its own long way.
STRINGIFY = """
const told = make => { try { return String(make()) } catch (e) { return `${e.name}: ${e.message}` } };
const wrong = [];
for (const make of makes) {
  const short = told(() => JSON.stringify(make())), long = told(() => JSON.stringify(make(), null));
  if (short !== long) wrong.push([String(make), short, long]);
}
return wrong;
"""
ODD = [
    "'\\ud800'",
    "'a\\udc00b'",
    "'\\ud83d\\ude00\\ud83d'",
    "'€\\x01\"\\\\'",
    "'x'.repeat(300) + '\\x07é'",
    "`${'ab'.repeat(99)}${'\"'.repeat(9)}`.slice(3)",
    "NaN",
    "-Infinity",
    "0.1 + 0.2",
    "1e-7",
    "123456789.125",
    "() => 1",
    "Symbol('s')",
    "5n",
    "JSON.rawJSON('1')",
    "{k: undefined, f() {}, s: Symbol('s'), 'q\"€': 1}",
    "[undefined, () => 1, Symbol('s')]",
    "(() => { const a = [1]; a.own = 1; a.length = 3; return a })()",
    "(() => { const o = {a: 1}; o.o = o; return o })()",
    "(() => { let o = {}; for (let i = 0; i < 300; i++) o = {o}; return o })()",
    "(() => { const a = []; a.toJSON = () => 5; return a })()",
    "new (class extends Array {})(1, 2)",
    "new (class { toJSON() { return {a: this.constructor.name} } })",
    "Object.create({toJSON() { return 4 }})",
    "Object.create(new Proxy({}, {get: (_, k) => k === 'toJSON' ? () => 6 : undefined}))",
    "Object.create({get toJSON() { return () => 7 }})",
    "Object.create(null)",
    "new Map([[1, 2]])",
    "new Uint8Array(3)",
    "(function () { return arguments })(1, 2)",
    "globalThis.tools",
]


@pytest.mark.parametrize("seed", range(8))
def test_a_script_s_json_stringify_writes_what_the_engine_s_own_writes(seed: int) -> None:
    source = random.Random(2000 + seed)
    made = [expression(source) for _ in range(BATCH)]
    made += [f"[{odd}, {{a: {odd}}}, {expression(source)}]" for odd in ODD] + ODD
    makes = ",\n".join(f"() => ({item})" for item in made)
    assert run(f"const makes = [{makes}];{STRINGIFY}", {}).value == []


@pytest.mark.parametrize("place", ["Object.prototype", "Array.prototype", "String.prototype"])
def test_a_to_json_that_a_script_gives_to_all_objects_is_asked(place: str) -> None:
    made = run(
        f"{place}.toJSON = function () {{ return 'asked' }};"
        "const made = [{a: [1]}, [{a: 1}], 'text'];"
        "return `${made.map(v => JSON.stringify(v))}=${made.map(v => JSON.stringify(v, null))}`",
        {},
    ).value
    short, long = str(made).split("=")
    assert short == long
    assert "asked" in short or place == "String.prototype"


PARSE = """
const wrong = [];
const told = make => { try { return [make()] } catch (e) { return `${e.name}: ${e.message}` } };
const same = (a, b) => typeof a !== "object" || a === null || b === null ? Object.is(a, b)
  : Array.isArray(a) === Array.isArray(b) && Object.getPrototypeOf(a) === Object.getPrototypeOf(b)
    && Object.getOwnPropertyNames(a).join() === Object.getOwnPropertyNames(b).join()
    && Object.keys(a).every(k => same(a[k], b[k]));
for (const text of texts) {
  const short = told(() => JSON.parse(text)), long = told(() => JSON.parse(text, (k, v) => v));
  if (!same(short, long)) wrong.push([text, String(short), String(long)]);
}
return wrong;
"""
ODD_TEXTS = [
    "",
    " ",
    "nul",
    "NaN",
    "-Infinity",
    "[Infinity]",
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234567890",
    "1e400",
    "-0",
    "0.1",
    "1.7976931348623157e308",
    "4.35",
    "00",
    "1.",
    "-",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u00e9\\x"',
    '"a\tb"',
    "\xa0[1]",
    '{"a":1,"a":2,"b":3,"a":4}',
    '{"1":1,"0":2,"a":3}',
    '{"__proto__":{"x":1}}',
    "[1]]",
    "[1,]",
    '"é€"',
    '"\U0001f600"',
]


@pytest.mark.parametrize("seed", range(8))
def test_a_script_s_json_parse_reads_what_the_engine_s_own_reads(seed: int) -> None:
    source = random.Random(3000 + seed)
    texts = [
        json.dumps(value(source), ensure_ascii=bool(source.randrange(2))) for _ in range(BATCH)
    ]
    texts += [spoil(source, text) for text in texts] + ODD_TEXTS
    found = run(f"const texts = {json.dumps(texts)};{PARSE}", {})
    assert found.value == []


def test_json_that_is_too_deep_for_the_short_way_is_parsed_all_the_same() -> None:
    deep = "let v = JSON.parse('['.repeat(1500) + ']'.repeat(1500)), n = 0; while (v) { v = v[0]; n++ }"
    assert run(f"{deep} return n", {}).value == 1500


def test_parsed_numbers_are_never_big_integers() -> None:
    assert run("return typeof JSON.parse('9007199254740993')", {}).value == "number"
