"""What lies around a question in the graph: the entities it names, whom they are related to, where that is said."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.graph.asking import role_of
from app.graph.names import canonical, spans_of_words
from app.graph.walking import pagerank
from app.tools import Tools
from app.types import Entity, Filter, Hit, Relation

_HUB = 60
"""Passages from which an entity says nothing of one: it is everywhere."""
_PASSAGE_SEED = 0.05
"""Of a passage's similarity against an entity that the question names, as in HippoRAG 2."""
_RELATED = 1.0
_SHARED_WORDS = frozenset(("theme", "concept"))


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities by key, each with the passages that mention it, and the relations among them."""

    named: Mapping[str, float]
    """Keys that the question names, with how much each tells."""
    passages: Mapping[str, Sequence[str]]
    """Chunk ids by entity key."""
    relations: Sequence[Relation]


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
    passages: dict[str, dict[str, None]] = defaultdict(dict)
    for entity in {(e.document_id, e.key): e for e in [*named, *near, *everywhere]}.values():
        key = merged.get(entity.key, entity.key)
        passages[key] |= dict.fromkeys(mention.chunk_id for mention in entity.mentions)
    telling = {key: 1 / math.log2(1 + len(passages[key])) for key in sorted(meant) if passages[key]}
    return Neighbourhood(telling, {key: tuple(ids) for key, ids in passages.items()}, relations)


def _longest_only(entities: Sequence[Entity], question: str) -> list[Entity]:
    """Without what is named only inside a longer name: `bank` in `bank of the west`."""
    runs = set(spans_of_words(question))
    there = {alias for e in entities for alias in e.aliases if alias in runs}
    longest = {a for a in there if not any(a != b and f" {a} " in f" {b} " for b in there)}
    return [e for e in entities if longest & set(e.aliases)]


def ranked(near: Neighbourhood, seeds: Sequence[Hit], similarity: Mapping[str, float], damping: float) -> list[str]:
    """Chunk ids, the likeliest first, by a walk from the question's entities and from similar passages.

    A passage and an entity are joined by a mention, two entities by a relation; an entity of many passages joins each
    the less, and one that is everywhere none.
    """
    keys = [key for key, ids in near.passages.items() if len(ids) <= _HUB or key in near.named]
    chunks = list(dict.fromkeys([*(h.chunk.id for h in seeds), *(i for key in keys for i in near.passages[key])]))
    place = {each: n for n, each in enumerate([*chunks, *keys])}
    edges = [(place[i], place[key], 1 / len(near.passages[key]) ** 0.5) for key in keys for i in near.passages[key]]
    edges += [
        (place[r.subject], place[r.object], _RELATED)
        for r in near.relations
        if r.subject != r.object and r.subject in place and r.object in place
    ]
    start = np.zeros(len(place), np.float32)
    for key, weight in near.named.items():
        if key in place:
            start[place[key]] = weight
    best = max(similarity.values(), default=1.0) or 1.0
    for chunk, score in similarity.items():
        if chunk in place:
            start[place[chunk]] = _PASSAGE_SEED * max(score, 0.0) / best
    if not start.any():
        return []
    rank = pagerank(edges, start, damping=damping)
    return sorted(chunks, key=lambda each: (-float(rank[place[each]]), each))
