"""Pictures of pages: of the file that was ingested and no other, with what is quoted marked."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import AsyncClient, Response
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from ingest.cli import OK
from ingest.images import View, draw
from tests.ingest.filings import prose, write_pdf
from tests.ingest.test_crash import finish
from tests.intake.serving import ingested, serving

pytestmark = pytest.mark.anyio
WHITE, MARKED = (255, 255, 255), (255, 222, 89)


def picture(response: Response) -> Image.Image:
    assert (response.status_code, response.headers["content-type"]) == (200, "image/png"), response.text
    return Image.open(io.BytesIO(response.content)).convert("RGB")


@pytest.fixture(scope="module")
async def shown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[AsyncClient, str]]:
    """A service, and the path of the pages of a document of two."""
    folder = tmp_path_factory.mktemp("shown")
    content = write_pdf(folder / "a.pdf", prose("Ombrell"), prose("its rival")).read_bytes()
    async with serving(folder / "data") as client:
        job = await ingested(client, "annual.pdf", content)
        yield client, f"/documents/{job['document_id']}/pages"


async def test_boxes_are_marked_where_they_are_in_points(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    plain = picture(await client.get(f"{pages}/1.png", params={"dpi": 72}))
    marked = picture(await client.get(f"{pages}/1.png", params={"dpi": 72, "boxes": "300,500,340,520;400,600,410,610"}))
    larger = picture(await client.get(f"{pages}/1.png", params={"dpi": 144, "boxes": "300,500,340,520"}))
    assert plain.size == (596, 842), "A4, rounded up"
    assert plain.getpixel((320, 510)) == WHITE
    assert [marked.getpixel(at) for at in ((320, 510), (405, 605), (360, 510))] == [MARKED, MARKED, WHITE]
    assert [larger.getpixel(at) for at in ((640, 1020), (320, 510))] == [MARKED, WHITE]


async def test_a_quotes_words_are_marked_and_stay_legible(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    text = (await client.get(f"{pages}/1")).json()["text"]
    start = text.index("Ombrell sold 300")
    image = picture(await client.get(f"{pages}/1.png", params={"dpi": 72, "span": f"{start},{start + 16}"}))
    colours = {image.getpixel((x, y)) for y in range(842) for x in range(595)}
    rows = [y for y in range(842) if any(image.getpixel((x, y)) == MARKED for x in range(595))]
    assert MARKED in colours
    assert min(sum(colour) for colour in colours if isinstance(colour, tuple)) < 100, "black stays black"
    assert 100 < rows[0] <= rows[-1] < 160, "the third line alone"
    assert rows[-1] - rows[0] < 25


async def test_a_passage_is_marked_as_its_slice_of_the_page_is(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    asked = {"question": "Ombrell sold 300 units", "k": 10}
    found = (await client.post("/query/naive", json=asked)).json()["passages"]
    [passage] = [each for each in found if each["page"] == 1][:1]
    start = (await client.get(f"{pages}/1")).json()["text"].index(passage["text"])
    end = start + len(passage["text"])
    by_span = await client.get(f"{pages}/1.png", params={"dpi": 72, "span": f"{start},{end}"})
    by_id = await client.get(f"{pages}/1.png", params={"dpi": 72, "chunk_id": passage["chunk_id"]})
    plain = await client.get(f"{pages}/1.png", params={"dpi": 72})
    assert by_id.content == by_span.content != plain.content
    for page, chunk_id in ((2, passage["chunk_id"]), (1, "none"), (1, "0" * 32)):
        assert (await client.get(f"{pages}/{page}.png", params={"chunk_id": chunk_id})).status_code == 404


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"boxes": "1,2,3"}, "query.boxes"),
        ({"boxes": "1,2,3,nan"}, "query.boxes"),
        ({"boxes": ";".join(["1,2,3,4"] * 201)}, "at most 200"),
        ({"span": "1"}, "query.span"),
        ({"span": "5,1"}, "query.span"),
        ({"span": "-5,10"}, "query.span"),
        ({"dpi": 1200}, "query.dpi"),
        ({"dpi": 1}, "query.dpi"),
    ],
)
async def test_bounds(shown: tuple[AsyncClient, str], query: dict[str, str], says: str) -> None:
    client, pages = shown
    refused = await client.get(f"{pages}/1.png", params=query)
    assert (refused.status_code, refused.json()["error_code"]) == (422, "invalid_input")
    assert says in refused.json()["detail"]


async def test_boxes_beyond_the_page_mark_nothing(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    plain = await client.get(f"{pages}/2.png", params={"dpi": 72})
    odd = await client.get(f"{pages}/2.png", params={"dpi": 72, "boxes": "9e9,9e9,9e9,9e9;-5,-5,-3,-3;40,40,20,20"})
    assert odd.content == plain.content


async def test_no_such_page(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    assert [(await client.get(f"{pages}/{n}.png")).status_code for n in ("3", "0", "x")] == [404, 422, 422]


async def test_a_picture_that_the_client_has_is_not_drawn_again(shown: tuple[AsyncClient, str]) -> None:
    client, pages = shown
    first = await client.get(f"{pages}/1.png")
    again = await client.get(f"{pages}/1.png", headers={"if-none-match": first.headers["etag"]})
    other = await client.get(f"{pages}/1.png?boxes=1,1,9,9", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"


async def test_html_has_no_pictures(data: Path) -> None:
    async with serving(data) as client:
        job = await ingested(client, "a.htm", b"<html><body><p>Sales were $1 million.</p></body></html>")
        refused = await client.get(f"/documents/{job['document_id']}/pages/1.png")
    assert (refused.status_code, refused.json()["error_code"]) == (404, "not_found")
    assert "HTML" in refused.json()["detail"]


async def test_a_file_ingested_from_this_machine_is_shown_while_it_is_the_same(data: Path, tmp_path: Path) -> None:
    file = write_pdf(tmp_path / "annual report.pdf", prose("Ombrell"))
    assert await asyncio.to_thread(finish, data, file) == OK
    async with serving(data) as client:
        [document] = (await client.get("/documents")).json()["documents"]
        path = f"/documents/{document['document_id']}/pages/1.png"
        assert picture(await client.get(path)).width > 100
        write_pdf(file, prose("something else"))
        changed = await client.get(path)
        file.unlink()
        gone = await client.get(path)
    assert (changed.status_code, changed.json()["error_code"]) == (409, "conflict")
    assert (gone.status_code, gone.json()["error_code"]) == (404, "not_found")
    assert "is gone" in gone.json()["detail"]


def test_a_poster_is_drawn_smaller(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "poster.pdf"), pagesize=(14_400, 14_400))
    canvas.drawString(72, 72, "large")
    canvas.save()
    image = Image.open(io.BytesIO(draw(View(tmp_path / "poster.pdf", 1, (), 300))))
    assert 4800 <= image.width <= 4900
