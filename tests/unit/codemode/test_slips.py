"""An argument that a tool does not declare refuses nothing, and is told of, once a place."""

import pytest

from codespace.codemode import Outcome, RunProblem, RunStatus, Sandbox, Tool
from codespace.codemode.misfit import Misfit
from codespace.codemode.slips import KNOWN_MAX, TOLD_MAX, declared, mistaken
from doubles.script_tools import Json, echo

PATCH: Json = {
    "type": "object",
    "properties": {"patch": {"type": "string"}, "check_only": {"type": "boolean"}, "n": {}},
    "required": ["patch"],
}


def tool(schema: Json | None = None, name: str = "patch") -> Tool:
    return Tool(name, echo, input_schema=PATCH if schema is None else schema)


def slips(outcome: Outcome) -> list[RunProblem]:
    return [each for each in outcome.problems if each.code == "UNKNOWN_ARGUMENT"]


def test_a_schema_that_names_its_arguments_and_lets_in_no_others_declares_them() -> None:
    assert declared(PATCH) == {"patch", "check_only", "n"}
    assert declared({**PATCH, "additionalProperties": False}) == {"patch", "check_only", "n"}


OPEN: list[Json | None] = [
    None,
    {"type": "object"},
    {"properties": {}},
    {**PATCH, "additionalProperties": True},
    {**PATCH, "additionalProperties": {"type": "string"}},
    {**PATCH, "unevaluatedProperties": True},
    {**PATCH, "patternProperties": {"^x-": {}}},
    {**PATCH, "$ref": "#/$defs/more"},
    {**PATCH, "oneOf": [{"properties": {"a": {}}}]},
    {**PATCH, "if": {}, "then": {"properties": {"a": {}}}},
    {"properties": "broken"},
]


@pytest.mark.parametrize("schema", OPEN)
def test_a_schema_that_may_let_in_others_declares_nothing(schema: Json | None) -> None:
    assert declared(schema) is None


@pytest.mark.anyio
@pytest.mark.parametrize("judges", [False, True])
async def test_a_call_with_a_slip_is_made_and_the_slip_is_told_with_its_place(
    *, judges: bool
) -> None:
    made = Tool("patch", echo, input_schema=PATCH, judges=judges)
    async with Sandbox([made]) as sandbox:
        outcome = await sandbox.run(
            "await tools.patch({patch: 'a'});\n"
            "return await tools.patch({checkOnly: true, patch: 'b'})"
        )
    assert outcome.value == {"checkOnly": True, "patch": "b"}
    (problem,) = outcome.problems
    assert problem == RunProblem(
        "UNKNOWN_ARGUMENT",
        "patch declares no argument 'checkOnly' (did you mean 'check_only'?), and the call was made"
        " all the same. It takes patch, check_only, n.",
        call_no=2,
        tool="patch",
        line=2,
    )


@pytest.mark.anyio
async def test_a_tool_whose_schema_is_open_takes_any_name() -> None:
    open_tools = [
        tool({**PATCH, "additionalProperties": True}, "a"),
        tool({"type": "object"}, "b"),
        Tool("c", echo),
    ]
    async with Sandbox(open_tools) as sandbox:
        outcome = await sandbox.run(
            "for (const name of 'abc') await tools[name]({patch: 'x', checkOnly: true})"
        )
    assert outcome.problems == ()


@pytest.mark.anyio
async def test_a_slip_in_a_loop_is_one_problem_that_counts() -> None:
    async with Sandbox([tool()]) as sandbox:
        outcome = await sandbox.run(
            "for (let i = 0; i < 30; i++) await tools.patch({patch: '', N: i})"
        )
    (problem,) = outcome.problems
    assert (problem.call_no, "29 more calls" in problem.message) == (1, True)


@pytest.mark.anyio
async def test_many_different_slips_are_counted_beyond_the_first() -> None:
    async with Sandbox([tool()]) as sandbox:
        outcome = await sandbox.run(
            "for (let i = 0; i < args; i++) await tools.patch({patch: '', ['x' + i]: 1})",
            args=TOLD_MAX + 7,
        )
    assert len(outcome.problems) == TOLD_MAX + 1
    assert "7 more calls" in "".join(each.message for each in outcome.problems)


@pytest.mark.anyio
async def test_a_hostile_name_is_cut_and_escaped() -> None:
    async with Sandbox([tool()]) as sandbox:
        outcome = await sandbox.run(
            "const more = {patch: ''};"
            "for (let i = 0; i < 200; i++) more['\\n'.repeat(1000) + i] = 1;"
            "await tools.patch(more)"
        )
    (problem,) = slips(outcome)
    assert outcome.status is RunStatus.COMPLETED
    assert len(problem.message) < 3_000
    assert "\n" not in problem.message


@pytest.mark.anyio
async def test_a_tool_that_changes_its_arguments_makes_no_slip() -> None:
    async def change(arguments: Json) -> object:
        arguments["internal"] = 1
        return None

    async with Sandbox([Tool("patch", change, input_schema=PATCH)]) as sandbox:
        outcome = await sandbox.run("await tools.patch({patch: ''})")
    assert outcome.problems == ()


@pytest.mark.anyio
async def test_a_call_that_is_refused_anyway_is_one_problem() -> None:
    async with Sandbox([tool()]) as sandbox:
        outcome = await sandbox.run("await tools.patch({pach: ''}).catch(() => 0)")
    (problem,) = outcome.problems
    assert (problem.code, problem.message) == (
        "INVALID_ARGUMENT",
        "patch: patch is required; 'pach' is no argument of it.",
    )


@pytest.mark.anyio
async def test_of_many_arguments_some_are_listed() -> None:
    many: Json = {"properties": dict.fromkeys([f"p{i}" for i in range(KNOWN_MAX + 3)], True)}
    async with Sandbox([tool(many)]) as sandbox:
        outcome = await sandbox.run("await tools.patch({elsewhere: 1})")
    (problem,) = outcome.problems
    assert problem.message.endswith(
        f"It takes p0, {', '.join(f'p{i}' for i in range(1, 12))} and 3 more."
    )


@pytest.mark.parametrize(
    ("misfit", "given"),
    [
        (Misfit("patch", "is required"), {"n": 1}),
        (Misfit("patch", "is required"), {"a": 1, "b": 1}),
        (Misfit("n.patch", "is required"), {"pach": 1}),
        (Misfit("patch", "must be string"), {"patch": 1, "pach": 1}),
    ],
)
def test_a_misfit_without_a_likely_slip_stays_as_it_is(misfit: Misfit, given: Json) -> None:
    assert mistaken([misfit], given, tool()) == [misfit]
