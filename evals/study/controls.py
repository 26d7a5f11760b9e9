"""Fusion's controls: legs that agree, legs that read one content, and legs that read it through different noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np

from app.architectures.hybrid import Hybrid
from app.architectures.naive import Naive
from app.tools import Tools
from app.types import Chunk, Document, DocumentMeta, FloatArray, Leg, Question
from evals.study.corpus import COMPANIES, KAPPA, PASSAGES
from evals.study.geometry import WINDOWS, Bag, Window, around, bag, uniform
from evals.study.ports import Collection, Grader, Writer, ports_over

_QUERIES = 10
_BLURS = (8.0, 12.0, 18.0, 27.0)
SETTINGS: Sequence[tuple[float, float, float]] = (
    *combinations_with_replacement(_BLURS, 3),
    *((kappa, kappa, kappa) for kappa in (5.0, 40.0, 60.0)),
)
"""23 triples: how concentrated each leg's view of the query is around the company's one prototype."""
_ONE_BLUR = 12.0
FUSED = Hybrid(splade_weight=1)


@dataclass
class Controls:
    same: int = 0
    """Queries for which three identical legs fuse to the ranking of any of them; of `asked`."""
    asked: int = 0
    one_prototype: dict[str, float] = field(default_factory=dict)
    """Share of right answers by leg, and `fused`."""
    blurred: list[dict[str, float]] = field(default_factory=list)
    """The same for each of SETTINGS."""


async def run_controls(rng: np.random.Generator) -> Controls:
    prototypes = uniform(len(COMPANIES), rng)
    collection = _collection(prototypes, rng)
    found = Controls()
    found.one_prototype = await _right(collection, _queries(prototypes, None, rng))
    for setting in SETTINGS:
        found.blurred.append(await _right(collection, _queries(prototypes, setting, rng)))
    await _identical(found, collection, _queries(prototypes, None, rng))
    return found


def _collection(prototypes: FloatArray, rng: np.random.Generator) -> Collection:
    """Every window of a company's passages is drawn around its one prototype."""
    documents, chunks, bags = [], [], {}
    for name, prototype in zip(COMPANIES, prototypes, strict=True):
        meta = DocumentMeta(title=name, source=f"{name}.pdf", company=name)
        documents.append(Document(name.lower(), "0" * 64, meta, PASSAGES, PASSAGES))
        for n in range(PASSAGES):
            text, id_ = f"{name} files passage {'abcd'[n]}", f"{name.lower()}-{n}"
            chunks.append(Chunk(id_, name.lower(), n, n + 1, 0, len(text), text, "", "text", None, meta))
            bags[text] = bag(dict.fromkeys(WINDOWS, prototype), dict.fromkeys(WINDOWS, KAPPA), rng)
    return Collection(documents, chunks, bags)


def _queries(
    prototypes: FloatArray, blurs: tuple[float, float, float] | None, rng: np.random.Generator
) -> list[tuple[str, str, Bag]]:
    """(text, company, bag); without blurs all windows see one and the same blurred prototype."""
    found = []
    for n, i in enumerate(rng.permutation(len(prototypes))[:_QUERIES].tolist()):
        if blurs is None:
            seen: Mapping[Window, FloatArray] = dict.fromkeys(WINDOWS, around(prototypes[i], _ONE_BLUR, 1, rng)[0])
        else:
            seen = {w: around(prototypes[i], k, 1, rng)[0] for w, k in zip(WINDOWS, blurs, strict=True)}
        made = bag(seen, dict.fromkeys(WINDOWS, KAPPA), rng)
        found.append((f"Who is described in control {n}?", COMPANIES[i], made))
    return found


async def _right(collection: Collection, queries: Sequence[tuple[str, str, Bag]]) -> dict[str, float]:
    ports = ports_over(collection, Grader(collection.bags), Writer())
    right: dict[str, list[bool]] = {"dense": [], "bm25": [], "splade": [], "fused": []}
    for text, company, made in queries:
        collection.bags[text] = made
        tools, question = Tools(ports), Question(text)
        legs = [Leg("dense", made.windows["dense"], 1)]
        legs += [Leg(name, encoder.queries([text])[0], 1) for name, encoder in ports.sparse.items()]
        for leg, result in zip(legs, await tools.search(legs, question.where), strict=True):
            right[leg.name].append(result.hits[0].chunk.meta.company == company)
        fused = await FUSED.retrieve(question, tools)
        right["fused"].append(fused[0].chunk.meta.company == company)
    return {name: float(np.mean(values)) for name, values in right.items()}


async def _identical(found: Controls, original: Collection, queries: Sequence[tuple[str, str, Bag]]) -> None:
    """All windows of every text are its dense window."""
    alike = Collection(original.documents, original.chunks, {text: _alike(b) for text, b in original.bags.items()})
    ports = ports_over(alike, Grader(alike.bags), Writer())
    for text, _, made in queries:
        alike.bags[text] = _alike(made)
        fused = await FUSED.retrieve(Question(text, k=len(alike.chunks)), Tools(ports))
        dense = await Naive().answer(Question(text, k=len(alike.chunks)), Tools(ports))
        found.asked += 1
        found.same += [hit.chunk.id for hit in fused] == [hit.chunk.id for hit in dense.passages]


def _alike(original: Bag) -> Bag:
    return Bag(np.tile(original.tokens[WINDOWS["dense"]], (len(WINDOWS), 1)))
