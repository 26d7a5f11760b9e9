"""A calculator for what agents and questions write: decimal, exact to 28 digits, without names or calls to run."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException, localcontext

_MOST_CHARACTERS = 500
_MOST_DEPTH = 50
_MOST_EXPONENT = 100
_MOST_DIGITS = 30
"""Digits before or after the point of any number on the way."""
_GROUPED = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\d,])")
_OPERATORS: Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CONTEXT = Context(prec=28, rounding=ROUND_HALF_UP)


class CalculationError(ValueError):
    """An expression that cannot or may not be evaluated; the message says why."""


def evaluate(expression: str) -> Decimal:
    """The value of `+ - * / **`, parentheses and plain numbers, `6,489 / ((253 + 282) / 2)`.

    `^`, `×` and `÷` are read as `**`, `*` and `/`. Raises CalculationError for anything else, division by zero, and
    numbers or powers beyond what filings hold.
    """
    if len(expression) > _MOST_CHARACTERS:
        raise CalculationError(f"an expression has at most {_MOST_CHARACTERS} characters")
    plain = _GROUPED.sub(lambda match: match[0].replace(",", ""), expression)
    plain = plain.replace("^", "**").replace("×", "*").replace("÷", "/").replace("−", "-").replace("$", "").strip()
    if not plain.isascii():
        raise CalculationError("an expression holds numbers, + - * / ** and parentheses only")
    try:
        tree = ast.parse(plain, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CalculationError(f"{expression[:80]!r} is not an expression") from error
    with localcontext(_CONTEXT):
        try:
            return _value(tree.body, plain, 0)
        except DecimalException as error:
            raise CalculationError(f"{expression[:80]!r} has no value: {type(error).__name__}") from None


def _value(node: ast.expr, source: str, depth: int) -> Decimal:
    if depth > _MOST_DEPTH:
        raise CalculationError("the expression is nested too deeply")
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            # The digits as written: a float would bring its own error.
            found = Decimal(ast.get_source_segment(source, node) or "")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            sign = -1 if isinstance(node.op, ast.USub) else 1
            found = sign * _value(operand, source, depth + 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            found = _power(_value(left, source, depth + 1), _value(right, source, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            found = _OPERATORS[type(op)](_value(left, source, depth + 1), _value(right, source, depth + 1))
        case _:
            raise CalculationError("an expression holds numbers, + - * / ** and parentheses only")
    if not found.is_finite() or abs(found.adjusted()) > _MOST_DIGITS:
        raise CalculationError("a number in the expression is too large or too small")
    return found


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if abs(exponent) > _MOST_EXPONENT:
        raise CalculationError(f"an exponent is at most {_MOST_EXPONENT}")
    return base**exponent


def rounded(value: Decimal, places: int) -> Decimal:
    """Half away from zero, as reports round: 24.255 at 2 places is 24.26."""
    with localcontext(_CONTEXT):
        return value.quantize(Decimal(1).scaleb(-places))
