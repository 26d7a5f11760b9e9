"""Rows as filings print them."""

import pytest

from app.evidence.rows import read_row, read_series


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


@pytest.mark.parametrize(
    ("sentence", "values", "years"),
    [
        (
            "Rent was $7.4 million, $9.3 million and $10 million in fiscal 2009, 2008 and 2007, respectively.",
            ("$7.4 million", "$9.3 million", "$10 million"),
            ("2009", "2008", "2007"),
        ),
        (
            "The statements for fiscal year 2012 and fiscal year 2011 hold $1,700 and $1,300, respectively, of fines.",
            ("$1,700", "$1,300"),
            ("2012", "2011"),
        ),
        ("Rates were 5.1% and 4.9% for 2012 and 2011, respectively.", ("5.1%", "4.9%"), ("2012", "2011")),
    ],
)
def test_a_sentences_amounts_by_year(sentence: str, values: tuple[str, ...], years: tuple[str, ...]) -> None:
    series = read_series(sentence)
    assert series is not None
    assert (series[0].values, series[1]) == (values, years)


@pytest.mark.parametrize(
    "sentence",
    [
        "Rent was $7 million and $9 million in 2009 and 2008.",
        "Rent was $7 million and $9 million in Q3 2009 and Q3 2008, respectively.",
        "Rent was $7, $8 and $9 in 2009 and 2008, respectively.",
        "Rent was $7 and $9, and fines $1 and $2, in 2009 and 2008, respectively.",
    ],
)
def test_a_sentence_that_does_not_say_which_is_which(sentence: str) -> None:
    assert read_series(sentence) is None
