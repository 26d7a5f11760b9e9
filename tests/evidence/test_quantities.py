"""What counts as the same number, and what is no number at all."""

from decimal import Decimal

import pytest

from app.evidence.quantities import matched, quantities


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Net sales rose 4.5%, from $32,765 million to $34,229 million.", ["4.5", "32765", "34229"]),
        ("(1,577) and -1,577", ["1577", "1577"]),
        ("The Q2 2021 10-Q and FY2019 10-K of 4Mills said on June 30, 2021 (Note 7, page 12)", []),
        ("9,200 people in 2019", ["9200"]),
        ("about $2.5bn or $1.8 B", ["2.5", "1.8"]),
        ("a charge of $ (0.9) million", ["0.9"]),
        ("COVID-19 and Item 1A", []),
        ("4,321⁵ people, 9ᵃ mills and $0.16²⁄3", ["4321", "9", "0.16", "3"]),
    ],
)
def test_values(text: str, values: list[str]) -> None:
    assert [q.value for q in quantities(text)] == [Decimal(v) for v in values]


def test_units_and_scales() -> None:
    [percent, money, plain] = quantities("12.5% of $3 billion over 4,100 stores")
    assert (percent.unit, percent.scale) == ("%", None)
    assert (money.unit, money.scale) == ("money", 9)
    assert (plain.unit, plain.scale) == ("", None)


def test_a_raised_mark_parts_no_number_from_its_unit() -> None:
    [percent, money] = quantities("45.6²% of $2.5 billion⁴")
    assert (percent.value, percent.unit) == (Decimal("45.6"), "%")
    assert (money.value, money.scale) == (Decimal("2.5"), 9)


def test_a_question_may_name_the_scale() -> None:
    [money, percent] = quantities("$8.70, up 3%", hint="Answer in USD billions.")
    assert (money.scale, percent.scale) == (9, None)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("$8.7 billion", "Property, plant and equipment 8,738 8,866"),
        ("$68.7 billion", "an all-cash transaction valued at $68,700 million"),
        ("24.26", "a ratio of 24.3"),
        ("1.9%", "capital expenditure was 1.9 percent of revenue"),
        ("1.9%", "share of revenue 1.9"),
        ("-27.0%", "it will decrease by 27%"),
        ("221,000", "approximately 221,000 full-time"),
        ("$869 million", "revenues of 869"),
    ],
)
def test_the_same(wanted: str, text: str) -> None:
    assert matched(quantities(wanted)[0], quantities(text))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("1.9%", "$1.9"),
        ("$8.7 billion", "$8.7 million"),
        ("0.3", "0"),
        ("1.6", "2"),
        ("39,403", "$40 billion"),
        ("24.26", "24.4"),
        ("17.5%", "17,500"),
        ("12", "in fiscal 2012"),
    ],
)
def test_not_the_same(wanted: str, text: str) -> None:
    assert not matched(quantities(wanted)[0], quantities(text))
