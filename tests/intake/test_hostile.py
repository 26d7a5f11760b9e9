"""Uploads that mean harm or are merely odd: each is refused or fails for a reason, and the service goes on."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from httpx import AsyncClient

from app.settings import Settings
from tests.conftest import live
from tests.ingest.filings import prose, write_pdf
from tests.intake.serving import finished, ingested, open_ports, serving, upload

pytestmark = pytest.mark.anyio
PDF = {"content-type": "application/pdf"}


def uploads(data: Path) -> list[str]:
    """Names of the files that are kept for a job."""
    return [path.name for path in (data / "uploads" / "filings").iterdir() if path.name != "owner.lock"]


def form(*parts: tuple[str, bytes], boundary: bytes = b"XX") -> bytes:
    """A multipart body; of each part the Content-Disposition and the content."""
    return (
        b"".join(
            b"--%b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % (boundary, head.encode(), content)
            for head, content in parts
        )
        + b"--%b--\r\n" % boundary
    )


FILE = 'form-data; name="file"; filename="a.pdf"'
FORM = "multipart/form-data; boundary=XX"


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[AsyncClient, Path]]:
    """A service that takes 3,000 bytes, and its folder."""
    data = tmp_path_factory.mktemp("hostile")
    async with serving(data, max_upload_bytes=3000) as client:
        yield client, data


@pytest.mark.parametrize(
    ("content", "media", "query", "status", "code"),
    [
        (b"", "application/pdf", {"filename": "a.pdf"}, 422, "invalid_input"),
        (form((FILE, b"")), FORM, {}, 422, "invalid_input"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 99, "application/pdf", {"filename": "a.pdf"}, 415, "unsupported_media_type"),
        (form((FILE, b"PK\3\4" + b"\0" * 900)), FORM, {}, 415, "unsupported_media_type"),
        (b"%PDF-1.7", "image/png", {"filename": "a.pdf"}, 415, "unsupported_media_type"),
        (b"%PDF-1.7", "application/pdf", {}, 422, "invalid_input"),
        (b"%PDF-1.7", "application/pdf", {"filename": "../.."}, 422, "invalid_input"),
        (b"%PDF-1.7", "application/pdf", {"filename": "\x00\x1b"}, 422, "invalid_input"),
        (b"%PDF-1.7", "application/pdf", {"filename": "x" * 300}, 422, "invalid_input"),
        (b"no form at all", FORM, {}, 400, "bad_request"),
        (b"", FORM, {}, 422, "invalid_input"),
        (b"--XX--\r\n", FORM, {}, 422, "invalid_input"),
        (form((FILE, b"%PDF")), "multipart/form-data", {}, 400, "bad_request"),
        (form((FILE, b"%PDF")), "multipart/form-data; boundary=" + "X" * 500, {}, 400, "bad_request"),
        (form((FILE, b"%PDF"))[:-9], FORM, {}, 400, "bad_request"),
        (form((FILE, b"%PDF"), (FILE, b"%PDF")), FORM, {}, 422, "invalid_input"),
        (form(('form-data; name="tenant"', b"other"), (FILE, b"%PDF")), FORM, {}, 422, "invalid_input"),
        (form(('form-data; name="file"', b"%PDF")), FORM, {}, 422, "invalid_input"),
        (b"--XX\r\n" + b"X" * 50_000, FORM, {}, 400, "bad_request"),
        (b"%PDF" * 1000, "application/pdf", {"filename": "a.pdf"}, 413, "payload_too_large"),
        (form((FILE, b"%PDF" * 1000)), FORM, {}, 413, "payload_too_large"),
    ],
)
async def test_what_is_no_filing_is_refused_and_nothing_kept(
    shared: tuple[AsyncClient, Path], content: bytes, media: str, query: dict[str, str], status: int, code: str
) -> None:
    client, data = shared
    refused = await client.post("/documents", content=content, headers={"content-type": media}, params=query)
    assert (refused.status_code, refused.json()["error_code"]) == (status, code), refused.text
    assert refused.headers["connection"] == "close"
    assert uploads(data) == []
    assert (await client.get("/jobs")).json()["total"] == 0


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.pdf", "passwd.pdf"),
        ("C:\\filings\\annual.pdf", "annual.pdf"),
        ("%2e%2e%2fannual.pdf", "%2e%2e%2fannual.pdf"),
        ("Geschäftsbericht 2024 – 年報.pdf", "Geschäftsbericht 2024 – 年報.pdf"),
        ("an\u202enual\x1b[31m.pdf", "annual[31m.pdf"),
        ("e\u0301.pdf", "\u00e9.pdf"),
        ("x" * 196 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
async def test_a_name_is_a_name_and_no_path(shared: tuple[AsyncClient, Path], given: str, kept: str) -> None:
    client, data = shared
    headers, query = {"content-type": "text/html"}, {"filename": given}
    job = (await client.post("/documents", content=b"<html><p>Sales</p></html>", headers=headers, params=query)).json()
    assert (job["filename"], unquote(job["source"])) == (kept, f"upload://default/{kept}")
    assert job["source"].count("/") == 3
    assert {path.name for path in data.iterdir()} <= {"figures", "index", "jobs", "originals", "uploads"}
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in uploads(data))


@pytest.mark.parametrize(
    ("disposition", "kept"),
    [
        ('filename="年報.pdf"'.encode(), "年報.pdf"),
        ('filename="é.pdf"'.encode("cp1252"), "é.pdf"),
        (b"filename*=UTF-8''%E5%B9%B4%E5%A0%B1.pdf", "年報.pdf"),
        (b"filename*=iso-8859-1'en'%e9.pdf", "é.pdf"),
    ],
)
async def test_a_forms_file_name_in_any_writing(
    shared: tuple[AsyncClient, Path], disposition: bytes, kept: str
) -> None:
    client, _ = shared
    body = b'--XX\r\nContent-Disposition: form-data; name="file"; %b\r\n\r\n<html><p>Debt</p></html>\r\n--XX--\r\n'
    reply = await client.post("/documents", content=body % disposition, headers={"content-type": FORM})
    assert reply.json()["filename"] == kept


def bomb() -> bytes:
    """One page whose content stream of some MB unpacks to 600 MB of text operators."""
    packer = zlib.compressobj(1)
    block = b"BT /F1 9 Tf 10 10 Td (boom) Tj ET\n" * 30_000
    stream = b"".join(packer.compress(block) for _ in range(570)) + packer.flush()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"%PDF-1.7\n"
    for number, content in enumerate(objects, 1):
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    return body + b"trailer<</Root 1 0 R/Size 6>>\n%%EOF"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "reasons"),
    [({"parse_timeout_s": 3.0}, {"timeout"}), ({"parse_memory_bytes": 1 << 30}, {"too_large", "crashed", "damaged"})],
    ids=["time", "memory"],
)
async def test_a_bomb_costs_its_own_process_alone(
    data: Path, tmp_path: Path, limits: dict[str, Any], reasons: set[str]
) -> None:
    content = write_pdf(tmp_path / "a.pdf", prose("Ombrell")).read_bytes()
    async with serving(data, **limits) as client:
        accepted = await upload(client, "bomb.pdf", bomb())
        behind = await upload(client, "annual.pdf", content)
        answer = await client.post("/query/naive", json={"question": "units"})
        assert answer.status_code == 200, "while it is at the bomb"
        job = await finished(client, accepted)
        assert (job["state"], job["reason"] in reasons) == ("failed", True), job
        assert (await finished(client, behind))["state"] == "done"


async def test_a_cut_file_ends_as_ingested_or_failed_with_a_reason(data: Path, tmp_path: Path) -> None:
    whole = write_pdf(tmp_path / "a.pdf", *(prose(f"page {n}") for n in range(9))).read_bytes()
    async with serving(data) as client:
        jobs = [await ingested(client, f"{share}.pdf", whole[: len(whole) * share // 10]) for share in (1, 5, 9)]
    assert [job["state"] == "done" or bool(job["reason"] and job["detail"]) for job in jobs] == [True] * 3
    assert jobs[0]["state"] == "failed"
    assert "0.pdf" not in jobs[0]["detail"] or jobs[0]["filename"] in jobs[0]["detail"]


async def test_too_many_pages(data: Path, tmp_path: Path) -> None:
    content = write_pdf(tmp_path / "a.pdf", *(prose(f"page {n}") for n in range(3))).read_bytes()
    async with serving(data, max_upload_pages=2) as client:
        job = await ingested(client, "long.pdf", content)
    assert (job["state"], job["reason"]) == ("failed", "too_large")
    assert job["detail"].startswith("long.pdf has 3 pages")


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(data: Path) -> None:
    async with (
        open_ports(Settings(data_dir=data)) as ports,
        live(ports) as service,
        AsyncClient(base_url=service.url) as client,
    ):
        host, _, port = service.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /documents?filename=a.pdf HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        writer.write(b"Content-Type: application/pdf\r\nContent-Length: 100000\r\n\r\n%PDF-1.7\n")
        await writer.drain()
        async with asyncio.timeout(10):
            while not uploads(data):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        writer.close()
        async with asyncio.timeout(10):
            while uploads(data):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await client.get("/jobs")).json()["total"] == 0


async def test_a_large_upload_is_not_held_in_memory_nor_by_the_bodies_limit(data: Path) -> None:
    """Beyond MAX_BODY_BYTES by far, of unannounced length, refused once it exceeds the limit of uploads."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b"%PDF-1.7\n"
        while True:
            sent += 65_536
            yield b" " * 65_536

    async with serving(data, max_upload_bytes=8 << 20, max_body_bytes=1024) as client:
        refused = await client.post("/documents?filename=a.pdf", content=endless(), headers=PDF)
    assert (refused.status_code, refused.json()["error_code"]) == (413, "payload_too_large")
    assert sent == (8 << 20)
