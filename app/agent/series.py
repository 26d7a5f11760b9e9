"""One line of the statements for every part of a question over time: the row that most filings print, asked of each."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.adapters.bm25 import tokens
from app.evidence.statements import Statement, columns_of, match, statements, subject_of
from app.types import Hit

_LEAST_COVERAGE = 0.5
"""Of the topic, below which a row says too little of it: a `Total` of something else."""
_LEAST_FOCUS = 0.5
"""Below it a row's label says mostly something else than what is asked for."""
_LEAST_SHARE = 0.6
"""Of the parts, those whose passages must print the row."""
_NAME = re.compile(r"\b\w*[A-Z]\w*\b")
PERIOD = "in the quarter"
"""Beside a line's label: of a quarterly filing's columns, those of the quarter and not of the year to date."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row that several filings print under the same label."""

    label: str
    """As most often printed."""
    terms: frozenset[str]


def common_line(topic: str, parts: Sequence[Sequence[Hit]]) -> Line | None:
    """The row that suits the topic best over all parts together; None where too few of them print one.

    A part alone may well hold a better looking row or sentence; figures that are to be compared must be of one line.
    What the topic names (a product, a segment) the row must name.
    """
    scores: dict[frozenset[str], dict[int, float]] = defaultdict(dict)
    labels: dict[frozenset[str], list[str]] = defaultdict(list)
    for number, hits in enumerate(parts):
        for statement, score in _suiting(topic, hits):
            held = scores[statement.terms]
            held[number] = max(score, held.get(number, 0.0))
            labels[statement.terms].append(_label(statement))
    needed = max(2, _LEAST_SHARE * len(parts))
    shared = {terms: sum(held.values()) for terms, held in scores.items() if len(held) >= needed}
    if not shared:
        return None
    best = min(shared, key=lambda terms: (-shared[terms], len(terms), sorted(terms)))
    return Line(max(labels[best], key=labels[best].count), best)


def printing(line: Line, hits: Sequence[Hit]) -> list[Hit]:
    """Of the hits those that print the row, first those that print it with one value for the filing's own period."""
    found = [(hit, rows) for hit in hits if (rows := [s for s in statements([hit]) if s.row and s.terms == line.terms])]
    return [
        hit for hit, _ in sorted(found, key=lambda each: not any(len(columns_of(s, PERIOD, ())) == 1 for s in each[1]))
    ]


def _suiting(topic: str, hits: Sequence[Hit]) -> Iterator[tuple[Statement, float]]:
    """The rows that are about the topic, with how well they suit it."""
    subject = subject_of(topic, hits)
    names = set(tokens(" ".join(_NAME.findall(topic))))
    for statement in statements(hits):
        if statement.row is None or (names and not names & statement.terms):
            continue
        covered, focus = match(subject, statement)
        if covered >= _LEAST_COVERAGE and focus >= _LEAST_FOCUS:
            yield statement, covered + focus


def _label(statement: Statement) -> str:
    return f"{statement.group} {statement.row.label if statement.row else ''}".strip()
