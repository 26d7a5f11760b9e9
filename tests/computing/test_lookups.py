"""Lines of the statements that a question names, quoted from the statements for the periods it means."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from app.architectures.agentic import Agentic
from app.computing.lookups import asked_lookup
from app.tools import Ports, Tools
from app.types import Answer, Chunk, ChunkVectors, Document, DocumentMeta, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder

pytestmark = pytest.mark.anyio


def filing(form: str, year: int, period: str, end: str) -> Document:
    name = f"orrin-{form.lower()}-{end}"
    meta = DocumentMeta(
        name, f"{name}.pdf", company="Orrin", form=form, fiscal_year=year, fiscal_period=period, period_end=end
    )
    return Document(name, "0" * 64, meta, 3, 3)


ANNUAL = filing("10-K", 2022, "FY", "2022-06-30")
SECOND = filing("10-Q", 2022, "Q2", "2021-12-31")
FIRST = filing("10-Q", 2023, "Q1", "2022-09-30")
THIRD = filing("10-Q", 2023, "Q3", "2023-03-31")


@pytest.mark.parametrize(
    ("question", "filings", "terms", "whole", "scale"),
    [
        ("What was Orrin's FY2022 revenue in USD billions?", (ANNUAL,), ["revenue 2022"], True, "billions"),
        (
            "Using the income statement, how did Orrin's operating expenses compare to its revenue in FY2022?",
            (ANNUAL,),
            ["operating expenses 2022", "revenue 2022"],
            True,
            "",
        ),
        ("What was Orrin's total revenue in the latest 10-Q?", (THIRD,), ["revenue 2023-03-31"], True, ""),
        ("Which company had the larger inventory in 2022, Orrin?", (ANNUAL,), ["inventory 2022"], True, ""),
        ("Compare inventory of Orrin with that of in 2022", (ANNUAL,), ["inventory 2022"], True, ""),
        ("What were the drivers of Orrin's revenue in FY2022?", (ANNUAL,), ["revenue 2022"], False, ""),
        ("What does Orrin's inventory suggest about demand in FY2022?", (ANNUAL,), ["inventory 2022"], False, ""),
        (
            "What was Orrin's revenue in Q1 2023?",  # the fiscal first quarter and the calendar's
            (ANNUAL, FIRST, THIRD),
            ["revenue 2022-09-30", "revenue 2023-03-31"],
            True,
            "",
        ),
        (
            "What was Orrin's revenue in Q2 2022?",  # which the fiscal year ends with
            (ANNUAL, SECOND),
            ["revenue 2021-12-31"],
            True,
            "",
        ),
        (
            "What was Orrin's revenue in 2023?",  # no annual filing for it
            (ANNUAL, FIRST, THIRD),
            ["revenue 2022-09-30", "revenue 2023-03-31"],
            True,
            "",
        ),
    ],
)
def test_lines_and_periods(
    question: str, filings: Sequence[Document], terms: list[str], whole: bool, scale: str
) -> None:
    plan = asked_lookup(question, ("Orrin",), filings)
    assert plan is not None
    assert [f"{term.line} {term.period}" for term in plan.terms] == terms
    assert (plan.whole, plan.scale) == (whole, scale)


@pytest.mark.parametrize(
    ("question", "filings"),
    [
        ("What are the risks to Orrin's revenue in FY2022?", (ANNUAL,)),
        ("What was Orrin's revenue from tools in FY2022?", (ANNUAL,)),
        ("What was Orrin's revenue?", (ANNUAL, THIRD)),
        ("What was Orrin's revenue in FY2015?", (ANNUAL,)),
        ("Who audits Orrin?", (ANNUAL,)),
        ("What was Orrin's revenue in FY2022?", ()),
    ],
)
def test_nothing_to_look_up(question: str, filings: Sequence[Document]) -> None:
    plan = asked_lookup(question, ("Orrin",), filings)
    assert plan is None or plan.filings == ()


PageOf: TypeAlias = tuple[Document, str, str, tuple[str, ...]]
"""Of a filing: its section, a table's text and columns."""
QUARTERS = (
    "Three months ended March 31, 2023",
    "Three months ended March 31, 2022",
    "Nine months ended March 31, 2023",
)
PAGES: tuple[PageOf, ...] = (
    (ANNUAL, "Statements of Income", "Total revenue 9,700 8,100", ("June 30, 2022", "June 30, 2021")),
    (ANNUAL, "Note 4", "Total revenue 12 11", ("June 30, 2022", "June 30, 2021")),
    (THIRD, "Statements of Income", "Total revenue 2,500 2,200 7,300", QUARTERS),
    (THIRD, "Note 2", "Total revenue 1 1 1", QUARTERS),
)


async def ask(question: str) -> tuple[str, list[bool]]:
    answer = await answered(question)
    return answer.text, [citation.verified for citation in answer.citations]


