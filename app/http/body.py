"""Refuses bodies that are too large, compressed or too slow, before they cost memory or a connection."""

import asyncio
from collections.abc import Collection

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import BodyTooSlow, PayloadTooLarge, SextantError, UnsupportedMedia
from app.http.problems import problem

_SLOWEST = 16 * 1024
"""Bytes a second that a body must come at, once its first seconds are over."""
_HANG_UP = {"Connection": "close"}
"""Of a refusal: otherwise the server goes on reading what nobody wants."""


class BodyLimit:
    """Buffers a body up to the limit, whether or not its length was announced, and hands it on in one piece.

    The routes in `streamed`, pairs of method and path, read theirs piece by piece and limit its size themselves.
    """

    def __init__(
        self, app: ASGIApp, most: int, within_s: float, streamed: Collection[tuple[str, str]] = frozenset()
    ) -> None:
        self.app = app
        self.most = most
        self.within_s = within_s
        self.streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (coding := Headers(scope=scope).get("content-encoding", "identity").strip().lower()) != "identity":
            refusal = UnsupportedMedia(f"send the body as it is, not with Content-Encoding: {coding:.40}")
            await problem(Request(scope), refusal, {**_HANG_UP, "Accept-Encoding": "identity"})(scope, receive, send)
            return
        receive = _Timed(receive, self.within_s)
        if (scope["method"], scope["path"]) in self.streamed:
            await self.app(scope, receive, _hanging_up(send))
            return
        try:
            body = await self._read(scope, receive)
        except SextantError as error:
            await problem(Request(scope), error, dict(_HANG_UP))(scope, receive, send)
            return
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await self.app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """What came so far where the client has gone, which the next message says. Raises PayloadTooLarge."""
        too_large = PayloadTooLarge(f"the body is larger than {self.most} bytes")
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > self.most:
            raise too_large
        body = bytearray()
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.most:
                raise too_large
        return bytes(body)


class _Timed:
    """A body's messages while they come fast enough. Raises BodyTooSlow."""

    def __init__(self, receive: Receive, within_s: float) -> None:
        self._receive = receive
        self._within_s = within_s
        self._begun = asyncio.get_running_loop().time()
        self._bytes = 0
        self._ended = False

    async def __call__(self) -> Message:
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._begun + self._within_s + self._bytes / _SLOWEST):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow(f"only {self._bytes} bytes of the body came in the time there is for that many") from None
        self._bytes += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        return message


def _hanging_up(send: Send) -> Send:
    """A route that reads as it goes may refuse a body it has not read to its end."""

    async def send_last(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
        await send(message)

    return send_last
