"""Headless Chromium over its debugging pipe: enough to open a page, evaluate on it and take its picture."""

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


class Tab:
    """One page. Messages of the DevTools protocol are JSON, each ended by a NUL."""

    def __init__(self, reader: asyncio.StreamReader, to_browser: int) -> None:
        self._reader = reader
        self._to_browser = to_browser
        self._ids = count(1)
        self._session: str | None = None

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"id": next(self._ids), "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            reply = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            if reply.get("id") == message["id"]:
                assert "error" not in reply, reply
                result: dict[str, Any] = reply["result"]
                return result

    async def attach(self) -> None:
        target = (await self.send("Target.createTarget", url="about:blank"))["targetId"]
        self._session = (await self.send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]

    async def open(self, url: str, width: int, height: int = 1000) -> None:
        mobile = width < 600
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        await self.send("Page.navigate", url=url)
        await self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    async def evaluate(self, expression: str) -> Any:
        """A JavaScript expression's value, as JSON has it: an element of the page is {}."""
        reply = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    async def until(self, expression: str, seconds: float = 15) -> Any:
        """The expression's first true value."""
        async with asyncio.timeout(seconds):
            while not (value := await self.evaluate(expression)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            return value

    async def picture(self) -> bytes:
        """PNG of the whole page."""
        shot = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None
    child_reads, we_write = os.pipe()
    we_read, child_writes = os.pipe()
    # Chromium takes its commands from descriptor 3 and answers on 4.
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f'exec "$0" "$@" 3<&{child_reads} 4>&{child_writes}',
        CHROMIUM,
        *_FLAGS,
        f"--user-data-dir={profile}",
        pass_fds=(child_reads, child_writes),
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(child_reads)
    os.close(child_writes)
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(we_read, "rb")
    )
    try:
        tab = Tab(reader, we_write)
        await tab.attach()
        yield tab
    finally:
        os.close(we_write)
        process.terminate()
        await process.wait()
        transport.close()
