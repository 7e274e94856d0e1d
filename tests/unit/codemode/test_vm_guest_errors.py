"""Errors tell what, where and whose: lines are those of the script as it was given."""

# ruff: noqa: E501 -- scripts stand on one line, as models write them

import pytest

from codespace.codemode import protocol
from codespace.codemode.protocol import Failed, Lost, Pending, Status, Unhandled
from codespace.codemode.vm import Vm
from codespace.domain.limits import MIB
from doubles.machines import Outcome, machine, opening, run


def echo(arguments: object) -> object:
    return arguments


def missing(arguments: object) -> object:
    raise LookupError("no such file")


def place(outcome: Outcome) -> tuple[str, int, int]:
    return outcome.problem.name, outcome.problem.line, outcome.problem.column


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("null.boom", ("TypeError", 1, 1)),
        ("// @options {}\nconst a = 1;\nnull.boom;", ("TypeError", 3, 1)),
        ("function pick(r) {\n  return r.b.c;\n}\nreturn [{}].map(pick)", ("TypeError", 2, 14)),
        ("async () => {\n  const r = {};\n\n  return r.missing.field;\n}", ("TypeError", 4, 20)),
        ("const a = 1;\nconst b = 2;\nconst c = ;\nreturn a", ("SyntaxError", 3, 11)),
        ("await null;\nthrow new RangeError('x');", ("RangeError", 2, 7)),
        ("\n\nthrow 'just text'", ("", 3, 7)),
        ("return JSON.parse('{')", ("SyntaxError", 1, 13)),
        ("return new URL('nope')", ("TypeError", 1, 8)),
        ("eval('null.x')", ("TypeError", 1, 1)),
    ],
)
def test_an_error_has_its_place(code: str, expected: tuple[str, int, int]) -> None:
    outcome = run(code)
    assert outcome.status is Status.FAILED
    assert place(outcome)[:2] == expected[:2]


def test_columns_are_those_of_the_script() -> None:
    assert place(run("const c = ;")) == ("SyntaxError", 1, 11)
    assert place(run("   null.boom")) == ("TypeError", 1, 4)


def test_a_thrown_text_is_the_message() -> None:
    assert run("throw 'just text'").problem.message == "just text"


def test_a_tool_error_has_all_its_fields() -> None:
    vm = Vm(machine())
    vm.step(
        opening(
            "try { await tools.get({}) } catch (e) {\nreturn [e instanceof Error, e instanceof ToolError, e.name, e.code, e.message, e.details, e.tool, e.call_no, JSON.parse(JSON.stringify(e)).code] }",
            tools={"get": str},
        )
    )
    rejection = protocol.reject(
        1, code="VERSION_CONFLICT", message="changed", details={"path": "a"}, tool="get"
    )
    operations = vm.step(protocol.step_input(0, [rejection]))
    expected = [
        True,
        True,
        "ToolError",
        "VERSION_CONFLICT",
        "changed",
        {"path": "a"},
        "get",
        1,
        "VERSION_CONFLICT",
    ]
    assert protocol.Returned(expected) in operations


def test_an_uncaught_tool_error_has_the_line_that_made_the_call() -> None:
    code = "async function load(path) {\n  const r = await tools.get({path});\n  return r;\n}\nasync function all() {\n  return Promise.all(['a', 'b'].map(load));\n}\nreturn await all();"
    problem = run(code, {"get": missing}).problem
    assert (problem.name, problem.code, problem.call_no) == ("ToolError", "MISSING", 1)
    assert (problem.line, problem.column) == (2, 25)


def test_a_call_made_by_a_native_function_has_the_line_of_its_caller() -> None:
    problem = run("const a = 1;\nawait Promise.all([1].map(tools.get))", {"get": missing}).problem
    assert problem.line == 2


def test_an_unknown_tool_is_named_with_its_neighbours() -> None:
    problem = run("await tools.serach_issues({q: 1})", {"search_issues": echo}).problem
    assert problem.message == "unknown tool 'serach_issues'; did you mean search_issues"
    assert (problem.name, problem.line) == ("TypeError", 1)


def test_names_of_the_language_are_safe_on_tools() -> None:
    code = "const t = await (async () => tools)();\nreturn [t === tools, typeof tools.then, typeof tools.toJSON, 'x' in tools, (await tools['constructor']({a: 1})).a, `${Object.keys(tools)}`]"
    value = run(code, {"constructor": echo, "other": echo}).value
    assert value == [True, "undefined", "undefined", False, 1, "constructor,other"]


def test_tools_cannot_be_changed() -> None:
    code = """
    try { tools.echo = () => "fake" } catch {}
    try { delete tools.echo } catch {}
    try { Object.defineProperty(tools, "echo", {value: () => "fake"}) } catch {}
    try { Object.setPrototypeOf(tools, {}) } catch {}
    return (await tools.echo({a: 1})).a
    """
    assert run(code, {"echo": echo}).value == 1


