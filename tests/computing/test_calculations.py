"""An equation in an answer is verified by computing it again from what is cited."""

import pytest

from app.computing.calculations import checked
from app.types import Citation


def cited(quote: str, *, verified: bool = True) -> Citation:
    return Citation(
        1, "a", "A", None, None, None, 1, None, "c", "a.pdf", quote, 0, len(quote), (), (0, 1), 1.0, verified
    )


CITED = (cited("Net sales 6,489 7,500"), cited("Property, net 253 282"), cited("Debt 999", verified=False))


@pytest.mark.parametrize(
    ("text", "expression", "value", "verified"),
    [
        ("Turnover, 2019: 6,489 / ((282 + 253) / 2) = 24.26", "6,489 / ((282 + 253) / 2)", "24.26", True),
        ("It fell: (6,489 - 7,500) / 7,500 = -13.5% [1].", "(6,489 - 7,500) / 7,500", "-13.5%", True),
        ("253 + 282 = 535, so", "253 + 282", "535", True),
        ("253 + 282 = 536", "253 + 282", "536", False),
        ("253 + 300 = 553", "253 + 300", "553", False),
        ("999 + 282 = 1,281", "999 + 282", "1,281", False),
        ("2 * 12 = 24", "2 * 12", "24", False),
        ("282 - 253 = 2,900.0%", "282 - 253", "2,900.0%", False),
        ("253 / 0 = 0", "253 / 0", "0", False),
    ],
)
def test_equations(text: str, expression: str, value: str, verified: bool) -> None:
    [made] = checked(text, CITED)
    assert (made.expression, made.value, made.verified) == (expression, value, verified)
    assert text[slice(*made.answer_span)] == f"{expression} = {value}"


@pytest.mark.parametrize("text", ["Sales = 5", "x = y", "no equation", "6,489 = 6,489", " = 3", "+ = 3"])
def test_no_equation(text: str) -> None:
    assert checked(text, CITED) == ()


def test_operands_are_what_is_evidence() -> None:
    [made] = checked("365 * ((282 + 253) / 2) / 6,489 = 15.05", CITED)
    assert made.operands == ("282", "253", "6,489")
    assert made.verified


def test_a_figure_that_looks_like_a_constant_is_evidence_where_it_is_quoted() -> None:
    [made] = checked("(451 / 365) ** (1 / 2) - 1 = 11.2%", (cited("Net income 451 365"),))
    assert (made.operands, made.verified) == (("451", "365"), True)
