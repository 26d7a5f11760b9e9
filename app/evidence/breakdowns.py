"""Rows of one table that answer a question for a breakdown: revenue by segment, the components of debt."""

import re
from collections.abc import Sequence
from itertools import takewhile

from app.adapters.bm25 import tokens
from app.evidence.statements import Statement, Subject, heading_terms, shown_columns

_ASKED = re.compile(
    r"\b(?:break(?:s|ing)? ?downs?|broken down|distribut(?:ion|ed)|composition|components of|split of"
    r"|(?:by|across|for each|of each|for every|per) (?:of )?(?:its |the |their |our )?(?:\w+ ){0,3}?"
    r"(?:segments?|products?|services?|offerings|regions?|geograph\w+|categor(?:y|ies)|business(?:es)?)"
    r"|which (?:of (?:its|the|their) )?(?:\w+ ){0,2}?(?:segments?|products?|services?|regions?|categor(?:y|ies))\b.*"
    r"\b(?:highest|largest|biggest|most|lowest|smallest|least))\b",
    re.IGNORECASE,
)
_LEAST_ROWS = 3
"""A total and two parts; fewer break nothing down."""
_MOST_ROWS = 10
_CAPTION = 300
"""Characters above the first row that may say what the table is: `Net sales by region are as follows:`."""
_PRIOR = 0.2
"""Weight of the passage's rank beside the share of the question that its table holds, as for single statements."""


def breakdown(question: str, subject: Subject, pool: Sequence[Statement]) -> list[Statement]:
    """The rows of one table that hold most of the subject, with a value for the period; empty where none are asked for.

    They are a group of rows up to its total, which may stand without the heading that it repeats, or the
    rows of one label under the headings of several groups.
    """
    if not _ASKED.search(question):
        return []
    groups: dict[tuple[int, str], list[Statement]] = {}
    labels: dict[tuple[int, str], list[Statement]] = {}
    above: dict[int, str] = {}
    for one in pool:
        if one.row is not None and shown_columns(one, question, subject.periods):
            own = above.get(one.marker, "") if _is_total(one) and not one.group else one.group
            groups.setdefault((one.marker, own), []).append(one)
            above[one.marker] = one.group
            if one.group and set(tokens(one.row.label)) & subject.weights.keys():
                labels.setdefault((one.marker, one.row.label), []).append(one)
    whole = [rows for own in groups.values() if len(rows := _to_total(own)) >= _LEAST_ROWS]
    whole += [rows for rows in labels.values() if len(rows) >= _LEAST_ROWS]
    return max(whole, key=lambda rows: _worth(subject, rows), default=[])[:_MOST_ROWS]


def _to_total(rows: Sequence[Statement]) -> list[Statement]:
    """None of the rows behind the first total."""
    parts = list(takewhile(lambda one: not _is_total(one), rows))
    return [*parts, *rows[len(parts) : len(parts) + 1]]


def _one_label(rows: Sequence[Statement]) -> bool:
    return len({one.row.label for one in rows if one.row}) == 1


def _is_total(one: Statement) -> bool:
    return one.row is not None and one.row.label.lower().startswith(("total", "consolidated"))


def _worth(subject: Subject, rows: Sequence[Statement]) -> float:
    """The share of the subject's weight in the rows, their headings and the lines right above them.

    A total says that the rows are its parts, and so does one label, which names what is broken down.
    """
    chunk, start = rows[0].chunk, rows[0].unit.start
    terms = heading_terms(chunk).union(
        tokens(chunk.text[max(0, start - _CAPTION) : start]), *(one.terms for one in rows)
    )
    held = sum(weight for term, weight in subject.weights.items() if term in terms)
    return (
        held / sum(subject.weights.values())
        + _PRIOR / rows[0].marker
        + _PRIOR * (_is_total(rows[-1]) or _one_label(rows))
    )
