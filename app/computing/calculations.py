"""Numbers that an answer computes, checked by computing them again from what its citations quote."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from app.computing.arithmetic import CalculationError, evaluate, rounded
from app.evidence.quotes import numbers
from app.types import Calculation, Citation

_EXPRESSION = frozenset("0123456789,.()+-−–*/×÷^$ ")
_OPERATOR = re.compile(r"[+*/×÷^−–-]\s*[($]*\d")
_QUOTIENT = re.compile(r"[/÷]")
_OPERAND = re.compile(r"\d[\d,]*(?:\.\d+)?")
_VALUE = re.compile(r"\(?[-−]?\$?\d[\d,]*(?:\.\d+)?\)?%?")
_CONSTANTS = frozenset({"100", "360", "365", "1000", "1000000"} | {str(n) for n in range(1, 13)})
"""What averages (2 years), annualises (4 quarters, 365 days) or scales, and is no evidence."""


def checked(text: str, citations: Sequence[Citation]) -> tuple[Calculation, ...]:
    """Every equation in an answer (`6,489 / ((253 + 282) / 2) = 24.26`), in order."""
    quoted = {number for citation in citations if citation.verified for number in numbers(citation.quote)}
    return tuple(_calculation(text, start, equals, value, quoted) for start, equals, value in _equations(text))


def _equations(text: str) -> Iterator[tuple[int, int, str]]:
    """Start of the expression, place of ` = `, and the value as it stands behind."""
    for sign in re.finditer(r" = ", text):
        start = sign.start()
        while start and text[start - 1] in _EXPRESSION:
            start -= 1
        start += len(text[start : sign.start()]) - len(text[start : sign.start()].lstrip(" ,.)*/"))
        value = _VALUE.match(text, sign.end())
        if value and _OPERATOR.search(text, start, sign.start()):
            yield start, sign.start(), value[0].rstrip(",")


def _calculation(text: str, start: int, equals: int, value: str, quoted: set[str]) -> Calculation:
    expression = text[start:equals]
    operands = tuple(dict.fromkeys(n for n in _OPERAND.findall(expression) if _is_evidence(n, quoted)))
    known = bool(operands) and all(numbers(operand) <= quoted for operand in operands)
    span = (start, equals + len(" = ") + len(value))
    return Calculation(expression, value, span, operands, known and _equal(expression, value))


def _is_evidence(number: str, quoted: set[str]) -> bool:
    """Not a constant; 365 may be a row's figure as well."""
    plain = number.rstrip(",")
    return plain not in _CONSTANTS or (len(plain) > 2 and plain in quoted)


def _equal(expression: str, value: str) -> bool:
    """Whether the expression has the value at the value's precision; of a quotient `%` may stand for a hundredth."""
    digits = re.sub(r"[^\d.]", "", value)
    stated = Decimal(digits) * (-1 if re.match(r"\(|[-−]", value) else 1)
    places = len(digits.partition(".")[2])
    try:
        found = evaluate(expression)
        scales = (1, 100) if value.endswith("%") and _QUOTIENT.search(expression) else (1,)
        return stated in {rounded(found * scale, places) for scale in scales}
    except (CalculationError, ArithmeticError):
        return False
