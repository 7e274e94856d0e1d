"""An HTTP interface of organisations and their projects, some of which fail.

    python organisations_server.py '{"organisations": 20}'

It prints its port. One organisation in nine is forbidden, one in seven is unavailable at first.
"""

import json
import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

Reply = tuple[int, dict[str, object]]


class Interface:
    """The data, and the failures."""

    def __init__(self, organisations: int) -> None:
        made = random.Random(11)
        self.names = [f"org-{number:02}" for number in range(organisations)]
        self.projects = {name: _projects(name, made) for name in self.names}
        self.asked: set[str] = set()

    def answer(self, path: str) -> Reply:
        """Return the status and the body for a path."""
        match path.strip("/").split("/"):
            case ["organisations"]:
                return 200, {"organisations": self.names}
            case ["organisations", name, "projects"] if name in self.projects:
                return self._projects(name)
            case _:
                return 404, {"code": "NOT_FOUND", "message": "There is no such path."}

    def _projects(self, name: str) -> Reply:
        number = self.names.index(name)
        first = name not in self.asked
        self.asked.add(name)
        if number % 9 == 5:
            message = f"This token may not list the projects of {name}."
            return 403, {"code": "FORBIDDEN", "message": message}
        if number % 7 == 3 and first:
            return 503, {"code": "UNAVAILABLE", "message": "Try again."}
        return 200, {"projects": self.projects[name]}


def _projects(organisation: str, made: random.Random) -> list[dict[str, object]]:
    return [
        {
            "id": made.randrange(10**9),
            "slug": f"{organisation}-project-{number}",
            "platform": made.choice(["python", "node", "rust", "go"]),
            "archived": made.random() < 0.2,
            "features": ["alerts", "releases", "replay", "profiling", "logs"],
            "links": {
                "self": f"https://api.example.test/organisations/{organisation}/projects/{number}",
                "avatar": f"https://cdn.example.test/{organisation}/{number}.png",
            },
            "access": {"read": True, "write": made.random() < 0.5, "admin": False},
            "created_at": f"2025-{made.randrange(1, 13):02}-01T00:00:00Z",
            "events_a_day": made.randrange(100_000),
        }
        for number in range(made.randrange(4, 16))
    ]


class Handler(BaseHTTPRequestHandler):
    """One request after another on kept connections."""

    protocol_version = "HTTP/1.1"
    interface: ClassVar[Interface]

    def do_GET(self) -> None:
        status, body = self.interface.answer(self.path)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
        """Say nothing."""


if __name__ == "__main__":
    Handler.interface = Interface(json.loads(sys.argv[1])["organisations"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
