"""The inbox of a running gateway, as the commands for the user ask it."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import anyio
from cyclopts import Parameter

from codespace.adapters.client import Answer, TurnedAwayError
from codespace.adapters.inbox_client import NoInboxError, ask_inbox
from codespace.domain.tool import Json
from codespace.settings import SettingsError, read_token_file

USUAL_URL = "http://127.0.0.1:8787/mcp"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class There:
    """The running gateway, and how its answer is shown."""

    url: Annotated[str, Parameter(help="The running gateway.")] = USUAL_URL
    token_file: Annotated[str | None, Parameter(help="File with that gateway's token.")] = None
    json: Annotated[bool, Parameter(help="Print the answer as JSON.", negative=())] = False


def ask(
    there: There,
    method: str,
    path: str,
    *,
    body: Json | None = None,
    query: Mapping[str, str] | None = None,
) -> Answer:
    """Return what the gateway answers, good or an error.

    Raises:
        SettingsError: there is none, or it does not let this client in.
    """
    token = None if there.token_file is None else read_token_file(there.token_file)
    asking = partial(ask_inbox, there.url, method, path, body=body, query=query, token=token)
    try:
        return anyio.run(asking)
    except TurnedAwayError as error:
        advice = " Name a file with it: --token-file FILE." if error.wants_token else ""
        raise SettingsError(f"{there.url}: {error}{advice}") from None
    except NoInboxError as error:
        raise SettingsError(
            f"{there.url} does not answer as a gateway with an inbox: {error}"
        ) from None


def tell(there: There, answer: Answer, lines: Callable[[Json], Iterable[str]]) -> int:
    """Print an answer as lines or as JSON; return the exit code, 1 for an error."""
    if there.json:
        print(json.dumps(answer.body, ensure_ascii=False, indent=2))
    elif answer.is_error:
        print(f"codespace: {answer.body.get('message')}", file=sys.stderr)
    else:
        for line in lines(answer.body):
            print(line)
    return 1 if answer.is_error else 0


def as_id(given: str, known: str) -> str:
    """Return what becomes a part of an address, where anything else would be another address.

    Raises:
        SettingsError: it is no id; `known` says where to find one.
    """
    if not given or not all(char.isascii() and (char.isalnum() or char in "-_") for char in given):
        raise SettingsError(f"{given!r} is no id; {known}")
    return given
