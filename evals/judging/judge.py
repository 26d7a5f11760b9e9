"""Who judges answers: what a judge is asked, and one that decides by rules, without a language model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

import numpy as np
import nupunkt

from app.adapters.bm25 import tokens
from app.evidence.quantities import Quantity, located, matched, quantities
from app.evidence.quotes import NUMBER, support
from app.evidence.rows import read_row
from app.ports import Embedder

MARKER = re.compile(r"\s*\[\d+\]")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_CLAUSE = re.compile(r"\b(?:compared|versus|from|against)\b|\band\b(?!\s*[$€£]?\d)")
"""What ends the words that speak of a number."""
_NEGATION = re.compile(r"\b(?:not?|none|never|nothing|neither|nor|without)\b|n['’]t\b", re.I)
_UP = re.compile(r"\b(?:rose|risen|rises?|increas\w+|gr[eo]w\w*|higher|up|gains?|raised|lifted)\b", re.I)
_DOWN = re.compile(r"\b(?:fell|fall\w*|decreas\w+|declin\w+|lower\w*|down|drop\w*|reduc\w+)\b", re.I)
_NAME = re.compile(r"(?<=[a-z0-9,;’'] )[A-Z][a-z]{2,}|^[A-Z][a-z]{2,}(?= (?:& )?[A-Z][a-z])")
"""A capitalised word inside a sentence, or that begins it before another one."""
_HEDGE = re.compile(r"\b(?:about|roughly|approximately|around|nearly|almost|some|over|more than)\b", re.IGNORECASE)
_CURRENCY = re.compile(r"[$€£¥]|\b(?:USD|EUR|GBP|JPY|CHF)\b")
_CODES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_MONTHS = frozenset("january february march april may june july august september october november december".split())


@dataclass(frozen=True, slots=True)
class Verdict:
    claim: str
    """One statement of the text judged."""
    supported: bool
    """Whether the passages say so."""


class Judge(Protocol):
    """Passages are texts as a reader sees them: source, headings, body. Raises SextantError where it needs a model."""

    @property
    def name(self) -> str: ...

    async def attribute(self, text: str, passages: Sequence[str]) -> list[Verdict]:
        """The text's claims, each with whether the passages support it; empty where it claims nothing."""

    async def asked(self, answer: str) -> list[str]:
        """Questions that the answer would answer; empty where it commits itself to nothing."""

    async def useful(self, question: str, gold: str, passages: Sequence[str]) -> list[bool]:
        """Per passage, whether it helps to arrive at the gold answer."""


@dataclass(frozen=True, slots=True)
class RuleJudge:
    """A proxy for a reader, by rules that can be checked by hand; its agreement with labels says how far it goes.

    A claim is a sentence. A passage supports it where the claim's years, names and currency are in the passage, every
    number with its unit and scale too (one claimed alone in the sentence or row that the claim's words fit best, under
    the year named), and that sentence or row agrees on negation and direction and holds most of the claim's terms; some
    suffice where a number was found, or the two are near by embedding. It follows no inference, sum or cause. It writes
    no questions: an answer's own claims stand for those it answers.
    """

    embedder: Embedder
    least: float = 0.5
    """Share of the claim's terms that a sentence must hold."""
    some: float = 0.3
    """The share from which on embeddings may decide."""
    near: float = 0.6
    """The cosine that decides."""

    @property
    def name(self) -> str:
        return "rules"

    async def attribute(self, text: str, passages: Sequence[str]) -> list[Verdict]:
        found = []
        for claim in claims(text):
            held = [unit for passage in passages for unit in _candidates(claim, passage)]
            sure = any(share >= self.least for share, _ in held)
            unsure = [unit for share, unit in held if self.some <= share < self.least]
            near = bool(unsure) and (bool(quantities(claim)) or await self._nearest(claim, unsure) >= self.near)
            found.append(Verdict(claim, sure or near))
        return found

    async def asked(self, answer: str) -> list[str]:
        return claims(answer)

    async def useful(self, question: str, gold: str, passages: Sequence[str]) -> list[bool]:
        wanted = gold_statement(question, gold)
        verdicts = [await self.attribute(wanted, [passage]) for passage in passages]
        return [any(v.supported for v in several) for several in verdicts]

    async def _nearest(self, claim: str, units: Sequence[str]) -> float:
        [query] = await self.embedder.queries([claim])
        return float(np.max(await self.embedder.passages(list(units)) @ query))


