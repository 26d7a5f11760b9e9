"""Rows as filings print them."""

import pytest

from app.evidence.rows import read_row


@pytest.mark.parametrize(
    ("line", "label", "values"),
    [
        ("Purchases of PP&E (1,577) (1,373) (1,420)", "Purchases of PP&E", ("(1,577)", "(1,373)", "(1,420)")),
        ("Net income $ 5,363 $ 4,869", "Net income", ("$5,363", "$4,869")),
        ("Gross margin 49.1 % 48.7 %", "Gross margin", ("49.1%", "48.7%")),
        ("Goodwill impairment expense 271 — —", "Goodwill impairment expense", ("271", "—", "—")),
        ("Decline in rate (2.5 )% 1.0%", "Decline in rate", ("(2.5)%", "1.0%")),
        ("Revenue..... 10 9", "Revenue", ("10", "9")),
        ("Segment income³ $ 432¹,² (98)ᵃ 45.6²%", "Segment income", ("$432", "(98)", "45.6%")),
    ],
)
def test_label_and_values(line: str, label: str, values: tuple[str, ...]) -> None:
    row = read_row(line)
    assert row is not None
    assert (row.label, row.values) == (label, values)


@pytest.mark.parametrize(
    "line",
    [
        "Cash flows from operating activities:",
        "2018 2017 2016",
        "— —",
        "",
        "Total —",
        "December 31, 2024 December 31, 2023",
        "Three months ended June 30, 2024 2023",
        "Note 5",
    ],
)
def test_no_row(line: str) -> None:
    assert read_row(line) is None
