"""`call` and `tools`: arguments as people type them, answers as programs read them."""

import json
from pathlib import Path

import anyio
import pytest

from codespace.adapters.http_app import listen, serve_http
from codespace.adapters.http_guard import access_for
from codespace.cli.call import _arguments  # pyright: ignore[reportPrivateUsage] -- how words become arguments, apart from any gateway
from codespace.domain.limits import Limits
from codespace.settings import SettingsError
from commands import Command
from doubles.echo_server import echo_server

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "key": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        "count": {"type": "integer"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "flag": {"type": "boolean"},
        "words": {"type": "array", "items": {"type": "string"}},
        "table": {"type": "object"},
    }
}


def words(*given: str, json_text: str | None = None) -> dict[str, object]:
    return _arguments(SCHEMA, given, json_text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("text=hello", {"text": "hello"}),
        ("text=", {"text": ""}),
        ("text=a=b", {"text": "a=b"}),
        ("text=1", {"text": "1"}),
        ("text=true", {"text": "true"}),
        ('text={"a": 1}', {"text": '{"a": 1}'}),
        ("key=null", {"key": "null"}),
        ("unknown=1", {"unknown": "1"}),
        ("count=1", {"count": 1}),
        ("count=-1.5", {"count": -1.5}),
        ("maybe=null", {"maybe": None}),
        ("maybe=7", {"maybe": 7}),
        ("flag=true", {"flag": True}),
        ('words=["a", "b"]', {"words": ["a", "b"]}),
        ('table={"a": "b"}', {"table": {"a": "b"}}),
    ],
)
def test_a_word_is_text_or_json_by_what_the_tool_takes(
    word: str, expected: dict[str, object]
) -> None:
    assert words(word) == expected


def test_a_value_comes_from_a_file_as_it_stands_there(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("two\nlines\n", encoding="utf-8")
    (tmp_path / "j").write_text('["a"]\n', encoding="utf-8")
    assert words(f"text=@{tmp_path}/t", f"words=@{tmp_path}/j") == {
        "text": "two\nlines\n",
        "words": ["a"],
    }


def test_words_are_added_to_the_json_and_win(tmp_path: Path) -> None:
    assert words("text=b", json_text='{"text": "a", "count": 2}') == {"text": "b", "count": 2}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("text", "'text' is not key=value"),
        ("=x", "'=x' is not key=value"),
        ("", "'' is not key=value"),
        ("count=one", "count: takes a whole number, not 'one'"),
        ("count=", "count: takes a whole number, not ''"),
        ("maybe=x", "maybe: takes a whole number"),
        ("txt=x", "there is no argument 'txt' (did you mean text?)"),
        ("words=a,b", "words: takes a JSON list"),
        ("table=a", "table: takes a JSON object"),
        ("flag=yes", "flag: takes true or false"),
        ("text=@/no/such/file", "text: the file '/no/such/file' cannot be read"),
        ("text=@/", "text: the file '/' cannot be read"),
        ("text=@", "text: the file '' cannot be read"),
        ("text=@/bin/true", "text: the file '/bin/true' cannot be read as text"),
        ("text=@a\0b", "text: the file"),
    ],
)
def test_a_word_that_does_not_fit_is_refused(word: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        words(word)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "nope", "{'a': 1}"])
def test_json_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--json: takes JSON"):
        words(json_text=text)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"text"'])
def test_json_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--json takes an object"):
        words(json_text=text)


# With a gateway that lives for one call.


