"""Every strategy: exact slices in order, nothing lost, tables by rows; and what each is for."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvalidOptions
from app.types import Chunk, Page
from ingest.chunking import CHUNKERS, read_chunker
from ingest.formats.sections import sections
from ingest.formats.tables import tables
from tests.ingest.test_chunking import COLUMNS, HEADER, LINES, META, SENTENCE, missing, statement
from tests.ingest.typeset import typeset

SPECS = [*CHUNKERS, "structure:tables=parts", "structure:header=none", "fixed:overlap=0", "parent:parent=page"]
STRATEGY = st.sampled_from(SPECS)


def cut(spec: str, pages: Sequence[Page]) -> list[Chunk]:
    return read_chunker(spec).chunks("acme-1", META, pages, sections(pages))


def check(pages: Sequence[Page], chunks: Sequence[Chunk]) -> None:
    text = {page.number: page.text for page in pages}
    assert all(c.text == text[c.page][c.start : c.end] and c.text == c.text.strip() != "" for c in chunks)
    assert all(
        c.parent[0] <= c.start < c.end <= c.parent[1] <= len(text[c.page]) for c in chunks if c.parent is not None
    )
    assert all((a.page, a.start, a.end) < (b.page, b.start, b.end) for a, b in pairwise(chunks))
    assert [c.ordinal for c in chunks] == list(range(len(chunks)))
    assert len({c.id for c in chunks}) == len(chunks)
    assert missing(pages, chunks) == ""


@settings(deadline=None, max_examples=200)
@given(STRATEGY, st.lists(LINES, max_size=3), st.integers(20, 200))
def test_any_pages_are_cut_without_loss(spec: str, texts: list[list[str]], max_tokens: int) -> None:
    pages = [Page(n, "\n".join(lines)) for n, lines in enumerate(texts, start=1)]
    check(pages, cut(f"{spec}:max_tokens={max_tokens}", pages))


@settings(deadline=None)
@given(
    STRATEGY,
    st.lists(st.tuples(st.sampled_from(["", "Net sales", "Costs:", "2021"]), COLUMNS), min_size=1, max_size=40),
)
def test_any_table_is_cut_between_its_rows(spec: str, rows: list[tuple[str, list[str]]]) -> None:
    page = typeset("\n".join(f"{label:24}" + "".join(f"{c:>14}" for c in cells) for label, cells in rows) + "\nx")
    chunks = cut(spec, [page])
    check([page], chunks)
    edges = {edge for chunk in chunks for edge in (chunk.start, chunk.end)}
    assert not any(row.start < edge < row.end for t in tables(page) for row in t.rows for edge in edges)


@pytest.mark.parametrize("spec", SPECS)
def test_a_cut_table_repeats_its_header(spec: str) -> None:
    page = typeset(statement(40))
    first, *others = cut(f"{spec}:max_tokens=60", [page])
    assert first.text.startswith("Consolidated Balance Sheets")
    assert len(others) > 3
    assert all(c.context.endswith("Consolidated Balance Sheets | (in millions) | 2022 2021") for c in others)


@pytest.mark.parametrize(
    ("header", "context"),
    [("none", ""), ("document", HEADER), ("section", f"{HEADER} · Item 1. Business")],
)
def test_the_header_says_as_much_as_is_asked_for(header: str, context: str) -> None:
    page = Page(1, f"Item 1. Business\n\n{SENTENCE}".strip())
    (chunk,) = cut(f"structure:header={header}", [page])
    assert (chunk.context, chunk.section) == (context, "Item 1. Business")


def test_fixed_chunks_overlap_by_words() -> None:
    page = Page(1, " ".join(f"w{n:02}" for n in range(60)))  # two tokens each
    chunks = cut("fixed:max_tokens=40:overlap=9:header=none", [page])
    assert [(c.text[:3], c.text[-3:]) for c in chunks] == [
        ("w00", "w19"),
        ("w16", "w35"),
        ("w32", "w51"),
        ("w48", "w59"),
    ]


def test_a_sentence_is_found_and_its_neighbours_are_read() -> None:
    sentences = [
        f"In the year {word} the company sold anvils to the trade." for word in ("one", "two", "three", "four")
    ]
    page = Page(1, " ".join(sentences))
    chunks = cut("sentence:window=1", [page])
    assert [c.text for c in chunks] == sentences
    assert [page.text[slice(*c.parent)] for c in chunks if c.parent] == [
        " ".join(sentences[a:b]) for a, b in ((0, 2), (0, 3), (1, 4), (2, 4))
    ]


def test_children_share_the_sections_part_of_the_page() -> None:
    page = Page(1, f"Item 1. Business\n\n{SENTENCE * 9}\n\nItem 2. Properties\n\n{SENTENCE * 9}".strip())
    of_sections = {c.parent for c in cut("parent", [page])}
    cut_at = page.text.index("Item 2")
    assert of_sections == {(0, len(page.text[:cut_at].rstrip())), (cut_at, len(page.text))}
    assert {c.parent for c in cut("parent:parent=page", [page])} == {(0, len(page.text))}


def test_the_whole_of_a_cut_table_is_read() -> None:
    page = typeset(statement(30))
    parts = cut("structure:tables=whole", [page])
    assert len(parts) > 2
    (table,) = tables(page)
    assert {p.parent for p in parts} == {(page.text.index("Consolidated"), table.rows[-1].end)}
    (small,) = cut("structure:tables=whole", [typeset(statement(4))])
    assert small.parent is None


def test_cohesion_breaks_where_the_words_change() -> None:
    anvils = [
        f"Anvils {word} in the foundry, and anvils are sold to smiths." for word in ("cool", "rest", "lie", "stay")
    ]
    pensions = [f"Pension {word} accrue to retired staff under actuarial plans." for word in ("costs", "gains", "dues")]
    page = Page(1, " ".join([*anvils, *pensions]))
    assert [c.text for c in cut("cohesion:header=none", [page])] == [" ".join(anvils), " ".join(pensions)]


def test_names_hold_what_is_not_the_default() -> None:
    assert read_chunker("structure").name == "structure-3(max_tokens=180,count=estimate_tokens)"
    assert read_chunker("structure:header=none:max_tokens=90").name == (
        "structure-3(max_tokens=90,count=estimate_tokens,header=none)"
    )
    assert len({read_chunker(spec).name for spec in SPECS}) == len(SPECS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("words", "no chunker 'words'; there are structure, fixed, sentence, parent, cohesion"),
        ("structure:overlap=3", "no parameter 'overlap'; it has max_tokens, header, situate, tables"),
        ("structure:header=all", "one of none, document, section"),
        ("structure:max_tokens=5", "a whole number from 16 is wanted"),
        ("fixed:overlap=", "a whole number from 0 is wanted"),
    ],
)
def test_what_is_no_strategy_is_said(spec: str, message: str) -> None:
    with pytest.raises(InvalidOptions, match=message):
        read_chunker(spec)
