"""Says where passages contradict an answer: the same row or sentence, of the same company and period, other figures."""

import re
from collections.abc import Hashable, Sequence

from app.evidence.quotes import NUMBER, numbers
from app.evidence.statements import Statement, statements
from app.types import Citation, Hit

PREFIX = "passages disagree: "
_YEAR = re.compile(r"(?:19|20)\d\d")
_MOST = 3
"""Notes given."""


def contradictions(answer: str, citations: Sequence[Citation], hits: Sequence[Hit]) -> list[str]:
    """A note for each figure of the answer that another passage gives otherwise, naming both places.

    Compared are rows with the same label, group, column headings, unit, section and form, and sentences that read the
    same but for their figures; both of one company, and where no year is named, of one fiscal period. So a conflict put
    into other words is missed, and a note is rarely wrong.
    """
    said = statements(hits)
    framed: dict[Hashable, list[Statement]] = {}
    for statement in said:
        framed.setdefault(_frame(statement), []).append(statement)
    notes: dict[str, None] = {}
    for citation in citations:
        claimed = numbers(answer[slice(*citation.answer_span)])
        for own in (s for s in said if _quoted(s, citation)):
            for other in framed[_frame(own)]:
                if other.chunk.id != own.chunk.id and (found := _differing(own, other, claimed)):
                    notes[_note(own, other, *found)] = None
    return list(notes)[:_MOST]


def _quoted(statement: Statement, citation: Citation) -> bool:
    start = statement.chunk.start + statement.unit.start
    end = statement.chunk.start + statement.unit.end
    overlaps = start < citation.span_end and citation.span_start < end
    return statement.chunk.id == citation.chunk_id and overlaps


def _frame(statement: Statement) -> Hashable:
    """What two statements share that speak of the same thing."""
    chunk, row = statement.chunk, statement.row
    if row is None:
        text = " ".join(NUMBER.sub(_masked, statement.unit.text).lower().split())
        return chunk.meta.company, text, _period(statement, statement.unit.text)
    headings = " ".join(chunk.columns)
    label = f"{statement.group} {row.label}".lower()
    period = _period(statement, headings)
    return chunk.meta.company, label, chunk.columns, chunk.unit, chunk.section, chunk.meta.form, period


def _masked(number: re.Match[str]) -> str:
    """Years stay: a figure of another year contradicts nothing."""
    text = number.group()
    return text if _YEAR.fullmatch(text.rstrip(",")) else "#"


def _period(statement: Statement, text: str) -> tuple[int | None, str | None] | None:
    """The filing's own where the text names no year."""
    meta = statement.chunk.meta
    return None if _YEAR.search(text) else (meta.fiscal_year, meta.fiscal_period)


def _differing(own: Statement, other: Statement, claimed: frozenset[str]) -> tuple[str, str] | None:
    """The first figure that the answer states and the other gives otherwise, as printed in both."""
    for a, b in zip(_figures(own), _figures(other), strict=False):
        if numbers(a) != numbers(b) and numbers(a) & claimed and numbers(b) and not numbers(b) <= claimed:
            return a, b
    return None


def _figures(statement: Statement) -> Sequence[str]:
    """Of a row whose columns are headed, its values."""
    if statement.row is None:
        return [n for n in NUMBER.findall(statement.unit.text) if not _YEAR.fullmatch(n.rstrip(","))]
    values = statement.row.values
    return values if len(values) == len(statement.chunk.columns) else ()


def _note(own: Statement, other: Statement, a: str, b: str) -> str:
    place = f"{other.chunk.meta.title}, page {other.chunk.page}"
    return f"{PREFIX}[{own.marker}] gives {a}, passage {other.marker} gives {b} ({place})"
