"""Markers to citations: every quote an exact slice, no number unaccounted for, nothing invented."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evidence.citations import Cited, best_window, cite
from app.evidence.quotes import numbers
from app.tools import Tools
from app.types import Access, Box, Chunk, ChunkKind, Hit, Page, Word
from tests.fakes import META, fake_ports

pytestmark = pytest.mark.anyio

PROSE = "Acme at a glance. Net sales rose 8% to $1,577 million. The board has nine members."
TABLE = "(Millions) 2022 2021\nNet sales 1,577 1,460\nCost of sales (900) (850)"


def box(text: str, start: int, end: int) -> Box:
    """Ten points a character, twenty a line."""
    top = 20.0 * text[:start].count("\n")
    return (10.0 * start, top, 10.0 * end, top + 12.0)


def page_of(number: int, text: str) -> Page:
    words = (Word(m.start(), m.end(), box(text, m.start(), m.end())) for m in re.finditer(r"\S+", text))
    return Page(number, text, tuple(words))


def hit_on(page: Page, start: int, kind: ChunkKind = "text", rank: int = 1) -> Hit:
    section, context, end = "Item 7", "Acme Corp", len(page.text)
    chunk = Chunk(
        f"c{page.number}", "acme-1", rank, page.number, start, end, page.text[start:], context, kind, section, META
    )
    return Hit(chunk, rank, 1.0)


async def cited(text: str, *, pages: tuple[Page, ...] = (page_of(1, PROSE), page_of(2, TABLE))) -> Cited:
    hits = [hit_on(pages[0], 18), hit_on(pages[1], 0, "table", 2)]
    return await cite(text, hits, Tools(await fake_ports(pages={"acme-1": pages}), access=Access()))


async def test_a_marker_becomes_an_exact_slice_with_boxes() -> None:
    result = await cited("Net sales rose 8% to $1,577 million [1].")
    [citation] = result.citations
    assert citation.quote == "Net sales rose 8% to $1,577 million."
    assert PROSE[citation.span_start : citation.span_end] == citation.quote
    assert result.text[slice(*citation.answer_span)] == "Net sales rose 8% to $1,577 million"
    assert (citation.marker, citation.page, citation.section, citation.verified) == (1, 1, "Item 7", True)
    assert citation.boxes == ((180.0, 0.0, 540.0, 12.0),)


async def test_a_quote_grows_to_hold_all_numbers_of_its_sentence() -> None:
    [citation] = (await cited("In 2022 net sales were 1,577 (Millions) [2].")).citations
    assert citation.quote == "(Millions) 2022 2021\nNet sales 1,577 1,460"
    assert citation.verified
    assert len(citation.boxes) == 2


async def test_the_heading_above_a_row_counts_as_context_and_not_as_quote() -> None:
    page = page_of(1, "Revenue from outside customers:\nPumps 40 30\nValves 20 10\nMachines rented:\nPumps 4 3")
    hits = [hit_on(page, 0, "table")]
    made = await cite("Machines rented: Pumps: 4 [1].", hits, Tools(await fake_ports(pages={"acme-1": (page,)})))
    assert [(each.quote, each.verified) for each in made.citations] == [("Pumps 4 3", True)]
    made = await cite(
        "Revenue from outside customers: Pumps: 4 [1].", hits, Tools(await fake_ports(pages={"acme-1": (page,)}))
    )
    assert [each.verified for each in made.citations] == [False]


async def test_a_number_that_is_not_in_the_passage_is_not_verified() -> None:
    [citation] = (await cited("Net sales rose 9% to $1,577 million [1].")).citations
    assert not citation.verified


async def test_a_claim_without_support_is_not_verified() -> None:
    [citation] = (await cited("Litigation over asbestos continues in Ohio [1].")).citations
    assert citation.support < 0.5
    assert not citation.verified


async def test_unknown_markers_are_removed_and_said() -> None:
    result = await cited("Net sales rose [1, 7]. The board has nine members [0][99].")
    assert result.text == "Net sales rose [1]. The board has nine members."
    assert [c.marker for c in result.citations] == [1]
    assert len(result.notes) == 3


async def test_several_markers_and_sentences() -> None:
    result = await cited("Net sales rose 8% [1][2]. Cost of sales was 900 [2].")
    assert [(c.marker, result.text[slice(*c.answer_span)]) for c in result.citations] == [
        (1, "Net sales rose 8%"),
        (2, "Net sales rose 8%"),
        (2, "Cost of sales was 900"),
    ]
    assert result.citations[2].verified


async def test_a_page_that_does_not_hold_the_quote_verifies_nothing() -> None:
    changed: tuple[Page, ...] = (page_of(1, "something else altogether " * 5), page_of(2, TABLE))
    hits = [hit_on(page_of(1, PROSE), 18)]
    result = await cite("Net sales rose 8% [1].", hits, Tools(await fake_ports(pages={"acme-1": changed})))
    assert [(c.verified, c.boxes) for c in result.citations] == [(False, ())]


async def test_a_page_of_another_tenant_verifies_nothing() -> None:
    ports = await fake_ports(pages={"acme-1": (page_of(1, PROSE),)})
    result = await cite("Net sales rose 8% [1].", [hit_on(page_of(1, PROSE), 18)], Tools(ports, access=Access("other")))
    assert [c.verified for c in result.citations] == [False]


WORDS = st.sampled_from(
    [*"net sales rose fell 8% 1,577 1577 $900 million board (850) [1] [2] [3] [1,2] . , nine".split(), "\n2022"]
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=30).map(" ".join))
async def test_whatever_is_written_the_promises_hold(text: str) -> None:
    result = await cited(text)
    markers = {int(n) for n in re.findall(r"\[(\d+)\]", result.text)}
    assert markers <= {1, 2}
    assert {c.marker for c in result.citations} <= markers
    for citation in result.citations:
        stored = {1: PROSE, 2: TABLE}[citation.page]
        assert stored[citation.span_start : citation.span_end] == citation.quote
        assert citation.quote
        sentence = result.text[slice(*citation.answer_span)]
        if citation.verified:
            assert numbers(sentence) <= numbers(citation.quote)


def test_in_a_long_table_the_numbers_are_found_side_by_side() -> None:
    rows = "\n".join(f"Row {n} {n * 7} {n * 11}" for n in range(400))
    hit = hit_on(Page(1, rows), 0, "table")
    start, end = best_window("Row 200 was 1,400 and the next 2,211.", hit)
    assert rows[start:end] == "Row 200 1400 2200\nRow 201 1407 2211"
    start, end = best_window("Row 200 was 1,400 and the last 4,389.", hit)  # too far apart for one quote
    assert rows[start:end] == "Row 200 1400 2200"
