"""Documents over HTTP: uploaded, followed, replaced and removed, over the real embedded index."""

import asyncio
import json
import multiprocessing
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from httpx import AsyncClient

from app.errors import IndexMissing
from tests.http.test_operations import samples
from tests.ingest.filings import prose, write_pdf
from tests.intake.serving import finished, ingested, serving, upload
from tests.integration.openai_server import COMPLETION, Reply, scripted_endpoint

pytestmark = pytest.mark.anyio
KEYS = {"ann": {}, "bob": {"tenant": "other"}, "eve": {"groups": ["public", "board"]}, "joe": {"groups": ["board"]}}


def pdf(folder: Path, *pages: str) -> bytes:
    return write_pdf(folder / "drawn.pdf", *pages).read_bytes()


async def documents(client: AsyncClient, key: str = "ann") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/documents", headers={"x-api-key": key})).json()["documents"]
    return found


async def test_an_upload_can_be_asked_about_when_its_job_is_done(tmp_path: Path, data: Path) -> None:
    content = pdf(tmp_path, prose("Ombrell"), prose("its rival"))
    async with serving(data) as client:
        accepted = await upload(client, "ombrell.pdf", content)
        assert re.fullmatch("/jobs/[0-9a-f]{32}", accepted.headers["location"])
        assert (accepted.json()["state"], accepted.json()["bytes"]) == ("queued", len(content))
        job = await finished(client, accepted)
        [listed] = (await client.get("/jobs")).json()["jobs"]
        answer = (await client.post("/query/hybrid", json={"question": "Ombrell sold 300 units in region"})).json()
        got = await samples(client)
    assert (job["state"], job["outcome"], job["source"]) == ("done", "created", "upload://default/ombrell.pdf")
    assert job["progress"] == {"pages": 2, "ocr_pages": 0, "ocr_pages_total": 0, "chunks": 2, "chunks_total": 2}
    assert job["created_at"] < job["started_at"] < job["finished_at"]
    assert listed == job
    assert answer["passages"][0]["document_id"] == job["document_id"]
    assert got['rag_ingest_documents_total{outcome="created"}'] == 1
    assert got["rag_ingest_pages_total"] == 2
    assert got["rag_ingest_queue"] == 0
    assert [path.name for path in (data / "uploads" / "filings").iterdir()] == ["owner.lock"]


