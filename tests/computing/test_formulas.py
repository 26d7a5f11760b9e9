"""Which formula a question asks for."""

import pytest

from app.computing.formulas import asked_formula
from app.question.periods import Period

COVER = (
    "What was the cover in FY2021? Cover is defined as: 52 * (average inventory between FY2020 and FY2021) / (FY2021 "
    "COGS + change in accounts payable between FY2020 and FY2021). Round to three decimal places."
)


@pytest.mark.parametrize(
    ("question", "template", "terms", "percent", "places"),
    [
        (
            "What was the fixed asset turnover in FY2019?",
            "{0} / (({2} + {1}) / 2)",
            ["revenue 2019", "ppe 2019", "ppe 2018"],
            False,
            2,
        ),
        (
            COVER,
            "52 * (({1} + {0}) / 2) / ({2} + ({3} - {4}))",
            ["inventory 2021", "inventory 2020", "cogs 2021", "payables 2021", "payables 2020"],
            False,
            3,
        ),
        (
            "What is the FY2020 - FY2021 two year average net profit margin, in percent?",
            "(({0} / {1}) + ({2} / {3})) / 2",
            ["net income 2020", "revenue 2020", "net income 2021", "revenue 2021"],
            True,
            1,
        ),
        (
            "What was net debt in FY2022?",
            "{0} + {1} - {2}",
            ["current debt 2022", "debt 2022", "cash 2022"],
            False,
            0,
        ),
        (
            "What was the year-over-year change in net income from 2021 to 2022?",
            "({0} - {1}) / {1}",
            ["net income 2022", "net income 2021"],
            True,
            1,
        ),
        (
            "What is the quick ratio for 2022? It is defined as: (cash and cash equivalents + receivables) / current "
            "liabilities.",
            "({0} + {1}) / {2}",
            ["cash 2022", "receivables 2022", "current liabilities 2022"],
            False,
            2,
        ),
        (
            "What was working capital in 2020?",
            "{0} - {1}",
            ["current assets 2020", "current liabilities 2020"],
            False,
            0,
        ),
        (
            "By how much did yearly revenue change between 2017 and 2021?",
            "{0} - {1}",
            ["revenue 2021", "revenue 2017"],
            False,
            0,
        ),
        (
            "By what percentage did revenue grow from 2017 to 2021?",
            "({0} - {1}) / {1}",
            ["revenue 2021", "revenue 2017"],
            True,
            1,
        ),
        (
            "How many times larger was 2021 revenue than 2017 revenue?",
            "{0} / {1}",
            ["revenue 2021", "revenue 2017"],
            False,
            2,
        ),
        (
            "Has net income increased between FY2021 and FY2022?",
            "{0} - {1}",
            ["net income 2022", "net income 2021"],
            False,
            0,
        ),
        (
            "What was R&D as a percentage of revenue in 2022?",
            "{0} / {1}",
            ["rd 2022", "revenue 2022"],
            True,
            1,
        ),
        (
            "What share of total assets was goodwill in 2022?",
            "{0} / {1}",
            ["goodwill 2022", "total assets 2022"],
            True,
            1,
        ),
        (
            "What was the ratio of total liabilities to total assets in 2022?",
            "{0} / {1}",
            ["total liabilities 2022", "total assets 2022"],
            False,
            2,
        ),
        (
            "What is the total debt to total assets ratio for FY2022?",
            "{0} / {1}",
            ["debt 2022", "total assets 2022"],
            False,
            2,
        ),
        (
            "What is net income divided by total revenue in 2022, as a percentage?",
            "{0} / {1}",
            ["net income 2022", "revenue 2022"],
            True,
            1,
        ),
        (
            "What was the change in total assets from 2021 to 2022 in percent?",
            "({0} - {1}) / {1}",
            ["total assets 2022", "total assets 2021"],
            True,
            1,
        ),
        (
            "By how many percent did revenue grow in 2022?",
            "({0} - {1}) / {1}",
            ["revenue 2022", "revenue 2021"],
            True,
            1,
        ),
        (
            "Did net income increase or decrease in 2022 (in %)?",
            "({0} - {1}) / {1}",
            ["net income 2022", "net income 2021"],
            True,
            1,
        ),
        (
            "What was free cash flow in 2022 in percent of net sales?",
            "({0} - {1}) / {2}",
            ["operating cash flow 2022", "capex 2022", "revenue 2022"],
            True,
            1,
        ),
        (
            "What was working capital in 2022 in percent?",  # of what is not said
            "{0} - {1}",
            ["current assets 2022", "current liabilities 2022"],
            False,
            0,
        ),
        (
            "What is the CAGR of net income from 2018 to 2021?",
            "({0} / {1}) ** (1 / 3) - 1",
            ["net income 2021", "net income 2018"],
            True,
            1,
        ),
    ],
)
def test_formulas(question: str, template: str, terms: list[str], percent: bool, places: int) -> None:
    formula = asked_formula(question)
    assert formula is not None
    assert formula.template == template
    assert [f"{term.line} {term.period}" for term in formula.terms] == terms
    assert (formula.percent, formula.places) == (percent, places)


@pytest.mark.parametrize(
    "question",
    [
        "What was revenue in 2022?",
        "What was the current ratio?",
        "What was the current ratio in Q3 2022?",
        "Why did the operating margin fall in 2022?",
        "What percentage did Port Services revenue grow in 2022?",
        "What was comparable sales growth in 2022?",
        "What does management say about revenue growth in 2022?",
        "What was adjusted EBITDA in 2022?",
        "What is X in 2022? X is defined as: happiness / revenue.",
        "What was the current ratio in 2021 and 2022?",  # one for each
        "What was inventory turnover in 2021 and 2022?",
        "By how much did free cash flow grow from 2018 to 2022?",
        "What was the growth of revenue in 2020, 2021 and 2022?",
        "How did revenue compare to net income in 2022?",
        "What did revenue add to net income in 2022?",
    ],
)
def test_nothing_to_compute(question: str) -> None:
    assert asked_formula(question) is None


QUARTER = Period(2022, None, "2022-09-30")


@pytest.mark.parametrize(
    ("question", "template", "terms"),
    [
        ("What was the current ratio in the latest 10-Q?", "{0} / {1}", ["current assets", "current liabilities"]),
        ("What was the operating margin in Q3 2022?", "{0} / {1}", ["operating income", "revenue"]),
    ],
)
def test_a_filings_own_period(question: str, template: str, terms: list[str]) -> None:
    formula = asked_formula(question, QUARTER)
    assert formula is not None
    assert (formula.template, formula.period) == (template, "2022-09-30")
    assert [(term.line, term.period) for term in formula.terms] == [(line, QUARTER) for line in terms]


@pytest.mark.parametrize(
    "question", ["What was the asset turnover in Q3 2022?", "What was the growth of revenue in the latest 10-Q?"]
)
def test_one_period_is_no_average_and_no_change(question: str) -> None:
    assert asked_formula(question, QUARTER) is None


def test_a_row_in_words() -> None:
    formula = asked_formula("By how much did pump rental fees grow in 2022?", described="pump rental fees")
    assert formula is not None
    assert (formula.name, formula.template) == ("Change in pump rental fees", "{0} - {1}")
    assert [f"{term.line} {term.period}" for term in formula.terms] == [
        "pump rental fees 2022",
        "pump rental fees 2021",
    ]
