"""Answers to parts of a question, joined into one with its passages and markers numbered anew."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from app.retrieval.fusion import in_order
from app.types import Answer, Hit

_MARKER = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one part of a question was answered with, or that it was not."""

    about: str
    """The part: a company, a period, a filing."""
    answer: Answer


def joined(findings: Sequence[Finding], k: int) -> Answer:
    """One answer: each part's lines under its name, passages best first in turn, those that are cited never cut.

    It abstains for the first part's reason where no part has an answer.
    """
    known = [finding for finding in findings if not finding.answer.abstained]
    cited = {citation.chunk_id for finding in findings for citation in finding.answer.citations}
    passages = merged([finding.answer.passages for finding in findings], k, cited)
    if not known:
        answer = findings[0].answer
        return replace(answer, passages=passages, notes=_notes(findings))
    rank = {hit.chunk.id: hit.rank for hit in passages}
    text, citations, calculations = "", [], []
    for finding in known:
        own = finding.answer
        new = {hit.rank: rank[hit.chunk.id] for hit in own.passages if hit.chunk.id in rank}
        heading = f"{finding.about}:\n" if len(findings) > 1 and finding.about else ""
        text += ("\n" if text else "") + heading
        body, shifts = _renumbered(own.text, new)
        citations += [
            replace(made, marker=new[made.marker], answer_span=_span(made.answer_span, len(text), shifts))
            for made in own.citations
        ]
        calculations += [
            replace(made, answer_span=_span(made.answer_span, len(text), shifts)) for made in own.calculations
        ]
        text += body
    return Answer(text, tuple(citations), passages, notes=_notes(findings), calculations=tuple(calculations))


def _span(span: tuple[int, int], begin: int, shifts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """A slice of a finding's own text, in the text that it is put into at `begin`."""
    start, end = (begin + at + sum(by for place, by in shifts if place <= at) for at in span)
    return start, end


def _renumbered(text: str, new: dict[int, int]) -> tuple[str, list[tuple[int, int]]]:
    """The text with its markers replaced, and by how much what follows each place has moved."""
    shifts: list[tuple[int, int]] = []
    out, at = "", 0
    for match in _MARKER.finditer(text):
        marker = f"[{new.get(int(match[1]), int(match[1]))}]"
        out += text[at : match.start()] + marker
        at = match.end()
        shifts.append((match.end(), len(marker) - len(match[0])))
    return out + text[at:], shifts


def merged(several: Sequence[Sequence[Hit]], k: int, cited: Set[str] = frozenset()) -> tuple[Hit, ...]:
    """Every list's first passage, then every list's second, ...; beyond k the cited ones alone, by their chunk ids."""
    ordered: dict[str, Hit] = {}
    for hit in _in_turn(several):
        ordered.setdefault(hit.chunk.id, hit)
    room = k - len(cited & ordered.keys())
    kept: list[Hit] = []
    for key, hit in ordered.items():
        if key in cited:
            kept.append(hit)
        elif room > 0:
            kept.append(hit)
            room -= 1
    return tuple(in_order(kept))


def _in_turn(several: Sequence[Sequence[Hit]]) -> Iterator[Hit]:
    for position in range(max(map(len, several), default=0)):
        yield from (hits[position] for hits in several if position < len(hits))


def _notes(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Each part's, and which parts have no answer."""
    notes = [note for finding in findings for note in finding.answer.notes]
    if len(findings) > 1:
        missing = [finding for finding in findings if finding.answer.abstained and finding.about]
        notes += [f"not answered for {f.about}: {f.answer.text}" for f in missing]
    return tuple(dict.fromkeys(notes))
