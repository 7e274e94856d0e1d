import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from contract.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]


def test_every_requirement_has_a_test() -> None:
    carried = {requirement_id for _, requirement_id in _carried()}
    assert sorted({requirement.id for requirement in REQUIREMENTS} - carried) == []


def test_no_test_carries_an_unknown_requirement() -> None:
    known = {requirement.id for requirement in REQUIREMENTS}
    assert [pair for pair in _carried() if pair[1] not in known] == []


def test_each_id_is_used_once_in_the_manifest() -> None:
    counted = Counter(requirement.id for requirement in REQUIREMENTS)
    assert [requirement_id for requirement_id, count in counted.items() if count > 1] == []


def test_only_tests_carry_requirements() -> None:
    assert all(name.startswith("test_") for name, _ in _carried())


def _carried() -> Iterator[tuple[str, str]]:
    """Yield name and requirement of each test, from the source: whatever else was selected."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    yield from ((node.name, text) for text in _ids(mark))


def _ids(mark: ast.expr) -> Iterator[str]:
    if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.requirement":
        return
    for argument in mark.args:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise TypeError(f"{ast.unparse(mark)}: a requirement's id is written out")
        yield argument.value
