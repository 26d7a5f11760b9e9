"""API keys: who may ask, and what they see."""

import pytest

from app.http.access import is_loopback
from tests.conftest import MakeClient

pytestmark = pytest.mark.anyio
KEYS = {"alpha-key": {}, "beta-key": {"tenant": "other"}, "gamma-key": {"groups": ["board"]}}
ASKED = {"question": "revenue", "k": 100}


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({}, "give an API key"),
        ({"authorization": "Basic YTpi"}, "give an API key"),
        ({"authorization": "Bearer alpha-ke"}, "not known"),
        ({"authorization": "Bearer alpha-key2"}, "not known"),
        ({"x-api-key": "nope"}, "not known"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/query"),
        ("POST", "/query/naive"),
        ("POST", "/query/nope"),
        ("GET", "/query?q=x"),
        ("POST", "/compare"),
        ("GET", "/architectures"),
        ("GET", "/documents"),
        ("GET", "/documents/acme-2023"),
        ("GET", "/documents/acme-2023/pages/1"),
        ("GET", "/documents/acme-2023/pages/1.png"),
        ("POST", "/documents"),
        ("DELETE", "/documents/acme-2023"),
        ("GET", "/jobs"),
        ("GET", "/jobs/1"),
    ],
)
async def test_no_key_no_answer(
    make_client: MakeClient, method: str, path: str, headers: dict[str, str], says: str
) -> None:
    async with make_client(api_keys=KEYS) as client:
        response = await client.request(method, path, headers=headers, json={**ASKED, "archs": ["naive"]})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="sextant"'
    assert response.json()["error_code"] == "unauthorized"
    assert says in response.json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/", "/openapi.json"])
async def test_what_needs_no_key(make_client: MakeClient, path: str) -> None:
    async with make_client(api_keys=KEYS) as client:
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        ("alpha-key", {"acme-2023", "globex-2022"}),
        ("beta-key", {"initech-2023"}),
        ("gamma-key", set()),
    ],
)
@pytest.mark.parametrize("arch", ["naive", "hybrid"])
async def test_a_key_opens_its_tenant_and_groups_alone(
    make_client: MakeClient, arch: str, key: str, seen: set[str]
) -> None:
    async with make_client(api_keys=KEYS) as client:
        bearer = await client.post(f"/query/{arch}", json=ASKED, headers={"authorization": f"Bearer {key}"})
        header = await client.post(f"/query/{arch}", json=ASKED, headers={"x-api-key": key})
        listed = await client.get("/documents", headers={"x-api-key": key})
    assert {p["document_id"] for p in bearer.json()["passages"]} == seen
    assert {p["document_id"] for p in header.json()["passages"]} == seen
    assert {d["document_id"] for d in listed.json()["documents"]} == seen


async def test_without_keys_a_foreign_host_name_is_refused(make_client: MakeClient) -> None:
    async with make_client() as client:
        foreign = await client.post("/query", json=ASKED, headers={"host": "rebound.example"})
        local = await client.post("/query", json=ASKED, headers={"host": "localhost:8000"})
    assert (foreign.status_code, foreign.json()["error_code"]) == (403, "forbidden")
    assert local.status_code == 200


async def test_no_other_origin_may_read(make_client: MakeClient) -> None:
    async with make_client() as client:
        response = await client.get("/healthz", headers={"origin": "https://elsewhere.example"})
        asked = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}
        preflight = await client.options("/query", headers=asked)
    assert "access-control-allow-origin" not in response.headers
    assert preflight.status_code == 405


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["re_bound.example", "user@localhost", "localhost:80:80", "127.0.0.1/x", "[", ""])
async def test_without_keys_an_odd_host_name_is_foreign(make_client: MakeClient, host: str) -> None:
    async with make_client() as client:
        assert (await client.get("/documents", headers={"host": host})).status_code == 403


@pytest.mark.parametrize("host", ["LOCALHOST", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000"])
async def test_without_keys_a_loopback_host_name_is_served(make_client: MakeClient, host: str) -> None:
    async with make_client() as client:
        assert (await client.get("/documents", headers={"host": host})).status_code == 200
