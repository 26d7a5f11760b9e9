"""Filters on payload fields: from the wire's JSON to checked conditions."""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from app.errors import InvalidFilter
from app.types import Condition, Operator

FieldType = Literal["keyword", "integer", "date"]

FIELDS: Mapping[str, FieldType] = {
    "document_id": "keyword",
    "company": "keyword",
    "cik": "keyword",
    "ticker": "keyword",
    "form": "keyword",
    "fiscal_year": "integer",
    "fiscal_period": "keyword",
    "period_end": "date",
    "filed": "date",
    "sector": "keyword",
    "section": "keyword",
    "page": "integer",
    "kind": "keyword",
    "source": "keyword",
    "ingested_at": "date",
    "chunker": "keyword",
    "embedder": "keyword",
}
"""Fields a caller may filter on. Tenant and ACL are set from the caller's key, never from the request."""

OPERATORS: tuple[Operator, ...] = get_args(Operator)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2})?)?")
_MAX_VALUES = 1000


def parse_filters(raw: Mapping[str, Any]) -> tuple[Condition, ...]:
    """`{"form": "10-K", "fiscal_year": {"$gte": 2019}}` to conditions. Raises InvalidFilter naming what is allowed."""
    conditions: list[Condition] = []
    for name, spec in raw.items():
        kind = FIELDS.get(name)
        if kind is None:
            raise InvalidFilter(f"unknown filter field {name!r:.80}; filterable fields: {', '.join(FIELDS)}")
        comparisons = spec if isinstance(spec, Mapping) else {"$eq": spec}
        if not comparisons:
            raise InvalidFilter(f"filter on {name!r} is empty; give a value or {{operator: value}}")
        conditions += [_condition(name, kind, op, value) for op, value in comparisons.items()]
    return tuple(conditions)


def _condition(name: str, kind: FieldType, op: str, value: Any) -> Condition:
    if op not in OPERATORS:
        raise InvalidFilter(f"unknown operator {op!r:.40} on {name!r}; operators: {', '.join(OPERATORS)}")
    if op in ("$in", "$nin"):
        if not isinstance(value, list) or not value or len(value) > _MAX_VALUES:
            raise InvalidFilter(f"{op} on {name!r} takes a list of 1 to {_MAX_VALUES} values")
        return Condition(name, op, tuple(_value(name, kind, v) for v in value))
    if op not in ("$eq", "$ne") and kind == "keyword":
        raise InvalidFilter(f"{op} on {name!r} is not possible: the field holds keywords; use $eq, $ne, $in or $nin")
    return Condition(name, op, _value(name, kind, value))


def _value(name: str, kind: FieldType, value: Any) -> str | int:
    if kind == "integer" and not isinstance(value, list):
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**53:
            raise InvalidFilter(f"{name!r} takes an integer, not {value!r:.80}")
        return value
    if isinstance(value, list):
        raise InvalidFilter(f'{name!r} takes one value; for several write {{"{name}": {{"$in": [...]}}}}')
    if not isinstance(value, str) or len(value) > 500:
        raise InvalidFilter(f"{name!r} takes a string of at most 500 characters, not {value!r:.80}")
    if kind == "date" and not _DATE.fullmatch(value):
        raise InvalidFilter(f"{name!r} takes an ISO date such as 2023-06-30, not {value!r:.80}")
    return value
