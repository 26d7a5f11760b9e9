"""What one seed's corpus and queries show: every arm on every query, and the controls."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context

import numpy as np

from app.agent.hops import residual
from app.architectures import Architecture
from app.architectures.hyde import Hyde
from app.architectures.naive import Naive
from app.tools import Tools
from app.types import Question
from evals.study.arms import ALL_PASSAGES, ARMS, EAGER, FULL_MAXSIM, LEGS, TOLD, Bench, Reply, voted
from evals.study.controls import Controls, run_controls
from evals.study.corpus import Global, build_global, build_local
from evals.study.ports import Collection
from evals.study.queries import CLASSES, EACH, Drafts, Query, ask_global, ask_local

RIVAL_RATE = 0.2
NOISE = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Deviations of what is added to the corrective arm's MaxSim, which is 0.93 for a right passage and 0.65 for one of a
company that shares two themes."""
DEPTHS = (3, 5, 8, 10, 14, 20, 25)


@dataclass
class Seed:
    """Measured on one corpus. Shares are kept per class, because classes are never pooled before they are seen."""

    right: dict[str, dict[str, float]] = field(default_factory=dict)
    """Share of right answers by arm (or leg, or arm under noise) and class."""
    ops: dict[str, float] = field(default_factory=dict)
    """By arm, mean of the local queries; as calls."""
    calls: dict[str, float] = field(default_factory=dict)
    global_ops: dict[str, float] = field(default_factory=dict)
    hops: dict[str, float] = field(default_factory=dict)
    """Of the agentic arm, mean by class."""
    ranks: dict[str, list[int]] = field(default_factory=dict)
    """By class, of the best passage of the right company in the dense leg; first is 1."""
    grades: dict[str, list[float]] = field(default_factory=dict)
    """By class, MaxSim of the passage that naive ranks first."""
    auc: float = 0.0
    """Of those grades against whether naive is right."""
    residuals: dict[str, list[float]] = field(default_factory=dict)
    """Of bridge queries, norms of passages of the described company: `own`, and `naming` another."""
    identical: int = 0
    """Queries for which hyde at α = 0 gives byte for byte what naive gives; of `asked`."""
    asked: int = 0
    unreached: int = 0
    """Replies of the corrective arm without the right company among what it graded."""
    unreached_right: int = 0
    """Those of them that are right all the same."""
    depth: dict[int, float] = field(default_factory=dict)
    controls: Controls = field(default_factory=Controls)


def measure(seed: int, each: int = EACH) -> Seed:
    """`each` queries of a class."""
    return asyncio.run(_measure(seed, each))


def measure_all(seeds: int, processes: int, each: int = EACH) -> list[Seed]:
    """Seeds 0, 1, ..., each in the same way whatever the number of processes."""
    if processes == 1:
        return [measure(seed, each) for seed in range(seeds)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(measure, each=each), range(seeds)))


async def _measure(seed: int, each: int) -> Seed:
    rng = np.random.default_rng(seed)
    local = build_local(rng)
    queries, bags = ask_local(local, rng, each)
    local.collection.bags.update(bags)
    found, bench = Seed(), Bench(local.collection, Drafts(local, RIVAL_RATE, seed))
    for name, arm in ARMS.items():
        replies = await _ask(bench, arm, queries)
        found.right[name] = _shares(queries, replies)
        found.ops[name] = float(np.mean([reply.ops for reply in replies]))
        found.calls[name] = float(np.mean([reply.calls for reply in replies]))
        if name == "naive":
            await _look(found, bench, local.collection, queries, replies)
        if name == "agentic":
            hops = _by_class(queries, [reply.searches - 1.0 for reply in replies])
            found.hops = {kind: float(np.mean(values)) for kind, values in hops.items()}
        if name == "crag":
            _reach(found, queries, replies)
    for name, leg in LEGS.items():
        some = [query for query in queries if query.kind in ("on", "partial")]
        found.right[name] = _shares(some, await _ask(bench, leg, some))
    some = [query for query in queries if query.kind in ("noisy", "bridge")]
    found.right["full MaxSim"] = _shares(some, await _ask(bench, FULL_MAXSIM, some))
    found.right["told"] = await _told(bench, local.collection, queries)
    for noise in NOISE:
        noisy = Bench(local.collection, None, noise=noise, seed=seed)
        found.right[f"noise {noise:g}"] = _shares(queries, await _ask(noisy, EAGER, queries))
    await _anchor(found, bench, queries)
    await _count(found, build_global(rng), rng)
    found.controls = await run_controls(rng)
    return found


