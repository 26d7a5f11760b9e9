"""One line of the statements for every part of a question over time: the row that most filings print, asked of each."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.adapters.bm25 import query_tokens, tokens
from app.evidence.statements import Statement, columns_of, match, statements, subject_of
from app.question.lines import LINES, named_lines
from app.types import Hit

_LEAST_COVERAGE = 0.5
"""Of the topic, below which a row says too little of it: a `Total` of something else."""
_LEAST_FOCUS = 0.5
"""Below it a row's label says mostly something else than what is asked for."""
_LEAST_OWN = 2 / 3
"""Of the row's own label, the share that must be what is asked for: `Mooring services` is not `towing services`."""
_LEAST_SHARE = 0.6
"""Of the parts, those whose passages must print the row."""
_NAME = re.compile(r"(?<![\w&])(?:[A-Z][a-z]\w*|[A-Z]{2,}\w*|[a-z]+[A-Z]\w*)(?![\w&])")
_PLAIN = frozenset(tokens("total net other"))
"""Terms of a label that change little of what it is about."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row that several filings print under the same label."""

    label: str
    """As most often printed."""
    terms: frozenset[str]


def common_line(topic: str, parts: Sequence[Sequence[Hit]]) -> Line | None:
    """The row that suits the topic best over all parts together; None where too few of them print one.

    A part alone may well hold a better looking row or sentence; figures that are to be compared must be of one line.
    What the topic names (a product, a segment) the row must name; of `freight revenue` it must say `freight`.
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


def printed(line: Line, hits: Sequence[Hit]) -> Statement | None:
    """The row in these hits, rather one with one value for the filing's own period; its marker is its hit's place."""
    rows = [statement for statement in statements(hits) if statement.row and statement.terms == line.terms]
    return min(rows, key=lambda row: len(own_columns(row)) != 1, default=None)


def own_columns(row: Statement) -> list[int]:
    """Columns of the filing's own period: of a quarterly filing the quarter's, not the year to date's."""
    return columns_of(row, "quarter" if row.chunk.meta.form == "10-Q" else "", ())


def _suiting(topic: str, hits: Sequence[Hit]) -> Iterator[tuple[Statement, float]]:
    """The rows that are about the topic, with how well they suit it."""
    subject = subject_of(topic, hits)
    own = sum(weight for weight in subject.weights.values() if weight == 1.0) or 1.0
    names = set(tokens(" ".join(_NAME.findall(topic))))
    part = _part(topic)
    for statement in statements(hits):
        if statement.row is None or not names <= statement.terms or (part and not part & statement.terms):
            continue
        said = sum(weight for term, weight in subject.weights.items() if term in statement.terms) / own
        focus = match(subject, statement)[1]
        label = set(tokens(statement.row.label))
        if not label or len(label & (subject.weights.keys() | _PLAIN)) < _LEAST_OWN * len(label):
            continue
        if said >= _LEAST_COVERAGE and focus >= _LEAST_FOCUS:
            yield statement, min(said, 1.0) + focus


def _part(topic: str) -> set[str]:
    """What makes the statements' line that a topic names a part of it; empty where it is the whole company's."""
    if named_lines(topic):
        return set()
    asked = (re.finditer(rf"\b(?:{line.asked})(?!\w)", topic, re.IGNORECASE) for line in LINES.values())
    spans = [match.span() for matches in asked for match in matches]
    if not spans:
        return set()
    rest = "".join(" " if any(a <= i < b for a, b in spans) else ch for i, ch in enumerate(topic))
    return set(query_tokens(rest)) - _PLAIN


def _label(statement: Statement) -> str:
    return f"{statement.group} {statement.row.label if statement.row else ''}".strip()
