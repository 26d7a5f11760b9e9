"""A scan over HTTP: read as a picture, followed, found, cited as such and shown where it is."""

import io
from pathlib import Path

import pytest
from PIL import Image

from tests.ingest.filings import prose, write_pdf
from tests.ingest.scanned import scan
from tests.intake.serving import ingested, serving

pytestmark = pytest.mark.anyio


async def test_a_scan_that_lay_sideways_is_cited_as_recognised_and_marked_where_it_shows(
    tmp_path: Path, data: Path
) -> None:
    typeset = write_pdf(tmp_path / "a.pdf", prose("Ombrell"))
    async with serving(data) as client:
        job = await ingested(client, "scan.pdf", scan(typeset, turn=90).read_bytes())
        [document] = (await client.get("/documents")).json()["documents"]
        answer = (await client.post("/query/hybrid", json={"question": "Ombrell sold 300 units in region"})).json()
        page = (await client.get(f"/documents/{job['document_id']}/pages/1")).json()
        cited = answer["citations"][0]
        boxes = ";".join(",".join(map(str, box)) for box in cited["boxes"])
        image = await client.get(f"/documents/{job['document_id']}/pages/1.png", params={"boxes": boxes, "dpi": 72})
    assert job["progress"] == {"pages": 1, "ocr_pages": 1, "ocr_pages_total": 1, "chunks": 1, "chunks_total": 1}
    assert (document["ocr_pages"], document["empty_pages"]) == ([1], [])
    assert (page["ocr"], page["width"] > page["height"]) == (True, True)
    assert (cited["ocr"], cited["verified"]) == (True, True)
    assert page["text"][slice(*cited["span"].values())] == cited["quote"]
    picture = Image.open(io.BytesIO(image.content)).convert("RGB")
    x0, y0, x1, y1 = (
        pick(edges) for pick, edges in zip((min, min, max, max), zip(*cited["boxes"], strict=True), strict=True)
    )
    assert x1 - x0 < y1 - y0, "its lines run upwards"
    assert picture.getpixel((int(cited["boxes"][0][0]), int(cited["boxes"][0][1]))) == (255, 222, 89)


async def test_the_service_can_be_told_to_read_no_pictures(tmp_path: Path, data: Path) -> None:
    async with serving(data, ocr="off") as client:
        job = await ingested(client, "scan.pdf", scan(write_pdf(tmp_path / "a.pdf", prose("Ombrell"))).read_bytes())
    assert (job["state"], job["reason"]) == ("failed", "no_text")
    assert job["detail"] == "no text in 1 page(s); pictures of text are read unless OCR is off"