async def _ask(bench: Bench, arm: Architecture, queries: Sequence[Query]) -> list[Reply]:
    return [await bench.ask(arm, query) for query in queries]


def _by_class(queries: Sequence[Query], values: Sequence[float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for query, value in zip(queries, values, strict=True):
        found[query.kind].append(value)
    return dict(found)


def _shares(queries: Sequence[Query], replies: Sequence[Reply]) -> dict[str, float]:
    right = [float(reply.answered == query.gold) for query, reply in zip(queries, replies, strict=True)]
    return {kind: float(np.mean(values)) for kind, values in _by_class(queries, right).items()}


async def _look(
    found: Seed, bench: Bench, collection: Collection, queries: Sequence[Query], naive: Sequence[Reply]
) -> None:
    """Where the right company is ranked, what a grader says of naive's first passage, how far passages lead away."""
    right: list[tuple[bool, float]] = []
    for query, reply in zip(queries, naive, strict=True):
        [grade] = await Tools(bench.ports).rerank(query.text, reply.passages[:1])
        found.grades.setdefault(query.kind, []).append(grade)
        right.append((reply.answered == query.gold, grade))
        all_of_it = await Naive().answer(Question(query.text, k=ALL_PASSAGES), Tools(bench.ports))
        hits = all_of_it.passages
        found.ranks.setdefault(query.kind, []).append(next(h.rank for h in hits if h.chunk.meta.company == query.gold))
        if query.kind == "bridge":
            vector, described = collection.bags[query.text].windows["dense"], hits[0].chunk.document_id
            for chunk in (hit.chunk for hit in hits if hit.chunk.document_id == described):
                norm = residual(collection.bags[chunk.text].windows["dense"], vector)[1]
                found.residuals.setdefault("naming" if " names " in chunk.text else "own", []).append(norm)
    found.auc = auc(right)


def auc(labelled: Sequence[tuple[bool, float]]) -> float:
    """Probability that a right one scores above a wrong one, equal scores counted half."""
    good, bad = ([score for right, score in labelled if right is wanted] for wanted in (True, False))
    return float(np.mean([(a > b) + 0.5 * (a == b) for a in good for b in bad]))


def _reach(found: Seed, queries: Sequence[Query], replies: Sequence[Reply]) -> None:
    for query, reply in zip(queries, replies, strict=True):
        if not any(chunk.startswith(f"{query.gold.lower()}-") for chunk in reply.graded):
            found.unreached += 1
            found.unreached_right += reply.answered == query.gold


async def _told(bench: Bench, collection: Collection, queries: Sequence[Query]) -> dict[str, float]:
    """The agentic arm that hops where the question says so, which here the bridge queries do."""
    some = [query for query in queries if query.kind in ("on", "bridge")]
    worded = [replace(q, text=q.text.replace("described", _TOLD)) if q.kind == "bridge" else q for q in some]
    collection.bags.update({new.text: collection.bags[old.text] for new, old in zip(worded, some, strict=True)})
    return _shares(worded, await _ask(bench, TOLD, worded))


_TOLD = "the counterparty that is named"


async def _anchor(found: Seed, bench: Bench, queries: Sequence[Query]) -> None:
    """Every field of every passage, scores to the last bit."""
    for query in queries:
        bare, naive = [await bench.ask(arm, query) for arm in (Hyde(alpha=0), Naive())]
        found.asked += 1
        found.identical += repr(bare.passages).encode() == repr(naive.passages).encode()


async def _count(found: Seed, world: Global, rng: np.random.Generator) -> None:
    queries, bags = ask_global(world, rng)
    world.collection.bags.update(bags)
    bench = Bench(world.collection, lambda question: _nearest(world.collection, question))
    for name, arm in ARMS.items():
        replies = await _ask(bench, arm, queries)
        found.right[name] |= _shares(queries, replies)
        found.global_ops[name] = float(np.mean([reply.ops for reply in replies]))
    for depth in DEPTHS:
        right = []
        for topic, query in zip(world.topics, queries, strict=True):
            scanned = await Naive().answer(Question(query.text, k=depth), Tools(bench.ports))
            voters = [hit for hit in scanned.passages if hit.chunk.meta.company in topic.discussed_by]
            right.append(voted(voters) == topic.gold)
        found.depth[depth] = float(np.mean(right))


def _nearest(collection: Collection, question: str) -> str:
    """The draft of a topic: the passage nearest to it."""
    query = collection.bags[question].windows["dense"]
    return collection.chunks[int((collection.matrix("dense") @ query).argmax())].text


def overall(right: Mapping[str, float]) -> float:
    """Mean of the local classes, which are of one size."""
    return float(np.mean([right[kind] for kind in CLASSES]))
