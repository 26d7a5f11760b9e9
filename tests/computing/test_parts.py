"""The amount of a segment or product line that a question names, and its share, with every number cited."""

from collections.abc import Sequence

import pytest

from app.architectures.agentic import Agentic
from app.computing.parts import asked_part
from app.tools import Ports, Tools
from app.types import Answer, Chunk, ChunkVectors, Document, DocumentMeta, Page, Question
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder

pytestmark = pytest.mark.anyio


def filing(form: str, period: str, end: str) -> Document:
    name = f"orrin-{form.lower()}-{end}"
    meta = DocumentMeta(
        name, f"{name}.pdf", company="Orrin", form=form, fiscal_year=2022, fiscal_period=period, period_end=end
    )
    return Document(name, "0" * 64, meta, 3, 3)


ANNUAL = filing("10-K", "FY", "2022-06-30")
THIRD = filing("10-Q", "Q3", "2022-03-31")
YEARS = ("June 30, 2022", "June 30, 2021")
QUARTERS = ("Three Months Ended March 31, 2022", "Three Months Ended March 31, 2021")
SEGMENTS = """\
Revenue:
Modern Valve Systems 600 500
Pumps (1) 250 260
Service 150 140
Total 1,000 900
Operating income:
Modern Valve Systems 80 70
Pumps 30 40
Service 10 5
Total 120 115"""
GROUPS = """\
North
Net sales 70 60
Operating expenses 50 45
South
Net sales 30 20
Operating expenses 25 15
Consolidated
Net sales 100 80
Operating expenses 75 60"""
TOTALS = """\
Revenue (in millions)
Harbours 280 260
Other Towing 20 10
Total Towing Business Group 300 270
Rentals 600 500
Total Company 900 770"""
PAGES = (
    (ANNUAL, "Note 9. Segments", SEGMENTS, YEARS),
    (ANNUAL, "Percentages", "Percentage of total revenue 16% 15%", YEARS),
    (ANNUAL, "Note 12. Disaggregation", TOTALS, YEARS),
    (ANNUAL, "Note 13. Harbours", "Mooring 90 9", ("2022 Net sales", "2022 Operating income")),
    (THIRD, "Note 4. Segment information", GROUPS, QUARTERS),
)


@pytest.mark.parametrize(
    ("question", "filings", "part"),
    [
        ("What was the revenue of Orrin's Pumps segment in 2022?", (ANNUAL,), ("revenue", "Pumps", False)),
        (
            "How much of Orrin's total revenue was attributed to its Valve Systems segment in 2022?",
            (ANNUAL,),
            ("revenue", "Valve Systems", False),
        ),
        (
            "What percentage of Orrin's total revenue did the Service segment contribute in 2022?",
            (ANNUAL,),
            ("revenue", "Service", True),
        ),
        (
            "What was Orrin's operating income from pumps, a segment, in 2022?",
            (ANNUAL,),
            ("operating income", "pumps", False),
        ),
    ],
)
def test_what_is_named(question: str, filings: Sequence[Document], part: tuple[str, str, bool]) -> None:
    plan = asked_part(question, ("Orrin",), filings)
    assert plan is not None
    assert (plan.line, plan.name, plan.share) == part


@pytest.mark.parametrize(
    "question",
    [
        "What was Orrin's revenue in 2022?",  # of no part
        "How did the revenue of Orrin's Pumps segment change in 2022?",
        "Why was the revenue of Orrin's Pumps segment low in 2022?",
        "What were revenue and operating income of Orrin's Pumps segment in 2022?",
        "What was the revenue of Orrin's Pumps segment in 2012?",
        "What was the revenue from the old brass pumps with leaking valves and rings in 2022?",
    ],
)
def test_nothing_to_look_for(question: str) -> None:
    assert asked_part(question, ("Orrin",), (ANNUAL,)) is None


def test_an_annual_report_has_no_quarters_amount() -> None:
    question = "What was the revenue of Orrin's Pumps segment in Q2 2022?"
    assert asked_part(question, ("Orrin",), (ANNUAL,)) is None


async def ask(question: str) -> Answer:
    store = FakeStore(STAMP)
    for number, (document, section, text, columns) in enumerate(PAGES, start=1):
        head = f"{' '.join(columns)}, in millions\n"
        chunk = Chunk(
            f"c{number}", document.id, number, number, len(head), len(head + text), text, section, "table", section,
            document.meta, columns, "in millions",
        )  # fmt: skip
        [dense], [sparse] = await LetterEmbedder().passages([text]), WordEncoder().passages([text])
        await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        await store.put_pages(document, [Page(number, head + text)])
        await store.put_document(document)
    tools = Tools(Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator()))
    return await Agentic().answer(Question(question, k=4), tools)


async def test_the_part_is_the_row_of_the_line_asked_for() -> None:
    answer = await ask("What was the revenue of Orrin's Pumps segment in 2022?")
    assert answer.text == "Revenue: Pumps: 250 million [1], for June 30, 2022 [1]."
    assert [citation.verified for citation in answer.citations] == [True, True]
    answer = await ask("What was the operating income of Orrin's Pumps segment in 2022?")
    assert answer.text == "Operating income: Pumps: 30 million [1], for June 30, 2022 [1]."


async def test_a_part_may_be_named_in_part_but_not_by_a_word_of_many() -> None:
    answer = await ask("How much of Orrin's total revenue was attributed to its Valve Systems segment in 2022?")
    assert answer.text == "Revenue: Modern Valve Systems: 600 million [1], for June 30, 2022 [1]."
    answer = await ask("How much of Orrin's total revenue was attributed to its Modern segment in 2022?")
    assert not answer.text.startswith("Revenue: Modern Valve Systems")


async def test_a_share_is_computed_from_the_part_and_the_whole() -> None:
    answer = await ask("What percentage of Orrin's total revenue did the Service segment contribute in 2022?")
    assert answer.text.splitlines() == [
        "Revenue: Service: 150 million [1], for June 30, 2022 [1].",
        "Revenue: Total: 1,000 million [1], for June 30, 2022 [1].",
        "Service to revenue, 2022: 150 / 1,000 = 15.0%",
    ]
    assert [made.verified for made in answer.calculations] == [True]


async def test_a_total_of_a_part_is_the_part_and_no_whole() -> None:
    answer = await ask("What share of Orrin's revenue came from its Towing segment in 2022?")
    assert answer.text.splitlines() == [
        "Total Towing Business Group: 300 million [1], for June 30, 2022 [1].",
        "Total Company: 900 million [1], for June 30, 2022 [1].",
        "Towing to revenue, 2022: 300 / 900 = 33.3%",
    ]


async def test_a_column_may_name_the_line() -> None:
    answer = await ask("What was the operating income of Orrin's Mooring segment in 2022?")
    assert answer.text == "Mooring: 9 million [1], for 2022 Operating income [1]."
    answer = await ask("What was the revenue of Orrin's Mooring segment in 2022?")
    assert answer.text == "Mooring: 90 million [1], for 2022 Net sales [1]."


async def test_rows_may_stand_under_the_parts_names() -> None:
    answer = await ask("What share of Orrin's net sales did the South region account for in Q1 2022?")
    assert answer.text.splitlines() == [
        "South: Net sales: 30 million [1], for Three Months Ended March 31, 2022 [1].",
        "Consolidated: Net sales: 100 million [1], for Three Months Ended March 31, 2022 [1].",
        "South to revenue, 2022-03-31: 30 / 100 = 30.0%",
    ]
