"""Every way a request can fail: the right status, a problem document, and the bill."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from httpx import Response

from app.errors import GeneratorUnavailable, SextantError, StoreUnavailable, Timeout, UpstreamFailed
from app.ports import R, RecordField, Store
from app.types import Access, Chunk, Document, Filter, FloatArray, IndexStamp, Leg, LegResult, Page
from tests.conftest import MakeClient, MakePorts
from tests.fakes import STAMP, LetterEmbedder, ScriptedGenerator

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}


class BrokenStore(Store):
    """Opens, then fails every call with the same error."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.opened = False

    async def stamp(self) -> IndexStamp:
        if self.opened:
            raise self.error
        self.opened = True
        return STAMP

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        raise self.error

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        raise self.error

    async def documents(self, access: Access | None = None) -> list[Document]:
        raise self.error

    async def count(self, where: Filter) -> int:
        raise self.error

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        raise self.error

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        raise self.error

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        raise self.error


def problem(response: Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["error_code"] == code
    assert body["type"] == f"urn:sextant:problem:{code}"
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["instance"] == response.request.url.path
    assert body["title"]
    assert body["detail"]
    assert body["cost"]["latency_ms"] >= 0
    assert sum(body["cost"]["ops_by_kind"].values()) == body["cost"]["ops"]
    return body


@pytest.mark.parametrize(
    ("asked", "status", "code", "says"),
    [
        ({}, 422, "invalid_input", "body.question: Field required"),
        ({"question": ""}, 422, "invalid_input", "at least 1 character"),
        ({"question": " \n\x00 "}, 422, "invalid_input", "at least 1 character"),
        ({"question": "\u200b\u202e"}, 422, "invalid_input", "needs words"),
        ({"question": "[1] [2]?"}, 422, "invalid_input", "needs words"),
        ({"question": "y" * 8001}, 422, "invalid_input", "at most 8000 characters"),
        ({"question": "y" * 100_000}, 422, "invalid_input", "at most 8000 characters"),
        ({"question": 7}, 422, "invalid_input", "valid string"),
        ({"question": "q", "k": 0}, 422, "invalid_input", "body.k: Input should be greater than or equal to 1"),
        ({"question": "q", "k": 101}, 422, "invalid_input", "body.k: Input should be less than or equal to 100"),
        ({"question": "q", "K": 5}, 422, "invalid_input", "body.K: Extra inputs are not permitted"),
        ({"question": "q", "limits": {"timeout_s": 0}}, 422, "invalid_input", "body.limits.timeout_s"),
        ({"question": "q", "k": True}, 422, "invalid_input", "body.k: Value error, a number is wanted"),
        ({"question": "q", "limits": {"max_tokens": True}}, 422, "invalid_input", "body.limits.max_tokens"),
        ({"question": "q", "limits": {"calls": 1}}, 422, "invalid_input", "body.limits.calls"),
        ({"question": "q", "filters": {"colour": 1}}, 422, "invalid_filter", "filterable fields: document_id"),
        ({"question": "q", "filters": {"form": {"$like": "1"}}}, 422, "invalid_filter", "operators: $eq"),
        ({"question": "q", "filters": {"tenant": "other"}}, 422, "invalid_filter", "unknown filter field 'tenant'"),
        ({"question": "q", "options": {"pool": 0}}, 422, "invalid_options", "minimum 1, maximum 1000"),
        ({"question": "q", "options": {"pool": "9"}}, 422, "invalid_options", "valid integer"),
        ({"question": "q", "options": {"pol": 9}}, 422, "invalid_options", "hybrid takes pool (integer, default 100"),
    ],
)
async def test_bad_bodies(make_client: MakeClient, asked: dict[str, Any], status: int, code: str, says: str) -> None:
    async with make_client() as client:
        found = problem(await client.post("/query/hybrid", json=asked), status, code)
        same = problem(await client.post("/query?arch=hybrid", json=asked), status, code)
    assert says in found["detail"]
    assert says in same["detail"]
    assert len(found["detail"]) < 2000, "what was sent is not sent back"


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"", JSON, 422, "invalid_input"),
        (b"{", JSON, 400, "bad_request"),
        (b'{"question": "\xff"}', JSON, 400, "bad_request"),
        (b"[" * 100_000, JSON, 400, "bad_request"),
        (b'{"question": "q", "k": ' + b"9" * 5000 + b"}", JSON, 400, "bad_request"),
        (b"\x1f\x8b", JSON | {"content-encoding": "gzip"}, 415, "unsupported_media_type"),
        (b'["question"]', JSON, 422, "invalid_input"),
        (b'{"question": "\\ud800"}', JSON, 422, "invalid_input"),
        (b'{"question": "q", "filters": {"form": "\\ud800"}}', JSON, 422, "invalid_input"),
        (b'{"question": "q", "filters": {"page": NaN}}', JSON, 422, "invalid_filter"),
        (b'{"question": "q", "filters": {"page": 1' + b"0" * 400 + b"}}", JSON, 422, "invalid_input"),
        (b'{"question": "q", "options": {"c": 1e999}}', JSON, 422, "invalid_options"),
        (b"question=q", {"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
        (b'{"question": "q"}', {}, 415, "unsupported_media_type"),
        (b" " * 2000, JSON, 413, "payload_too_large"),
    ],
)
async def test_bad_bytes(
    make_client: MakeClient, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    async with make_client(max_body_bytes=1024 if code == "payload_too_large" else 256 * 1024) as client:
        problem(await client.post("/query/hybrid", content=content, headers=headers), status, code)


async def test_a_body_of_unannounced_length_is_limited_too(make_client: MakeClient) -> None:
    async def endless() -> Any:
        while True:
            yield b" " * 500

    async with make_client(max_body_bytes=1024) as client:
        found = problem(await client.post("/query", content=endless(), headers=JSON), 413, "payload_too_large")
    assert "1024 bytes" in found["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "says"),
    [
        ("POST", "/query/nope", 404, "unknown_architecture", "those that exist: naive, hybrid"),
        ("POST", "/query?arch=nope", 404, "unknown_architecture", "those that exist: naive, hybrid"),
        ("GET", "/query?arch=nope&q=x", 404, "unknown_architecture", "those that exist: naive, hybrid"),
        ("GET", "/query?arch=naive", 422, "invalid_input", "query.q: Field required"),
        ("GET", "/query?arch=naive&q=x&k=x", 422, "invalid_input", "query.k"),
        ("GET", "/nowhere", 404, "not_found", "/openapi.json"),
        ("DELETE", "/query", 405, "method_not_allowed", "DELETE is not possible here"),
        ("GET", "/compare", 405, "method_not_allowed", "allowed: POST"),
        ("PUT", "/query", 405, "method_not_allowed", "allowed: GET, HEAD, POST"),
        ("PUT", "/documents/x", 405, "method_not_allowed", "allowed: GET, HEAD, DELETE"),
    ],
)
async def test_bad_addresses(
    make_client: MakeClient, method: str, path: str, status: int, code: str, says: str
) -> None:
    async with make_client() as client:
        body = {"json": {"question": "q"}} if method == "POST" else {}
        found = problem(await client.request(method, path, **body), status, code)  # type: ignore[arg-type]
    assert says in found["detail"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreUnavailable("no connection to http://qdrant:6333"), 503, "store_unavailable"),
        (ExceptionGroup("two searches", [StoreUnavailable("gone")]), 503, "store_unavailable"),
        (ZeroDivisionError("a secret"), 500, "internal"),
    ],
)
async def test_a_broken_store(
    make_client: MakeClient,
    make_ports: MakePorts,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    code: str,
) -> None:
    async with make_client(await make_ports(store=BrokenStore(error))) as client:
        found = problem(await client.post("/query/naive", json={"question": "q"}), status, code)
        listing = await client.get("/documents")
    assert [stage["name"] for stage in found["cost"]["stages"]] == ["embed", "search"], "what was tried is billed"
    if code == "internal":
        assert "a secret" not in found["detail"]
        assert found["request_id"] in found["detail"]
        assert "a secret" in caplog.text
        problem(listing, 500, "internal")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (GeneratorUnavailable("http://llm:8000 refuses connections"), 503),
        (UpstreamFailed("the endpoint sent HTML"), 502),
        (Timeout("the endpoint took more than 60 s"), 504),
    ],
)
async def test_a_broken_generator_is_billed(
    make_client: MakeClient, make_ports: MakePorts, error: SextantError, status: int
) -> None:
    async with make_client(await make_ports(ScriptedGenerator([error]))) as client:
        found = problem(await client.post("/query/naive", json={"question": "q"}), status, error.error_code)
    assert found["detail"] == str(error)
    assert found["cost"]["ops_by_kind"] == {"dense": 3}
    assert found["cost"]["llm_calls_by_purpose"] == {"answer": 1}


