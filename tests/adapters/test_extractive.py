"""The generator that only quotes: what it picks, when it refuses, what it costs."""

import asyncio
import re
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.extractive import ExtractiveGenerator
from app.types import Chunk, ChunkKind, DocumentMeta, Generation, Hit, Prompt
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio

COLUMNS = ("Year ended December 31, 2022", "Year ended December 31, 2021")


def hit(text: str, rank: int, company: str = "Orrin, Inc.", kind: ChunkKind = "text") -> Hit:
    meta = DocumentMeta("t", "s", company, form="10-K", fiscal_year=2022, fiscal_period="FY", period_end="2022-12-31")
    columns = COLUMNS if kind == "table" else ()
    chunk = Chunk(f"c{rank}", f"d-{company}", rank, 1, 0, len(text), text, company, kind, "Item 8", meta, columns)
    return Hit(chunk, rank, 1.0)


PASSAGES = (
    hit("The board has nine members. They meet four times a year.", 1),
    hit("Net sales 1,577 1,460\nCost of sales (900) (850)\nNet income 210 190", 2, kind="table"),
    hit("Net sales rose by a tenth because prices rose. Wages rose as well.", 3),
)


async def ask(question: str, passages: tuple[Hit, ...] = PASSAGES, **changes: float) -> Generation:
    generator = ExtractiveGenerator(LetterEmbedder(), **changes)  # type: ignore[arg-type]
    return await generator.generate(Prompt("answer", (), question, passages))


@pytest.mark.parametrize(
    ("question", "begins"),
    [
        ("What were Orrin's net sales in 2021?", "Net sales: 1,460 [2],"),
        ("What was Orrin's net income in 2022?", "Net income: 210 [2],"),
        ("How many members does the board have?", "The board has nine members. [1]"),
        ("What was COGS in 2022?", "Cost of sales: (900) [2],"),
    ],
)
async def test_it_quotes_what_is_asked(question: str, begins: str) -> None:
    assert (await ask(question)).text.startswith(begins)


@pytest.mark.parametrize(
    ("question", "exact"),
    [
        ("What were Orrin's net sales in 2021?", True),
        ("Why did Orrin's net sales rise in 2022?", False),
        ("How many members does the board have?", False),
    ],
)
async def test_a_row_labelled_as_the_line_asked_for_is_exact(question: str, exact: bool) -> None:
    assert (await ask(question)).exact is exact


@pytest.mark.parametrize("question", ["2021年の売上高はいくらですか", "Каковы продажи в 2021 году?", "2021"])
async def test_of_a_question_without_a_word_it_knows_it_makes_nothing(question: str) -> None:
    told = hit("We had 12 mills in 2021.", 1)
    assert (await ask(question, (told,))).abstained == "not_supported"


async def test_a_line_named_is_its_own_row_of_the_statement_and_no_part_of_it() -> None:
    table = "Cost of revenue:\nProducts sold 600 500\nTotal cost of revenue 900 850\nOperating expenses 90 80"
    [statement] = [hit(table, 1, kind="table")]
    titled = replace(statement, chunk=replace(statement.chunk, section="Consolidated Statements of Income"))
    assert (await ask("What was COGS in 2022?", (titled,))).text.startswith("Total cost of revenue: 900")
    both = (await ask("How did operating expenses compare to COGS in 2022?", (titled,))).text
    assert [line.partition(" [")[0] for line in both.splitlines()] == [
        "Operating expenses: 90, 80",
        "Total cost of revenue: 900, 850",
    ]


async def test_each_question_of_two_is_answered() -> None:
    text = "\n\n".join(
        (
            "Open claims for leaking valves were 2,047 at the end of the year.",
            "Open claims for leaking valves may take years to settle in court.",
            "We keep a reserve against them, as every maker of valves does.",
            "The reserve was $51 million before insurance.",
        )
    )
    asked = "How many open claims for leaking valves were there, and how large was the reserve?"
    found = (await ask(asked, (hit(text, 1),))).text
    assert "2,047" in found
    assert "$51 million" in found
    assert "every maker" not in found


