"""Pictures of PDFs, found and put into words by an endpoint that speaks OpenAI's protocol, in a real index."""

import base64
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from app.adapters.bm25 import Bm25Encoder
from app.evidence.citations import boxes_of
from app.settings import Settings
from app.types import Access, Chunk, Document, Page, Word
from ingest.captioning import CaptionCost, open_captioning
from ingest.captions import Caption, captioned, printed
from ingest.chunking import StructureChunker
from ingest.formats.pictures import Request, pictures
from ingest.indexing import Index
from ingest.pipeline import Batch, Options, Outcome
from ingest.sources import find_sources
from ingest.verification import chunks_of, pages_of, problems
from tests.fakes import FakeFigures, FakeStore
from tests.ingest.filings import HashEmbedder, stamp, statement
from tests.integration.openai_server import COMPLETION, Reply, ScriptedEndpoint, error, scripted_endpoint

SAID = "Bar chart: revenue by year, in millions; 2021: 40, 2022: 55 [approx.], 2023: 71."
BLOCK = "[Caption by see-1: Bar chart: revenue by year, in millions; 2021: 40, 2022: 55 (approx.), 2023: 71.]"


def reply(text: str) -> Reply:
    message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Reply(body={**COMPLETION, "choices": [message], "usage": {"prompt_tokens": 900, "completion_tokens": 40}})


def bars(seed: int = 0) -> Image.Image:
    """A chart as a bitmap."""
    image = Image.new("RGB", (400, 300), "white")
    draw = ImageDraw.Draw(image)
    for column, height in enumerate((40 + seed, 55, 71)):
        draw.rectangle((40 + 120 * column, 280 - 3 * height, 120 + 120 * column, 280), fill=(30, 60, 160))
    return image


def draw_text(canvas: Canvas, text: str) -> None:
    for number, line in enumerate(text.split("\n")):
        label, *cells = line.split("\t")
        canvas.drawString(72, 720 - 14 * number, label)
        for column, cell in enumerate(cells):
            canvas.drawRightString(380 + 90 * column, 720 - 14 * number, cell)


def report(path: Path, charts: int = 1) -> Path:
    """Pages with a table, and below it a chart of 200 by 150 points whose upper left corner is at (100, 392)."""
    canvas = Canvas(str(path), (612, 792), invariant=1)
    for seed in range(charts):
        draw_text(canvas, statement("Orrin Harbour"))
        canvas.drawImage(ImageReader(bars(seed)), 100, 250, 200, 150)
        canvas.showPage()
    canvas.save()
    return path


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted_endpoint() as server:
        server.play(reply(SAID))
        yield server


async def ingest(
    path: Path, endpoint: ScriptedEndpoint, store: FakeStore, *, acl: tuple[str, ...] | None = None, **changes: Any
) -> Outcome:
    named: dict[str, Any] = {"caption_model": "see-1", "caption_base_url": endpoint.base_url}
    prices = {f"caption_usd_per_million_{side}_tokens": Decimal(1) for side in ("input", "output")}
    settings = Settings(data_dir=path.parent, **{**named, **prices, **changes})
    outcomes: list[Outcome] = []
    async with open_captioning(settings) as captioning:
        index = Index(store, HashEmbedder(), {"bm25": Bm25Encoder()}, FakeFigures())
        options = Options(acl=acl, captioning=captioning)
        await Batch(index, StructureChunker(), options, outcomes.append).run(
            list(find_sources([str(path)])), await store.documents()
        )
    return outcomes[0]


async def chunks(store: FakeStore, document: Document | None) -> list[Chunk]:
    """In order, whoever may read them."""
    assert document is not None
    access = Access(document.meta.tenant, ("public", "board"))
    found = [hit.chunk for hit in await chunks_of(store, document, access, 1000)]
    return sorted(found, key=lambda chunk: chunk.ordinal)


