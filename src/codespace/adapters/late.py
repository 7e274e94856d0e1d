"""What the SDK still does with a message whose session has ended meanwhile.

It answers a notification with 202 first and hands it to the session then. If the client's DELETE
came between, it raises and answers once more, which is no fault of anybody's.
"""

from anyio import BrokenResourceError, ClosedResourceError
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class LateSends:
    """ASGI middleware that lets a complete answer stand, whatever the application does after it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; drop what it sends, or raises for a closed session, too late."""
        complete = False

        async def once(message: Message) -> None:
            nonlocal complete
            if complete:
                return
            complete = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        try:
            await self._app(scope, receive, once)
        except (BrokenResourceError, ClosedResourceError):
            if not complete:
                raise