async def test_an_amount_goes_before_words_where_one_is_asked_for() -> None:
    text = "Spending on pumps is what we care about.\n\nSpending on pumps was $12 million."
    assert (await ask("How much was spending on pumps?", (hit(text, 1),))).text.startswith("Spending on pumps was $12")


async def test_a_breakdown_is_all_rows_of_its_table() -> None:
    table = "Pumps 70 60\nValves 20 30\nService 10 5\nOther 1 1\nTotal net sales 101 96"
    text = (await ask("What was the net sales breakdown in 2021?", (*PASSAGES, hit(table, 4, kind="table")))).text
    assert [line.partition(" [")[0] for line in text.splitlines()] == [
        "Pumps: 60",
        "Valves: 30",
        "Service: 5",
        "Other: 1",
        "Total net sales: 96",
    ]


def of_year(told: Hit, year: int) -> Hit:
    meta = replace(told.chunk.meta, fiscal_year=year, period_end=f"{year}-12-31")
    columns = tuple(f"Year ended December 31, {year - back}" for back in range(len(told.chunk.columns)))
    return replace(told, chunk=replace(told.chunk, meta=meta, columns=columns, document_id=f"d{year}"))


async def test_without_a_period_the_newest_filing_answers_though_an_older_one_is_ranked_before() -> None:
    older = of_year(hit("At the end of the year we employed 310 people.", 1), 2021)
    newer = of_year(hit("We employed 290 people at the end of the year, half of them at our mill.", 2), 2022)
    assert (await ask("How many people does Orrin employ?", (older, newer))).text.startswith("We employed 290 people")
    assert (await ask("How many people did Orrin employ in 2021?", (older, newer))).text.startswith("At the end")

    income = (
        of_year(hit("Net sales 1,577 1,460\nNet income 190 170", 1, kind="table"), 2021),
        of_year(hit("Net sales 1,702 1,577\nNet income 210 190", 2, kind="table"), 2022),
    )
    assert (await ask("What is Orrin's net income?", income)).text.startswith("Net income: 210 [2],")
    assert (await ask("What was Orrin's net income in 2021?", income)).text.startswith("Net income: 190 [")


async def test_what_an_older_filing_alone_says_is_still_told() -> None:
    older = of_year(hit("The mill in Brandt can press 40 tonnes an hour.", 1), 2021)
    newer = of_year(hit("Our directors meet four times a year.", 2), 2022)
    assert (await ask("How many tonnes can Orrin's mill press?", (older, newer))).text == (
        "The mill in Brandt can press 40 tonnes an hour. [1]"
    )


async def test_a_breakdown_without_a_period_is_the_newest_filings() -> None:
    rows = "Pumps 50 40\nValves 30 20\nTotal net sales 80 60"
    older = of_year(hit(rows, 1, kind="table"), 2021)
    newer = of_year(hit("Pumps 60 50\nValves 30 30\nTotal net sales 90 80", 2, kind="table"), 2022)
    text = (await ask("What are Orrin's net sales by product?", (older, newer))).text
    assert [line.partition(" [")[0] for line in text.splitlines()] == ["Pumps: 60", "Valves: 30", "Total net sales: 90"]


