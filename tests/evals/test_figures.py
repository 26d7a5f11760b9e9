"""Where the number of a question stands, and what of it was retrieved."""

from dataclasses import replace
from typing import Any

import pytest

from app.evidence.quantities import quantities
from evals.figures import STANDINGS, Found, Place, _retrieved, place, table

ROW: dict[str, Any] = {
    "value": -1577.0, "scale": 6, "unit": "USD", "period_end": "2018-12-31", "label": "Purchases",
    "document_id": "d", "page": 3, "span_start": 10, "span_end": 17,
}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "page", "rows", "expected"),
    [
        ("$1577.00", "Purchases (1,577) (1,373)", [ROW], ("whole", {("d", 3, 10, 17)})),
        ("$1.577 billion", "Purchases (1,577)", [ROW], ("whole", {("d", 3, 10, 17)})),
        ("$1577 million", "Purchases (1,577)", [ROW | {"period_end": None}], ("bare", set())),
        ("$1577 million", "Purchases (1,577)", [ROW | {"label": ""}, ROW | {"page": 4}], ("whole", {("d", 4, 10, 17)})),
        ("$1577 million", "We bought for $1,577 million.", [], ("prose", set())),
        ("$1577 million", "We bought for $1,577 million.", [ROW | {"value": 1578.0}], ("prose", set())),
        ("12.5%", "grew 12.5%", [ROW | {"value": 12.5, "unit": "percent", "scale": 0}], ("whole", {("d", 3, 10, 17)})),
        ("12.5%", "12.5 tons", [ROW | {"value": 12.5, "unit": None, "scale": 0}], ("bare", set())),
        ("30.8%", "Purchases (1,577)", [ROW], ("computed", set())),
    ],
)
def test_where_a_number_stands(
    answer: str, page: str, rows: list[dict[str, Any]], expected: tuple[str, set[Place]]
) -> None:
    assert place(quantities(answer), quantities(page), rows) == (expected[0], frozenset(expected[1]))


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ([], (False, False)),
        ([{"page": 4, "text": "Purchases (1,577)"}], (False, False)),
        ([{"text": "Cash flows"}], (True, False)),
        ([{"text": "Purchases (1,577)", "kind": "text"}], (True, False)),
        ([{"text": "Purchases (1,5"}], (True, False)),
        ([{"text": "Cash flows"}, {"text": "Purchases (1,577)"}], (True, True)),
        ([{"text": "Cash flows Purchases (1,577) (1,373)"}], (True, True)),
    ],
)
def test_a_number_is_retrieved_where_one_passage_of_a_table_is_read_with_it(
    passages: list[dict[str, Any]], expected: tuple[bool, bool]
) -> None:
    text = "Cash flows Purchases (1,577) (1,373)"
    reply = {"passages": [{"document_id": "d", "page": 3, "kind": "table"} | passage for passage in passages]}
    assert _retrieved(reply, {("d", 3): text}, [("d", 3, 21, 28)]) == expected


def test_shares_are_of_retrieved_pages_alone() -> None:
    whole = Found("hybrid", "q1", "whole", page=True, retrieved=True)
    found = [
        whole,
        replace(whole, question_id="q2", retrieved=False),
        replace(whole, question_id="q3", standing="bare", retrieved=False),
        replace(whole, question_id="q4", page=False, retrieved=False),
        replace(whole, question_id="q5", standing="prose"),
        replace(whole, question_id="q6", standing="computed"),
    ]
    head, _, row = table(found).splitlines()
    assert [cell.strip() for cell in head.split("|")[3:7]] == list(STANDINGS)
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["hybrid", "6", "1", "1", "1", "3", "3 of 4", "0.67", "0.33"]