async def test_uploads_share_a_parser_until_one_of_them_fails_or_none_comes(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting one and loading its tagger takes longer than to parse a short filing."""

    def parsers() -> set[int | None]:
        return {child.pid for child in multiprocessing.active_children()} - before

    before = {child.pid for child in multiprocessing.active_children()}
    monkeypatch.setattr("ingest.intake._WARM_S", 2.0)
    async with serving(data) as client:
        assert (await ingested(client, "a.pdf", pdf(tmp_path, prose("Ombrell"))))["state"] == "done"
        [first] = parsers()
        assert (await ingested(client, "b.pdf", pdf(tmp_path, prose("its rival"))))["state"] == "done"
        assert parsers() == {first}
        assert (await ingested(client, "c.pdf", b"%PDF-1.7\nbroken"))["state"] == "failed"
        assert parsers() == set()
        assert (await ingested(client, "d.pdf", pdf(tmp_path, prose("its supplier"))))["state"] == "done"
        assert len(parsers() - {first}) == 1
        with anyio.fail_after(30):
            while parsers():  # noqa: ASYNC110 - another process ends
                await anyio.sleep(0.1)
        assert (await ingested(client, "e.pdf", pdf(tmp_path, prose("its lender"))))["state"] == "done"
    assert parsers() == set()


async def test_without_an_index_it_begins_with_an_empty_one(tmp_path: Path) -> None:
    question = {"question": "Ombrell sold 300 units in region"}
    async with serving(tmp_path / "new") as client:
        before = await client.get("/readyz")
        replies = {
            arch: (await client.post(f"/query/{arch}", json=question)).json() for arch in ("naive", "hybrid", "crag")
        }
        await ingested(client, "ombrell.pdf", pdf(tmp_path, prose("Ombrell")))
        after = await client.get("/readyz")
        answer = (await client.post("/query/hybrid", json=question)).json()
    assert (before.status_code, before.json()["status"]) == (200, "empty")
    for arch, reply in replies.items():
        assert (reply["abstained"], reply["reason"]) == (True, "no_passages"), arch
        assert "POST /documents" in reply["notes"][0]
    assert after.json()["status"] == "ready"
    assert answer["citations"]
    with pytest.raises(IndexMissing, match="ingest some filings first"):
        async with serving(tmp_path / "other", accept_uploads=False):
            pass


async def test_a_body_that_is_the_file_itself(tmp_path: Path, data: Path) -> None:
    page = b"<html><body><p>Revenue of Saltmarch was $12 million in 2024.</p></body></html>"
    async with serving(data) as client:
        sent = await client.post(
            "/documents", content=page, headers={"content-type": "text/html"}, params={"filename": "saltmarch.htm"}
        )
        job = await finished(client, sent)
        unnamed = await client.post("/documents", content=page, headers={"content-type": "text/html"})
    assert (job["outcome"], job["filename"]) == ("created", "saltmarch.htm")
    assert (unnamed.status_code, unnamed.json()["error_code"]) == (422, "invalid_input")


async def test_the_same_name_with_other_bytes_replaces_and_the_same_bytes_change_nothing(
    tmp_path: Path, data: Path
) -> None:
    async with serving(data) as client:
        first = await ingested(client, "annual.pdf", pdf(tmp_path, prose("old")))
        again = await ingested(client, "annual.pdf", pdf(tmp_path, prose("old")))
        second = await ingested(client, "annual.pdf", pdf(tmp_path, prose("new")))
        held = await documents(client)
        passages = (await client.post("/query/naive", json={"question": "old units", "k": 100})).json()["passages"]
    assert [job["outcome"] for job in (first, again, second)] == ["created", "unchanged", "replaced"]
    assert [document["document_id"] for document in held] == [second["document_id"]]
    assert {passage["document_id"] for passage in passages} == {second["document_id"]}
    kept = data / "originals" / "filings"
    assert [path.name for path in kept.iterdir()] == [second["document_id"]]


async def test_two_uploads_of_one_name_at_once_end_as_one_document(tmp_path: Path, data: Path) -> None:
    contents = [pdf(tmp_path, prose(f"version {n}")) for n in range(4)]
    async with serving(data) as client:
        accepted = await asyncio.gather(*(upload(client, "same.pdf", content) for content in contents))
        jobs = [await finished(client, each) for each in accepted]
        held = await documents(client)
    last = max(jobs, key=lambda job: str(job["started_at"]))
    assert sorted(job["outcome"] for job in jobs) == ["created", "replaced", "replaced", "replaced"]
    assert [document["document_id"] for document in held] == [last["document_id"]]


async def test_deleting_removes_everything_and_says_how_much(tmp_path: Path, data: Path) -> None:
    async with serving(data) as client:
        job = await ingested(client, "annual.pdf", pdf(tmp_path, prose("one"), prose("two")))
        path = f"/documents/{job['document_id']}"
        asked = {"question": "What did annual sell in region 3?"}
        await client.post("/query/hybrid", json=asked)
        gone = await client.delete(path)
        answer = (await client.post("/query/hybrid", json=asked)).json()
        statuses = [(await client.get(path + rest)).status_code for rest in ("", "/pages/1", "/pages/1.png")]
        again = await client.delete(path)
        everything = await client.delete("/documents")
    assert gone.json()["removed"].items() >= {"chunks": 2, "pages": 2}.items()
    assert answer["passages"] == []
    assert statuses == [404, 404, 404]
    assert (again.status_code, again.json()["error_code"]) == (404, "not_found")
    assert everything.status_code == 405, "without an id nothing is selected, which is not everything"
    assert not [*(data / "originals" / "filings").iterdir()]


async def test_a_tenant_sees_and_touches_its_own_alone(tmp_path: Path, data: Path) -> None:
    content = pdf(tmp_path, prose("secret"))
    async with serving(data, api_keys=KEYS) as client:
        anns = await ingested(client, "same.pdf", content, "ann")
        bobs = await ingested(client, "same.pdf", content, "bob")
        assert anns["document_id"] != bobs["document_id"]
        assert [d["document_id"] for d in await documents(client, "ann")] == [anns["document_id"]]
        assert [d["document_id"] for d in await documents(client, "bob")] == [bobs["document_id"]]
        bob = {"x-api-key": "bob"}
        job, path = f"/jobs/{anns['job_id']}", f"/documents/{anns['document_id']}"
        for method, foreign in (("GET", job), ("GET", path), ("GET", f"{path}/pages/1.png"), ("DELETE", path)):
            assert (await client.request(method, foreign, headers=bob)).status_code == 404, foreign
        listed = (await client.get("/jobs", headers=bob)).json()
        assert [each["job_id"] for each in listed["jobs"]] == [bobs["job_id"]]
        assert len(await documents(client, "ann")) == 1


async def test_groups_bound_what_a_key_may_upload_and_replace(tmp_path: Path, data: Path) -> None:
    async with serving(data, api_keys=KEYS) as client:
        foreign = await upload(client, "plan.pdf", pdf(tmp_path, prose("plan")), "ann", acl="board")
        assert (foreign.status_code, foreign.json()["error_code"]) == (403, "forbidden")
        board = await ingested(client, "plan.pdf", pdf(tmp_path, prose("plan")), "eve", acl="board")
        assert await documents(client, "ann") == []
        unseen = await client.get(f"/jobs/{board['job_id']}", headers={"x-api-key": "ann"})
        assert unseen.status_code == 404
        over = await ingested(client, "plan.pdf", pdf(tmp_path, prose("another plan")), "ann")
        copy = await ingested(client, "copy.pdf", pdf(tmp_path, prose("plan")), "ann", acl="public")
        assert [(job["state"], job["reason"]) for job in (over, copy)] == [("failed", "forbidden")] * 2
        newer = await ingested(client, "plan.pdf", pdf(tmp_path, prose("newer plan")), "eve")
        assert (newer["outcome"], await documents(client, "ann")) == ("replaced", []), "an update does not publish"
        own = await ingested(client, "own.pdf", pdf(tmp_path, prose("joe")), "joe")
        assert own["document_id"] in {d["document_id"] for d in await documents(client, "joe")}
        assert await documents(client, "ann") == [], "what has no public group is not published"


async def test_a_full_queue_is_busy(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_PER_TEXT", "0.3")
    async with serving(data, max_queued_jobs=2) as client:
        accepted = [await upload(client, f"{n}.pdf", pdf(tmp_path, prose(f"firm {n}"))) for n in range(2)]
        refused = await upload(client, "3.pdf", pdf(tmp_path, prose("firm 3")))
        assert (refused.status_code, refused.json()["error_code"]) == (429, "busy")
        assert refused.headers["retry-after"] == "30"
        assert [(await finished(client, each))["state"] for each in accepted] == ["done", "done"]
        assert (await upload(client, "3.pdf", pdf(tmp_path, prose("firm 3")))).status_code == 202


async def test_deleting_waits_for_the_job_that_writes_the_document(tmp_path: Path, data: Path) -> None:
    async with serving(data) as client:
        old = await ingested(client, "annual.pdf", pdf(tmp_path, prose("old")))
        other = await ingested(client, "other.pdf", pdf(tmp_path, prose("other")))
        replacing = await upload(client, "annual.pdf", pdf(tmp_path, prose("new")))
        both = await asyncio.gather(
            client.delete(f"/documents/{old['document_id']}"), client.delete(f"/documents/{other['document_id']}")
        )
        job = await finished(client, replacing)
        held = await documents(client)
    assert both[1].status_code == 200
    assert both[0].status_code in (200, 404), "before the replacement or after it, never in the middle"
    assert [document["document_id"] for document in held] == [job["document_id"]]


async def test_a_service_that_only_reads_says_so(tmp_path: Path, data: Path) -> None:
    async with serving(data) as client:
        job = await ingested(client, "annual.pdf", pdf(tmp_path, prose("one")))
    async with serving(data, accept_uploads=False) as client:
        path = f"/documents/{job['document_id']}"
        refused = [await upload(client, "x.pdf", b"%PDF"), await client.delete(path), await client.get("/jobs")]
        assert {response.status_code for response in refused} == {503}
        assert "ACCEPT_UPLOADS" in refused[0].json()["detail"]
        assert (await client.get(f"{path}/pages/1.png")).status_code == 200


@pytest.mark.parametrize(("name", "page"), [("a.htm", b"<html><p>Sales rose</p></html>"), ("a.txt", b"Sales rose.\n")])
async def test_files_of_every_kind_are_kept_to_be_read_again(data: Path, name: str, page: bytes) -> None:
    async with serving(data) as client:
        kept = data / "originals" / "filings" / (await ingested(client, name, page))["document_id"]
        assert kept.read_bytes() == page
        await client.delete(f"/documents/{kept.name}")
    assert not kept.exists()


async def test_what_a_model_read_of_an_upload_s_relations_is_on_its_bill_and_in_the_metrics(
    tmp_path: Path, data: Path
) -> None:
    text = "Cedar Foods, Inc. grows the wheat that Dogwood Bakeries LLC\nand others buy each year from its farms."
    quote = "Cedar Foods, Inc. grows the wheat that Dogwood Bakeries LLC"
    claim = {"passage": 1, "quote": quote, "subject": "Cedar Foods, Inc.", "relation": "customer", "detail": ""}
    content = json.dumps({"relations": [{**claim, "object": "Dogwood Bakeries LLC"}]})
    message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 900, "completion_tokens": 40}
    with scripted_endpoint() as endpoint:
        endpoint.play(Reply(body={**COMPLETION, "choices": [message], "usage": usage}))
        known: dict[str, Any] = {"graph": True, "graph_model": "read-1", "graph_base_url": endpoint.base_url}
        prices = {"graph_usd_per_million_input_tokens": 1, "graph_usd_per_million_output_tokens": 10}
        async with serving(data, **known, **prices) as client:
            job = await finished(client, await upload(client, "cedar.pdf", pdf(tmp_path, text)))
            got = await samples(client)
    assert job["graph"]["seconds"] > 0
    assert (job["graph"]["llm_calls"], job["graph"]["usd"]) == (1, "0.0013")
    assert job["graph"]["tokens"] == {"input": 900, "output": 40}
    assert got["rag_ingest_graph_llm_calls_total"] == 1
    assert got['rag_ingest_graph_tokens_total{direction="input"}'] == 900
    assert got["rag_ingest_graph_usd_total"] == pytest.approx(0.0013)
