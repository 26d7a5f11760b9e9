"""Reading PDFs: lines, boxes, damaged and protected files."""

from collections import Counter
from pathlib import Path

import pdfwords
import pikepdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from app.errors import DocumentError
from app.types import Page
from ingest.formats.filing_text import OutlineEntry
from ingest.formats.layout import Token, lay_out
from ingest.formats.page_text import clean, text_quality
from ingest.formats.pdf import read_pdf, words_by_character
from ingest.formats.scans import Ocr
from tests.conftest import DEV_DATA
from tests.ingest.typeset import text_at, typeset, write_pdf

ROWS = text_at(
    (350, 700, "2018"), (420, 700, "2017"),
    (72, 685, "Purchases of PP&E"), (350, 685, "\\(1,577\\)"), (420, 685, "\\(1,373"), (460, 685, "\\)"),
)  # fmt: skip


def one_page(path: Path, content: str, **how: int | tuple[int, int, int, int]) -> Page:
    return read_pdf(write_pdf(path / "a.pdf", [content], **how)).pages[0]  # type: ignore[arg-type]


def test_a_table_row_is_one_line(tmp_path: Path) -> None:
    assert one_page(tmp_path, ROWS).text == "2018 2017\nPurchases of PP&E (1,577) (1,373)"


def test_a_raised_mark_is_no_digit_of_its_number(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    for y, (text, mark) in enumerate([("78", "2"), ("Income", "3"), ("9", "a"), ("56", "(1)"), ("the 4", "th")]):
        line = canvas.beginText(72, 700 - 20 * y)
        line.setFont("Helvetica", 10)
        line.textOut(text)
        line.setFont("Helvetica", 6)
        line.setRise(4)
        line.textOut(mark)
        line.setRise(0)
        canvas.drawText(line)
    canvas.save()
    [page] = read_pdf(tmp_path / "a.pdf").pages
    assert page.text.split() == ["78²", "Income³", "9ᵃ", "56¹", "the", "4th"]


def test_words_slice_the_text_and_stand_where_they_are_drawn(tmp_path: Path) -> None:
    page = one_page(tmp_path, text_at((72, 700, "Net sales")))
    assert [page.text[w.start : w.end] for w in page.words] == ["Net", "sales"]
    x0, y0, _, y1 = page.words[0].box
    assert x0 == pytest.approx(72, abs=1.5)
    assert y0 < 792 - 700 < y1 + 1
    assert (page.width, page.height) == (612, 792)


def test_boxes_are_those_of_the_visible_page(tmp_path: Path) -> None:
    cropped = one_page(tmp_path, text_at((172, 700, "Net")), crop=(100, 100, 500, 750))
    assert (cropped.width, cropped.height) == (400, 650)
    assert cropped.words[0].box[0] == pytest.approx(72, abs=1.5)
    turned = one_page(tmp_path, text_at((72, 700, "Net")), rotate=90)
    assert (turned.width, turned.height) == (792, 612)
    assert turned.words[0].box[1] == pytest.approx(72, abs=1.5)


@pytest.mark.parametrize("how", [{}, {"crop": (20, 30, 580, 760)}, {"rotate": 90}, {"rotate": 180}, {"rotate": 270}])
def test_the_fallback_reads_the_same_words_at_the_same_places(tmp_path: Path, how: dict[str, int]) -> None:
    page = text_at((72, 700, "Net sales"), (350, 700, "1,577"))
    path = write_pdf(tmp_path / "a.pdf", [page], **how)  # type: ignore[arg-type]
    with pdfwords.open(path) as document:  # type: ignore[no-untyped-call]
        quick = document[0].get_text("words", rotated=True)
        slow, width, height = words_by_character(document._pdf[0])
        assert (width, height) == (document[0].rect[2], document[0].rect[3])
    assert sorted(w[4] for w in slow) == sorted(w[4] for w in quick) == ["1,577", "Net", "sales"]
    places = {word[4]: word[:4] for word in quick}
    assert all(word[:4] == pytest.approx(places[word[4]], abs=4) for word in slow)


def test_columns_of_prose_stay_in_the_order_in_which_they_are_drawn() -> None:
    left = [[Token(50, y, 250, y + 9, w) for w in f"left {y} of the first column".split()] for y in (100, 112, 124)]
    right = [[Token(300, y, 500, y + 9, w) for w in f"right {y} of the next one".split()] for y in (100, 112, 124)]
    assert [line.split()[0] for line in lay_out([*left, *right])[0].split("\n")] == ["left"] * 3 + ["right"] * 3


def test_a_table_drawn_column_by_column_is_read_by_rows() -> None:
    labels = [[Token(50, y, 150, y + 9, "Cash")] for y in (100, 112)]
    values = [[Token(x, y, x + 30, y + 9, f"{x}")] for x in (300, 400) for y in (100, 112)]
    assert lay_out([*labels, *values])[0] == "Cash 300 400\nCash 300 400"


def test_a_header_drawn_cell_by_cell_keeps_its_lines_in_order() -> None:
    cells = [(300, 100, "Three"), (300, 112, "June"), (400, 100, "Six"), (400, 112, "July"), (300, 90, "Ended")]
    text, _ = lay_out([[Token(x, y, x + 30, y + 9, word)] for x, y, word in cells])
    assert text == "Ended\nThree Six\nJune July"


def test_leaders_are_dropped() -> None:
    assert typeset("Goodwill ........ 250,881").text == "Goodwill 250,881"
    assert typeset("Goodwill........250,881").text == "Goodwill 250,881"
    assert typeset("Goodwill . . . . . 250,881").text == "Goodwill 250,881"


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 700), st.text("abcXYZ019,()%$", min_size=1, max_size=9)),
        max_size=40,
    )
)
def test_layout_loses_no_word(placed: list[tuple[int, int, str]]) -> None:
    text, words = lay_out([[Token(x, y, x + 5.0 * len(t), y + 9.0, t)] for x, y, t in placed])
    assert Counter("".join(text.split())) == Counter("".join(t for _, _, t in placed))
    assert " ".join(text[w.start : w.end] for w in words).split() == text.split()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("accep\ufffe", "accep-"),
        ("well\u00ad", "well-"),
        ("e\ufffeciency", "efficiency"),
        ("bene\ufffets", "benefits"),
        ("o\ufffece", "office"),
        ("di\ufffeerent", "different"),
        ("ﬁnancial", "financial"),
        ("Net\x00 sales\x02", "Net sales-"),
        ("a\ud800b", "ab"),
        ("\x02$12.5%", "-$12.5%"),
        ("\ufffe1,234", "-1,234"),
        ("\x0312a", "12a"),
        ("\uf0b7", "•"),
        ("\uf001", ""),
        ("plain", "plain"),
    ],
)
def test_clean(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@given(st.text(st.characters(codec=None), max_size=30))
def test_no_unprintable_character_survives_cleaning(raw: str) -> None:
    cleaned = clean(raw)
    assert not set(cleaned) & set("\x00\x01\x02\x1f\u00ad\ufffe\uffff\ufeff")
    cleaned.encode("utf-8")


def test_quality_tells_a_garbled_text_layer() -> None:
    assert text_quality("Net sales rose 5% to $1,577 million in fiscal 2018, driven by price.") > 0.95
    assert text_quality("ϲΒϴΒ Jm@§ §{q~}|~ \ufffd\ufffdq q\ufffdr#x%$k gh(j&*k 0\x1fx^~") < 0.5
    assert text_quality("") == 0.0


def test_document_information_and_outline_are_sanitised(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [ROWS, ROWS])
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        with pdf.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("Item 8.\x00 Statements", 1))
        pdf.save(path)
    read = read_pdf(path)
    assert read.info["Title"] == "Annual Report"
    assert read.outline == (OutlineEntry("Item 8. Statements", 2, 1),)


