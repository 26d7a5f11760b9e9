"""Lines of the statements that questions name, and what is none of the whole company's."""

import re

import pytest

from app.question.lines import LINES, named_lines


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("What was total revenue in 2022?", ["revenue"]),
        ("What is the FY2021 COGS?", ["cogs"]),
        ("How did operating expenses compare to revenue in Q1 2022?", ["operating expenses", "revenue"]),
        ("What was the gross margin in the latest 10-Q?", ["gross profit"]),
        ("How much was spent on R&D in 2021?", ["rd"]),
        ("What is net PP&E at the end of 2020?", ["ppe"]),
        ("What was net cash from operating activities?", ["operating cash flow"]),
        ("How did revenue from 2020 to 2021 change?", ["revenue"]),
        ("By what percentage did net sales of and of change in 2022?", ["revenue"]),
        ("What was the cost of revenue?", ["cogs"]),
        ("What was deferred revenue at year end?", ["deferred revenue"]),
        ("Did revenue climb in 2022?", ["revenue"]),
        ("What was revenue in millions of dollars?", ["revenue"]),
        ("What was the growth of revenue in the latest quarter?", ["revenue"]),
        ("What is capex to revenue in 2022?", ["capex", "revenue"]),
        ("How did R&D spending of the latest quarter relate to sales?", ["rd", "revenue"]),
        ("What were dividends declared in 2022?", ["dividends"]),
        ("What were cash & cash equivalents at the end of 2022?", ["cash"]),
        ("Which had the higher net income in 2022?", ["net income"]),
        ("Compare long-term debt of and", ["debt"]),
        ("Which of carried more debt at the end of 2022?", ["total debt"]),
        ("Who carried the larger long-term debt at the end of 2022?", ["debt"]),
    ],
)
def test_lines_of_the_whole_company(question: str, keys: list[str]) -> None:
    assert [key for key, _, _ in named_lines(question)] == keys


@pytest.mark.parametrize(
    "question",
    [
        "What was Freight revenue in 2022?",
        "What was subscription revenue in 2022?",
        "What was revenue from services in 2022?",
        "How much of total revenue was attributed to the Tools segment?",
        "What was the revenue breakdown in 2022?",
        "What were comparable sales in 2022?",
        "What was net income per share?",
        "What dividends per share were paid in 2022?",
        "What goodwill impairment was recorded?",
        "What is the inventory valuation allowance?",
        "How many sales representatives are there?",
        "What sales tax was paid in 2022?",
        "What is the dividend yield?",
        "How large was the debt issuance in 2022?",
        "How many inventory warehouses are there?",
        "What was revenue in Europe in 2022?",
        "What was revenue excluding services in 2022?",
        "What was revenue per employee in 2022?",
        "What were sales to the government in 2022?",
        "Who is the auditor?",
    ],
)
def test_a_segments_line_or_another_measure_is_none(question: str) -> None:
    assert named_lines(question) == []


def test_the_span_is_the_name() -> None:
    question = "What was the cost of goods sold?"
    [(_, start, end)] = named_lines(question)
    assert question[start:end] == "cost of goods sold"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("cogs", "Total cost of revenue"),
        ("operating expenses", "Total operating expenses"),
        ("share repurchases", "Common stock repurchased"),
        ("investing cash flow", "Net cash used in investing activities"),
        ("gross profit", "Gross margin"),
    ],
)
def test_labels(line: str, label: str) -> None:
    assert any(re.fullmatch(pattern, label, re.IGNORECASE) for pattern in LINES[line].labels)
