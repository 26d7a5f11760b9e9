"""Which statements a newer filing of the same company stands before, where a question names no period."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from app.evidence.statements import HOW_MANY, Statement, Subject
from app.question.decomposition import OVER_TIME
from app.question.lines import LINES
from app.question.reading import ANNUAL, COMPARED
from app.types import DocumentMeta

_OF_ANY_TIME = re.compile(r"\b(?:ever|when|which (?:fiscal )?(?:year|quarter)|filings|since)\b", re.IGNORECASE)
"""Asks what happened at some time, which an older filing may be the one to tell."""

_FARTHEST = 4
"""Years behind that weigh as much as more: what an older filing alone says is still to be found."""
_Rank: TypeAlias = tuple[str, str]
"""The day up to which a filing's amounts stand and that on which it was filed; the greatest is meant."""


def years_behind(question: str, subject: Subject, pool: Sequence[Statement]) -> list[int]:
    """Of each statement, how far its filing is behind the one meant of its company: 0 that one, 1 or more another.

    Meant is the newest; where no balance or count is asked for but what is a year's, the annual one within a year of
    it. None is behind where a period is named, no company is, or several filings are asked about.
    """
    several = any(pattern.search(question) for pattern in (OVER_TIME, COMPARED, _OF_ANY_TIME))
    if subject.periods or several or not subject.companies:
        return [0] * len(pool)
    any_form = bool(HOW_MANY.search(question)) or _are_balances(subject.lines)
    ranks = [_rank(statement.chunk.meta, any_form=any_form) for statement in pool]
    newest: dict[str | None, _Rank] = {}
    for statement, rank in zip(pool, ranks, strict=True):
        company = statement.chunk.meta.company
        newest[company] = max(rank, newest.get(company, rank))
    return [_behind(rank, newest[statement.chunk.meta.company]) for statement, rank in zip(pool, ranks, strict=True)]


def _are_balances(lines: Sequence[str]) -> bool:
    return bool(lines) and all(LINES[key].statement == "balance" for key in lines)


def _rank(meta: DocumentMeta, *, any_form: bool) -> _Rank:
    """An annual filing's amounts stand for another year, before those of the quarters in it."""
    end = meta.period_end or ""
    stands = end and not any_form and meta.form in ANNUAL
    return f"{int(end[:4]) + 1}{end[4:]}" if stands else end, meta.filed or ""


def _behind(rank: _Rank, newest: _Rank) -> int:
    """A filing of no known period is as far behind as any."""
    if rank == newest:
        return 0
    if not rank[0]:
        return _FARTHEST
    return min(max(int(newest[0][:4]) - int(rank[0][:4]), 1), _FARTHEST)
