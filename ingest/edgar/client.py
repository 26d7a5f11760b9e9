"""EDGAR over HTTP by its rules: a declared user agent, a limited rate, patience where it asks for it, nothing twice.

https://www.sec.gov/os/accessing-edgar-data
"""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from app.errors import InvalidInput, NotFound, Unavailable
from ingest.resuming import Partial, Unusable

A = TypeVar("A")
R = TypeVar("R")

MOST_PER_SECOND = 10.0
"""That EDGAR allows one user, over all of the user's machines."""
_ATTEMPTS = 6
_LONGEST_WAIT_S = 900.0
"""EDGAR shuts out who asks too fast for ten minutes."""
_WITHIN_S = 60.0
"""Without a byte."""
_FRESH_S = 3600.0
_ANSWERS = (
    httpx.codes.OK,
    httpx.codes.PARTIAL_CONTENT,
    httpx.codes.NOT_MODIFIED,
    httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE,
)
_AGENT = re.compile(r"(?=.*[^\W\d_]{2}.*\s|.*\s\S*[^\W\d_]{2}).*\S@\S+\.\S+.*")
_TOO_FAST = re.compile(rb"request rate threshold", re.I)


class Pace:
    """Moments at least `1 / per_second` s apart, however many tasks ask for one: a token bucket that holds one token.

    A larger bucket would allow a burst on top of a full second's requests.
    """

    def __init__(self, per_second: float) -> None:
        self._apart = 1.0 / per_second
        self._next = 0.0
        self._lock = asyncio.Lock()

    async def __call__(self) -> None:
        async with self._lock:
            while (wait := self._next - time.monotonic()) > 0:  # noqa: ASYNC110 - a pause may come meanwhile
                await asyncio.sleep(wait)
            self._next = time.monotonic() + self._apart

    def pause(self, seconds: float) -> None:
        """Nobody gets a moment sooner, who waits already included."""
        self._next = max(self._next, time.monotonic() + seconds)


class _Transient(Exception):
    """Worth another attempt."""

    def __init__(self, what: str, retry_after: float = 0.0) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class Edgar:
    """A client for one user; every request of every task goes through it and its pace."""

    def __init__(
        self,
        user_agent: str | None,
        cache: Path,
        *,
        per_second: float = 8.0,
        fresh_s: float = _FRESH_S,
        backoff_s: float = 1.0,
    ) -> None:
        """`cache` is a folder for indexes, asked for again after `fresh_s` and then only where they have changed.

        Raises InvalidInput where `user_agent` does not name who asks.
        """
        if not user_agent or not _AGENT.fullmatch(user_agent):
            raise InvalidInput(
                "EDGAR wants to know who asks: set EDGAR_USER_AGENT to a name and an e-mail address, such as "
                "EDGAR_USER_AGENT='Jane Doe jane@example.com'"
            )
        self._pace = Pace(min(per_second, MOST_PER_SECOND))
        self._cache = cache
        self._fresh_s = fresh_s
        self._backoff = wait_random_exponential(multiplier=backoff_s, max=30.0)
        self._client = httpx.AsyncClient(
            headers={"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"},
            timeout=_WITHIN_S,
            follow_redirects=True,
            event_hooks={"request": [self._wait_turn]},
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def index(self, url: str) -> Any:
        """The JSON at `url`, from the cache where it is fresh or unchanged. Raises NotFound, Unavailable."""
        file = self._cache / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
        kept = _read(file)
        if kept and time.time() - kept["at"] < self._fresh_s:
            return kept["body"]
        asked = {name: kept[name] for name in ("If-None-Match", "If-Modified-Since") if kept and kept.get(name)}
        response, content = await self._retrying(self._content, url, asked)
        if kept and response.status_code == httpx.codes.NOT_MODIFIED:
            body = kept["body"]
        else:
            try:
                body = orjson.loads(content)
            except ValueError:
                raise Unavailable(f"{url}: EDGAR answered something that is not JSON") from None
            kept = {"If-None-Match": response.headers.get("etag")}
            kept["If-Modified-Since"] = response.headers.get("last-modified")
        write_whole(file, json.dumps({**kept, "at": time.time(), "body": body}).encode())
        return body

    async def download(self, url: str, path: Path) -> int:
        """The file's bytes, there when all have arrived; returns how many. Raises NotFound, Unavailable, OSError.

        What a broken connection or a killed run has left is gone on with.
        """
        return await self._retrying(self._file, url, path)

    async def _wait_turn(self, request: httpx.Request) -> None:
        await self._pace()

    async def _content(self, url: str, headers: dict[str, str]) -> tuple[httpx.Response, bytes]:
        async with self._answer(url, headers) as response:
            return response, await response.aread()

    async def _file(self, url: str, path: Path) -> int:
        part = Partial.beside(path)
        try:
            async with self._answer(url, part.headers("gzip")) as response:
                with part.opened(response) as file:
                    async for block in response.aiter_raw():
                        file.write(block)
            return part.finish(path)
        except Unusable as error:
            raise _Transient(str(error)) from error
        except NotFound:
            part.discard()
            raise

    @asynccontextmanager
    async def _answer(self, url: str, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        try:
            async with self._client.stream("GET", url, headers=headers) as response:
                if response.status_code not in _ANSWERS:
                    raise self._refusal(response, await response.aread())
                yield response
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Transient(f"the connection broke ({type(error).__name__})") from error
        except (httpx.InvalidURL, httpx.TooManyRedirects) as error:
            raise Unavailable(f"{url}: {error}") from error

    def _refusal(self, response: httpx.Response, body: bytes) -> Exception:
        status, url = response.status_code, response.url
        if status == httpx.codes.NOT_FOUND:
            return NotFound(f"EDGAR has nothing at {url}")
        after = retry_after(response.headers.get("retry-after"))
        slow_down = status == httpx.codes.TOO_MANY_REQUESTS or (
            status == httpx.codes.FORBIDDEN and _TOO_FAST.search(body)
        )
        if (slow_down or status >= 500) and after <= _LONGEST_WAIT_S:
            if slow_down:
                self._pace.pause(after)
            return _Transient(f"EDGAR answered HTTP {status}", after)
        if status == httpx.codes.FORBIDDEN and not slow_down:
            return Unavailable(f"EDGAR refused {url} (HTTP 403); check EDGAR_USER_AGENT: a name and an e-mail address")
        said = f", try again in {after:.0f} s" if after else ""
        return Unavailable(f"{url}: EDGAR answered HTTP {status}{said}")

    async def _retrying(self, attempt: Callable[[str, A], Awaitable[R]], url: str, argument: A) -> R:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_Transient),
            wait=self._wait,
            stop=stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        try:
            return await retrying(attempt, url, argument)
        except _Transient as error:
            raise Unavailable(f"{url}: {error}, {_ATTEMPTS} times") from error

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(self._backoff(state), error.retry_after if isinstance(error, _Transient) else 0.0)


def retry_after(header: str | None) -> float:
    """Seconds, from either form of Retry-After (RFC 9110, 10.2.3); 0 where absent or unreadable."""
    if header is None:
        return 0.0
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0


def write_whole(path: Path, content: bytes) -> None:
    """All of it or nothing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _read(file: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        kept = json.loads(file.read_bytes())
        if isinstance(kept, dict) and {"at", "body"} <= kept.keys():
            return kept
    return None