async def answered(question: str, pages: Sequence[PageOf] = PAGES) -> Answer:
    store = FakeStore(STAMP)
    for number, (document, section, text, columns) in enumerate(pages, start=1):
        head = f"{' '.join(columns)}, in millions\n"
        chunk = Chunk(
            f"c{number}", document.id, number, number, len(head), len(head + text), text, "", "table", section,
            document.meta, columns, "in millions",
        )  # fmt: skip
        [dense], [sparse] = await LetterEmbedder().passages([text]), WordEncoder().passages([text])
        await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        await store.put_pages(document, [Page(number, head + text)])
        await store.put_document(document)
    tools = Tools(Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator()))
    return await Agentic().answer(Question(question, k=4), tools)


async def test_the_statements_row_is_quoted_and_restated_in_the_scale_asked_for() -> None:
    text, verified = await ask("What was Orrin's FY2022 revenue in USD billions?")
    assert text == (
        "Total revenue: 9,700 million [1], for June 30, 2022 [1].\nRevenue, 2022, in billions: 9,700 / 1000 = 9.70"
    )
    assert verified == [True, True]


async def test_a_quarter_is_no_year() -> None:
    for question in (
        "By what percentage did Orrin's revenue grow from 2022 to 2023?",
        "By what percentage did Orrin's revenue grow in 2023?",
    ):
        answer = await answered(question)
        assert answer.calculations == ()
        assert "%" not in answer.text


async def test_a_change_shows_the_same_span_of_the_year_before() -> None:
    text, _ = await ask("How did Orrin's revenue change in the latest 10-Q?")
    assert text == (
        "Total revenue: 2,500 million, 2,200 million [1], for Three months ended March 31, 2023; "
        "Three months ended March 31, 2022 [1]."
    )


async def test_what_else_is_asked_is_answered_behind_the_line() -> None:
    text, _ = await ask("What did Orrin's revenue in the latest 10-Q pay for?")
    first, *rest = text.splitlines()
    assert first == "Total revenue: 2,500 million [1], for Three months ended March 31, 2023 [1]."
    assert rest


async def test_the_question_is_searched_as_well_and_what_it_finds_stands_behind() -> None:
    found = (await answered("What was Orrin's FY2022 revenue?")).passages
    assert [hit.chunk.id for hit in found][:1] == ["c1"]
    assert {hit.chunk.document_id for hit in found} == {ANNUAL.id}
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
    assert len(found) == 2


async def test_what_a_ratio_lacks_does_not_keep_its_other_line_from_being_looked_up() -> None:
    text, _ = await ask("What percentage of Orrin's revenue was R&D in FY2022?")
    assert text.splitlines()[0] == "Total revenue: 9,700 million [1], for June 30, 2022 [1]."


@pytest.mark.parametrize(
    "question",
    [
        "Which company had the larger long-term debt in 2022, Orrin or Pell?",
        "Compare long-term debt of Orrin and Pell in 2022",
        "How does the long-term debt of Orrin compare with that of Pell in 2022?",
    ],
)
async def test_each_part_of_a_comparison_looks_its_line_up(question: str) -> None:
    pell = replace(ANNUAL, id="pell", meta=replace(ANNUAL.meta, title="pell", company="Pell"))
    days = ("June 30, 2022", "June 30, 2021")
    debts = "Current portion of long-term debt 135 120\nLong-term debt, less current portion"
    sheet = "Consolidated Balance Sheets"
    pages = ((ANNUAL, sheet, f"{debts} 910 800", days), (pell, sheet, f"{debts} 2,535 2,390", days))
    assert (await answered(question, pages)).text == (
        "Orrin:\nLong-term debt, less current portion: 910 million [1], for June 30, 2022 [1].\n"
        "Pell:\nLong-term debt, less current portion: 2,535 million [2], for June 30, 2022 [2]."
    )


async def test_debt_of_no_kind_is_the_long_term_debt_where_there_is_no_total() -> None:
    pages = (
        (
            ANNUAL,
            "Balance Sheets",
            "Long-term debt 910 800\nTotal liabilities 990 880",
            ("June 30, 2022", "June 30, 2021"),
        ),
    )
    assert (await answered("How much debt did Orrin carry in FY2022?", pages)).text == (
        "Long-term debt: 910 million [1], for June 30, 2022 [1]."
    )


async def test_debt_of_no_kind_is_all_of_it() -> None:
    pages = (
        (
            ANNUAL,
            "Consolidated Balance Sheets",
            "Current portion of long-term debt 135 120\nLong-term debt, less current portion 910 800",
            ("June 30, 2022", "June 30, 2021"),
        ),
    )
    assert (await answered("How much debt did Orrin carry in FY2022?", pages)).text == (
        "Current portion of long-term debt: 135 million [1], for June 30, 2022 [1].\n"
        "Long-term debt, less current portion: 910 million [1], for June 30, 2022 [1].\n"
        "Total debt, 2022, in millions: 135 + 910 = 1,045"
    )
