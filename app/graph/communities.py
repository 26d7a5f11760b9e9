"""Communities: entities mentioned together or related, found by Leiden, level below level (Traag et al., 2019)."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from graspologic_native import hierarchical_leiden

from app.graph.names import canonical
from app.types import Entity, Relation

_SEED = 7
"""The same records give the same communities."""
_LARGEST = 40
"""Entities of a community that is parted no further."""
_CROWD = 16
"""Entities of one passage that are joined; of more, the rarest."""
_RELATED = 2.0
"""Weight of a stated relation against one passage in common."""
_LABEL = 4


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that belong together, by what the visible records say."""

    label: str
    """The names that are mentioned most."""
    keys: tuple[str, ...]
    level: int
    """Outermost is 0."""
    passages: Mapping[str, int]
    """Mentions of its entities by chunk id."""
    companies: tuple[str, ...]
    """Whose filings mention them."""
    names: tuple[str, ...] = ()
    """Of its entities, as most often printed; the most mentioned first."""


def communities(entities: Sequence[Entity], relations: Sequence[Relation]) -> tuple[Community, ...]:
    """Every level, the outermost first; empty where nothing is joined to anything.

    Two entities are joined by each passage that mentions both, the less the more passages mention either: w = n(a,b) /
    √(n(a)·n(b)). Risks join companies to themes in the theme table and say nothing here.
    """
    merged = canonical(entities)
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    names: dict[str, Counter[str]] = defaultdict(Counter)
    owners: dict[str, set[str]] = defaultdict(set)
    for entity in entities:
        key = merged.get(entity.key, entity.key)
        names[key][entity.name] += entity.count
        owners[key].add(entity.meta.company or entity.meta.title)
        for mention in entity.mentions:
            found[key][mention.chunk_id] += 1
    edges = _edges(found)
    for relation in relations:
        ends = sorted(merged.get(end, end) for end in (relation.subject, relation.object))
        if relation.predicate != "risk" and ends[0] != ends[1] and all(end in found for end in ends):
            edges[ends[0], ends[1]] += _RELATED
    if not edges:
        return ()
    listed = sorted((a, b, weight) for (a, b), weight in edges.items())
    clusters = hierarchical_leiden(listed, max_cluster_size=_LARGEST, seed=_SEED)
    members: dict[tuple[int, int], list[str]] = defaultdict(list)
    for each in clusters:
        members[each.level, each.cluster].append(each.node)
    return tuple(
        _community(level, sorted(keys), found, names, owners)
        for (level, _), keys in sorted(members.items())
        if keys[1:]
    )


def _edges(found: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], float]:
    by_passage: dict[str, list[str]] = defaultdict(list)
    for key, passages in found.items():
        for passage in passages:
            by_passage[passage].append(key)
    edges: dict[tuple[str, str], float] = defaultdict(float)
    for keys in by_passage.values():
        rarest = sorted(keys, key=lambda key: (len(found[key]), key))[:_CROWD]
        for a, b in combinations(sorted(rarest), 2):
            edges[a, b] += 1 / math.sqrt(len(found[a]) * len(found[b]))
    return edges


def _community(
    level: int,
    keys: Sequence[str],
    found: Mapping[str, Mapping[str, int]],
    names: Mapping[str, Counter[str]],
    owners: Mapping[str, set[str]],
) -> Community:
    passages: Counter[str] = Counter()
    for key in keys:
        passages.update(found[key])
    often = sorted(keys, key=lambda key: (-names[key].total(), key))
    spoken = tuple(names[key].most_common(1)[0][0] for key in often)
    companies = tuple(sorted(set().union(*(owners[key] for key in keys))))
    return Community(", ".join(spoken[:_LABEL]), tuple(keys), level, dict(passages), companies, spoken)


def helpfulness(community: Community, weights: Mapping[str, float]) -> float:
    """How much of what a search found lies in a community; `weights` by chunk id, and 0 for all others."""
    return sum(weights[chunk] for chunk in community.passages if chunk in weights) / math.sqrt(len(community.passages))
