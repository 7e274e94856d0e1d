"""The inbox of a real server over HTTP, one request at a time."""

import json
from dataclasses import dataclass
from typing import cast

from contract.answers import Json, Reply
from contract.raw import HttpAnswer, http_request
from contract.session import ERROR_FIELDS


@dataclass(frozen=True, slots=True)
class Inbox:
    """The user of a gateway's agents. `url` is where it serves MCP."""

    url: str
    token: str | None = None

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> HttpAnswer:
        """Send a request as it is."""
        given = {"content-type": "application/json", **headers}
        if self.token is not None:
            given["authorization"] = f"Bearer {self.token}"
        named = {name.replace("_", "-"): value for name, value in given.items()}
        return http_request(self.url, method, path=path, headers=named, body=body)

    def ask(self, method: str, path: str, body: Json | None = None) -> HttpAnswer:
        """Send a JSON object below `/inbox/`."""
        text = b"" if body is None else json.dumps(body).encode()
        return self.send(method, f"/inbox/{path}", text)

    def done(self, method: str, path: str, body: Json | None = None, status: int = 200) -> Reply:
        """Do something that must succeed."""
        answer = self.ask(method, path, body)
        assert answer.status == status, answer.body
        return Reply(cast("Json", json.loads(answer.body)))

    def refused(self, status: int, method: str, path: str, body: Json | None = None) -> Reply:
        """Ask for something that must be refused, with the body of every error."""
        answer = self.ask(method, path, body)
        assert answer.status == status, answer.body
        reply = Reply(cast("Json", json.loads(answer.body)))
        assert {"code", "message"} <= reply.keys <= ERROR_FIELDS
        return reply

    def draft(self, work_id: str, text: str = "text", **more: str) -> Reply:
        """Write a draft."""
        return self.done("POST", f"works/{work_id}/intents", {"body": text, **more}, 201)

    def queued(self, work_id: str, text: str = "text", delivery: str = "next_checkpoint") -> str:
        """Write an instruction and queue it; return its id."""
        intent_id = self.draft(work_id, text, delivery=delivery).text("intent_id")
        self.done("POST", f"intents/{intent_id}/queue", {"revision": 1})
        return intent_id

    def intents(self, work_id: str) -> list[Reply]:
        """Return the instructions of a work."""
        return self.done("GET", f"works/{work_id}/intents").each("intents")
