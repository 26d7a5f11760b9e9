"""Bodies that take their time, on a real socket."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from tests.conftest import MakePorts, live

pytestmark = pytest.mark.anyio


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """What came, be the connection closed or reset, as where a byte was on its way to a service that has left."""
    came = b""
    with suppress(ConnectionResetError):
        while piece := await reader.read(65_536):
            came += piece
    return came


async def trickle(url: str, head: str, every_s: float) -> dict[str, Any]:
    """The reply to a body sent a byte at a time, read until the service closes the connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n".encode())
    writer.write(b"Content-Length: 1000\r\n\r\n")
    reading = asyncio.create_task(until_closed(reader))
    for _ in range(999):
        if reading.done():
            break
        writer.write(b" ")
        await asyncio.sleep(every_s)
    async with asyncio.timeout(5):
        reply = await reading
    writer.close()
    found: dict[str, Any] = json.loads(reply.partition(b"\r\n\r\n")[2])
    return found


@pytest.mark.parametrize("head", ["POST /query HTTP/1.1", "POST /nowhere HTTP/1.1", "GET /healthz HTTP/1.1"])
async def test_a_slow_body_is_refused_and_its_connection_closed(make_ports: MakePorts, head: str) -> None:
    async with live(await make_ports(), body_timeout_s=0.3) as service:
        problem = await trickle(service.url, head, every_s=0.05)
    assert (problem["status"], problem["error_code"]) == (408, "body_too_slow")
    assert "cost" in problem


async def test_a_body_may_take_longer_the_more_of_it_has_come(make_ports: MakePorts) -> None:
    asked = json.dumps({"question": "debt", "k": 3}).encode()
    padding = b" " * 16_384
    async with live(await make_ports(), body_timeout_s=0.3) as service:
        host, _, port = service.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /query/naive HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n")
        writer.write(b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (len(padding) + len(asked)))
        writer.write(padding)
        await writer.drain()
        await asyncio.sleep(0.6)
        writer.write(asked)
        async with asyncio.timeout(10):
            reply = await reader.read()
        writer.close()
    assert reply.startswith(b"HTTP/1.1 200 ")
