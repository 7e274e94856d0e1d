"""The rules of the house that no linter checks: sizes, names, twins, suppressions, words."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent
SOURCE = HOUSE / "src" / "codespace"
UNIT = HOUSE / "tests" / "unit"

MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.stat().st_size)
LINES_MAX = 350

NO_TWIN = {
    "__init__.py": "holds a docstring",
    "codemode/__init__.py": "names what is public",
    "codemode/orders.py": "declares values without behaviour",
    "domain/effect.py": "declares names of effects",
    "__main__.py": "calls the command line, which has its own tests",
    "domain/ids.py": "declares names of types",
    "domain/patch.py": "declares values without behaviour",
    "domain/sizes.py": "declares units",
    "domain/workspace.py": "declares values without behaviour",
}
"""The modules without a test file of their own, each with its reason."""

PUBLIC = {"codemode/__init__.py": "authors of harnesses import from the package itself"}
"""The package files that are not empty, each with its reason."""

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "shared", "base", "manager"}

NO_MODULE = {"patching/test_cases.py": "whole patches, from a corpus"}
"""The unit tests that are nobody's twin, each with its reason."""

SUPPRESSION = re.compile(
    r"#\s*(noqa|type:\s*ignore|pyright:\s*(?:ignore|basic|strict)?)(?P<rest>.*)"
)
JUSTIFIED = re.compile(r"(:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|\[[A-Za-z, -]+\]) -- \S")

FOREIGN_WORDS = re.compile(
    r"[p]ypi\.org|pythonhos[t]ed|registry\.npm[j]s|/[w]ork/"
    r"|(?i:helper agen[t]|sub-?agen[t]|session i[d])"
)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


@cache
def tracked() -> tuple[Path, ...]:
    """Return every file that is, or is about to be, part of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HOUSE,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    return tuple(HOUSE / name for name in names if name and (HOUSE / name).is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Return the name and content of every text file of the repository."""
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            yield str(path.relative_to(HOUSE)), content.decode("utf-8", "replace")


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


every_module = pytest.mark.parametrize("module", MODULES, ids=relative)


@every_module
def test_a_module_is_short(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) < LINES_MAX


@every_module
def test_a_module_says_what_it_is_for(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.endswith((".", ":"))


@every_module
def test_a_module_has_its_twin_among_the_tests(module: Path) -> None:
    twin = UNIT / module.relative_to(SOURCE).with_name(f"test_{module.name}")
    name = relative(module)
    assert twin.exists() is (name not in NO_TWIN), NO_TWIN.get(name, f"{twin} is missing")


def test_every_exception_is_a_module_that_exists() -> None:
    assert set(NO_TWIN) <= {relative(module) for module in MODULES}


def test_every_unit_test_stands_beside_a_module() -> None:
    modules = {relative(module).removesuffix(".py") for module in MODULES}
    strays = [
        name
        for name in (str(test.relative_to(UNIT)) for test in UNIT.rglob("test_*.py"))
        if name not in NO_MODULE and not _stands_beside(name, modules)
    ]
    assert strays == [], "name each after its module: test_MODULE.py, or test_MODULE_subject.py"


def _stands_beside(test: str, modules: set[str]) -> bool:
    stem = test.removesuffix(".py").replace("test_", "")
    return stem in modules or any(stem.startswith(f"{module}_") for module in modules)


def test_package_files_are_empty() -> None:
    filled = [relative(path) for path in SOURCE.rglob("*/__init__.py") if path.stat().st_size]
    assert sorted(filled) == sorted(PUBLIC)


def test_no_name_stands_for_what_has_no_owner() -> None:
    names = {
        part
        for path in SOURCE.rglob("*.py")
        for part in path.relative_to(SOURCE).with_suffix("").parts
    }
    assert names & FORBIDDEN_NAMES == set()


def test_test_folders_are_no_packages() -> None:
    assert [*(HOUSE / "tests").rglob("__init__.py")] == []


def suppressions() -> Iterator[tuple[str, str]]:
    for name, text in texts():
        if name.endswith(".py"):
            for number, line in enumerate(text.splitlines(), 1):
                found = SUPPRESSION.search(line)
                if found is not None and "re.compile" not in line:
                    yield f"{name}:{number}", found["rest"]


def test_every_suppression_names_its_rule_and_its_reason() -> None:
    bare = [place for place, rest in suppressions() if not JUSTIFIED.match(rest)]
    assert bare == [], "write it as `noqa: RULE -- reason` or `pyright: ignore[rule] -- reason`"


@pytest.mark.parametrize(
    "rest", [": BLE001 -- why", ": A001, B002 -- why", "[reportX] -- why", "[a, b-c] -- why"]
)
def test_a_suppression_with_rule_and_reason_is_justified(rest: str) -> None:
    assert JUSTIFIED.match(rest)


@pytest.mark.parametrize("rest", ["", ": BLE001", ": BLE001 --", "[reportX]", " -- why", "[] -- w"])
def test_a_suppression_without_one_of_them_is_not(rest: str) -> None:
    assert not JUSTIFIED.match(rest)


def test_nothing_is_left_to_do_on_main() -> None:
    found = [name for name, text in texts() if UNFINISHED.search(text)]
    assert found == ["pyproject.toml"], "only the rule itself may say the word"


def test_no_file_names_the_place_where_it_was_made() -> None:
    here = str(Path(__file__).relative_to(HOUSE))
    found = [
        f"{name}: {match[0]}"
        for name, text in texts()
        if name != here
        for match in FOREIGN_WORDS.finditer(text)
    ]
    assert found == []


def test_lock_files_name_no_index() -> None:
    locks = [path for path in tracked() if path.parent.name == "requirements"]
    assert len(locks) > 1
    for lock in locks:
        assert not re.search(r"://|--(extra-)?index", lock.read_text(encoding="utf-8")), lock
    for lock in (path for path in tracked() if path.name == "package-lock.json"):
        assert '"resolved"' not in lock.read_text(encoding="utf-8"), lock


def test_python_locks_pin_every_package_by_its_hash() -> None:
    locks = [path for path in tracked() if path.parent.name == "requirements"]
    for lock in locks:
        if lock.suffix == ".txt":
            pinned = lock.read_text(encoding="utf-8")
            assert pinned.count("==") > 0
            assert "--hash=sha256:" in pinned