def claims(text: str) -> list[str]:
    """Sentences, without markers; a line ends one, and one without a word of three letters claims nothing."""
    plain = MARKER.sub("", text)
    lines = [line for line in plain.splitlines() if line.strip()]
    sentences = [line[a:b].strip() for line in lines for a, b in nupunkt.sent_spans(line)]
    return [s for s in sentences if re.search(r"[A-Za-z]{3}", s)]


def gold_statement(question: str, gold: str) -> str:
    """A gold answer as a claim: one that is hardly more than a figure says nothing without its question."""
    return gold if len(re.findall(r"[A-Za-z]{2,}", gold)) >= 5 else f"{question.rstrip(' ?.')}: {gold}"


def _candidates(claim: str, passage: str) -> Iterator[tuple[float, str]]:
    """(share of the claim's terms, unit) of the units that may carry the claim: those its words fit best."""
    said = passage.lower()
    names = {name.lower() for name in _NAME.findall(claim)} - _MONTHS
    if any(word not in said for word in (*_YEAR.findall(claim), *names)) or _currencies(claim, passage):
        return
    wanted, units = _meant(claim), _units(passage)
    if not all(matched(w, (q for unit in units for q in unit.values)) for w in wanted):
        return
    able = [unit for unit in units if unit.values] if wanted else units
    fits = [support(NUMBER.sub(" ", claim), NUMBER.sub(" ", unit.text), "") for unit in able]
    for unit, fit in zip(able, fits, strict=True):
        if fit < max(fits) * (1 if len(wanted) == 1 else 0.8):
            continue
        if len(wanted) == 1 and not matched(wanted[0], unit.in_years(claim)):
            continue
        if bool(_NEGATION.search(claim)) == bool(_NEGATION.search(unit.text)) and not _opposed(claim, unit.text):
            yield support(claim, unit.text, passage), unit.text


def _meant(claim: str) -> list[Quantity]:
    """The claim's quantities; after "about", zeros at the end are rounding."""
    found = quantities(claim)
    if not _HEDGE.search(claim):
        return found
    return [q if q.half < Decimal("0.5") else replace(q, half=_last_place(q.value) / 2) for q in found]


def _last_place(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(int(value.normalize().as_tuple().exponent))


def _currencies(claim: str, passage: str) -> bool:
    """Whether the claim names a currency other than the passage's."""
    ours, theirs = ({_CODES.get(c, c) for c in _CURRENCY.findall(text)} for text in (claim, passage))
    return bool(theirs) and not ours <= theirs


def _opposed(claim: str, text: str) -> bool:
    """One only says up, the other only says down."""
    up, down = (bool(_UP.search(claim)), bool(_UP.search(text))), (bool(_DOWN.search(claim)), bool(_DOWN.search(text)))
    return (up, down) in (((True, False), (False, True)), ((False, True), (True, False)))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence or row of a passage."""

    text: str
    values: tuple[Quantity, ...]
    years: tuple[str, ...] = ()
    """The year each value belongs to, "" where none is said: of a row its column's, of a sentence the next one."""

    def in_years(self, claim: str) -> Sequence[Quantity]:
        """The values of the years that the claim names; all where it names none of this unit's."""
        named = set(_YEAR.findall(claim)) & set(self.years)
        return [v for v, year in zip(self.values, self.years, strict=True) if year in named] if named else self.values


@lru_cache(maxsize=4096)
def _units(passage: str) -> tuple[_Unit, ...]:
    found: list[_Unit] = []
    heads: list[str] = []
    for line in passage.splitlines():
        row, headed = read_row(line), _YEAR.findall(line)
        if row is None or (len(headed) > 1 and not quantities(line)):
            heads = headed if len(headed) > 1 else heads
            found += [_sentence(line[a:b].strip(), passage) for a, b in nupunkt.sent_spans(line)]
            continue
        # A value per share is no value in millions, whatever the table's heading says.
        per_share = "per share" in line.lower()
        values = tuple(q for value in row.values for q in quantities(value, hint="" if per_share else passage))
        values = tuple(replace(q, scale=0) for q in values) if per_share else values
        found.append(_Unit(line, values, tuple(heads) if len(heads) == len(values) else ("",) * len(values)))
    return tuple(unit for unit in found if tokens(unit.text))


def _sentence(text: str, passage: str) -> _Unit:
    placed = located(text, hint=passage)
    clauses = [_CLAUSE.split(text[start:], maxsplit=1)[0] for start, _ in placed]
    years = tuple((_YEAR.findall(clause) or [""])[0] for clause in clauses)
    return _Unit(text, tuple(q for _, q in placed), years)