async def test_a_quarter_that_two_filings_may_be_for_is_answered_from_both() -> None:
    def of(end: str, fiscal: int, quarter: str, value: str, rank: int) -> Hit:
        made = hit(f"Net sales {value}", rank, kind="table")
        meta = replace(made.chunk.meta, form="10-Q", fiscal_year=fiscal, fiscal_period=quarter, period_end=end)
        day = f"{date.fromisoformat(end):%B} {date.fromisoformat(end).day}, {end[:4]}"
        columns = (f"Three months ended {day}",)
        section = "Statements of Income"
        return replace(
            made, chunk=replace(made.chunk, meta=meta, columns=columns, section=section, document_id=f"d{rank}")
        )

    passages = (of("2022-09-30", 2023, "Q1", "10", 1), of("2023-03-31", 2023, "Q3", "20", 2))
    text = (await ask("What were net sales in Q1 2023?", passages)).text
    assert sorted(line.partition(" [")[0] for line in text.splitlines()) == ["Net sales: 10", "Net sales: 20"]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What were Orrin's net sales in 2015?", "not_supported"),
        ("What did Zephyrine Lagoon earn?", "off_corpus"),
        ("What did Orrin earn in Zephyria in 2022?", "not_supported"),
        ("What were Orrin's and Zephyr's net sales?", "off_corpus"),
        ("xylophone jazz quiz", "not_supported"),
    ],
)
async def test_it_refuses_what_the_passages_do_not_say(question: str, reason: str) -> None:
    generation = await ask(question)
    assert (generation.text, generation.abstained) == ("", reason)


async def test_a_plan_for_a_later_year_is_the_newest_filings_though_it_does_not_name_the_year() -> None:
    plan = hit("We plan capital expenditures of about $45 million in the coming year.", 1)
    older = hit("We plan capital expenditures of about $30 million in the coming year.", 2)
    older = replace(older, chunk=replace(older.chunk, meta=replace(older.chunk.meta, fiscal_year=2021)))
    text = (await ask("What capital expenditures does Orrin plan for fiscal 2023?", (plan, older))).text
    assert text.startswith("We plan capital expenditures of about $45 million")
    assert "30 million" not in text
    assert (await ask("What were Orrin's capital expenditures in fiscal 2023?", (plan, older))).abstained


async def test_a_firm_that_signs_is_the_auditor() -> None:
    report = hit("We have audited the statements.\n\n/s/ Brandon Koll LLP\n\n/s/ Jane Doe", 1)
    assert (await ask("Who is the auditor of Orrin?", (report,))).text.startswith("/s/ Brandon Koll LLP [1]")


async def test_no_passages_and_empty_ones_are_refused() -> None:
    assert (await ask("anything?", ())).abstained == "not_supported"
    assert (await ask("anything?", (hit("", 1), hit("\n \n", 2)))).abstained == "not_supported"


async def test_two_companies_named_are_both_answered() -> None:
    passages = (
        hit("Net sales were 10 million.", 1, "Orrin, Inc."),
        hit("Net sales were 20 million.", 2, "Tessel Corp."),
    )
    text = (await ask("Which of Orrin and Tessel had higher net sales?", passages)).text
    assert set(text.splitlines()) == {"Net sales were 10 million. [1]", "Net sales were 20 million. [2]"}


async def test_it_costs_similarity_and_no_calls() -> None:
    generation = await ask("What were net sales?", shortlist=3)
    assert generation.ops == {"sparse": 6, "dense": 3}
    assert (generation.llm_calls, generation.input_tokens) == (0, 0)


async def test_the_stream_adds_up_to_the_answer() -> None:
    parts = [
        p async for p in ExtractiveGenerator(LetterEmbedder()).stream(Prompt("answer", (), "Net sales?", PASSAGES))
    ]
    assert isinstance(parts[-1], Generation)
    assert "".join(p for p in parts if isinstance(p, str)) == parts[-1].text


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=200), max_size=5), st.text(min_size=1, max_size=80))
async def test_any_text_gives_an_answer_of_its_own_words_or_a_refusal(texts: list[str], question: str) -> None:
    passages = tuple(hit(text, rank) for rank, text in enumerate(texts, start=1))
    generation = await ask(question, passages, least=0.0)
    markers = {int(n) for n in re.findall(r"\[(\d+)\]", generation.text)}
    assert markers <= set(range(1, len(texts) + 1))
    assert (generation.text == "") == (generation.abstained is not None)


async def test_scoring_many_passages_leaves_the_event_loop_free() -> None:
    long = "".join(f"Net sales of unit {n} rose to {n} million because prices of part {n} rose. " for n in range(60))
    passages = tuple(hit(f"{long} {rank}", rank) for rank in range(1, 41))
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    beating = asyncio.create_task(beat())
    await ask("What were net sales of unit 7?", passages)
    beating.cancel()
    assert beats > 5


