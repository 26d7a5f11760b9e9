"""Other spellings of a request: HEAD for GET, and a path with a slash at its end for the one without."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Canonical:
    """Answers them where a redirect would lose the body, and behind a proxy the scheme.

    A HEAD is answered as its GET, whose body nobody sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"
        meant: Scope = {**scope, "path": scope["path"].rstrip("/") or "/", "method": "GET" if head else scope["method"]}

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        try:
            await self.app(meant, receive, without_body if head else send)
        finally:
            scope["route"] = meant.get("route")
