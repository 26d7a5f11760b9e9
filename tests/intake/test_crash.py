"""A service killed at any moment goes on where it was: no upload is lost, none is done by half."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient, ConnectError

from app.adapters.qdrant_edge import EdgeStore
from tests.ingest.filings import prose, stamp, write_pdf
from tests.ingest.test_crash import contents
from tests.intake.serving import finished, ingested, serving, upload

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def process(data: Path, seconds_per_text: float) -> AsyncIterator[tuple[AsyncClient, asyncio.subprocess.Process]]:
    """The service in a process of its own; killed at the end, unless it has ended before."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {"DATA_DIR": str(data), "API_PORT": str(port), "SECONDS_PER_TEXT": str(seconds_per_text)}
    environment = {**os.environ, **given}
    command = [sys.executable, "-m", "tests.intake.serving"]
    service = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment)
    try:
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            await until(lambda: _answers(client))
            yield client, service
    finally:
        if service.returncode is None:
            service.kill()
        await service.wait()


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(300):
        while not await true():  # noqa: ASYNC110  what is waited for is in another process
            await asyncio.sleep(0.05)


async def _answers(client: AsyncClient) -> bool:
    try:
        return (await client.get("/healthz")).status_code == 200
    except ConnectError:
        return False


async def states(client: AsyncClient) -> set[str]:
    return {job["state"] for job in (await client.get("/jobs")).json()["jobs"]}


async def some_job_is(client: AsyncClient, state: str) -> bool:
    return state in await states(client)


async def all_jobs_are(client: AsyncClient, *wanted: str) -> bool:
    return await states(client) <= set(wanted)


@pytest.mark.slow
async def test_killed_at_work_it_ends_like_an_undisturbed_service(data: Path, tmp_path: Path) -> None:
    files: Mapping[str, list[str]] = {
        "a.pdf": [prose(f"firm a page {n}") for n in range(6)],
        "b.pdf": [prose("firm b")],
        "a.pdf ": [prose(f"firm a anew {n}") for n in range(3)],
        "c.htm": [],
    }
    html = b"<html><body><p>Sales of firm c were $1 million.</p></body></html>"
    uploads = [
        (name.strip(), write_pdf(tmp_path / "drawn.pdf", *pages).read_bytes() if pages else html)
        for name, pages in files.items()
    ]
    async with process(data, seconds_per_text=0.5) as (client, service):
        for name, content in uploads:
            assert (await upload(client, name, content)).status_code == 202
        await until(lambda: some_job_is(client, "indexing"))
        service.kill()
    async with process(data, seconds_per_text=0.3) as (client, service):
        assert await all_jobs_are(client, "queued", "parsing", "indexing")
        await until(lambda: some_job_is(client, "done"))
        service.kill()
    async with process(data, seconds_per_text=0) as (client, service):
        await until(lambda: all_jobs_are(client, "done", "failed"))
        jobs = (await client.get("/jobs")).json()["jobs"]
        service.send_signal(signal.SIGTERM)
        await service.wait()
    undisturbed = tmp_path / "undisturbed"
    async with serving(undisturbed) as client:
        for name, content in uploads:
            await ingested(client, name, content)
    assert [(job["filename"], job["state"]) for job in reversed(jobs)] == [(name, "done") for name, _ in uploads]
    held, expected = [await asyncio.to_thread(contents, folder) for folder in (data, undisturbed)]
    assert held == expected
    assert [p.name for p in (data / "uploads" / "filings").iterdir()] == ["owner.lock"]
    assert sorted(os.listdir(data / "originals" / "filings")) == sorted(
        os.listdir(undisturbed / "originals" / "filings")
    )


async def test_a_removal_that_was_killed_is_finished_by_the_next_start(data: Path, tmp_path: Path) -> None:
    content = write_pdf(tmp_path / "a.pdf", prose("one"), prose("two")).read_bytes()
    async with serving(data) as client:
        job = await ingested(client, "annual.pdf", content)
    store = EdgeStore.open(data / "index" / "filings", stamp(), create=False)
    [document] = await store.documents()
    await store.put_document(replace(document, state="ingesting", ingested_at=""))
    store.close()
    async with serving(data) as client:
        assert (await client.get(f"/documents/{job['document_id']}")).status_code == 404
        assert (await client.get("/documents")).json()["total"] == 0
    assert await asyncio.to_thread(contents, data) == {}
    assert os.listdir(data / "originals" / "filings") == []


async def test_a_job_that_ends_the_service_again_and_again_is_given_up(data: Path, tmp_path: Path) -> None:
    content = write_pdf(tmp_path / "a.pdf", prose("one")).read_bytes()
    async with serving(data) as client:
        done = await ingested(client, "annual.pdf", content)
    file = data / "jobs" / "filings" / f"{done['job_id']}.json"
    begun = file.read_text().replace('"state":"done"', '"state":"parsing"').replace('"attempts":1', '"attempts":3')
    finished_at = f'"finished_at":"{done["finished_at"]}"'
    file.write_text(begun.replace(finished_at, '"finished_at":null'))
    async with serving(data) as client:
        job = await _ended(client, done["job_id"])
    assert (job["state"], job["reason"]) == ("failed", "crashed")


async def _ended(client: AsyncClient, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(300):
        while True:
            job: dict[str, Any] = (await client.get(f"/jobs/{job_id}")).json()
            if job["finished_at"]:
                return job
            await asyncio.sleep(0.02)


async def test_a_job_whose_upload_is_gone_fails_and_a_file_that_is_no_job_is_left_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECONDS_PER_TEXT", "0.2")
    async with serving(data) as client:
        first = await upload(
            client, "a.pdf", write_pdf(tmp_path / "a.pdf", *[prose(f"{n}") for n in range(9)]).read_bytes()
        )
        second = await upload(client, "b.pdf", write_pdf(tmp_path / "b.pdf", prose("b")).read_bytes())
    (data / "uploads" / "filings" / second.json()["job_id"]).unlink()
    (data / "jobs" / "filings" / "odd.json").write_text("{")
    async with serving(data) as client:
        assert (await finished(client, first))["outcome"] == "created"
        lost = await finished(client, second)
    assert (lost["state"], lost["reason"]) == ("failed", "unreadable")
