"""What a question asks about, which units of passages may say it, and how they are worded."""

import pytest

from app.evidence.statements import (
    HOW_MANY,
    columns_of,
    core_question,
    counts,
    further,
    is_whole,
    like_columns,
    match,
    shown_columns,
    statements,
    subject_of,
    tells_of,
)
from app.question.glossary import expanded
from app.question.periods import Period
from app.types import Chunk, ChunkKind, DocumentMeta, Hit

META = DocumentMeta(
    "Orrin 10-K FY2022",
    "orrin.pdf",
    "Orrin, Inc.",
    form="10-K",
    fiscal_year=2022,
    fiscal_period="FY",
    period_end="2022-12-31",
)
COLUMNS = ("Year ended December 31, 2022", "Year ended December 31, 2021")
TABLE = "Net sales $ 1,577 $ 1,460\nEarnings per share:\nBasic 1.21 1.10\nDiluted 1.20 1.09\nDecember 31, 2022 2021"


def hit(
    text: str,
    kind: ChunkKind = "text",
    columns: tuple[str, ...] = (),
    meta: DocumentMeta = META,
    context: str = "Orrin",
) -> Hit:
    unit = "in millions" if columns else None
    return Hit(Chunk("c", "d", 0, 1, 0, len(text), text, context, kind, "Item 8", meta, columns, unit), 1, 1.0)


def test_rows_know_their_group_and_datelines_are_none() -> None:
    found = statements([hit(TABLE, "table", COLUMNS)])
    assert [(s.row.label, s.group) for s in found if s.row] == [
        ("Net sales", ""),
        ("Basic", "Earnings per share:"),
        ("Diluted", "Earnings per share:"),
    ]


def test_a_short_capitalised_line_of_a_table_heads_the_rows_below() -> None:
    found = statements(
        [hit("North America\nNet sales 5 4\nTotal 5 4\nOther 1 1\ncash provided by\nOperations 2 2", "table")]
    )
    assert [(s.row.label, s.group) for s in found if s.row] == [
        ("Net sales", "North America"),
        ("Total", "North America"),
        ("Other", ""),
        ("Operations", ""),
    ]


def test_the_like_columns_beside() -> None:
    columns = (
        "Three Months Ended March 31, 2023",
        "Nine Months Ended March 31, 2023",
        "Part I Three Months Ended March 31, 2022",
        "Three Months Ended March 31, 2023 Percentage Change",
    )
    [row] = statements([hit("Net sales 10 30 9 11", "table", columns)])
    assert like_columns(row, [0]) == [0, 2]
    assert like_columns(row, [1]) == [1]


def test_a_day_is_not_headed_by_another_day_of_its_year() -> None:
    columns = ("June 30, 2022", "December 31, 2022")
    [row] = statements([hit("Goodwill 10 30", "table", columns)])
    assert columns_of(row, "goodwill", (Period(2022, None, "2022-03-31"),)) == []
    [row] = statements([hit("Goodwill 10 30", "table", ("2022", "2021"))])
    assert columns_of(row, "goodwill", (Period(2022, None, "2022-03-31"),)) == [0]


def test_a_change_is_shown_with_the_year_before() -> None:
    [sales, *_] = statements([hit(TABLE, "table", COLUMNS)])
    assert columns_of(sales, "How did sales change in 2022?", (Period(2022),)) == []
    assert shown_columns(sales, "How did sales change in 2022?", (Period(2022),)) == [0, 1]
    assert shown_columns(sales, "sales in 2021", (Period(2021),)) == [1]


@pytest.mark.parametrize(
    ("question", "core"),
    [
        ("Based on the balance sheet, what is goodwill? Answer in USD billions.", "what is goodwill?"),
        ("By how much did it rise in 2022, and why?", "By how much did it rise in 2022, and why?"),
        ("Using details shown in the statement of income, what is revenue?", "what is revenue?"),
    ],
)
def test_what_instructs_the_answerer_is_no_part_of_the_question(question: str, core: str) -> None:
    assert core_question(question) == core


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How many claims were open, and how large was the reserve?", [(frozenset({"reserv"}), True)]),
        ("What drove sales and who leads the unit?", [(frozenset({"lead", "unit"}), False)]),
        ("Which had more debt, and what were the two amounts?", []),
        ("What were sales and costs in 2022?", []),
    ],
)
def test_further_questions(question: str, terms: list[tuple[frozenset[str], bool]]) -> None:
    assert further(question, subject_of(question, [hit("text")])) == terms


def test_sentences_are_statements_and_headings_are_not() -> None:
    found = statements([hit("Overview\n\nNet sales rose by a tenth in the year."), hit("Short.")])
    assert [(s.unit.text, s.marker) for s in found] == [("Net sales rose by a tenth in the year.", 1)]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("We had 58,000 employees in July.", "text", True),
        ("The board has nine directors.", "text", True),
        ("Employees rose by 4% to cost $ 1.2 billion on July 1, 2022.", "text", False),
        ("Our people are the heart of our business.", "text", False),
        ("Phones $ 39,669 $ 40,665 (2)%", "table", False),
        ("Stores 1,144 1,159", "table", True),
    ],
)
def test_how_many_asks_for_a_count(text: str, kind: ChunkKind, told: bool) -> None:
    [statement] = statements([hit(text, kind)])
    assert counts(statement) is told
    assert HOW_MANY.search("How many people work there?")
    assert not HOW_MANY.search("How many claims are open, and how large is the reserve?")
    assert not HOW_MANY.search("How many times was inventory sold?")


