"""Health, metrics and the log."""

import json
import logging
import math
import re

import pytest
from httpx import AsyncClient

from app.errors import StoreUnavailable
from app.http.logging import JsonFormatter, TextFormatter, configure_logging
from tests.conftest import MakeClient, MakePorts
from tests.fakes import ScriptedGenerator
from tests.http.test_problems import BrokenStore

pytestmark = pytest.mark.anyio


async def samples(client: AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^([a-z][^ ]*) ([^ ]+)$", text, re.MULTILINE)}


async def test_health(make_client: MakeClient, make_ports: MakePorts) -> None:
    async with make_client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        ready = await client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["status"] == "ready"
    assert ready.json()["index"]["models"]["embedder"] == "letters"
    broken = BrokenStore(StoreUnavailable("http://qdrant:6333 refuses connections"))
    async with make_client(await make_ports(store=broken)) as client:
        assert (await client.get("/healthz")).status_code == 200
        ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["error_code"]) == (503, "store_unavailable")
    assert ready.json()["title"] == "Vector store unavailable"


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/", 200), ("/documents?limit=1", 200), ("/no", 404)])
async def test_head_is_get_without_its_body(make_client: MakeClient, path: str, status: int) -> None:
    async with make_client() as client:
        got, head = await client.get(path), await client.head(path)
        counted = await samples(client)
    assert (got.status_code, head.status_code) == (status, status)
    assert head.content == b""
    same = ("content-type", "content-length") if status == 200 else ("content-type",)
    assert [head.headers[name] for name in same] == [got.headers[name] for name in same]
    handler = "unmatched" if status == 404 else path.partition("?")[0]
    assert counted[f'http_requests_total{{handler="{handler}",method="HEAD",status="{status}"}}'] == 1


@pytest.mark.parametrize("path", ["/documents/", "/query/naive/", "/query/?arch=naive"])
async def test_a_slash_at_the_end_makes_no_difference(make_client: MakeClient, path: str) -> None:
    async with make_client() as client:
        if "query" in path:
            reply = await client.post(path, json={"question": "debt"})
        else:
            reply = await client.get(path)
    assert reply.status_code == 200


async def test_metrics_tell_what_is_indexed(make_client: MakeClient, make_ports: MakePorts) -> None:
    ports = await make_ports()
    async with make_client(ports) as client:
        records, got = await ports.store.documents(), await samples(client)
    assert got["rag_index_documents"] == len(records) > 0
    assert got["rag_index_pages"] == sum(record.pages for record in records)
    assert got["rag_index_chunks"] == sum(record.chunks for record in records)
    assert got["rag_index_unfinished"] == 0
    broken = BrokenStore(StoreUnavailable("http://qdrant:6333 refuses connections"))
    async with make_client(await make_ports(store=broken)) as client:
        assert math.isnan((await samples(client))["rag_index_documents"])


async def test_metrics_count_what_replies_bill(make_client: MakeClient, make_ports: MakePorts) -> None:
    async with make_client(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]))) as client:
        hybrid = [(await client.post("/query/hybrid", json={"question": "debt"})).json()["cost"] for _ in range(3)]
        await client.post("/query/naive", json={"question": "debt", "filters": {"company": "Nobody"}})
        await client.post("/query/naive", json={"question": "debt", "limits": {"max_llm_calls": 0}})
        got = await samples(client)
    assert got['rag_requests_total{arch="hybrid",outcome="answered"}'] == 3
    assert got['rag_requests_total{arch="naive",outcome="abstained"}'] == 1
    assert got['rag_requests_total{arch="naive",outcome="error"}'] == 1
    assert got['rag_abstentions_total{arch="naive",reason="no_passages"}'] == 1
    assert got['rag_errors_total{arch="naive",error_code="limit_exceeded"}'] == 1
    assert got['rag_ops_total{arch="hybrid",kind="dense"}'] == 9
    assert got['rag_ops_total{arch="hybrid",kind="sparse"}'] == 9
    assert got['rag_ops_total{arch="naive",kind="dense"}'] == 3, "a failed request's ops count, a filtered one had none"
    assert got['rag_llm_calls_total{arch="hybrid",purpose="answer"}'] == 3
    assert got['rag_tokens_total{arch="hybrid",direction="output"}'] == 15
    assert got['rag_tokens_total{arch="hybrid",direction="input"}'] == sum(cost["tokens"]["input"] for cost in hybrid)
    assert got['rag_request_duration_seconds_count{arch="hybrid"}'] == 3
    assert got['rag_stage_duration_seconds_count{arch="hybrid",stage="search"}'] == 3
    assert got["rag_in_flight"] == 0
    assert got['http_requests_total{handler="/query/hybrid",method="POST",status="200"}'] == 3
    assert got['http_requests_total{handler="/query/naive",method="POST",status="429"}'] == 1
    assert got['http_request_duration_seconds_count{handler="/query/hybrid",method="POST"}'] == 3


