"""Which of the sectors that a question names each company belongs to, where no filing says it in its words."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.tools import Tools
from app.types import Filter, Leg

_NAMED = re.compile(r"\b(?:of|among|between|across) (?P<list>[^?]+?),? (?:which|what) (?:sector|industry)\b", re.I)
_ASKED = re.compile(
    r"\b(?:sectors?|industr(?:y|ies))(?:,|:| \(| such as| among)? (?P<list>(?:[A-Z][\w&]+(?:,? (?:and|or) |, )?){2,})"
)
_BUSINESS = re.compile(r"\bbusiness\b|\bcompany overview\b|\binformation on the company\b", re.I)
_BEST = 3
"""Passages of a company that speak for it."""
_DEPTH = 1000


def named_sectors(question: str) -> tuple[str, ...]:
    """`Of Banks, Energy and Software, which sector ...` -> Banks, Energy, Software."""
    match = _NAMED.search(question) or _ASKED.search(question)
    parts = re.split(r",? (?:and|or) |, ", match["list"]) if match else []
    return tuple(part.strip() for part in parts if part.strip()) if len(parts) > 1 else ()


async def assigned(
    names: Sequence[str], known: Mapping[str, str | None], where: Filter, tools: Tools
) -> dict[str, str]:
    """Sector by company: the recorded one where it is among `names`, else the nearest to what it says of itself.

    Nearness is the mean cosine of a company's best passages on its business, and that of its recorded sector's name,
    each standardised over the companies, for one name may be near to every text.
    """
    by_fold = {name.casefold(): name for name in names}
    sure = {company: by_fold[s.casefold()] for company, s in known.items() if s and s.casefold() in by_fold}
    if len(sure) == len(known):
        return sure
    recorded = sorted({sector for sector in known.values() if sector})
    vectors = await tools.embed_queries([*(f"{name} business" for name in names), *names, *recorded])
    legs = [Leg("dense", query, _DEPTH) for query in vectors[: len(names)]]
    scores: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in names])
    for n, found in enumerate(await tools.search(legs, where)):
        for hit in found.hits:
            company = hit.chunk.meta.company or hit.chunk.meta.title
            if _BUSINESS.search(hit.chunk.section or "") and len(scores[company][n]) < _BEST:
                scores[company][n].append(hit.score)
    companies = [company for company in known if company in scores and all(scores[company])]
    if not companies:
        return sure
    near = _standard(np.array([[np.mean(found) for found in scores[company]] for company in companies]))
    like = vectors[2 * len(names) :] @ vectors[len(names) : 2 * len(names)].T
    labelled = np.array([like[recorded.index(s)] if (s := known[c]) else np.zeros(len(names)) for c in companies])
    best = (near + _standard(labelled)).argmax(axis=1)
    return {company: names[int(n)] for company, n in zip(companies, best, strict=True)} | sure


def _standard(columns: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    spread = columns.std(axis=0)
    scores: npt.NDArray[np.floating[Any]] = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scores
