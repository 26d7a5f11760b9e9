"""Filters from the wire: what is accepted, and that each refusal says what would be."""

from typing import Any

import pytest

from app.errors import InvalidFilter
from app.filters import FIELDS, parse_filters
from app.types import Condition


def test_a_bare_value_means_equality() -> None:
    assert parse_filters({"form": "10-K", "fiscal_year": {"$gte": 2019, "$lt": 2022}}) == (
        Condition("form", "$eq", "10-K"),
        Condition("fiscal_year", "$gte", 2019),
        Condition("fiscal_year", "$lt", 2022),
    )
    assert parse_filters({"cik": {"$in": ["1", "2"]}}) == (Condition("cik", "$in", ("1", "2")),)


@pytest.mark.parametrize(
    ("raw", "tells"),
    [
        ({"compny": "x"}, "company"),
        ({"tenant": "other"}, "filterable fields"),
        ({"acl": "secret"}, "filterable fields"),
        ({"form": {"$regex": ".*"}}, "$eq"),
        ({"form": {"$gte": "10"}}, "keywords"),
        ({"form": {}}, "empty"),
        ({"form": 10}, "string"),
        ({"form": None}, "string"),
        ({"form": ["10-K"]}, "$in"),
        ({"fiscal_year": [2019]}, "$in"),
        ({"fiscal_year": "2019"}, "integer"),
        ({"fiscal_year": True}, "integer"),
        ({"fiscal_year": 2019.5}, "integer"),
        ({"fiscal_year": 10**30}, "integer"),
        ({"fiscal_year": {"$in": []}}, "list"),
        ({"fiscal_year": {"$in": 2019}}, "list"),
        ({"filed": {"$gte": "last year"}}, "ISO date"),
    ],
)
def test_a_refusal_says_what_is_allowed(raw: dict[str, Any], tells: str) -> None:
    with pytest.raises(InvalidFilter, match=tells.replace("$", r"\$")):
        parse_filters(raw)


def test_rights_are_no_filter_fields() -> None:
    assert not {"tenant", "acl"} & set(FIELDS)