CAUSES = hit(
    "\n\n".join(
        (
            "Pump sales are a measure that we follow closely.",
            "Pump sales may vary as a result of many factors.",
            "Pump sales rose in 2022, primarily due to a long drought.",
            "Wages rose in 2022, primarily due to a new contract.",
            "See Note 4 for a discussion of why pump sales changed.",
        )
    ),
    2,
)


async def test_a_cause_is_told_behind_the_row_and_nothing_that_is_none() -> None:
    table = hit("Pump sales 40 30\nWages 12 11", 1, kind="table")
    asked = "What was the main driver of the change in pump sales in 2022?"
    first, *rest = (await ask(asked, (table, CAUSES))).text.splitlines()
    assert first.startswith("Pump sales: 40")
    assert rest[0] == "Pump sales rose in 2022, primarily due to a long drought. [2]"
    assert not any("Wages" in line or "Note 4" in line for line in rest)


async def test_an_event_goes_before_its_accounting() -> None:
    text = "\n\n".join(
        (
            "The costs of acquisitions are expensed as they are incurred.",
            "In May 2022 we acquired Tern Foods for $30 million in cash.",
            "Refer to Note 3 for details of acquisitions.",
        )
    )
    found = (await ask("Did Orrin announce any acquisitions in 2022?", (hit(text, 1),))).text
    assert found.splitlines()[0] == "In May 2022 we acquired Tern Foods for $30 million in cash. [1]"
    assert "Note 3" not in found


async def test_purchases_of_property_are_no_acquisitions() -> None:
    table = hit("Payments for acquisition of property, plant and equipment (9) (8)", 1, kind="table")
    told = hit("In May 2022 we acquired Tern Foods for $30 million in cash.", 2)
    found = (await ask("Did Orrin report any acquisitions in 2022?", (table, told))).text
    assert found == "In May 2022 we acquired Tern Foods for $30 million in cash. [2]"


async def test_what_is_said_of_figures_follows_them() -> None:
    table = hit("Inventories 40 30\nTotal assets 90 80", 1, kind="table")
    text = "\n\n".join(
        (
            "We raised inventories of pumps by a third to supply a second warehouse.",
            "Our results depend on many things, and any one or more of these risks may harm us.",
        )
    )
    asked = "How do inventories in 2022 relate to the discussion of the supply of pumps?"
    assert (await ask(asked, (table, hit(text, 2)))).text.splitlines() == [
        "Inventories: 40 [1], for Year ended December 31, 2022 [1].",
        "We raised inventories of pumps by a third to supply a second warehouse. [2]",
    ]


async def test_a_reference_loses_to_what_it_refers_to() -> None:
    text = "Leaking valves: see the discussion of leaking valves in Note 4.\n\nLeaking valves stopped two mills."
    assert (await ask("What about leaking valves?", (hit(text, 1),))).text.startswith(
        "Leaking valves stopped two mills."
    )


async def test_the_cause_of_a_profit_is_told_of_what_makes_it_where_nothing_else_is() -> None:
    text = "\n\n".join(
        (
            "Net sales fell in 2022, primarily due to a strike at two mills.",
            "Our tax rate fell in 2022, primarily due to a new law.",
        )
    )
    table = hit("Net income 40 50\nIncome taxes 9 11", 1, kind="table")
    found = (await ask("Why did net income fall in 2022?", (table, hit(text, 2)))).text
    assert found == "Net sales fell in 2022, primarily due to a strike at two mills. [2]"


async def test_prose_is_whole_sentences_where_there_are_any() -> None:
    text = "RISKS OF LEAKING VALVES\n\nA leak may stop a mill for weeks."
    assert (
        await ask("What risks do leaking valves bring?", (hit(text, 1),))
    ).text == "A leak may stop a mill for weeks. [1]"
