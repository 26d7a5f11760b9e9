"""Numbers of a formula from the figures' table: one value of the statement itself, found again on its page, or none."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from app.adapters.figures_sqlite import SqliteFigures
from app.architectures.agentic import Agentic
from app.computing.formulas import Term
from app.computing.from_figures import operands_by_sql
from app.question.periods import Period
from app.tools import Tools
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Figure, Filter, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder, fake_ports

pytestmark = pytest.mark.anyio

META = DocumentMeta(
    "Acme 10-K 2022",
    "acme.pdf",
    company="Acme",
    form="10-K",
    fiscal_year=2022,
    fiscal_period="FY",
    period_end="2022-12-31",
)
ACME = Document("acme", "0" * 64, META, 2, 2)
SALES = "Net sales 120 100"
PPE = "Property and equipment, net of depreciation of $19 and $17 30 50"
OTHER = "Property and equipment 5 4"
YEARS = ("December 31, 2022", "December 31, 2021")
THEN, BEFORE = "2022-12-31", "2021-12-31"


def chunk(page: int, text: str, section: str) -> Chunk:
    return Chunk(f"c{page}", "acme", page, page, 0, len(text), text, "", "table", section, META, YEARS, "in millions")


CHUNKS = (chunk(1, SALES, "Statements of Income"), chunk(2, PPE, "Balance Sheets"), chunk(3, OTHER, "Note 4"))


def figure(page: int, printed: str, period_end: str, statement: str = "Balance Sheets", months: int = 0) -> Figure:
    """Its label is what stands before the row's values."""
    text = CHUNKS[page - 1].text
    start = text.rindex(printed)
    label = text.removesuffix(" 30 50").removesuffix(" 120 100").removesuffix(" 5 4")
    return Figure(
        "acme", page, f"c{page}", start, start + len(printed), label, statement, Decimal(printed), 6, "USD",
        period_end=period_end, period_months=months,
    )  # fmt: skip


INCOME = "Statements of Income"
FIGURES = (
    figure(1, "120", THEN, INCOME, 12),
    figure(1, "100", BEFORE, INCOME, 12),
    figure(2, "30", THEN),
    figure(2, "50", BEFORE),
)
NOW, EARLIER = Term("ppe", Period(2022)), Term("ppe", Period(2021))


async def tools(folder: Path, figures: Sequence[Figure], store: FakeStore | None = None) -> Tools:
    store = store or FakeStore(STAMP)
    vectors = await LetterEmbedder().passages([each.text for each in CHUNKS])
    sparse = WordEncoder().passages([each.text for each in CHUNKS])
    both = zip(vectors, sparse, strict=True)
    await store.put_chunks(CHUNKS, [ChunkVectors(dense, {"bm25": words}) for dense, words in both])
    await store.put_pages(ACME, [Page(each.page, each.text) for each in CHUNKS])
    await store.put_document(ACME)
    kept = SqliteFigures(folder / "figures.sqlite")
    await kept.put(ACME, figures)
    return Tools(replace(await fake_ports(generator=QuotingGenerator()), store=store, figures=kept))


async def test_a_row_whose_label_holds_numbers_is_read_and_quoted_whole(tmp_path: Path) -> None:
    hands = await tools(tmp_path, FIGURES)
    answer = await Agentic().answer(Question("What was the fixed asset turnover of Acme in FY2022?", k=4), hands)
    assert answer.text.splitlines()[-1] == "Fixed asset turnover, 2022: 120 / ((50 + 30) / 2) = 3.00"
    assert [made.verified for made in answer.calculations] == [True]
    assert [citation.verified for citation in answer.citations if citation.quote == PPE] == [True]


async def test_without_figures_the_other_row_is_taken_for_it(tmp_path: Path) -> None:
    """What the table of figures mends: a note's row has the label, but not the statement's amount."""
    hands = await tools(tmp_path, ())
    answer = await Agentic().answer(Question("What was the fixed asset turnover of Acme in FY2022?", k=4), hands)
    assert answer.text.splitlines()[-1] == "Fixed asset turnover, 2022: 120 / ((4 + 5) / 2) = 26.67"


async def test_values_by_fiscal_year(tmp_path: Path) -> None:
    found = await operands_by_sql((NOW, EARLIER), [ACME], Filter(), await tools(tmp_path, FIGURES))
    assert [(term.period.year, each.written, each.scale) for term, each in found.items()] == [
        (2022, "30", "millions"),
        (2021, "50", "millions"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "Note 4"},
        {"period_months": 12},
        {"period_end": "2022-09-30"},
        {"unit": "percent"},
        {"label": "Goodwill"},
        {"value": Decimal(31)},
        {"start": 62, "end": 64},
        {"chunk_id": "c1"},
        {"chunk_id": None},
        {"dimensions": "us-gaap:SegmentMember"},
    ],
)
async def test_what_is_not_provably_the_figure_is_left(tmp_path: Path, change: dict[str, object]) -> None:
    own = replace(figure(2, "30", THEN), **change)  # type: ignore[arg-type]
    assert await operands_by_sql((NOW,), [ACME], Filter(), await tools(tmp_path, [own])) == {}


async def test_two_values_of_one_line_are_none(tmp_path: Path) -> None:
    two = [figure(2, "30", THEN), figure(2, "50", THEN)]
    assert await operands_by_sql((NOW,), [ACME], Filter(), await tools(tmp_path, two)) == {}


async def test_fiscal_years_of_weeks_end_in_the_next_calendar_year(tmp_path: Path) -> None:
    """A year that ends on 1 January 2022 is fiscal 2021 where the one that ends on 31 December 2022 is fiscal 2022."""
    own = [figure(2, "50", "2022-01-01")]
    found = await operands_by_sql((EARLIER,), [ACME], Filter(), await tools(tmp_path, own))
    assert found[EARLIER].written == "50"


async def test_an_index_without_figures_has_none(tmp_path: Path) -> None:
    hands = Tools(replace((await tools(tmp_path, FIGURES)).ports, figures=None))
    assert await operands_by_sql((NOW,), [ACME], Filter(), hands) == {}
