"""Chunks: exact slices, whole tables and sentences, nothing lost, in order, within limits."""

import uuid
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.types import Chunk, DocumentMeta, Page
from ingest.chunking import StructureChunker, estimate_tokens
from ingest.extraction.metadata import read_metadata
from ingest.formats.pdf import read_pdf
from ingest.formats.sections import Section, running_lines, sections
from ingest.formats.tables import tables
from tests.conftest import DEV_DATA
from tests.ingest.typeset import typeset

META = DocumentMeta(
    "Acme Corp 10-K FY2022", "a.pdf", company="Acme Corp", ticker="ACM", form="10-K", fiscal_year=2022,
    fiscal_period="FY", period_end="2022-12-31",
)  # fmt: skip
HEADER = "Acme Corp (ACM) · 10-K · fiscal year 2022 (FY2022) · period ended December 31, 2022"
SENTENCE = "We make anvils and sell them to the trade, at home and abroad. "


def cut(pages: Sequence[Page], found: Sequence[Section] = (), max_tokens: int = 180) -> list[Chunk]:
    return StructureChunker(max_tokens).chunks("acme-1", META, pages, found)


def missing(pages: Sequence[Page], chunks: Sequence[Chunk]) -> str:
    """What is in no chunk, of all pages, without white space and running lines."""
    left: list[str] = []
    for page, running in zip(pages, running_lines(pages), strict=True):
        covered = [(c.start, c.end) for c in chunks if c.page == page.number] + list(running)
        left += [c for i, c in enumerate(page.text) if not any(a <= i < b for a, b in covered)]
    return "".join("".join(left).split())


def check(pages: Sequence[Page], chunks: Sequence[Chunk]) -> None:
    text = {page.number: page.text for page in pages}
    assert all(c.text == text[c.page][c.start : c.end] and c.text == c.text.strip() != "" for c in chunks)
    places = [(c.page, c.start, c.end) for c in chunks]
    assert all(a[0] < b[0] or a[2] <= b[1] for a, b in pairwise(places))
    assert [c.ordinal for c in chunks] == list(range(len(chunks)))
    assert missing(pages, chunks) == ""


def statement(rows: int) -> str:
    lines = [f"{'':40}{'2022':>12}{'2021':>12}"]
    lines += [f"{f'Line item number {chr(97 + n % 26)}':40}{1000 + n:>12,}{2000 + n:>12,}" for n in range(rows)]
    return "                 Consolidated Balance Sheets\n                    (in millions)\n\n" + "\n".join(lines)


def test_context_names_document_and_section() -> None:
    page = Page(1, SENTENCE.strip())
    assert cut([page])[0].context == HEADER
    section = Section("Item 8. Financial Statements > Note 5. Debt", 1, 0)
    chunk = cut([page], [section])[0]
    assert chunk.context == f"{HEADER} · Item 8 > Note 5. Debt"
    assert chunk.section == section.title
    assert chunk.kind == "text"
    assert chunk.searchable == f"{chunk.context}\n{page.text}"


@pytest.mark.parametrize(
    ("meta", "context"),
    [
        (DocumentMeta("Notes", "a.pdf"), "Notes"),
        (
            DocumentMeta(
                "t", "s", company="Acme", form="10-Q", fiscal_year=2023, fiscal_period="Q3", period_end="2023-06-30"
            ),
            "Acme · 10-Q · third quarter of fiscal year 2023 (Q3 FY2023) · period ended June 30, 2023",
        ),
        (
            DocumentMeta("t", "s", company="Acme", form="8-K", fiscal_year=2023, period_end="2023-03-10"),
            "Acme · 8-K · March 10, 2023",
        ),
    ],
)
def test_context_says_only_what_is_known(meta: DocumentMeta, context: str) -> None:
    assert StructureChunker().chunks("d", meta, [Page(1, "x")], [])[0].context == context


def test_a_small_table_is_one_chunk_with_its_header() -> None:
    page = typeset(statement(4))
    (chunk,) = cut([page])
    assert (chunk.kind, chunk.text) == ("table", page.text)


def test_a_large_table_is_cut_between_rows_and_repeats_its_header() -> None:
    page = typeset(statement(30))
    chunks = cut([page])
    check([page], chunks)
    assert len(chunks) > 2
    assert chunks[0].text.startswith("Consolidated Balance Sheets\n(in millions)")
    for chunk in chunks[1:]:
        assert chunk.text.startswith("Line item number")
        assert chunk.context == f"{HEADER}\nConsolidated Balance Sheets | (in millions) | 2022 2021"


def test_a_table_that_goes_on_overleaf_repeats_its_header() -> None:
    pages = [typeset(statement(6), 1), typeset("\n".join(statement(20).split("\n")[-12:]), 2)]
    chunk = next(c for c in cut(pages) if c.page == 2)
    assert chunk.context.endswith("\nConsolidated Balance Sheets | (in millions) | 2022 2021")


def test_a_row_keeps_the_heading_it_stands_under() -> None:
    art = statement(2) + "\nLiabilities:\n" + "\n".join(statement(24).split("\n")[-22:])
    last = cut([typeset(art)])[-1]
    assert last.context.endswith("\nLiabilities:")


