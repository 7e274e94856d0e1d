"""The command line: its commands, and how a bad word is answered.

Commands are named by import path, so that `serve` does not pay for what only `demo` needs.
"""

import gc
import os
import signal
import sys
import threading
from importlib.metadata import version

from cyclopts import App, CycloptsError
from cyclopts.exceptions import UnusedCliTokensError

from codespace.cli.secrecy import keep_to_itself
from codespace.settings import TOKEN_VARIABLE, SettingsError
from codespace.store.errors import StoreError

BAD_USE = 2

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""The imports of a command make nothing but what stays; to look for garbage meanwhile is a sixth of
its start."""

CALL_EXAMPLES = """\
Arguments are key=value. A value for something other than text is JSON;
key=@FILE takes the text of a file, and key=@- that of stdin.

Examples:
  codespace call find glob='**/*.py'
  codespace call read path=README.md max_bytes=1000
  codespace call apply_patch patch=@change.patch check_only=true
  codespace call bash command='make test' --path ~/project
  codespace call workspace_info --url http://127.0.0.1:8787/mcp \\
    --token-file token.txt
"""

app = App(
    name="codespace",
    version=lambda: version("codespace"),
    help="The execution layer for coding agents: files, patches and processes over MCP.",
    help_format="plaintext",
)
app.command("codespace.cli.serve:serve", name="serve", help="Serve MCP over stdio or HTTP.")
app.command(
    "codespace.cli.call:call",
    name="call",
    help="Call one tool and print its answer.",
    help_epilogue=CALL_EXAMPLES,
)
app.command("codespace.cli.call:tools", name="tools", help="List the tools.")
app.command("codespace.cli.run:run", name="run", help="Run a script that calls tools.")
app.command("codespace.cli.stored:stored", name="stored", help="What scripts keep between runs.")
app.command(
    "codespace.cli.approvals:approvals",
    name="approvals",
    help="Grant or deny calls that a running gateway holds.",
)
app.command("codespace.cli.inbox:inbox", name="inbox", help="Steer agents at work.")
app.command("codespace.cli.doctor:doctor", name="doctor", help="Say what works on this machine.")
app.command("codespace.cli.demo:demo", name="demo", help="Walk through what it does, for real.")


def main() -> None:
    """Run the command line of this process and exit."""
    keep_to_itself(TOKEN_VARIABLE)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    code = run(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGINT):
        # The interpreter gives handlers up before it ends, and a signal would be the exit code.
        signal.signal(number, signal.SIG_IGN)
    if any(not thread.daemon for thread in threading.enumerate()[1:]):
        # A look at something huge cannot be interrupted; everything else has ended by now.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(tokens: list[str]) -> int:
    """Run one command line; return its exit code. Bad use and bad configuration are 2."""
    try:
        code = app(
            tokens,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except UnusedCliTokensError as error:
        return _bad_use(_too_many(error.unused_tokens or [], tokens))
    except CycloptsError as error:
        return _bad_use(str(error))
    except (SettingsError, StoreError) as error:
        return _bad_use(str(error))
    except OSError as error:
        return _bad_use(f"{error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0


def _too_many(unused: list[str], tokens: list[str]) -> str:
    words = ", ".join(map(repr, unused))
    args = any(word == "--arg" or word.startswith("--arg=") for word in tokens)
    if tokens[0] == "run" and args and all("=" in word for word in unused):
        return f"too many words: {words}; give --arg before each NAME=TEXT"
    return f"too many words: {words}; `codespace {tokens[0]} --help` says which it takes"


def _bad_use(message: str) -> int:
    print(f"codespace: {' '.join(message.split())}", file=sys.stderr)
    return BAD_USE