def test_a_bitmap_is_found_with_its_place_and_a_margin(tmp_path: Path) -> None:
    (picture,) = pictures(Request(report(tmp_path / "a.pdf"), 9))
    assert (picture.page, picture.box) == (1, (86.0, 378.0, 314.0, 556.0))
    image = Image.open(io.BytesIO(picture.png))
    assert image.size == (475, 370)
    assert image.convert("RGB").getpixel((110, 280)) == (30, 60, 160)


def test_the_first_pictures_are_taken(tmp_path: Path) -> None:
    assert [picture.page for picture in pictures(Request(report(tmp_path / "a.pdf", 4), 2))] == [1, 2]


def test_charts_drawn_as_bars_or_lines_are_pictures(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"), (612, 792))
    for n in range(8):
        canvas.rect(100 + 30 * n, 400, 28, 60 + 17 * n, fill=1)
    canvas.line(90, 400, 400, 400)
    canvas.showPage()
    for n in range(5):
        canvas.rect(100, 400 + 30 * n, 60 + 47 * n, 24, fill=1)
        canvas.drawString(60, 405 + 30 * n, f"{2019 + n}")
    canvas.showPage()
    line = canvas.beginPath()
    line.moveTo(100, 400)
    for n in range(1, 12):
        line.lineTo(100 + 25 * n, 400 + (n * 37) % 160)
    canvas.drawPath(line)
    canvas.save()
    assert [picture.page for picture in pictures(Request(tmp_path / "a.pdf", 9))] == [1, 2, 3]


def test_shaded_rows_rules_logos_and_scans_are_none(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"), (612, 792))
    for row in range(0, 12, 2):
        canvas.setFillGray(0.9)
        height = 14 if row != 4 else 26
        for left, right in ((72, 300), (300, 312), (312, 410), (410, 540)):
            canvas.rect(left, 500 + 14 * row, right - left, height, stroke=0, fill=1)
        canvas.setFillGray(0)
    for row in range(12):
        canvas.line(72, 500 + 14 * row, 540, 500 + 14 * row)
        canvas.drawString(72, 503 + 14 * row, "Revenue from ordinary activities of the company")
        canvas.drawRightString(540, 503 + 14 * row, "1,234")
    canvas.drawImage(ImageReader(bars()), 72, 720, 60, 40)
    canvas.showPage()
    canvas.drawImage(ImageReader(bars()), 0, 0, 612, 792)
    canvas.save()
    assert pictures(Request(tmp_path / "a.pdf", 9)) == []


def test_a_caption_is_one_line_that_ends_where_it_says(tmp_path: Path) -> None:
    caption = Caption(1, (1, 2, 3, 4), "Sales\n\nrose [3].\u200b " + "word " * 400, "see [1]")
    assert caption.block.startswith("[Caption by see (1): Sales rose (3). word word")
    assert caption.block.endswith("word …]")
    assert len(caption.block) < 840


@pytest.mark.parametrize("text", ["Printed.", "", "Printed.\n\n[Caption by nobody: so it is printed] here."])
def test_captions_come_behind_what_is_printed_and_off_again(text: str) -> None:
    page = Page(2, text, (Word(0, len(text), (0, 0, 9, 9)),) if text else ())
    both = [Caption(n, (10.0, 20.0, 30.0, 40.0), f"Chart {n}.", "m") for n in (1, 2, 2)]
    said = captioned(page, both)
    assert said.text == (f"{text}\n\n" if text else "") + "[Caption by m: Chart 2.]\n\n[Caption by m: Chart 2.]"
    assert boxes_of(said, len(said.text) - 8, len(said.text) - 2) == ((10.0, 20.0, 30.0, 40.0),)
    assert printed(said) == page


@pytest.mark.anyio
async def test_a_picture_becomes_a_chunk_that_is_a_slice_of_its_page(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    store = FakeStore(stamp())
    outcome = await ingest(report(tmp_path / "a.pdf"), endpoint, store)
    assert outcome.document is not None
    assert outcome.captions == CaptionCost(
        1, 1, llm_calls=1, input_tokens=900, output_tokens=40, usd=Decimal("0.00094")
    )
    (page,) = await pages_of(store, outcome.document)
    figure = (await chunks(store, outcome.document))[-1]
    assert (figure.kind, figure.text, page.text[figure.start : figure.end]) == ("figure", BLOCK, BLOCK)
    assert figure.context.endswith("Picture on page 1, in the words of a model, not of the filing")
    assert boxes_of(page, figure.start + 30, figure.end) == ((86.0, 378.0, 314.0, 556.0),)
    assert outcome.document.chunks == figure.ordinal + 1
    assert [problem async for problem in problems(store)] == []


@pytest.mark.anyio
async def test_the_endpoint_is_shown_the_picture(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    path = report(tmp_path / "a.pdf")
    await ingest(path, endpoint, FakeStore(stamp()))
    (request,) = endpoint.requests
    text, image = request["messages"][-1]["content"]
    assert (request["model"], text) == ("see-1", {"type": "text", "text": "Describe this picture."})
    scheme, _, data = image["image_url"]["url"].partition(",")
    assert scheme == "data:image/png;base64"
    assert base64.b64decode(data) == pictures(Request(path, 1))[0].png


@pytest.mark.anyio
async def test_the_same_picture_is_paid_for_once(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    path = report(tmp_path / "a.pdf", 2)
    first = await ingest(path, endpoint, FakeStore(stamp()))
    again = await ingest(path, endpoint, FakeStore(stamp()))
    assert len(endpoint.requests) == 2
    assert first.captions is not None
    assert again.captions == CaptionCost(2, 2, cached=2)


@pytest.mark.anyio
async def test_failures_are_counted_and_fail_nothing(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(error(401), reply(SAID), error(400), reply(SAID), error(403), reply(SAID))
    store = FakeStore(stamp())
    outcome = await ingest(report(tmp_path / "a.pdf", 6), endpoint, store)
    assert outcome.outcome == "created"
    assert outcome.captions is not None
    assert (outcome.captions.pictures, outcome.captions.captions, outcome.captions.failed) == (6, 2, 3)
    assert len(endpoint.requests) == 5
    assert [c.page for c in await chunks(store, outcome.document) if c.kind == "figure"] == [2, 4]


@pytest.mark.anyio
async def test_a_budget_bounds_each_file(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    outcome = await ingest(report(tmp_path / "a.pdf", 5), endpoint, FakeStore(stamp()), caption_max_per_file=2)
    assert outcome.captions is not None
    assert (outcome.captions.captions, len(endpoint.requests)) == (2, 2)


@pytest.mark.anyio
async def test_it_is_off_where_no_model_is_named(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    store = FakeStore(stamp())
    outcome = await ingest(report(tmp_path / "a.pdf"), endpoint, store, caption_model=None)
    assert (outcome.captions, endpoint.requests) == (None, [])
    assert "[Caption" not in "".join(chunk.text for chunk in await chunks(store, outcome.document))


@pytest.mark.anyio
async def test_a_file_that_is_no_pdf_has_no_pictures(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    path = tmp_path / "a.htm"
    path.write_text("<html><body><p>Orrin Harbour runs harbours.</p></body></html>")
    outcome = await ingest(path, endpoint, FakeStore(stamp()))
    assert (outcome.outcome, outcome.captions, endpoint.requests) == ("created", CaptionCost(), [])


@pytest.mark.anyio
async def test_a_caption_that_is_gone_leaves_no_chunk_to_its_old_readers(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    path, store = report(tmp_path / "a.pdf"), FakeStore(stamp())
    await ingest(path, endpoint, store)
    outcome = await ingest(path, endpoint, store, acl=("board",), caption_model=None)
    left = await chunks(store, outcome.document)
    assert {(chunk.kind, chunk.meta.acl) for chunk in left} == {("table", ("board",))}
    assert [problem async for problem in problems(store)] == []
