"""Pages whose text is a picture: read whichever way they lie, left alone where there is nothing to read."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.errors import DocumentError
from app.types import Box, Page
from ingest import parsing
from ingest.chunking import StructureChunker
from ingest.formats import scans
from ingest.formats.filing_text import FilingText
from ingest.formats.ocr import INSTALL, Command, OcrFailed, Read, find_engine
from ingest.formats.page_text import text_quality
from ingest.formats.pdf import read_pdf
from ingest.formats.scans import Ocr
from ingest.formats.tables import tables
from ingest.parsing import Job, parse
from ingest.sources import hash_file
from tests.ingest.filings import prose, statement, write_pdf
from tests.ingest.scanned import pictures, scan, write_garbled, write_scan

PAGE = f"{statement('Ombrell')}\n\n{prose('Ombrell', 20)}"
VALUES = [("11,100", "11,150"), ("12,200", "12,250"), ("13,300", "13,350")]
OFF, FORCE = Ocr("off"), Ocr("force")


def digital(folder: Path, *texts: str) -> Path:
    return write_pdf(folder / "a.pdf", *(texts or (PAGE,)))


def strings(page: Page) -> list[str]:
    return [page.text[word.start : word.end] for word in page.words]


def centre(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def progress_of(path: Path) -> tuple[FilingText, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    return read_pdf(path, ocr=Ocr("auto", lambda done, of: told.append((done, of)))), told


def test_a_scan_reads_like_the_page_it_is_of(tmp_path: Path) -> None:
    typeset = read_pdf(digital(tmp_path)).pages[0]
    read, told = progress_of(scan(tmp_path / "a.pdf"))
    page = read.pages[0]
    assert told == [(0, 1), (1, 1)]
    assert (page.ocr, typeset.ocr) == (True, False)
    assert page.text.split() == typeset.text.split()
    assert strings(page) == strings(typeset)
    for ours, theirs in zip(page.words, typeset.words, strict=True):
        assert centre(ours.box) == pytest.approx(centre(theirs.box), abs=6)
    [table], [same] = tables(page), tables(typeset)
    assert [(row.label, row.values) for row in table.rows] == [(row.label, row.values) for row in same.rows]
    assert [row.values for row in table.rows] == VALUES
    assert (table.columns, table.unit) == (("2023", "2022"), "in millions")


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_that_lay_sideways_is_read_upright_and_its_words_are_where_it_shows_them(
    tmp_path: Path, turn: int
) -> None:
    typeset = read_pdf(digital(tmp_path)).pages[0]
    read = read_pdf(scan(tmp_path / "a.pdf", turn=turn))
    upright, shown = read.pages[0], read.displayed[1]
    assert upright.text.split() == shown.text.split() == typeset.text.split()
    assert len(tables(upright)[0].rows) == 3
    width, height = typeset.width, typeset.height
    assert (shown.width, shown.height) == pytest.approx((width, height) if turn == 180 else (height, width), abs=0.4)
    for word, there in zip(typeset.words, shown.words, strict=True):
        x0, y0, x1, y1 = word.box
        expected = {
            90: (y0, width - x1, y1, width - x0),
            180: (width - x1, height - y1, width - x0, height - y0),
            270: (height - y1, x0, height - y0, x1),
        }[turn]
        assert centre(there.box) == pytest.approx(centre(expected), abs=6)


@pytest.mark.parametrize("skew", [-3.0, 2.0])
def test_a_skewed_page_keeps_its_lines_and_its_words_slant_with_it(tmp_path: Path, skew: float) -> None:
    typeset = read_pdf(digital(tmp_path)).pages[0]
    read = read_pdf(scan(tmp_path / "a.pdf", skew=skew))
    page, shown = read.pages[0], read.displayed[1]
    assert [line for line in page.text.split("\n") if line] == [line for line in typeset.text.split("\n") if line]
    assert [row.values for row in tables(page)[0].rows] == [
        ("11,100", "11,150"),
        ("12,200", "12,250"),
        ("13,300", "13,350"),
    ]
    angle = -np.radians(skew)
    for word, there in zip(typeset.words, shown.words, strict=True):
        x, y = centre(word.box)
        dx, dy = x - typeset.width / 2, y - typeset.height / 2
        turned = dx * np.cos(angle) - dy * np.sin(angle), dx * np.sin(angle) + dy * np.cos(angle)
        expected = typeset.width / 2 + turned[0], typeset.height / 2 + turned[1]
        assert centre(there.box) == pytest.approx(expected, abs=6)


def test_in_a_mixed_file_only_the_pictures_are_read(tmp_path: Path) -> None:
    first, second = pictures(digital(tmp_path, PAGE, prose("Its rival", 6)))
    both = write_scan(tmp_path / "b.pdf", [first, Image.new("L", first.size, 255), second])
    read, told = progress_of(both)
    assert [page.ocr for page in read.pages] == [True, False, True]
    assert [bool(page.text) for page in read.pages] == [True, False, True]
    assert told[-1] == (2, 2)
    assert [page.ocr for page in progress_of(digital(tmp_path, PAGE, ""))[0].pages] == [False, False]


def test_a_header_over_a_scan_is_kept_and_nothing_is_read_twice(tmp_path: Path) -> None:
    def header(canvas: object) -> None:
        canvas.drawString(72, 770, "Exhibit 99.1 filed under seal")  # type: ignore[attr-defined]

    path = write_scan(tmp_path / "b.pdf", pictures(digital(tmp_path)), header)
    assert read_pdf(path, ocr=OFF).pages[0].text == "Exhibit 99.1 filed under seal"
    page = read_pdf(path).pages[0]
    assert page.text.split("\n")[0] == "Exhibit 99.1 filed under seal"
    assert page.text.split()[5:] == read_pdf(tmp_path / "a.pdf").pages[0].text.split()


def test_a_scan_whose_words_are_in_the_file_is_not_read_again(tmp_path: Path) -> None:
    def layer(canvas: object) -> None:
        text = canvas.beginText(72, 720)  # type: ignore[attr-defined]
        text.setTextRenderMode(3)
        text.setLeading(14)
        text.textLines(prose("Ombrell", 40))
        canvas.drawText(text)  # type: ignore[attr-defined]

    path = write_scan(tmp_path / "b.pdf", pictures(digital(tmp_path, prose("Ombrell", 40))), layer)
    read, told = progress_of(path)
    assert told == []
    assert read.pages[0].text.startswith("In the year under review Ombrell sold 100 units")


def test_a_blank_page_is_neither_read_nor_an_error(tmp_path: Path) -> None:
    specks = Image.new("L", (1700, 2200), 250)
    specks.putpixel((300, 300), 0)
    read, told = progress_of(write_scan(tmp_path / "b.pdf", [specks]))
    assert (read.pages[0].text, read.pages[0].ocr, read.unread, told) == ("", False, (), [])


def test_a_photograph_says_nothing(tmp_path: Path) -> None:
    noise = np.random.default_rng(7).normal(128, 50, (220, 170)).clip(0, 255).astype(np.uint8)
    photograph = Image.fromarray(noise).resize((1700, 2200), Image.Resampling.BICUBIC)
    read = read_pdf(write_scan(tmp_path / "b.pdf", [photograph]))
    assert (read.pages[0].text, read.pages[0].ocr) == ("", False)


def test_a_garbled_text_layer_is_read_from_what_it_shows(tmp_path: Path) -> None:
    lines = prose("Ombrell", 12).split("\n")
    path = write_garbled(tmp_path / "g.pdf", lines)
    garbled = read_pdf(path, ocr=OFF).pages[0]
    assert "Ombrell" not in garbled.text
    assert text_quality(garbled.text) < 0.5
    page = read_pdf(path).pages[0]
    assert page.ocr
    assert page.text.split() == " ".join(lines).split()


def test_a_mode_for_every_wish(tmp_path: Path) -> None:
    path = digital(tmp_path, prose("Ombrell"))
    assert read_pdf(scan(path), ocr=OFF).pages[0].text == ""
    forced, sound = read_pdf(path, ocr=FORCE).pages[0], read_pdf(path).pages[0]
    assert (forced.ocr, sound.ocr) == (True, False)
    assert forced.text.split() == sound.text.split()


def job(path: Path, ocr: Ocr = scans.AUTO) -> Job:
    sha256 = hash_file(path)
    return Job(
        path, sha256, "a-0", "a", "file:///a.pdf", "default", ("public",), StructureChunker(), 10, path.parent,
        ocr=ocr.mode,
    )  # fmt: skip


def test_what_is_stored_of_a_turned_page_is_where_the_file_shows_it(tmp_path: Path) -> None:
    parsed = parse(job(scan(digital(tmp_path, PAGE, prose("Its rival", 12)), turn=90)))
    [pages], [chunks] = [*parsed.pages()], [*parsed.chunks()]
    assert (parsed.document.ocr_pages, parsed.document.empty_pages) == ((1, 2), ())
    assert [(page.ocr, round(page.width), round(page.height)) for page in pages] == [(True, 842, 595)] * 2
    assert {chunk.kind for chunk in chunks} == {"text", "table"}
    assert all(pages[c.page - 1].text[c.start : c.end] == c.text for c in chunks)
    assert sorted(str(f.value) for f in parsed.figures()) == ["11100", "11150", "12200", "12250", "13300", "13350"]


def test_without_an_engine_the_reason_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scan(digital(tmp_path))
    with pytest.raises(DocumentError, match="unless OCR is off"):
        parse(job(path, OFF))
    monkeypatch.setattr(scans, "find_engine", lambda: None)
    monkeypatch.setattr(parsing, "is_installed", lambda: False)
    assert read_pdf(path).unread == (1,)
    with pytest.raises(DocumentError) as refused:
        parse(job(path))
    assert refused.value.reason == "no_text"
    assert str(refused.value) == f"no text in 1 page(s), which are pictures of text; to read them, install {INSTALL}"


class Broken:
    """An engine that never ends in time."""

    def turn(self, picture: Image.Image) -> tuple[int, float]:
        return 0, 0.0

    def words(self, picture: Image.Image, dpi: int) -> list[Read]:
        raise OcrFailed("not read within 60 s")


def test_a_picture_that_cannot_be_read_costs_its_page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "find_engine", Broken)
    path = write_scan(
        tmp_path / "b.pdf", pictures(digital(tmp_path)), lambda canvas: canvas.drawString(72, 770, "Seal")
    )
    read = read_pdf(path)
    assert (read.pages[0].text, read.pages[0].ocr, read.unread) == ("Seal", False, (1,))


TSV = """level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
4\t1\t1\t1\t1\t0\t10\t20\t90\t12\t-1\t
5\t1\t1\t1\t1\t1\t10\t20\t40\t12\t96.5\tNet
5\t1\t1\t1\t1\t2\t60\t20\t40\t12\t91\t"sales
5\t1\t1\t1\t2\t1\t10\t40\t40\t12\t90\t \n"""
ORIENTATION = "Page number: 0\nOrientation in degrees: 90\nRotate: 270\nOrientation confidence: 12.5\nScript: Latin\n"


def test_the_command_is_asked_as_it_wants_to_be(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text(TSV)
    (tmp_path / "osd.txt").write_text(ORIENTATION)
    command = tmp_path / "tesseract"
    command.write_text(
        f'#!/bin/sh\nhead -c 3 | grep -q P5 || exit 1\necho "$OMP_THREAD_LIMIT $*" >> {tmp_path}/asked\n'
        f'case "$*" in *osd) cat {tmp_path}/osd.txt;; *) cat {tmp_path}/words.tsv;; esac\n'
    )
    command.chmod(0o755)
    engine, picture = Command(str(command)), Image.new("L", (200, 100), 255)
    assert engine.turn(picture) == (90, 12.5)
    assert engine.words(picture, 150) == [
        Read(10, 20, 50, 32, "Net", ("1", "1", "1"), 96.5),
        Read(60, 20, 100, 32, '"sales', ("1", "1", "1"), 91.0),
    ]
    assert (tmp_path / "asked").read_text().splitlines() == [
        "1 stdin stdout --psm 0 -l osd",
        "1 stdin stdout --psm 3 --dpi 150 -l eng tsv",
    ]
    with pytest.raises(OcrFailed):
        Command("false").words(picture, 150)


def test_the_library_is_what_the_packages_bring() -> None:
    assert type(find_engine()).__name__ == "Library"
