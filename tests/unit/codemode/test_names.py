"""Identifiers: legal, never equal, and the same whatever the order."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.names import both_names, identifier, identifiers, namespace_of
from programs.compiler import complaints

odd_names = st.text(alphabet="ab_-. $0日é\u200d😀", max_size=6)


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        ("read", "read"),
        ("list-issues", "list_issues"),
        ("mcp__s__a.b c", "mcp__s__a_b_c"),
        ("3d", "_3d"),
        ("", "_"),
        ("$", "$"),
        ("日本", "日本"),
        ("a😀b", "a_b"),
        ("constructor", "constructor"),
        ("__proto__", "__proto__"),
        ("then", "then_"),
    ],
)
def test_a_name_becomes_an_identifier(name: str, ident: str) -> None:
    assert identifier(name) == ident


def test_names_that_would_collide_get_a_hash_each_and_leave_the_plain_one_free() -> None:
    found = identifiers(["get-x", "get.x"])

    assert all(ident.startswith("get_x_") for ident in found.values())
    assert len(set(found.values())) == 2


def test_a_name_that_is_an_identifier_keeps_it_from_the_others() -> None:
    found = identifiers(["get-x", "get_x"])

    assert found["get_x"] == "get_x"
    assert found["get-x"].startswith("get_x_")


def test_a_hash_that_is_taken_grows() -> None:
    hashed = identifiers(["a-b", "a.b"])["a-b"]

    assert identifiers(["a-b", "a.b", hashed])["a-b"].startswith(hashed)
    assert identifiers(["a-b", "a.b", hashed])["a-b"] != hashed


@given(st.lists(odd_names, unique=True, max_size=30), st.randoms(use_true_random=False))
def test_identifiers_are_unique_and_independent_of_the_order(
    names: list[str], chance: random.Random
) -> None:
    found = identifiers(names)
    chance.shuffle(names)

    assert identifiers(names) == found
    assert len(set(found.values())) == len(names)
    assert all(found.get(ident, ident) == ident for ident in found.values())


def test_both_names_stand_together() -> None:
    known = identifiers(["read", "a-b"])

    assert both_names(known) == [(0, "read"), (1, "a_b"), (1, "a-b")]


def test_no_spelling_of_any_tool_makes_the_tools_thenable() -> None:
    known = identifiers(["then", "then_", "catch"])

    names = [name for _, name in both_names(known)]
    assert "then" not in names
    assert known["then_"] == "then_"
    assert known["then"].startswith("then__")
    assert names == list(known.values())


@pytest.mark.parametrize(
    ("name", "server"),
    [("mcp__hub__list", "hub"), ("mcp__a_b__c__d", "a_b"), ("read", ""), ("mcp__x__", "")],
)
def test_a_server_is_told_by_its_tools_names(name: str, server: str) -> None:
    assert namespace_of(name) == server


@pytest.mark.slow
def test_every_character_of_an_identifier_is_one_to_the_real_compiler(tmp_path: Path) -> None:
    kept = [chr(code) for code in range(0x110000) if identifier("a" + chr(code))[1:] != "_"]
    first = [char for char in kept if not identifier(char).startswith("_")]
    texts = [
        f"declare const tools: {{ a{''.join(kept[at : at + 500])}(): unknown }}"
        for at in range(0, len(kept), 500)
    ] + [f"let {char}: unknown;" for char in first[:: len(first) // 500]]

    assert len(kept) > 40_000
    assert [said for said in complaints(texts, tmp_path) if said] == []
