"""What lies around a question in the graph: the entities it names, whom they are related to, where that is said."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from app.graph.asking import role_of
from app.graph.names import canonical, merges, spans_of_words
from app.graph.walking import pagerank
from app.tools import Tools
from app.types import Entity, Filter, Hit, Relation

_HUB = 60
"""Passages from which an entity says nothing of one: it is everywhere."""
_PASSAGE_SEED = 0.02
"""Of the most similar passage against an entity that the question names; .05 in HippoRAG 2."""
_RELATED = 1.0
_SHARED_WORDS = frozenset(("theme", "concept"))


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities by key, each with the passages that mention it, and the relations among them."""

    named: Mapping[str, float]
    """Keys that the question names, with how much each tells."""
    passages: Mapping[str, Mapping[str, int]]
    """Mentions by chunk id, by entity key."""
    related: Sequence[tuple[str, str]]
    """Keys of two entities between which a relation is stated, or whose names are alike."""


async def around(
    question: str, seeds: Sequence[Hit], where: Filter, tools: Tools, *, hops: int, keys: Sequence[str] = ()
) -> Neighbourhood | None:
    """None where the index keeps no graph that the caller may see.

    One hop is from the question's entities and the seeds' to all passages that mention them; with two, the entities to
    which a relation leads from those that are named are followed as well. `keys` are taken as if they were named.
    """
    named = await tools.records(Entity, where, {"aliases": spans_of_words(question)})
    named = _longest_only(named, question)
    near = await tools.records(Entity, where, {"chunks": [hit.chunk.id for hit in seeds]}) if seeds else []
    if not named and not near:
        return None
    merged = canonical([*named, *near])
    if found := merges([*named, *near]):
        tools.note("merged", merges=[asdict(merge) for merge in found])
    meant = {merged.get(e.key, e.key) for e in named} | set(keys)
    followed = set(keys) | {e.key for e in [*named, *near] if e.type not in _SHARED_WORDS}
    relations: list[Relation] = []
    if hops > 1 and named:
        relations = await tools.records(Relation, where, {"keys": sorted({e.key for e in named})})
        role = role_of(question)
        relations = [r for r in relations if r.predicate != "risk"]
        told = [r for r in relations if r.predicate == role] or relations
        followed |= {end for r in told for end in (r.subject, r.object)}
    everywhere = await tools.records(Entity, where, {"keys": sorted(followed)})
    passages: dict[str, Counter[str]] = defaultdict(Counter)
    for entity in {(e.document_id, e.key): e for e in [*named, *near, *everywhere]}.values():
        key = merged.get(entity.key, entity.key)
        passages[key].update(mention.chunk_id for mention in entity.mentions)
    telling = {key: how_telling(len(passages[key])) for key in sorted(meant) if passages[key]}
    return Neighbourhood(telling, passages, [(r.subject, r.object) for r in relations])


def how_telling(passages: int) -> float:
    """From 1 for a name that stands in one passage down to 0 for one that stands in all of very many."""
    return 1 / math.log2(1 + passages)


def _longest_only(entities: Sequence[Entity], question: str) -> list[Entity]:
    """Without what is named only inside a longer name: `bank` in `bank of the west`."""
    runs = set(spans_of_words(question))
    there = {alias for e in entities for alias in e.aliases if alias in runs}
    longest = {a for a in there if not any(a != b and f" {a} " in f" {b} " for b in there)}
    return [e for e in entities if longest & set(e.aliases)]


def ranked(near: Neighbourhood, seeds: Sequence[Hit], similarity: Mapping[str, float], damping: float) -> list[str]:
    """Chunk ids, the likeliest first, by a walk from the question's entities and from similar passages.

    `similarity` is a passage's to the question, for those that are known; the least similar of them seeds nothing. A
    passage and an entity are joined by mentions, two entities by a relation; an entity of many passages joins each the
    less, and one that is everywhere none.
    """
    keys = [key for key, ids in near.passages.items() if len(ids) <= _HUB or key in near.named]
    chunks = list(dict.fromkeys([*(h.chunk.id for h in seeds), *(i for key in keys for i in near.passages[key])]))
    place = {each: n for n, each in enumerate([*chunks, *keys])}
    edges = [
        (place[chunk], place[key], (1 + math.log(mentions)) / len(near.passages[key]) ** 0.5)
        for key in keys
        for chunk, mentions in near.passages[key].items()
    ]
    edges += [(place[a], place[b], _RELATED) for a, b in near.related if a != b and a in place and b in place]
    start = np.zeros(len(place), np.float32)
    for key, weight in near.named.items():
        if key in place:
            start[place[key]] = weight
    least, most = min(similarity.values(), default=0.0), max(similarity.values(), default=0.0)
    for chunk, score in similarity.items():
        if chunk in place:
            start[place[chunk]] = _PASSAGE_SEED * ((score - least) / (most - least) if most > least else 1.0)
    if not start.any():
        return []
    rank = pagerank(edges, start, damping=damping)
    return sorted(chunks, key=lambda each: (-float(rank[place[each]]), each))
