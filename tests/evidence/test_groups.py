"""Which rows of a table belong under a heading, and which end it."""

import pytest

from app.evidence.groups import Group
from app.evidence.rows import read_row


def labels(table: str) -> list[str]:
    """Each row's label behind its group; a line without a figure is a heading."""
    group, found = Group(), []
    for line in table.splitlines():
        if row := read_row(line):
            found.append(f"{group.of(row)} {row.label}".strip())
        else:
            group.begin(line)
    return found


def test_a_result_after_the_expenses_is_none_of_them() -> None:
    table = "\n".join(
        (
            "Gross profit $ 420 $ 416",
            "Operating expenses:",
            "Research 80 78",
            "Selling 160 150",
            "Amortization 20 19",
            "Operating income 160 169",
            "Interest expense (22) (20)",
            "Net income $ 138 $ 149",
        )
    )
    assert labels(table) == [
        "Gross profit",
        "Operating expenses: Research",
        "Operating expenses: Selling",
        "Operating expenses: Amortization",
        "Operating income",
        "Interest expense",
        "Net income",
    ]


def test_expenses_in_parentheses_and_a_loss() -> None:
    table = (
        "Gross profit 90 95\nOperating expenses:\nResearch (60) (50)\nSelling (40) (40)\nOperating loss (10) 5\nTax 1 1"
    )
    assert labels(table)[-2:] == ["Operating loss", "Tax"]


def test_cash_of_all_activities_is_no_change_in_working_capital() -> None:
    table = "\n".join(
        (
            "Net income $ 100 $ 90",
            "Adjustments:",
            "Depreciation 30 28",
            "Changes in operating assets and liabilities:",
            "Receivables (12) 4",
            "Payables 7 —",
            "Net cash provided by operating activities 125 122",
            "Capital expenditures (40) (35)",
        )
    )
    assert labels(table)[2:] == [
        "Changes in operating assets and liabilities: Receivables",
        "Changes in operating assets and liabilities: Payables",
        "Net cash provided by operating activities",
        "Capital expenditures",
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("Assets\nLoans 70 60\nTotal assets 70 60\nDeposits 9 9", ["Assets Loans", "Total assets", "Deposits"]),
        ("Net sales:\nEast 3 4\nWest 5 6\nTotal 8 10", ["Net sales: East", "Net sales: West", "Net sales: Total"]),
        (
            "Segment profit:\nEast 30 40\nCorporate (5) (6)\nOperating income 25 34\nInterest (2) (2)",
            ["Segment profit: East", "Segment profit: Corporate", "Segment profit: Operating income", "Interest"],
        ),
    ],
)
def test_a_total_ends_its_group_and_is_labelled_by_it_unless_it_names_it(table: str, expected: list[str]) -> None:
    assert labels(table) == expected


@pytest.mark.parametrize(
    "members",
    [
        ["Basic 1.20 1.10", "Diluted 1.20 1.10", "Dividends 0.30 0.30"],
        ["Net sales 50 40", "Operating income 9 8"],
        ["Basic 0 0", "Diluted 0 0"],
        ["Share of sales 40% 41%", "Share of profit 40% 41%", "Share of assets 12% 13%"],
    ],
)
def test_members_stay(members: list[str]) -> None:
    rows = [label.rstrip("0123456789.% ") for label in members]
    assert labels("\n".join(["Net income 100 90", "Group:", *members]))[1:] == [f"Group: {label}" for label in rows]
