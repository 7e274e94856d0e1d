"""`codespace inbox` on a running gateway, as a person uses it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest

from codespace.adapters.client import connect_http
from codespace.domain.tool import Json
from commands import Command
from contract.servers import serving


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base = tmp_path_factory.mktemp("inbox")
    (base / "root").mkdir()
    with serving(base / "errors", str(base / "root")) as server:
        yield server.url


def called(url: str, tool: str, arguments: Mapping[str, object]) -> Json:
    async def call() -> Json:
        async with connect_http(url) as connection:
            return (await connection.call(tool, arguments)).body

    return anyio.run(call)


@pytest.fixture
def work(url: str) -> str:
    opened = called(url, "work_open", {"workspace_id": "default", "title": "a job"})
    return str(opened["work_id"])


def added(command: Command, url: str, work: str, text: str, *words: str) -> str:
    ran = command("inbox", "add", work, text, "--url", url, "--json", *words)
    assert ran.code == 0, ran.err
    return str(json.loads(ran.out)["intent_id"])


def states(command: Command, url: str, work: str) -> list[tuple[str, str]]:
    ran = command("inbox", "show", work, "--url", url, "--json")
    return [(each["body"], each["state"]) for each in json.loads(ran.out)["intents"]]


def test_works_are_listed(command: Command, url: str, work: str) -> None:
    ran = command("inbox", "works", "--url", url)
    assert f"{work}  default  active  a job" in ran.out.splitlines()
    assert command("inbox", "works", "--workspace", "none", "--url", url).out == ""


def test_an_instruction_goes_its_way_to_the_agent(command: Command, url: str, work: str) -> None:
    intent = added(command, url, work, "rename it", "--when", "next_checkpoint")
    edited = command("inbox", "edit", intent, "rename both", "--url", url)
    assert edited.out.splitlines() == [
        f"{intent}  revision 2  draft  follow_up  next_checkpoint",
        "    rename both",
    ]
    assert command("inbox", "queue", intent, "--url", url).code == 0
    item = called(url, "steer_claim_next", {"work_id": work})["item"]
    assert isinstance(item, dict)
    assert item["content"] == "rename both"
    late = command("inbox", "edit", intent, "none of it", "--url", url)
    assert (late.code, late.out) == (1, "")
    assert late.err.startswith("codespace: The agent has claimed")


def test_text_comes_from_stdin_and_is_queued_at_once(command: Command, url: str, work: str) -> None:
    ran = command("inbox", "add", work, "-", "--queue", "--url", url, stdin="two\nlines\n")
    assert ran.code == 0
    assert states(command, url, work) == [("two\nlines", "queued")]


def test_the_queue_is_put_in_order_and_a_text_taken_back(
    command: Command, url: str, work: str
) -> None:
    first = added(command, url, work, "one", "--queue")
    second = added(command, url, work, "two", "--queue")
    ran = command("inbox", "reorder", work, second, first, "--url", url)
    assert [line.strip() for line in ran.out.splitlines()[2::2]] == ["two", "one"]
    ran = command("inbox", "cancel", first, "--url", url)
    assert ran.out.splitlines()[1] == "    one"
    assert states(command, url, work) == [("two", "queued"), ("one", "cancelled")]


def test_a_revision_that_was_seen_protects_from_a_later_change(
    command: Command, url: str, work: str
) -> None:
    intent = added(command, url, work, "one")
    command("inbox", "edit", intent, "two", "--url", url)
    ran = command("inbox", "cancel", intent, "--revision", "1", "--url", url, "--json")
    assert (ran.code, json.loads(ran.out)["code"]) == (1, "INTENT_REVISION_CONFLICT")


def test_a_stop_says_what_it_ended(command: Command, url: str, work: str) -> None:
    ran = command("inbox", "stop", work, "--reason", "wrong branch", "--url", url)
    assert ran.out.splitlines()[0] == "no process was live"
    assert ran.out.splitlines()[2] == "    wrong branch"


def test_what_nobody_knows_is_an_error(command: Command, url: str) -> None:
    for words in (("show", "work-none"), ("cancel", "int-none"), ("stop", "work-none")):
        ran = command("inbox", *words, "--url", url)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("codespace: No ")


@pytest.mark.parametrize("name", ["", "../works", "a/b", "é", "a?b"])
def test_what_is_no_id_never_becomes_an_address(command: Command, url: str, name: str) -> None:
    for words in (("show", name), ("queue", name, "--revision", "1")):
        ran = command("inbox", *words, "--url", url)
        assert ran.code == 2
        assert "is no id" in ran.err


def test_an_edit_changes_something(command: Command, url: str) -> None:
    ran = command("inbox", "edit", "int-1", "--url", url)
    assert (ran.code, "say what to change" in ran.err) == (2, True)


def test_the_page_of_commands_names_them(command: Command, tmp_path: Path) -> None:
    assert "inbox" in command("--help").out
