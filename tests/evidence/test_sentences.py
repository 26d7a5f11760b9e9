"""Sentences against passages: markers found, claims dropped or flagged, spans that still fit."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evidence.citations import cite
from app.evidence.sentences import FLAG, attributed, carried, judged, spans
from app.tools import Tools
from app.types import Chunk, ChunkKind, DocumentMeta, Hit, Page, Unsupported
from tests.fakes import META, fake_ports

pytestmark = pytest.mark.anyio

TEXTS = (
    "Net sales rose 8% to $1,577 million. The board has nine members.",
    "The board has nine members. Wages rose in Ohio.",
    "Cost of sales 900 850",
)
PAGES = tuple(Page(n, text) for n, text in enumerate(TEXTS, start=1))


def hit(n: int, meta: DocumentMeta = META, unit: str | None = None) -> Hit:
    text = TEXTS[n - 1]
    kind: ChunkKind = "table" if n == 3 else "text"
    chunk = Chunk(f"c{n}", "acme-1", n, n, 0, len(text), text, "Acme Corp", kind, None, meta, (), unit)
    return Hit(chunk, n, 1.0)


HITS = (hit(1), hit(2), hit(3, unit="in millions"))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Sales rose [1]. Wages fell [2].", ["Sales rose [1].", "Wages fell [2]."]),
        ("Sales rose. [1] Wages fell. [2][3]", ["Sales rose. [1]", "Wages fell. [2][3]"]),
        ("- Sales rose [1]\n- Wages fell", ["- Sales rose [1]", "- Wages fell"]),
        ("", []),
        ("[1]", []),
    ],
)
def test_a_sentence_keeps_its_markers(text: str, sentences: list[str]) -> None:
    assert [text[a:b].strip() for a, b in spans(text)] == sentences


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Wages rose in Ohio.", "Wages rose in Ohio. [2]"),
        ("Wages rose in Ohio [1].", "Wages rose in Ohio. [2]"),
        ("Wages rose in Ohio [9].", "Wages rose in Ohio. [2]"),
        ("Wages rose in Ohio [2].", "Wages rose in Ohio [2]."),
        ("The board has nine members.", "The board has nine members. [1]"),
        ("Cost of sales was $900 million.", "Cost of sales was $900 million. [3]"),
        ("Cost of sales was $900 billion.", "Cost of sales was $900 billion."),
        ("Wages fell in Peru by 4%.", "Wages fell in Peru by 4%."),
        ("Yes.", "Yes."),
    ],
)
def test_a_marker_is_set_where_one_passage_alone_carries_the_sentence(text: str, marked: str) -> None:
    found, notes = attributed(text, HITS)
    assert found == marked
    assert bool(notes) == (found != text)


def test_the_filings_own_year_counts_as_said_in_it() -> None:
    assert carried("In 2022 net sales rose 8% to $1,577 million", hit(1))
    assert not carried("In 2019 net sales rose 8% to $1,577 million", hit(1))


PARTS = st.sampled_from(
    ["Net sales rose 8% [1].", "Profit was 99 million [1].", "Wages rose in Ohio. [2]", "No marker.", "\n", "Cost [3]"]
)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=6).map(" ".join), st.sampled_from(get_args(Unsupported)))
async def test_every_citation_still_stands_at_its_sentence(text: str, policy: Unsupported) -> None:
    tools = Tools(await fake_ports(pages={"acme-1": PAGES}))
    before = await cite(text, HITS, tools)
    after = judged(before, HITS, policy)
    said = {before.text[slice(*c.answer_span)] for c in before.citations}
    assert {after.text[slice(*c.answer_span)] for c in after.citations} <= said
    assert ("Profit" in after.text) == ("Profit" in before.text and policy != "drop")
    assert (FLAG in after.text) <= (policy == "flag")


async def test_a_passage_of_another_company_than_the_sentence_names_carries_nothing() -> None:
    """Unless it speaks of that company itself, as a supplier does of its customer."""

    def told(n: int, company: str, text: str) -> Hit:
        meta = replace(META, title=f"{company} 10-K", company=company)
        return Hit(Chunk(f"c{n}", company, n, n, 0, len(text), text, "", "text", None, meta), n, 1.0)

    hits = (
        told(1, "Orrin Foods, Inc.", "Net sales rose to $1,577 million."),
        told(2, "Tern Mills Corporation", "Net sales rose to $912 million."),
        told(3, "Alder Rail Company", "Freight for Orrin Foods rose to $40 million."),
    )
    for text, stands in (
        ("Orrin's net sales rose to $1,577 million [1].", True),
        ("Orrin Foods' net sales rose to $912 million [2].", False),
        ("Net sales rose to $912 million [2].", True),
        ("Freight for Orrin Foods rose to $40 million [3].", True),
    ):
        marked, _ = attributed(text, hits)
        assert marked == text
        cited = await cite(text, hits, Tools(await fake_ports()))
        assert bool(judged(cited, hits, "drop").text) == stands, text


async def test_a_passage_of_another_period_than_the_sentence_names_carries_nothing() -> None:
    def told(n: int, text: str, form: str, quarter: str, end: str) -> Hit:
        meta = replace(META, form=form, fiscal_year=2024, fiscal_period=quarter, period_end=end)
        return Hit(Chunk(f"c{n}", f"d{n}", n, n, 0, len(text), text, "", "text", None, meta), n, 1.0)

    hits = (
        told(1, "Net income was $96 million.", "10-K", "FY", "2024-12-31"),
        told(2, "Net income was $23 million.", "10-Q", "Q2", "2024-06-30"),
    )
    for text, stands in (
        ("Net income in 2024 was $96 million [1].", True),
        ("Net income in the second quarter of 2024 was $96 million [1].", False),
        ("Net income in the second quarter of 2024 was $23 million [2].", True),
    ):
        cited = await cite(text, hits, Tools(await fake_ports()))
        assert bool(judged(cited, hits, "drop").text) == stands, text
