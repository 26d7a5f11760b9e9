"""Which rows of which table break down what a question asks for."""

import pytest

from app.evidence.breakdowns import breakdown
from app.evidence.statements import statements, subject_of
from app.types import Chunk, DocumentMeta, Hit

META = DocumentMeta("t", "s", "Orrin", form="10-K", fiscal_year=2022, fiscal_period="FY", period_end="2022-12-31")
YEARS = ("December 31, 2022", "December 31, 2021")


def table(text: str, section: str, rank: int) -> Hit:
    chunk = Chunk(f"c{rank}", "d", rank, 1, 0, len(text), text, "", "table", section, META, YEARS)
    return Hit(chunk, rank, 1.0)


COSTS = table("Wages 40 30\nFreight 5 5\nRent 2 2\nTotal costs 47 37", "Costs", 1)
SALES = table("Pumps 70 60\nValves 20 30\nService 10 5\nTotal revenue 100 95\nTax 3 2", "Revenue by product line", 2)
REGIONS = table(
    "North\nRevenue 60 50\nCosts 30 20\nSouth\nRevenue 30 40\nCosts 9 9\nWest\nRevenue 10 5\nCosts 4 4", "Regions", 3
)


def labels(question: str, *hits: Hit) -> list[str]:
    rows = breakdown(question, subject_of(question, hits), statements(hits))
    return [f"{one.group} {one.row.label}".strip() for one in rows if one.row]


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("What was the revenue breakdown in 2022?", ["Pumps", "Valves", "Service", "Total revenue"]),
        ("What was revenue across product lines in 2022?", ["Pumps", "Valves", "Service", "Total revenue"]),
        ("What was the composition of costs in 2022?", ["Wages", "Freight", "Rent", "Total costs"]),
        ("Which product had the highest revenue in 2022?", ["Pumps", "Valves", "Service", "Total revenue"]),
        ("What was revenue in 2022?", []),
        ("What was the revenue breakdown in 2012?", []),
    ],
)
def test_a_groups_rows_to_its_total(question: str, rows: list[str]) -> None:
    assert labels(question, COSTS, SALES) == rows


def test_one_label_under_several_headings() -> None:
    assert labels("How was revenue distributed across regions in 2022?", REGIONS, COSTS) == [
        "North Revenue",
        "South Revenue",
        "West Revenue",
    ]


def test_a_total_that_repeats_its_heading_ends_the_breakdown() -> None:
    headed = table("Revenue:\nPumps 70 60\nValves 30 35\nTotal revenue 100 95\nTax 3 2", "Note 2", 1)
    assert labels("What was the revenue breakdown in 2022?", headed) == [
        "Revenue: Pumps",
        "Revenue: Valves",
        "Total revenue",
    ]


def test_two_rows_break_nothing_down() -> None:
    assert (
        labels("What was the revenue breakdown in 2022?", table("Pumps 70 60\nTotal revenue 70 60", "Revenue", 1)) == []
    )


def test_the_line_above_a_table_says_what_it_breaks_down() -> None:
    statement = table("Pump revenue 90 80\nValve revenue 10 15\nTotal revenue 100 95", "Statements of Income", 1)
    groups = table(
        "Revenue by similar customers (in millions):\n2022 2021\nMills 60 50\nFarms 30 30\nTowns 10 15\nTotal 100 95",
        "Note 8",
        2,
    )
    assert labels("What was the revenue breakdown by similar customers in 2022?", statement, groups) == [
        "Mills",
        "Farms",
        "Towns",
        "Total",
    ]
