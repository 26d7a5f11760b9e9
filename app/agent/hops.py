"""Where a question points beyond the filing that it names: whether, to which company, and in which direction."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.adapters.bm25 import query_tokens, tokens
from app.evidence.quotes import Unit, units
from app.question.companies import named_companies, strangers, without_names
from app.question.decomposition import companies_in
from app.types import Document, FloatArray, Hit

_ROLE = (
    r"(?:acquirer|administrator|agent|auditor|bank|borrower|broker|business|buyer|carrier|client|competitor|contractor"
    r"|counterparty|customer|dealer|developer|distributor|employer|franchisee|guarantor|insurer|investor|landlord"
    r"|lender|lessee|lessor|licensee|licensor|manufacturer|operator|owner|parent|partner|processor|producer|provider"
    r"|publisher|purchaser|retailer|rival|seller|servicer|shareholder|sponsor|subsidiary|supplier|target|tenant|trustee"
    r"|underwriter|utility|vendor)"
)
_ANYONE = rf"(?:{_ROLE}|company|corporation|entity|firm|maker)"
_RELATIVE = re.compile(
    rf"\b(?:the|an?|those|any)\s+(?:(?!(?:the|an?|of|by|to|for|in|from|with|and)\b)[\w’'-]+\s+){{0,3}}?{_ANYONE}s?\s+"
    rf"(?:that|which|who|whom|whose|named|(?:from|by|with|to|for|of|in)\s+(?:which|whom))\b",
    re.IGNORECASE,
)
_THEN = r"(?!\s+(?:of|that|which|who|whom|whose|named)\b)"
_BACK = re.compile(
    rf"\b(?:that|those|these|the same)\s+(?:[\w-]+\s+){{0,2}}?{_ANYONE}s?(?:['’]s?)?\b{_THEN}"
    r"|\bthat\s+[\w-]+['’]s\b"
    r"|\bthe\s+(?:acquirer|auditor|buyer|insurer|landlord|lender|publisher|purchaser|seller|sponsor|supplier|underwriter"
    rf"|vendor)(?:['’]s?)?\b{_THEN}",
    re.IGNORECASE,
)
"""What refers back to somebody not named: "that supplier's", "the same firm", "the seller"."""
_WHO = re.compile(
    r"\b(?:from|by|to|with) whom\b|\bwho (?:acquire|arrange|audit|bought|buy|insure|lease|lend|lent|manage|operate|own"
    r"|provide|purchase|sell|sold|suppl)\w*\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,.?!](?!\d)|$")
_ASKED_FIRST = re.compile(r"^.*?,?\s+and\s+(?=(?:\w+\s+){0,2}?(?:what|how|when|where|which|who)\b)", re.IGNORECASE)
"""Of "Who supplies us, and what was that supplier's revenue?", what comes before the second question."""


def points_beyond(question: str) -> bool:
    """Whether somebody is asked about whom the question describes instead of naming: "the company that ..."."""
    return bool(_RELATIVE.search(question) or _BACK.search(question) or _WHO.search(question))


def residual(passage: FloatArray, query: FloatArray) -> tuple[FloatArray, float]:
    """d − ⟨d,q⟩q for unit vectors, as a unit vector, and its norm (0 to 1): how far d leads away from q."""
    rest = passage - float(passage @ query) * query
    norm = float(np.linalg.norm(rest))
    return np.asarray(rest / norm if norm else rest, np.float32), norm


@dataclass(frozen=True, slots=True)
class Lead:
    """A company that a passage names and the question does not."""

    company: str
    hit: Hit
    unit: Unit | None
    """The sentence that names it; None where the passage is of its own filing."""
    score: float
    """Share of the question's terms near the name, and a little for the passage's rank."""


def leads(question: str, hits: Sequence[Hit], catalogue: Sequence[Document]) -> list[Lead]:
    """Best first, one per company."""
    asked = named_companies(question, catalogue)
    terms = set(query_tokens(without_names(question, sorted(asked))))
    unknown = strangers(question)
    best: dict[str, Lead] = {}
    for hit in hits:
        for lead in _leads_of(hit, asked, terms, catalogue, unknown):
            if lead.company not in best or lead.score > best[lead.company].score:
                best[lead.company] = lead
    return sorted(best.values(), key=lambda lead: (-lead.score, lead.company))


def _leads_of(
    hit: Hit, asked: frozenset[str], terms: set[str], catalogue: Sequence[Document], unknown: Sequence[str]
) -> list[Lead]:
    filer = hit.chunk.meta.company
    prior = 0.1 / hit.rank
    found: list[Lead] = []
    parts = units(hit.chunk)
    for i, unit in enumerate(parts):
        for company in companies_in(unit.text, catalogue) - asked - {filer}:
            around = " ".join(part.text for part in parts[max(i - 1, 0) : i + 2])
            near = (2 * _share(terms, unit.text) + _share(terms, around)) / 3
            found.append(Lead(company, hit, unit, near + prior))
    if filer and not asked and hit.rank == 1 and not unknown:
        found.append(Lead(filer, hit, None, _share(terms, hit.chunk.text) + prior))
    return found


def _share(terms: set[str], text: str) -> float:
    return len(terms & set(tokens(text))) / (len(terms) or 1)


def resolved(question: str, company: str) -> str:
    """The question with the company in the place of what stands for it, and without what only describes it.

    "That vendor's revenue" becomes "Acme's revenue", and the sentences before go; "the bank that lent to us" becomes
    "Acme". Where nothing stands for it, the name is put in front.
    """
    sentences = re.split(r"(?<=[.?!])\s+", question)
    for n, sentence in reversed(list(enumerate(sentences))):
        relative, back = _RELATIVE.search(sentence), _BACK.search(sentence)
        if relative and (back is None or relative.start() <= back.start()):
            end = _CLAUSE.search(sentence, relative.end())
            said = f"{sentence[: relative.start()]}{company}{sentence[end.start() if end else len(sentence) :]}"
            return " ".join((said, *sentences[n + 1 :]))
        if back:
            first = _ASKED_FIRST.match(sentence)
            begin = first.end() if first and first.end() <= back.start() else 0
            possessive = "'s" if re.search(r"['’]s?$", back[0]) else ""
            return " ".join(
                (f"{sentence[begin : back.start()]}{company}{possessive}{sentence[back.end() :]}", *sentences[n + 1 :])
            )
    return f"{company}: {question}"