def test_an_answer_is_json_on_stdout_and_nothing_else(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hé\n", encoding="utf-8")
    ran = command("call", "read", "path=a.txt", "--path", str(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["content"] == "hé\n"


def test_an_error_is_json_on_stdout_and_exit_code_1(command: Command, tmp_path: Path) -> None:
    ran = command("call", "read", "path=none", "--path", str(tmp_path))
    assert (ran.code, ran.err) == (1, "")
    assert json.loads(ran.out)["code"] == "FILE_NOT_FOUND"


def test_arguments_that_do_not_fit_are_the_tools_error(command: Command, tmp_path: Path) -> None:
    ran = command("call", "read", "--path", str(tmp_path))
    assert ran.code == 1
    assert json.loads(ran.out)["details"]["path"] == "path"


def test_the_only_workspace_need_not_be_named(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    places = {name: {"root": str(tmp_path / name)} for name in ("one", "two")}
    for name in places:
        (tmp_path / name).mkdir()
    config.write_text(json.dumps({"workspaces": {"one": places["one"]}}), encoding="utf-8")
    assert command("call", "find", "--config", str(config)).code == 0
    config.write_text(json.dumps({"workspaces": places}), encoding="utf-8")
    ran = command("call", "find", "--config", str(config))
    assert json.loads(ran.out)["details"]["path"] == "workspace_id"
    assert command("call", "find", "workspace_id=two", "--config", str(config)).code == 0


def test_a_tool_that_names_no_workspace_is_given_none(command: Command, tmp_path: Path) -> None:
    listed = json.loads(command("call", "workspace_info", "--path", str(tmp_path)).out)
    assert [item["workspace_id"] for item in listed["workspaces"]] == ["default"]


def test_a_patch_comes_from_stdin(command: Command, tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
    ran = command("call", "apply_patch", "patch=@-", "--path", str(tmp_path), stdin=patch)
    assert ran.code == 0
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "hello\n"


def test_all_arguments_come_from_stdin(command: Command, tmp_path: Path) -> None:
    ran = command(
        *("call", "find", "--json", "-", "--path", str(tmp_path)), stdin='{"glob": "*.none"}'
    )
    assert json.loads(ran.out) == {"paths": [], "truncated": False}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["no_such_tool"], "no tool is named 'no_such_tool'; there are workspace_info, read"),
        (["read", "path"], "'path' is not key=value"),
        (["reed"], "no tool is named 'reed' (did you mean read?); there are"),
        (["read", "offset=x"], "offset: takes a whole number, not 'x'"),
        (["apply_patch", "patch=x", "chek_only=true"], "did you mean check_only?"),
        (["read", "--json", "[]"], "--json takes an object"),
    ],
)
def test_bad_use_is_exit_code_2_and_one_line(
    command: Command, tmp_path: Path, given: list[str], said: str
) -> None:
    ran = command("call", *given, "--path", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


# With a gateway that runs elsewhere.


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp", "nonsense"])
def test_a_gateway_that_is_not_there_is_exit_code_2_and_one_line(
    command: Command, url: str
) -> None:
    ran = command("call", "read", "--url", url)
    assert (ran.code, ran.out) == (2, "")
    assert f"{url} does not answer as a gateway" in ran.err
    assert "did you mean" not in ran.err, "nobody is there, under any path"
    assert ran.err.count("\n") == 1


def test_a_token_file_that_is_not_there_is_named(command: Command) -> None:
    ran = command("call", "read", "--url", "http://127.0.0.1:1/", "--token-file", "/no/such")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "'/no/such'" in ran.err


def test_a_running_gateway_answers_with_its_token(command: Command, tmp_path: Path) -> None:
    token = "0123456789abcdef"
    (tmp_path / "token").write_text(token, encoding="utf-8")
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    ended: list[tuple[int, str]] = []

    def ask(*given: str) -> None:
        ran = command("call", *given, "--url", url)
        ended.append((ran.code, ran.out or ran.err))

    async def serve() -> None:
        access = access_for("127.0.0.1", (), token)
        async with serve_http(echo_server(), listener, access, Limits()):
            there = ("--token-file", str(tmp_path / "token"))
            await anyio.to_thread.run_sync(ask, "say", "text=hé", *there)
            await anyio.to_thread.run_sync(ask, "say", "text=hé")
            await anyio.to_thread.run_sync(ask, "other", *there)

    anyio.run(serve)
    (good, answer), (refused, why), (unknown, names) = ended
    assert (good, json.loads(answer)) == (0, {"text": "hé"})
    assert refused == 2
    assert why == (
        f"codespace: {url}: This server asks for its bearer token in the Authorization header."
        " Name a file with it: --token-file FILE.\n"
    )
    assert unknown == 2
    assert "no tool is named 'other'; there are say" in names


# The list.


def test_the_tools_are_listed_one_a_line(command: Command, tmp_path: Path) -> None:
    ran = command("tools", "--path", str(tmp_path))
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in lines][:3] == ["workspace_info", "read", "find"]
    assert all(len(line.split()) > 4 for line in lines)


def test_the_tools_are_listed_as_json_with_their_schemas(command: Command, tmp_path: Path) -> None:
    listed = json.loads(command("tools", "--json", "--path", str(tmp_path)).out)
    assert [sorted(tool) for tool in listed] == [
        ["description", "effect", "input_schema", "name", "output_schema"]
    ] * len(listed)


def test_one_tool_is_told_with_its_declaration(command: Command, tmp_path: Path) -> None:
    page = command("tools", "apply_patch", "--path", str(tmp_path)).out
    assert page.startswith("apply_patch (write)\n\nAdd, update, move and delete files")
    assert "*** Begin Patch" in page
    assert "  apply_patch(args: {" in page
    assert "check_only?: boolean" in page
    described = json.loads(command("tools", "bash", "--json", "--path", str(tmp_path)).out)
    assert (described["name"], "command" in str(described["input_schema"])) == ("bash", True)


def test_no_such_tool_is_told_with_the_one_that_was_meant(command: Command, tmp_path: Path) -> None:
    ran = command("tools", "aply_patch", "--path", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean apply_patch" in ran.err.replace("'", "")


def test_all_arguments_come_from_a_file(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"path": "a.json"}', encoding="utf-8")
    words = ("--json", f"@{tmp_path / 'a.json'}", "--path", str(tmp_path))
    assert json.loads(command("call", "read", *words).out)["size"] == 18
