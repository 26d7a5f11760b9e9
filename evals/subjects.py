"""What is evaluated: a service that speaks the wire contract, by its URL or inside this process."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import httpx

from app.caching import Caches
from app.ports import Generator
from app.tools import Ports
from app.types import Generation, Prompt
from evals.errors import SubjectError, UsageError

_TRIES = 6
_BM25_ALONE: Mapping[str, Any] = {"dense_weight": 0, "query_filters": False}
"""Of hybrid: its BM25 leg, over the whole index as naive's dense search is."""


class Subject(Protocol):
    """Every call raises SubjectError where there is no proper reply."""

    async def ask(
        self, arch: str, question: str, *, k: int, filters: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The reply of /query."""

    async def documents(self) -> list[dict[str, Any]]: ...

    async def page(self, document_id: str, number: int) -> str:
        """A page's text as stored."""

    async def architectures(self) -> list[dict[str, Any]]: ...

    async def index(self) -> dict[str, Any]:
        """Collection, schema version, models and, where it is known, a hash of the service's code."""


class HttpSubject:
    def __init__(self, client: httpx.AsyncClient, code: str | None = None) -> None:
        self._client = client
        self._code = code
        self._pages: dict[tuple[str, int], str] = {}

    async def ask(
        self, arch: str, question: str, *, k: int, filters: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        body = {"question": question, "k": k, "filters": dict(filters), "options": dict(options)}
        return await self._json("POST", f"/query/{arch}", body)

    async def documents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            reply = await self._json("GET", f"/documents?limit=1000&offset={len(found)}")
            found += reply["documents"]
            if not reply["documents"] or len(found) >= reply["total"]:
                return found

    async def page(self, document_id: str, number: int) -> str:
        key = (document_id, number)
        if key not in self._pages:
            self._pages[key] = (await self._json("GET", f"/documents/{document_id}/pages/{number}"))["text"]
        return self._pages[key]

    async def architectures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._json("GET", "/architectures"))["architectures"]
        return found

    async def index(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._json("GET", "/readyz"))["index"]
        return found | ({"code": self._code} if self._code else {})

    async def figures(self, sql: str, limit: int = 100) -> list[dict[str, Any]]:
        """Rows of a query over the figures, by column."""
        found = await self._json("POST", "/figures/query", {"sql": sql, "limit": limit})
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    async def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        for left in reversed(range(_TRIES)):
            try:
                response = await self._client.request(method, path, json=body)
            except httpx.HTTPError as error:
                raise SubjectError(f"{method} {path}: {type(error).__name__} {error}") from error
            if response.status_code != 429 or not left or "retry-after" not in response.headers:
                break
            await asyncio.sleep(float(response.headers["retry-after"]))
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SubjectError(f"{method} {path}: {response.status_code}, not a JSON object")
        if response.status_code >= 400:
            raise SubjectError(f"{method} {path}: {response.status_code} {found.get('detail', '')}", found)
        return found


@asynccontextmanager
async def remote(url: str, key: str | None = None) -> AsyncIterator[HttpSubject]:
    """A running service; `key` is the API key it asks for."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=600) as client:
        yield HttpSubject(client)


@asynccontextmanager
async def local(data_dir: Path | None, *, mute: bool = False) -> AsyncIterator[HttpSubject]:
    """The service inside this process, with the environment's settings; `data_dir` replaces DATA_DIR.

    `mute` spares the writing of answers where only the passages are wanted: every reply abstains.
    """
    from app.main import create_app
    from app.opening import open_ports
    from app.settings import Settings

    @asynccontextmanager
    async def opened(settings: Settings) -> AsyncIterator[Ports]:
        async with open_ports(settings) as ports:
            ports = replace(ports, caches=Caches())  # each system pays for itself
            yield replace(ports, generator=Mute(ports.generator), quoting=None) if mute else ports

    given: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
    app = create_app(opened, Settings(api_keys={}, **given))
    async with app.router.lifespan_context(app) as state, over(app, state, _code()) as subject:
        yield subject


@asynccontextmanager
async def serving(ports: Ports) -> AsyncIterator[HttpSubject]:
    """The service over ports that are open already, which stay open; it knows nothing yet of what they held before."""
    from app.main import create_app
    from app.settings import Settings

    app = create_app(lambda _: nullcontext(replace(ports, caches=Caches())), Settings(api_keys={}))
    async with app.router.lifespan_context(app) as state, over(app, state, _code()) as subject:
        yield subject


@dataclass(frozen=True, slots=True)
class Mute:
    """A generator that abstains instead of answering and passes every other prompt on."""

    behind: Generator

    @property
    def name(self) -> str:
        return f"mute({self.behind.name})"

    @property
    def purposes(self) -> frozenset[str] | None:
        return self.behind.purposes

    async def generate(self, prompt: Prompt) -> Generation:
        if prompt.purpose != "answer":
            return await self.behind.generate(prompt)
        return Generation("", abstained="not_supported")

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        yield await self.generate(prompt)


@asynccontextmanager
async def over(app: Any, state: Mapping[str, Any] | None = None, code: str | None = None) -> AsyncIterator[HttpSubject]:
    """An ASGI application, called without a socket; `state` is what its lifespan gave."""

    async def stateful(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": dict(state or {})}, receive, send)

    transport = httpx.ASGITransport(stateful, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=600) as client:
        yield HttpSubject(client, code)


def _code() -> str:
    """12 hex digits that change with the service's source, so that no reply outlives the code that wrote it."""
    sources = sorted(Path(str(files("app"))).rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class System:
    """A column of a report: an architecture and the options it is asked with."""

    name: str
    arch: str
    options: Mapping[str, Any] = field(default_factory=dict)


def parse_system(text: str) -> System:
    """`hybrid`, `hybrid:c=20:bm25_weight=0.5`, or `bm25`, hybrid's BM25 leg alone. Raises UsageError."""
    arch, *pairs = text.strip().split(":")
    options: dict[str, Any] = {}
    if arch == "bm25":
        arch, options = "hybrid", dict(_BM25_ALONE)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"{text!r}: options are written name=value, as in hybrid:c=20")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    if not arch:
        raise UsageError("an architecture's name is missing")
    return System(text.strip(), arch, options)


async def systems(subject: Subject, text: str, *, bm25: bool = False) -> tuple[list[System], list[str]]:
    """Those a comma-separated list names, and the reasons why others were left out.

    `all` is every architecture that can run, naive first, with `bm25` that leg alone too.
    """
    if text != "all":
        return [parse_system(part) for part in text.split(",") if part.strip()], []
    found = sorted(await subject.architectures(), key=lambda a: a["name"] != "naive")
    names = [a["name"] for a in found if a["can_run"]]
    if bm25 and "hybrid" in names:
        names.insert(names.index("hybrid"), "bm25")
    return [parse_system(name) for name in names], [f"{a['name']}: {a['why_not']}" for a in found if not a["can_run"]]


def fingerprint(index: Mapping[str, Any], documents: list[dict[str, Any]]) -> str:
    """12 hex digits that change with the index's content, its models, the generator and the service's code."""
    held = [(d["document_id"], d["chunks"], d["ingested_at"]) for d in documents]
    return hashlib.sha256(json.dumps([index, held], sort_keys=True).encode()).hexdigest()[:12]