def test_the_printed_page_number_is_the_label(tmp_path: Path) -> None:
    assert one_page(tmp_path, text_at((72, 700, "Notes"), (300, 30, "F-35"))).label == "F-35"
    assert one_page(tmp_path, text_at((72, 700, "Notes"), (300, 30, "1"))).label is None


def test_an_empty_user_password_is_no_obstacle(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [ROWS], encryption=pikepdf.Encryption(owner="o", user="", R=6))
    assert "Purchases" in read_pdf(path).pages[0].text


def test_pages_without_text_are_kept(tmp_path: Path) -> None:
    assert [p.text for p in read_pdf(write_pdf(tmp_path / "a.pdf", ["", text_at((72, 700, "Net"))])).pages] == [
        "",
        "Net",
    ]


def test_a_cut_file_is_repaired_and_says_so(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [ROWS] * 3)
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"xref")].replace(b"startxref", b""))
    read = read_pdf(path)
    assert "Purchases" in read.pages[0].text


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"<html>not a filing</html>", "not_pdf"), (b"%PDF-1.7\nnothing", "damaged")],
)
def test_what_is_no_pdf_is_refused_with_a_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"bad\.pdf") as refused:
        read_pdf(path)
    assert refused.value.reason == reason


def test_protected_and_oversized_files_are_refused(tmp_path: Path) -> None:
    locked = write_pdf(tmp_path / "a.pdf", [ROWS], encryption=pikepdf.Encryption(owner="o", user="u", R=6))
    with pytest.raises(DocumentError, match="password") as refused:
        read_pdf(locked)
    assert refused.value.reason == "password"
    with pytest.raises(DocumentError, match="3 pages, more than the limit of 2") as refused:
        read_pdf(write_pdf(tmp_path / "b.pdf", [ROWS] * 3), max_pages=2)
    assert refused.value.reason == "too_large"


def test_odd_files_give_pages_or_a_reason() -> None:
    folder = DEV_DATA / "weird-pdfs"
    if not folder.is_dir():
        pytest.skip(f"needs the odd PDFs in {folder}")
    outcomes: Counter[str] = Counter()
    for path in sorted(folder.glob("*.pdf")):
        try:
            read = read_pdf(path, ocr=Ocr("off"))
        except DocumentError as error:
            outcomes[error.reason] += 1
        else:
            outcomes["repaired" if read.repaired else "read"] += 1
            assert not any(set("\x00\x02\u00ad\ufffe") & set(page.text) for page in read.pages)
    assert outcomes == {"read": 20, "repaired": 2, "damaged": 4, "password": 2, "empty": 1, "not_pdf": 1}
