"""HTML filings: what is shown and nothing else, one line a table row, figures in their columns, facts as metadata."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import DocumentError
from ingest.chunking import StructureChunker
from ingest.extraction.metadata import read_metadata
from ingest.formats.filing_text import FilingText
from ingest.formats.grid import LONGEST_PAGE, PAGE_CHARACTERS, Pages
from ingest.formats.html import HtmlReader, read_html
from ingest.formats.sections import sections
from tests.ingest.edgar import BREAK, FONTS, ORRIN, inline_xbrl, paragraph, statement


def read(path: Path, html: str | bytes, max_pages: int = 100) -> FilingText:
    path = path / "a.htm"
    path.write_bytes(html if isinstance(html, bytes) else html.encode())
    return read_html(path, max_pages=max_pages)


def shown(html: str) -> list[str]:
    """The lines of all pages, blank ones left out."""
    pages = Pages("a.htm", 1000)
    HtmlReader(pages).read(html.encode())
    pages.break_page()
    return [line for page in pages.pages for line in page.text.split("\n") if line]


def test_a_statement_of_today(tmp_path: Path) -> None:
    text = read(tmp_path, ORRIN)
    assert len(text.pages) == 4
    assert text.pages[3].text.split("\n\n")[3:] == [
        "September 30, 2023 September 24, 2022\n"
        "Net sales:\n"
        "Landing fees $298,085 $316,199\n"
        "Freight 85,200 78,129\n"
        "Other income/(expense), net (565) (334)\n"
        "Effective tax rate 14.7% 16.2%\n"
        "Dividends $ — $0.91",
        "Orrin Harbour, Inc. | 2023 Form 10-K | 28",
    ]
    assert text.pages[3].label == "28"
    assert text.tables is not None
    (table,) = text.tables[3]
    assert table.columns == ("September 30, 2023", "September 24, 2022")
    assert table.unit == "In millions, except per-share amounts"
    assert [row.values for row in table.rows] == [
        (),
        ("$298,085", "$316,199"),
        ("85,200", "78,129"),
        ("(565)", "(334)"),
        ("14.7%", "16.2%"),
        ("$ —", "$0.91"),
    ]


def test_cover_facts_are_the_metadata_and_hidden_ones_are_not_shown(tmp_path: Path) -> None:
    text = read(tmp_path, ORRIN)
    meta = read_metadata(text.pages, text.info, tmp_path / "a.htm", text.declared)
    assert (meta.title, meta.company, meta.cik, meta.ticker) == (
        "Orrin Harbour, Inc. 10-K FY2023",
        "Orrin Harbour, Inc.",
        "0000123456",
        "ORR",
    )
    assert (meta.form, meta.fiscal_year, meta.fiscal_period, meta.period_end) == ("10-K", 2023, "FY", "2023-09-30")
    assert not any("123456" in page.text or "false" in page.text for page in text.pages)


def test_sections_begin_where_the_contents_link_to(tmp_path: Path) -> None:
    text = read(tmp_path, ORRIN)
    found = [(s.title, s.page) for s in sections(text.pages, text.outline)]
    assert found == [
        ("Item 1. Business", 3),
        ("Item 1A. Risk Factors", 3),
        ("Item 2. Properties", 3),
        ("Item 3. Legal Proceedings", 3),
        ("Item 8. Financial Statements and Supplementary Data", 4),
        ("Item 8. Financial Statements and Supplementary Data > Consolidated Statements of Operations", 4),
    ]


def test_a_filing_of_the_2000s(tmp_path: Path) -> None:
    text = read(tmp_path, FONTS)
    meta = read_metadata(text.pages, text.info, tmp_path / "a.htm", text.declared)
    assert meta.title == "Tallow Mills Inc. 10-Q Q1 FY2004"
    assert "☒ QUARTERLY REPORT" in text.pages[0].text
    assert text.pages[1].text == (
        "CONDENSED CONSOLIDATED BALANCE SHEETS\n(in thousands)\n\n"
        "March 31, 2004 December 31, 2003\nCash and cash equivalents $1,204 $998\n"
        "Accumulated deficitᵃ (310) (402)\n\n"
        "Prices rose on March 1st, 2004²."
    )
    assert text.tables is not None
    assert [row.values for row in text.tables[1][0].rows] == [("$1,204", "$998"), ("(310)", "(402)")]


def test_pages_have_no_boxes_and_chunks_are_slices_of_them(tmp_path: Path) -> None:
    text = read(tmp_path, ORRIN)
    assert all(page.words == () and page.width == page.height == 0 for page in text.pages)
    meta = read_metadata(text.pages, text.info, tmp_path / "a.htm", text.declared)
    chunks = StructureChunker().chunks("orr", meta, text.pages, sections(text.pages, text.outline), text.tables)
    assert all(chunk.text == text.pages[chunk.page - 1].text[chunk.start : chunk.end] for chunk in chunks)
    table = next(chunk for chunk in chunks if chunk.kind == "table")
    assert "Landing fees $298,085 $316,199" in table.text
    assert table.columns == ("September 30, 2023", "September 24, 2022")


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("<p>Form 10&#8209;K</p>", ["Form 10-K"]),
        ("<p>a&nbsp;&amp; b&#146;s &mdash; c</p>", ["a & b’s — c"]),
        ("<p>a<script>var b = '<p>no</p>'</script><style>p {}</style> c</p>", ["a c"]),
        ('<p>a<span style="display: none">b</span><span style="DISPLAY:NONE">b</span> c<i hidden>b</i></p>', ["a c"]),
        ('<div style="display:none"><div>b</div><table><tr><td>b</td></tr></table></div>c', ["c"]),
        ("<p>so<b>l</b>id co\u00adop\u200bera\ufeffting of\ufb01ce</p>", ["solid cooperating office"]),
        ("<p>one<br>two</p><div>three<div>four</div>five</div>", ["one", "two", "three", "four", "five"]),
        ('<div style="display:inline">a</div> <div style="display:inline;">b</div>', ["a b"]),
        ('<font face="Wingdings">&#254;</font> yes <b style="font-family:Wingdings">o</b> no', ["☒ yes ☐ no"]),
        ("<p>Rev<sup>2</sup>, the 4<sup>th</sup> of 9<span style='position:relative;top:-3.5pt'>(b)</span></p>",
         ["Rev², the 4th of 9ᵇ"]),
        ('<p>9<span style="margin-top:-5pt">5</span></p>', ["95"]),
        ("<PRE>Net   $ 1\n<B>Cost</B>    2</PRE>", ["Net $ 1", "Cost 2"]),
        ("<p>kept <ix:exclude>too</ix:exclude> <ix:nonFraction name='A'>5</ix:nonFraction></p>", ["kept too 5"]),
    ],
)  # fmt: skip
def test_what_is_shown(html: str, lines: list[str]) -> None:
    assert shown(f"<html><body>{html}</body></html>") == lines


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ("<tr><td>A<td>$<td>(<td>5<td>)<td>%", ["A $(5)%"]),
        ("<tr><td>A</td><td>US$</td><td>5</td><td>n/a</td><td>$</td><td>—</td></tr>", ["A US$5 n/a $ —"]),
        ("<tr><td>A</td><td>1,234<sup>(1)</sup></td><td>5</td><td><sup>(2)</sup></td></tr>", ["A 1,234¹ 5²"]),
        ("<tr><td>A<br>b</td><td><p>5</p><p>6</p></td></tr>", ["A b 5 6"]),
        (
            "<tr><td rowspan=2>A</td><td>1</td></tr><tr><td>2</td></tr><tr><td>B</td><td>3</td></tr>",
            ["A 1", "2", "B 3"],
        ),
        ("<tr><td>$</td><td>text</td></tr>", ["$ text"]),
        ("<tr><td>A</td><td>( 99 )</td><td>$( 8 )%</td></tr>", ["A (99) $(8)%"]),
        ("<tr><td>A</td><td><table><tr><td>B</td><td>1</td></tr></table>C</td></tr>", ["A", "B 1", "C"]),
        (f"<tr><td>A</td><td>5</td></tr><tr><td><p>{'b ' * 200}</p><p>C</p></td></tr>", ["A 5", "b " * 199 + "b", "C"]),
        ("stray<tr>text<td>A</td></tr>", ["stray", "text A"]),
    ],
)
def test_rows(rows: str, lines: list[str]) -> None:
    assert shown(f"<html><table>{rows}</table></html>") == lines


def test_a_cell_that_spans_rows_keeps_the_columns_of_those_below(tmp_path: Path) -> None:
    text = read(
        tmp_path,
        "<table><tr><td rowspan=2>Sales of</td><td></td><td>2023</td><td>2022</td></tr>"
        "<tr><td>the east</td><td>10</td><td>20</td></tr>"
        "<tr><td colspan=2>the west</td><td></td><td>40</td></tr><tr><td colspan=2>all</td><td>10</td><td>60</td></tr>"
        "</table>",
    )
    assert text.tables is not None
    assert [row.values for row in text.tables[0][0].rows] == [("10", "20"), ("", "40"), ("10", "60")]


def test_a_long_heading_across_a_table_does_not_divide_it(tmp_path: Path) -> None:
    heading = (
        "Adjustments to reconcile net income to the cash provided by operating activities of the group as a whole:"
    )
    rows = statement(["2023", "2022"], [("Net income", ("$9", "$8")), (heading, ()), ("Taxes", ("1", "2"))])
    rows = rows.replace('<td colspan="3"><span style="color:#000000', '<td colspan="9"><span style="color:#000000', 1)
    text = read(tmp_path, rows)
    assert text.tables is not None
    (table,) = text.tables[0]
    assert [row.label for row in table.rows] == ["Net income", heading, "Taxes"]


@pytest.mark.parametrize(
    "mark",
    [
        BREAK,
        '<p style="page-break-before:always">',
        '<div style="page-break-after: always">&nbsp;</div>',
        '<div style="break-before:page">',
        "<PAGE>",
        '<table><tr style="page-break-after:always"><td></td></tr></table>',
    ],
)
def test_page_breaks(tmp_path: Path, mark: str) -> None:
    text = read(tmp_path, f"<html><p>one</p>{mark}<p>two</p>{mark}{mark}<p>three</p></html>")
    assert [page.text for page in text.pages] == ["one", "two", "three"]


def test_a_filing_without_page_breaks_is_cut_between_blocks(tmp_path: Path) -> None:
    blocks = [f"Paragraph {n} " + "word " * 100 for n in range(50)]
    text = read(tmp_path, "".join(map(paragraph, blocks)))
    assert [block for page in text.pages for block in page.text.split("\n\n")] == [" ".join(b.split()) for b in blocks]
    assert all(PAGE_CHARACTERS / 2 < len(page.text) <= PAGE_CHARACTERS for page in text.pages[:-1])


def test_a_table_longer_than_a_page_is_cut_between_rows(tmp_path: Path) -> None:
    rows = [(f"Item {n} of the list", (f"{n},000", f"{n},500")) for n in range(1, 400)]
    text = read(tmp_path, statement(["2023", "2022"], rows))
    assert len(text.pages) > 2
    assert text.tables is not None
    found = [(r.label, r.values) for tables in text.tables for table in tables for r in table.rows]
    assert found == rows


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<html><meta charset=utf-8><p>Company’s café – €5</p></html>".encode("cp1252"), "Company’s café – €5"),
        ("<html><meta charset=iso-8859-1><p>Company’s café</p></html>".encode(), "Company’s café"),
        ("<html><p>Company’s</p>".encode() + "<p>café</p></html>".encode("cp1252"), "Company’s\n\ncafé"),
        ("<html><p>Company’s café</p></html>".encode("utf-16"), "Company’s café"),
        (b"\xef\xbb\xbf<html><p>a\0b \x01c</p></html>", "a b c"),
        (b"<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><html><p>&b;</p></html>", "&b;"),
        (b"<!DOCTYPE html [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><html><p>&a;</p></html>", "&a;"),
    ],
)
def test_encodings_and_entities(tmp_path: Path, data: bytes, text: str) -> None:
    assert [page.text for page in read(tmp_path, data).pages] == [text]


def test_an_end_that_is_missing_is_said(tmp_path: Path) -> None:
    cut = read(tmp_path, ORRIN[: len(ORRIN) // 2])
    assert cut.repaired
    assert cut.pages[0].text.startswith("UNITED STATES")
    assert not read(tmp_path, ORRIN).repaired


@pytest.mark.parametrize("element", ["div", "span", "table><tr><td", "a href=#x", "sup", "font face=wingdings", "ix:a"])
def test_depth_costs_nothing(tmp_path: Path, element: str) -> None:
    text = read(tmp_path, f"<html><p>top</p>{f'<{element}>' * 20_000}<p>bottom</p>")
    assert "bottom" in text.pages[-1].text


def test_limits(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="more than 3 pages") as long:
        read(tmp_path, BREAK.join(f"<p>{n}</p>" for n in range(4)), max_pages=3)
    with pytest.raises(DocumentError, match="more than 3 pages") as wide:
        read(tmp_path, "<html><p>" + "x" * 5 * LONGEST_PAGE, max_pages=3)
    assert long.value.reason == wide.value.reason == "too_large"
    spans = read(tmp_path, "<table>" + "<tr><td colspan=99999999 rowspan=99999999>a</td><td>b</td></tr>" * 999)
    assert spans.pages[0].text.startswith("a b\n\na b")


@pytest.mark.parametrize(
    "html",
    ["<html></html>", "<html><body>&nbsp;<script>x</script></body></html>", '<p style="display:none">x</p>', "<p>"],
)
def test_nothing_to_see(tmp_path: Path, html: str) -> None:
    with pytest.raises(DocumentError, match="shows no text") as caught:
        read(tmp_path, html)
    assert caught.value.reason == "no_text"


def test_a_page_that_is_no_filing_has_unknown_metadata(tmp_path: Path) -> None:
    text = read(tmp_path, "<html><title>Tide tables</title><body><h1>Tides</h1><p>High at noon.</p></body></html>")
    meta = read_metadata(text.pages, text.info, tmp_path / "tides.htm", text.declared)
    assert (meta.title, meta.company, meta.form, meta.fiscal_year) == ("tides", None, None, None)
    assert text.info == {"Title": "Tide tables"}


def test_an_amendment_is_named_in_the_title(tmp_path: Path) -> None:
    facts = {
        "EntityRegistrantName": "Acme Co",
        "DocumentType": "10-K/A",
        "DocumentFiscalYearFocus": "2022",
        "DocumentFiscalPeriodFocus": "FY",
    }
    text = read(tmp_path, inline_xbrl(facts, paragraph("Amendment No. 1")))
    meta = read_metadata(text.pages, text.info, tmp_path / "a.htm", text.declared)
    assert (meta.title, meta.form) == ("Acme Co 10-K/A FY2022", "10-K")


_words = st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=4).map(" ".join)
_inline = st.sampled_from(["b", "span", "font", "ix:nonnumeric", "i"])
_block = st.sampled_from(["p", "div", "h2", "li", "center", "table><tr><td", "blockquote"])
_html = st.recursive(
    _words,
    lambda inner: st.one_of(
        st.tuples(_block, st.lists(inner, max_size=4)).map(
            lambda t: f"<{t[0]}>{' '.join(t[1])}</{'></'.join(reversed(t[0].split('><')))}>"
        ),
        st.tuples(_inline, inner).map(lambda t: f"<{t[0]}>{t[1]}</{t[0]}>"),
        st.lists(inner, max_size=3).map("<br>".join),
        inner.map(lambda text: f"{BREAK}{text}"),
    ),
    max_leaves=25,
)


@given(_html)
def test_no_visible_word_is_lost_or_moved(html: str) -> None:
    assert " ".join(shown(html)).split() == re.sub(r"<[^>]*>", " ", html).split()


_figure = st.integers(-9_999_999, 9_999_999).map(lambda n: f"({-n:,})" if n < 0 else f"{n:,}")
_cell = st.one_of(st.just(""), _figure, _figure.filter(lambda f: f[0] != "(").map(lambda f: f"${f}"))


@settings(deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda columns: st.lists(
            st.lists(_cell, min_size=columns, max_size=columns).filter(any), min_size=2, max_size=15
        )
    )
)
def test_every_row_is_one_line_and_every_figure_stands_in_its_column(rows: Sequence[Sequence[str]]) -> None:
    years = [f"Year {2030 - n}" for n in range(len(rows[0]))]
    labels = [f"Line item {'abcdefghijklmno'[n]}" for n in range(len(rows))]
    html = statement(years, list(zip(labels, rows, strict=True)))
    pages = Pages("a.htm", 10)
    HtmlReader(pages).read(html.encode())
    pages.break_page()
    lines = [" ".join(filter(None, [label, *row])) for label, row in zip(labels, rows, strict=True)]
    assert pages.pages[0].text.split("\n") == [" ".join(years), *lines]
    used = [column for column in range(len(years)) if any(row[column] for row in rows)]
    for table in pages.tables[0]:
        assert table.columns == tuple(years[column] for column in used)
        assert [row.values for row in table.rows] == [tuple(row[column] for column in used) for row in rows]


_signed = st.one_of(_figure, _figure.filter(lambda f: f[0] != "(").map(lambda f: f"${f}"), st.just("14.7%"))


def split(value: str) -> str:
    """Its cells, with every mark in one of its own and none in the place of marks that it lacks."""
    return "".join(f"<td>{part}</td>" for part in re.findall(r"[$]|[(]?[\d,.]+|[)%]", value))


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda columns: st.lists(
            st.tuples(st.lists(_signed, min_size=columns, max_size=columns), st.booleans()), min_size=2, max_size=12
        )
    ),
    st.booleans(),
)
def test_marks_in_cells_of_their_own_shift_no_column(rows: Sequence[tuple[Sequence[str], bool]], days: bool) -> None:
    heads = [f"December 31, {2030 - n}" if days else str(2030 - n) for n in range(len(rows[0][0]))]
    html = "".join(f"<td>{head}</td>" for head in ("", *heads))
    for index, (row, apart) in enumerate(rows):
        cells = "".join(split(value) if apart else f"<td>{value}</td>" for value in row)
        html += f"</tr><tr><td>Line {'abcdefghijklmno'[index]}</td>{cells}"
    pages = Pages("a.htm", 10)
    HtmlReader(pages).read(f"<table><tr>{html}</tr></table>".encode())
    pages.break_page()
    for table in pages.tables[0]:
        assert table.columns == tuple(heads)
        assert [row.values for row in table.rows] == [tuple(row) for row, _ in rows]
