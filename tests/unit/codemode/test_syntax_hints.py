import pytest

from codespace.codemode.syntax_hints import (
    MODULES,
    NAMES,
    TYPESCRIPT,
    UNFINISHED,
    explain,
    explain_name,
)


@pytest.mark.parametrize(
    "text",
    [
        "const total: number = rows.length;",
        "let rows: Array<string> = [];",
        "interface Row { id: number; name: string }",
        "type Row = {id: number};",
        "enum Color { Red }",
        "const f = (a: number, b?: string) => a;",
        "function f(a: string): number { return 1 }",
        "const x = y as any;",
        "const x = rows as const;",
        "return map.get(key)!.name;",
        "class A { private x = 1 }",
        "const m = new Map<string, number>();",
        "const [a, b]: string[] = [];",
        "import type { X } from 'y';",
    ],
)
def test_typescript_is_called_by_its_name(text: str) -> None:
    assert explain(f"const a = 1;\n{text}", "expecting ';'", 2) == f"expecting ';' ({TYPESCRIPT})"


@pytest.mark.parametrize("text", ["import fs from 'fs';", "export const a = 1;", "import 'x'"])
def test_modules_are_called_by_their_name(text: str) -> None:
    assert MODULES in explain(text, "unexpected token", 1)


def test_an_error_beyond_the_last_line_is_an_unclosed_script() -> None:
    assert UNFINISHED in explain("const f = () => {\n  return 1;", "expecting '}'", 3)


@pytest.mark.parametrize(
    "text", ["const c = ;", "return {a: 1, b: 2", "const o = {a: b ? c : d, e: 1", "x = a < b > (c"]
)
def test_plain_mistakes_keep_the_message_of_the_engine(text: str) -> None:
    assert explain(text, "unexpected token", 1) == "unexpected token"


@pytest.mark.parametrize(("name", "hint"), NAMES.items())
def test_a_global_of_another_place_is_answered_with_what_there_is(name: str, hint: str) -> None:
    assert explain_name(f"{name} is not defined") == f"{name} is not defined ({hint})"


def test_a_dynamic_import_is_answered_like_a_module() -> None:
    assert explain_name("could not load module 'fs'") == f"could not load module 'fs' ({MODULES})"


def test_other_names_are_left_alone() -> None:
    assert explain_name("total is not defined") == "total is not defined"
    assert explain_name("x is not initialized") == "x is not initialized"


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "):" + " " * 250_000 + "x",
        "const {" * 35_000,
        ",a:a " * 50_000,
        "const a" + " " * 250_000,
        "type a<" + "<" * 250_000,
        " " * 250_000 + "@",
        "a<b " * 60_000,
    ],
)
def test_a_long_line_is_judged_in_little_time(text: str) -> None:
    # The blanks of the first alone took hours, in which the event loop stood still.
    assert explain(text, "no", 1).startswith("no")


def test_a_hint_is_found_among_many_blanks() -> None:
    assert explain("function f(a)  :   \t number   {", "no", 1) == f"no ({TYPESCRIPT})"
