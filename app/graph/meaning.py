"""Which of the corpus' own phrases mean what a question asks about, where none has its words."""

from collections.abc import Sequence

import numpy as np

from app.tools import Tools
from app.types import Entity, Filter

NEAR = 0.65
"""Cosine from which a phrase means the theme asked for, by the default embedding model.

Over 352 phrases of real filings and 35 themes, 81 % of the pairs above it have a word of the theme in the phrase, and
63 % of those above .6: a lower one counts what nobody asked about.
"""
_SHOWN = 5
_MOST = 2000
"""Phrases compared with a question, those of most filings: each is embedded once, and remembered."""


async def near(phrase: str, where: Filter, tools: Tools) -> list[Entity]:
    """Records of the phrases and themes that the caller's filings hold and that mean this one; empty below NEAR.

    The trace tells the nearest and how near they are, whether or not they are near enough.
    """
    held = await tools.records(Entity, where, {"type": ["concept", "theme"]})
    filings: dict[str, int] = {}
    for entity in held:
        filings[entity.name] = filings.get(entity.name, 0) + 1
    names = sorted(filings, key=lambda name: (-filings[name], name))[:_MOST]
    if not names:
        return []
    vectors = await tools.embed_queries([phrase, *names])
    similarity = vectors[1:] @ vectors[0]
    order = np.argsort(-similarity, kind="stable")
    meant = {names[i] for i in order if similarity[i] >= NEAR}
    step = tools.note(
        "meaning",
        phrase=phrase,
        nearest=_told(names, similarity.tolist(), order[:_SHOWN].tolist()),
        threshold=NEAR,
        taken=sorted(meant),
    )
    step.ops = {"dense": len(names)}
    return [entity for entity in held if entity.name in meant]


def _told(names: Sequence[str], similarity: Sequence[float], order: Sequence[int]) -> list[dict[str, float | str]]:
    return [{"phrase": names[i], "cosine": round(similarity[i], 3)} for i in order]