def test_instructions_are_no_part_of_the_question() -> None:
    assert (
        core_question("Assume you are an analyst. What was net income? Round to two decimals.")
        == "What was net income?"
    )
    assert core_question("Answer the following: what was net income?") == "what was net income?"
    assert core_question("Calculate net margin.") == "Calculate net margin."


def test_the_subject_is_neither_who_nor_when() -> None:
    subject = subject_of("What was Orrin's COGS in FY2022 according to its 10-K?", [hit("text")])
    assert {t for t, w in subject.weights.items() if w == 1.0} == {"cog"}
    assert {"cost", "sale", "revenu"} <= set(subject.weights)
    assert subject.periods == (Period(2022),)
    assert subject.companies == {"Orrin, Inc."}


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("How many cars did Corvane Mobility deliver?", ("Corvane", "Mobility")),
        ("What did Orrin say about Mobility?", ("Mobility",)),
        ("Were sales up in March? Give the figure.", ()),
        ("What was EBITDA?", ()),
    ],
)
def test_names_that_no_passage_mentions(question: str, unknown: tuple[str, ...]) -> None:
    assert subject_of(question, [hit("Net sales of Orrin rose.")]).unknown == unknown


@pytest.mark.parametrize(
    ("period", "tells"),
    [
        (Period(2022), True),
        (Period(2021), True),
        (Period(2019), False),
        (Period(2022, 2), False),
        (Period(2022, None, "2022-12-31"), True),
    ],
)
def test_a_passage_tells_of_its_filings_period_and_of_those_it_names(period: Period, tells: bool) -> None:
    assert tells_of(hit("Net sales rose from 2021.").chunk, period) is tells


@pytest.mark.parametrize(
    ("question", "periods", "values"),
    [
        ("sales in 2021", (Period(2021),), ["$1,460"]),
        ("sales", (), ["$1,577"]),
        ("from 2021 to 2022", (Period(2021), Period(2022)), ["$1,577", "$1,460"]),
        ("sales in 2015", (Period(2015),), []),
    ],
)
def test_the_column_of_the_period_asked_for(question: str, periods: tuple[Period, ...], values: list[str]) -> None:
    [sales, *_] = statements([hit(TABLE, "table", COLUMNS)])
    assert sales.row is not None
    assert [sales.row.values[i] for i in columns_of(sales, question, periods)] == values


def test_of_three_and_nine_months_the_one_that_is_meant() -> None:
    columns = ("Three months ended June 30, 2022", "Nine months ended June 30, 2022")
    [row] = statements([hit("Net sales 10 30", "table", columns)])
    assert columns_of(row, "sales in the third quarter of 2022", (Period(2022, 3),)) == [0]
    assert columns_of(row, "sales in the nine months of 2022", (Period(2022),)) == [1]


def test_focus_prefers_the_row_that_says_just_what_is_asked() -> None:
    subject = subject_of("What were net sales?", [hit("x")])
    rows = statements([hit("Net sales 10 9\nNet sales of discontinued units abroad 4 3", "table", COLUMNS)])
    own = 2.0
    synonyms = len([w for w in subject.weights.values() if w < 1])
    assert synonyms > 0
    first, second = (match(subject, row) for row in rows)
    assert first == (1.0, 2 * 2.0 / (2 + own))
    assert second == pytest.approx((1.0, 2 * 2.0 / (5 + own)))


@pytest.mark.parametrize(
    ("line", "kind", "is_statement"),
    [
        ("Legal Proceedings 20", "text", False),
        ("Item 7A. Disclosures about market risk 31", "text", False),
        ("Net sales $ 1,577", "text", True),
        ("The changes in comparable sales were as follows:", "text", False),
        ("Legal reserves 20", "table", True),
    ],
)
def test_lead_ins_and_lists_of_contents_are_no_statements(line: str, kind: ChunkKind, is_statement: bool) -> None:
    assert bool([s for s in statements([hit(line, kind)]) if s.row]) is is_statement


def test_a_change_over_one_period_needs_the_whole_row() -> None:
    [sales, *_] = statements([hit(TABLE, "table", COLUMNS)])
    assert columns_of(sales, "By how much did net sales change in 2022?", (Period(2022),)) == []


def test_the_glossary_expands_phrases_both_ways() -> None:
    assert {"purchas", "properti", "plant", "equip"} <= expanded(("capex",))
    assert expanded(("board", "member")) == frozenset()


def test_a_sentence_beside_a_table_is_a_statement_and_its_headings_are_none() -> None:
    text = (
        "Backlog\nThe backlog stood at $2.5 billion in the year.\n"
        "Net sales $ 1,577 $ 1,460\nIn millions of dollars as said."
    )
    found = statements([hit(text, "table", COLUMNS)])
    assert [s.unit.text.split()[0] for s in found] == ["The", "Net", "In"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Net sales rose by a tenth in the year.", True),
        ("• The company (the “Company”) sells anvils.", True),
        ("NOTE 1 SUMMARY OF SIGNIFICANT ACCOUNTING POLICIES", False),
        ("and other third parties, regulatory actions, and loss of customers.", False),
        ("Risks that relate to the evolution of the", False),
    ],
)
def test_whole_sentences(text: str, whole: bool) -> None:
    [statement] = statements([hit(text)])
    assert is_whole(statement) is whole


def test_a_footnotes_number_is_no_value_and_years_alone_are_no_row() -> None:
    text = "Net sales (millions) 2022 2021\nOnline (1) 51 50\nOther (6) 61 27\nLoss (3) (2)"
    found = statements([hit(text, "table", COLUMNS)])
    assert [(s.row.label, s.row.values) for s in found if s.row] == [
        ("Online", ("51", "50")),
        ("Other", ("61", "27")),
        ("Loss", ("(3)", "(2)")),
    ]
