"""Grades passages: the calibrated probability that each answers the question (Yan et al., 2024)."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from app.evidence.statements import line_of, match, statements, subject_of, tells_of
from app.question.periods import named_periods
from app.question.reading import Reading, looks_ahead
from app.retrieval.fusion import C
from app.tools import Tools
from app.types import Hit, LegRank

GRADE = "grade"
"""Name under which a passage's probability stands among its legs."""
_SEVERAL = 2
"""Periods beyond which their number says no more."""


async def graded(question: str, reading: Reading, hits: Sequence[Hit], tools: Tools) -> list[Hit]:
    """The hits by their grade, best first; it and the cross-encoder's score stand among their legs.

    The grade weighs the cross-encoder with the other scores: alone it makes a worse order.
    """
    if not hits:
        return []
    pool = await reranked(question, hits, tools)
    rows = await asyncio.to_thread(features, question, reading, pool)
    grades = [tools.ports.calibration.probability(row) for row in rows]
    marked = _placed([_with(hit, GRADE, grade) for hit, grade in zip(pool, grades, strict=True)], "rerank")
    return [
        replace(hit, rank=hit.legs[GRADE].rank, score=grade_of(hit))
        for hit in sorted(_placed(marked, GRADE), key=lambda hit: hit.legs[GRADE].rank)
    ]


async def reranked(question: str, hits: Sequence[Hit], tools: Tools) -> list[Hit]:
    """The hits in their order, the cross-encoder's score among their legs; those that have it are not read again."""
    unread = [hit for hit in hits if "rerank" not in hit.legs]
    logits = iter(await tools.rerank(question, unread) if unread else ())
    return [hit if "rerank" in hit.legs else _with(hit, "rerank", next(logits)) for hit in hits]


def ungraded(hit: Hit) -> Hit:
    """The hit as the search found it, to be graded anew."""
    return replace(hit, legs={name: leg for name, leg in hit.legs.items() if name not in ("rerank", GRADE)})


def _with(hit: Hit, leg: str, score: float) -> Hit:
    return replace(hit, legs={**hit.legs, leg: LegRank(0, score)})


def _placed(hits: Sequence[Hit], leg: str) -> list[Hit]:
    """In the order given; the leg's ranks from its scores."""
    order = sorted(range(len(hits)), key=lambda i: (-hits[i].legs[leg].score, i))
    ranks = {index: rank for rank, index in enumerate(order, start=1)}
    return [replace(hit, legs={**hit.legs, leg: LegRank(ranks[i], hit.legs[leg].score)}) for i, hit in enumerate(hits)]


def grade_of(hit: Hit) -> float:
    return hit.legs[GRADE].score


def features(question: str, reading: Reading, hits: Sequence[Hit]) -> list[tuple[float, ...]]:
    """Per hit, in the order of `FEATURES`. `hits` are a pool: where a leg did not find one, its lowest score counts."""
    subject = subject_of(question, hits)
    dense, logits = _scores(hits, "dense"), _scores(hits, "rerank")
    rows: list[tuple[float, ...]] = []
    for i, hit in enumerate(hits):
        told = [tells_of(hit.chunk, period) for period in subject.periods]
        period = sum(told) / len(told) if told else 1.0
        found = statements([hit])
        line = any(line_of(subject, statement) for statement in found)
        rows.append(
            (
                logits[i],
                dense[i],
                max((match(subject, statement)[0] for statement in found), default=0.0),
                line * period,
                _agreed(hit),
                period,
                float(min(len(subject.periods), _SEVERAL)),
                float(not reading.companies or hit.chunk.meta.company in reading.companies),
                float(bool(reading.relaxed)),
            )
        )
    return rows


def _agreed(hit: Hit) -> float:
    """What the lower of its ranks in both legs would add to a fusion by ranks, 1 at best; an absent one adds 0."""
    return min(C / (C + hit.legs[leg].rank) if leg in hit.legs else 0.0 for leg in ("dense", "bm25"))


def missing(question: str, reading: Reading, hits: Sequence[Hit]) -> tuple[str, ...]:
    """What the question is about and the index cannot answer for.

    Companies without a filing that no passage mentions, periods after the last filing of the companies named, and
    periods if the passages tell of none, unless it looks ahead.
    """
    said = "\n".join(hit.chunk.searchable for hit in hits) if reading.strangers else ""
    absent = tuple(name for name in reading.strangers if not _says(said, name))
    periods = () if looks_ahead(question) else named_periods(question)
    if periods and hits and not any(tells_of(hit.chunk, period) for hit in hits for period in periods):
        return (*absent, *map(str, periods))
    return (*absent, *reading.beyond)


def _says(text: str, name: str) -> bool:
    """Whether it has the name as it is written, or in capitals; one in letters of one size however it is written."""
    if name.islower() or name.isupper():
        return re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) is not None
    return re.search(rf"\b(?:{re.escape(name)}|{re.escape(name.upper())})\b", text) is not None


def _scores(hits: Sequence[Hit], leg: str) -> list[float]:
    """A hit that the leg did not find has the lowest score of those it found."""
    known = [hit.legs[leg].score for hit in hits if leg in hit.legs]
    lowest = min(known, default=0.0)
    return [hit.legs[leg].score if leg in hit.legs else lowest for hit in hits]