@pytest.mark.parametrize(
    ("limits", "status", "code"),
    [
        ({"max_llm_calls": 0}, 429, "limit_exceeded"),
        ({"max_tokens": 1}, 429, "limit_exceeded"),
        ({"timeout_s": 0.05}, 504, "timeout"),
    ],
)
async def test_limits_hit_are_billed(
    make_client: MakeClient, make_ports: MakePorts, limits: dict[str, float], status: int, code: str
) -> None:
    async with make_client(await make_ports(ScriptedGenerator(["x"], delay_s=30))) as client:
        asked = {"question": "q", "limits": limits}
        found = problem(await client.post("/query/naive", json=asked), status, code)
    assert found["cost"]["ops_by_kind"] == {"dense": 3}


async def test_the_services_time_limit_caps_the_requests(make_client: MakeClient, make_ports: MakePorts) -> None:
    ports = await make_ports(ScriptedGenerator(["x"], delay_s=30))
    async with make_client(ports, request_timeout_s=0.05) as client:
        asked = {"question": "q", "limits": {"timeout_s": 3000}}
        found = problem(await client.post("/query/naive", json=asked), 504, "timeout")
    assert "0.05 s" in found["detail"]


async def test_a_broken_embedder_is_an_internal_error(make_client: MakeClient, make_ports: MakePorts) -> None:
    class Broken(LetterEmbedder):
        async def queries(self, texts: Sequence[str]) -> Any:
            raise RuntimeError("a bug")

    async with make_client(await make_ports(embedder=Broken())) as client:
        problem(await client.post("/query/naive", json={"question": "q"}), 500, "internal")
        reply = (await client.post("/compare", json={"question": "q", "archs": ["naive"]})).json()
    assert reply["results"][0]["problem"]["error_code"] == "internal"


async def test_a_stray_option_that_is_no_text_is_named_escaped(make_client: MakeClient) -> None:
    content = b'{"question": "q", "archs": ["naive"], "options": {"\\ud800": {}}}'
    async with make_client() as client:
        found = problem(await client.post("/compare", content=content, headers=JSON), 422, "invalid_input")
    assert found["detail"] == r"options: '\ud800' not among archs"
