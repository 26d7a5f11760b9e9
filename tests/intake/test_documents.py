"""Documents over HTTP: uploaded, followed, replaced, shown and removed, over the real embedded index."""

from pathlib import Path

import pytest

from tests.ingest.filings import prose, write_pdf
from tests.intake.service import ingested, serving, upload

pytestmark = pytest.mark.anyio


def pdf(folder: Path, *pages: str) -> bytes:
    return write_pdf(folder / "drawn.pdf", *pages).read_bytes()


async def test_an_upload_can_be_asked_about_at_once(tmp_path: Path) -> None:
    content = pdf(tmp_path, prose("Ombrell"), prose("its rival"))
    async with serving(tmp_path / "data") as client:
        before = (await client.get("/documents")).json()
        accepted = await upload(client, "ombrell.pdf", content)
        assert accepted.status_code == 202
        print(accepted.json())
        job = await ingested(client, "ombrell2.pdf", content)
        print(job)
        print((await client.get("/jobs")).json())
        print((await client.get("/documents")).json())
        png = await client.get(f"/documents/{job['document_id']}/pages/1.png?span=0,20")
        print(png.status_code, png.headers, png.text[:300] if png.status_code != 200 else len(png.content))
        Path("/tmp/page.png").write_bytes(png.content)
        print((await client.delete(f"/documents/{job['document_id']}")).json())
        print((await client.get("/documents")).json())
        print((await client.get("/metrics")).text.split("rag_ingest_doc")[1][:300])
    print([*map(str, (tmp_path / "data").rglob("*"))])
    assert before["total"] == 5