def test_calls_that_nobody_awaited_are_told_with_their_lines() -> None:
    vm = Vm(machine())
    operations = vm.step(
        opening("tools.slow({});\n  tools.slow({});\nreturn 1", tools={"slow": str})
    )
    assert [o for o in operations if isinstance(o, Pending)] == [Pending(1, 1, 7), Pending(2, 2, 9)]


def test_unhandled_rejections_are_told_and_late_handled_ones_are_not() -> None:
    code = """
    Promise.reject(new Error("lost in space"));
    const late = Promise.reject(new Error("found")); await null; late.catch(() => {});
    tools.bad({}); await tools.wait({});
    (async () => { await null; throw new Error("after the end") })();
    return 1
    """
    outcome = run(code, {"bad": missing, "wait": echo})
    found = [o.problem for o in outcome.operations if isinstance(o, Unhandled)]
    assert [p.message for p in found] == ["lost in space", "no such file", "after the end"]
    assert [p.call_no for p in found] == [0, 1, 0]


def test_a_flood_of_rejections_is_counted() -> None:
    outcome = run("for (let i = 0; i < 3000; i++) Promise.reject(i); return 1")
    assert Lost(2000) in outcome.operations


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            "const p = new Promise(() => {});\nasync function wait() {\n  await p;\n}\nawait wait();",
            3,
        ),
        ("const a = 1;\nawait new Promise(() => {});\nreturn 1", 2),
    ],
)
def test_a_deadlock_ends_at_once_and_says_where(code: str, line: int) -> None:
    outcome = run(code)
    assert outcome.status is Status.DEADLOCK
    assert outcome.problem.line == line


def test_output_before_an_error_is_kept() -> None:
    outcome = run(
        "console.log('one');\nawait tools.echo({});\nconsole.log('two');\nthrow new Error('x')",
        {"echo": echo},
    )
    assert outcome.text == "one\ntwo"
    assert [o for o in outcome.operations if isinstance(o, Failed)]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return 5", 5),
        ("async () => 5", 5),
        ("async () => { return 5 };\n", 5),
        ("// why\n/* how */ async function main() { return 5 }", 5),
        ("(async () => { return 5 })()", 5),
        ("(async () => { return 5 })", 5),
        ("const async_value = 5; return async_value", 5),
        ("async function f() { return 5 }\nreturn f()", 5),
        ("let async = 5;\nreturn async", 5),
        ("const x = async () => 5;\nreturn await x()", 5),
        ("'use strict';\nreturn 5", 5),
    ],
)
def test_a_script_is_a_body_or_a_whole_async_function(code: str, value: object) -> None:
    assert run(code).value == value


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\nlet i = 0;\nfor (;;) {\n  i++;\n}", 4),
        ("const f = () => {\n  let n = 0;\n  while (true) {\n    n++;\n  }\n};\nf();", 4),
        ("await null;\nlet n = 1;\nwhile (n > 0) {\n  if (n > 9) n = 1;\n  n++;\n}", 3),
        ("let n = 1;\nfor (;;) n++;\nreturn n;", 2),
    ],
)
def test_an_endless_loop_is_told_at_its_own_line(code: str, line: int) -> None:
    vm = Vm(machine())
    operations = vm.step(opening(code), tick_limit=50)
    assert vm.status is Status.INTERRUPTED
    (failed,) = [o.problem for o in operations if isinstance(o, Failed)]
    assert failed.line == line


def test_a_flood_of_microtasks_is_told_as_what_it_is() -> None:
    vm = Vm(machine(), memory_bytes=16 * MIB)
    flood = (
        "const f = () => { queueMicrotask(f); queueMicrotask(f) }; f(); await new Promise(() => 0)"
    )
    operations = vm.step(opening(flood), seconds=30)
    (failed,) = [o.problem for o in operations if isinstance(o, Failed)]
    assert (failed.name, failed.message, failed.limit) == (
        "InternalError",
        "out of memory",
        "memory",
    )


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        ("text('x'.repeat(2000))", "written_bytes"),
        ("for (;;) text('x'.repeat(99))", "written_bytes"),
        ("return 'x'.repeat(2000)", "result_bytes"),
        ("await tools.a('x'.repeat(2000))", "argument_bytes"),
        ("store('a', 'x'.repeat(2000))", "store_value_chars"),
        ("for (let i = 0; i < 3; i++) await tools.a({})", "max_calls"),
    ],
)
def test_a_limit_is_called_by_the_name_of_its_setting(code: str, setting: str) -> None:
    limits = protocol.Limits(
        arguments_bytes=1000, value_bytes=1000, output_bytes=1000, calls=2, store_value_chars=400
    )
    assert setting in run(code, {"a": echo}, limits=limits).problem.message