def test_chunks_do_not_cross_sections() -> None:
    text = f"Item 1. Business\n\n{SENTENCE}\n\nItem 2. Properties\n\n{SENTENCE}"
    pages = [Page(1, text)]
    chunks = cut(pages, sections(pages))
    assert [(c.section, c.text.partition("\n")[0]) for c in chunks] == [
        ("Item 1. Business", "Item 1. Business"),
        ("Item 2. Properties", "Item 2. Properties"),
    ]
    check(pages, chunks)


def test_headings_and_sections_of_a_line_join_what_follows() -> None:
    text = f"PART I\n\nItem 1. Business\n\n{SENTENCE}\n\nItem 6. [Reserved]\n\nItem 7. Discussion\n\n{SENTENCE}"
    pages = [Page(1, text)]
    chunks = cut(pages, sections(pages))
    assert [(c.section, c.text.partition("\n")[0]) for c in chunks] == [
        ("Item 1. Business", "PART I"),
        ("Item 7. Discussion", "Item 6. [Reserved]"),
    ]
    check(pages, chunks)


def test_a_section_goes_on_overleaf() -> None:
    pages = [Page(1, f"Item 1. Business\n\n{SENTENCE}"), Page(2, SENTENCE)]
    assert [c.section for c in cut(pages, sections(pages))] == ["Item 1. Business"] * 2


def test_prose_is_cut_at_sentences_and_a_heading_stays_with_its_text() -> None:
    text = "\n\n".join([SENTENCE * 8, "Competition", SENTENCE * 8]).replace(" \n", "\n").strip()
    chunks = cut([Page(1, text)])
    check([Page(1, text)], chunks)
    assert len(chunks) > 1
    assert all(c.text.endswith(".") for c in chunks)
    assert not any(c.text.endswith("Competition") for c in chunks)


def test_running_lines_are_left_out() -> None:
    names = ("Ann", "Bo", "Cy", "Di")
    pages = [
        Page(n, f"Table of Contents\n\n{name} makes\nanvils of {name}.\n{SENTENCE * 2}\nAll of {name}.\n\n{n}")
        for n, name in enumerate(names, 1)
    ]
    chunks = cut(pages)
    assert [c.text.partition(" ")[0] for c in chunks] == list(names)
    assert not any("Contents" in c.text for c in chunks)
    check(pages, chunks)


def test_ids_depend_on_document_chunker_and_position_alone() -> None:
    pages = [Page(1, SENTENCE * 10)]
    first, again, other = cut(pages), cut(pages), cut(pages, max_tokens=90)
    assert [c.id for c in first] == [c.id for c in again]
    assert not {c.id for c in first} & {c.id for c in other}
    assert all(uuid.UUID(c.id).version == 5 for c in first)
    assert StructureChunker().name == "structure-3(max_tokens=180,count=estimate_tokens)"


def test_pages_without_text_have_no_chunks() -> None:
    assert cut([]) == cut([Page(1, ""), Page(2, " \n ")]) == []


WORD = st.one_of(
    st.sampled_from("we sell anvils Competition risk. debt; Item revenue: of (the) 2022 Note 5.".split()),
    st.integers(0, 99_999).map(lambda n: f"{n:,}"),
    st.text("abcé漢.$%—( ", min_size=1, max_size=12).filter(str.strip),
    st.text("x7", min_size=60, max_size=400),
)
LINES = st.lists(st.one_of(st.just(""), st.lists(WORD, min_size=1, max_size=14).map(" ".join)), max_size=30)


@settings(deadline=None, max_examples=150)
@given(st.lists(LINES, max_size=4), st.integers(20, 200))
def test_any_pages_are_cut_without_loss(texts: list[list[str]], max_tokens: int) -> None:
    pages = [Page(n, "\n".join(lines)) for n, lines in enumerate(texts, start=1)]
    chunks = cut(pages, sections(pages), max_tokens=max_tokens)
    check(pages, chunks)
    assert all(estimate_tokens(c.text) <= max_tokens for c in chunks)


COLUMNS = st.lists(st.sampled_from(["", "12", "(3,456)", "$ 7", "—", "8.9%", "2022", "Total"]), min_size=1, max_size=4)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "Net sales", "Costs:", "2021"]), COLUMNS), min_size=1, max_size=40))
def test_any_typeset_table_is_cut_without_loss(rows: list[tuple[str, list[str]]]) -> None:
    art = "\n".join(f"{label:24}" + "".join(f"{cell:>14}" for cell in cells) for label, cells in rows)
    page = typeset(f"{art}\nx")
    check([page], cut([page]))
    found = tables(page)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(t.start <= t.header_end <= t.end and len(r.values) in (0, len(t.columns)) for t in found for r in t.rows)


@pytest.mark.slow
def test_development_filings() -> None:
    folder = DEV_DATA / "filings-dev" / "pdfs"
    if not folder.is_dir():
        pytest.skip(f"needs the development filings in {folder}")
    for path in sorted(folder.glob("*.pdf"), key=lambda p: p.stat().st_size)[:12]:
        pdf = read_pdf(path)
        chunks = StructureChunker().chunks(
            "d", read_metadata(pdf.pages, pdf.info, path), pdf.pages, sections(pdf.pages, pdf.outline)
        )
        check(pdf.pages, chunks)
        assert sum(c.kind == "table" for c in chunks) >= (len(chunks) > 100)
        assert all(estimate_tokens(c.context) <= 130 for c in chunks)
        assert any(c.section for c in chunks)