async def test_labels_never_come_from_the_request(make_client: MakeClient) -> None:
    async with make_client() as client:
        await client.get("/healthz")
        before = (await samples(client)).keys()
        for n in range(20):
            await client.post(f"/query/arch{n}", json={"question": "x"})
            await client.post(f"/query?arch=arch{n}", json={"question": "x"})
            await client.get(f"/nowhere/{n}")
            await client.get(f"/documents/{n}/pages/{n + 1}")
            await client.request(f"VERB{n}", "/healthz")
        after = (await samples(client)).keys()
        handlers = {found[1] for name in after - before if (found := re.search(r'handler="([^"]+)"', name))}
    assert not [name for name in after if "arch1" in name or "VERB" in name]
    assert handlers == {
        "/query/{arch}",
        "/query",
        "/documents/{document_id}/pages/{number}",
        "/healthz",
        "/metrics",
        "unmatched",
    }


async def test_one_log_line_per_request(make_client: MakeClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.http")
    async with make_client(api_keys={"hush-key": {}}) as client:
        for key in ("hush-key", "wrong-key"):
            headers = {"authorization": f"Bearer {key}", "x-request-id": "trace-1"}
            await client.post("/query/naive", json={"question": "a private matter"}, headers=headers)
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "app.http"]
    assert [(line["message"], line["status"], line["path"], line["method"]) for line in lines] == [
        ("request", 200, "/query/naive", "POST"),
        ("request", 401, "/query/naive", "POST"),
    ]
    assert lines[0]["arch"] == "naive"
    assert lines[1]["error_code"] == "unauthorized"
    assert {line["request_id"] for line in lines} == {"trace-1"}
    assert all(line["ms"] >= 0 for line in lines)
    assert "hush-key" not in str(lines)
    assert "wrong-key" not in str(lines)
    assert "private" not in str(lines)


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2:3_4", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ('"', False)]
)
async def test_a_sane_request_id_is_kept(make_client: MakeClient, given: str, kept: bool) -> None:
    async with make_client() as client:
        response = await client.get("/nowhere", headers={"x-request-id": given})
    assert (response.headers["x-request-id"] == given) is kept
    assert response.json()["request_id"] == response.headers["x-request-id"]


def test_a_log_line_is_json_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    root, level = logging.getLogger(), logging.getLogger().level
    before = list(root.handlers)
    try:
        configure_logging("INFO", "json")
        logging.getLogger("x").info("two\nlines", extra={"fields": {"thing": object(), "n": 1}})
        configure_logging("INFO", "text")
        logging.getLogger("x").warning("plain", extra={"fields": {"n": 2}})
    finally:
        logging.basicConfig(level=level, handlers=before, force=True)
    first, second = capsys.readouterr().err.strip().split("\n")
    assert json.loads(first)["message"] == "two\nlines"
    assert json.loads(first)["n"] == 1
    assert second.endswith("WARNING plain n=2")


async def test_the_page_needs_nothing_from_elsewhere(make_client: MakeClient) -> None:
    async with make_client() as client:
        page = await client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.findall(r'(?:src|href)="(?!data:)', page.text)
    assert "@import" not in page.text


def test_a_log_line_is_one_line_whatever_was_asked() -> None:
    record = logging.makeLogRecord({"msg": "request", "fields": {"path": "/\n\x1b[31m\ud800"}})
    assert json.loads(JsonFormatter().format(record))["path"] == "/\n\x1b[31m\ud800"
    assert TextFormatter().format(record).endswith(r"request path='/\n\x1b[31m\ud800'")
