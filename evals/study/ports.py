"""The ports over a geometry: the architectures cannot tell them from those over filings.

A text means the vectors of its bag, looked up by the whole text. A filing names its company in words, so that answers
can be cited; all nearness comes from the bags.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from app.ports import R, RecordField, SparseEncoder
from app.retrieval.calibration import FEATURES, Calibration
from app.tools import Ports
from app.types import (
    Access,
    Chunk,
    Condition,
    Document,
    Entity,
    Filter,
    FloatArray,
    Generation,
    Hit,
    IndexStamp,
    Leg,
    LegName,
    LegRank,
    LegResult,
    Page,
    Prompt,
    Relation,
    SparseVector,
)
from evals.study.geometry import DIMENSIONS, Bag, Window, maxsim

_WINDOW_OF: Mapping[LegName, Window] = {"dense": "dense", "bm25": "sparse", "splade": "late"}
_ALL_TERMS = tuple(range(DIMENSIONS))
Drafter: TypeAlias = Callable[[str], str]
"""From a question's text to the text of a passage that might answer it."""


@dataclass(frozen=True)
class Collection:
    """An index of filings whose passages are bags."""

    documents: Sequence[Document]
    chunks: Sequence[Chunk]
    """In the order of their ids, so that equal scores are ordered as every store orders them."""
    bags: dict[str, Bag]
    """By text: of every passage, and of whatever is asked or drafted."""
    records: Sequence[Entity | Relation] = ()

    def matrix(self, window: Window) -> FloatArray:
        """Shape (chunks, DIMENSIONS)."""
        return np.stack([self.bags[chunk.text].windows[window] for chunk in self.chunks])


@dataclass
class MemoryStore:
    """A Store that scans everything: each leg is the cosine of one window."""

    collection: Collection
    _matrices: dict[LegName, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        self._matrices = {leg: self.collection.matrix(window) for leg, window in _WINDOW_OF.items()}

    async def stamp(self) -> IndexStamp:
        return IndexStamp("study", "geometry", DIMENSIONS, "windows", "passages")

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        passing = [i for i, chunk in enumerate(self.collection.chunks) if _passes(chunk.document_id, where)]
        return [self._search(leg, passing) for leg in legs]

    def _search(self, leg: Leg, passing: Sequence[int]) -> LegResult:
        query = np.array(leg.query.values, np.float32) if isinstance(leg.query, SparseVector) else leg.query
        scores = self._matrices[leg.name][list(passing)] @ query
        best = np.argsort(-scores, kind="stable")[: leg.limit]
        hits = (
            Hit(self.collection.chunks[passing[i]], rank, float(scores[i]), {leg.name: LegRank(rank, float(scores[i]))})
            for rank, i in enumerate(best, start=1)
        )
        return LegResult(tuple(hits), len(passing), "counted")

    async def dense_sample(self, where: Filter, limit: int) -> FloatArray:
        passing = [i for i, chunk in enumerate(self.collection.chunks) if _passes(chunk.document_id, where)]
        return self._matrices["dense"][passing[:limit]]

    async def pages(self, keys: Sequence[tuple[str, int]], access: Access) -> list[Page | None]:
        texts = {(chunk.document_id, chunk.page): chunk.text for chunk in self.collection.chunks}
        return [Page(key[1], texts[key]) if key in texts else None for key in keys]

    async def documents(self, access: Access | None = None) -> list[Document]:
        return sorted(self.collection.documents, key=lambda document: document.id)

    async def count(self, where: Filter) -> int:
        return sum(_passes(chunk.document_id, where) for chunk in self.collection.chunks)

    async def chunks(self, ids: Sequence[str], where: Filter) -> list[Chunk]:
        there = {chunk.id: chunk for chunk in self.collection.chunks if _passes(chunk.document_id, where)}
        return [there[each] for each in dict.fromkeys(ids) if each in there]

    async def records(self, kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]]) -> list[R]:
        found = []
        for record in self.collection.records:
            if isinstance(record, kind) and _passes(record.document_id, where):
                if all(_values(record, name) & set(wanted) for name, wanted in matching.items()):
                    found.append(record)
        return found


def _values(record: Entity | Relation, name: RecordField) -> set[str]:
    if isinstance(record, Relation):
        ends, of_relation = {record.subject, record.object}, {"chunks": record.mention.chunk_id}
        return ends if name == "keys" else {(of_relation | {"predicate": record.predicate}).get(name, "")}
    held: Mapping[str, set[str]] = {
        "keys": {record.key},
        "aliases": set(record.aliases),
        "chunks": {mention.chunk_id for mention in record.mentions},
        "type": {record.type},
    }
    return held.get(name, set())


def _passes(document_id: str, where: Filter) -> bool:
    """Only the condition by which an architecture narrows to filings is known here."""
    return all(document_id in _ids(condition) for condition in where.conditions)


def _ids(condition: Condition) -> Sequence[str | int]:
    if condition.field != "document_id" or not isinstance(condition.value, tuple):
        raise NotImplementedError(f"the study's store knows no condition {condition}")
    return condition.value


@dataclass(frozen=True)
class WindowEmbedder:
    """The dense window of what a text means."""

    bags: Mapping[str, Bag]
    name: str = "geometry"
    dimensions: int = DIMENSIONS

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        return np.stack([self.bags[text].windows["dense"] for text in texts])

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        return await self.passages(texts)


@dataclass(frozen=True)
class WindowEncoder:
    """One window, each coordinate as a term's weight."""

    bags: Mapping[str, Bag]
    window: Window
    name: str = "windows"

    def passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return [SparseVector(_ALL_TERMS, tuple(self.bags[text].windows[self.window].tolist())) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return self.passages(texts)


@dataclass(frozen=True)
class Grader:
    """MaxSim over every token, with Gaussian noise of the given deviation where its judgement is to be worsened."""

    bags: Mapping[str, Bag]
    noise: float = 0.0
    seed: int = 0
    name: str = "maxsim"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        scores = maxsim(self.bags[query].tokens, np.stack([self.bags[passage].tokens for passage in passages]))
        if not self.noise:
            return [float(score) for score in scores]
        draws = np.random.default_rng([self.seed, *query.encode()]).standard_normal(len(scores))
        return [float(score) for score in scores + self.noise * draws]


@dataclass(frozen=True)
class Writer:
    """Answers with its first passage; drafts as it is told. A draft is a call of a model, an answer is not counted."""

    draft: Drafter | None = None
    name: str = "study"
    purposes: frozenset[str] | None = frozenset({"answer", "hyde"})

    async def generate(self, prompt: Prompt) -> Generation:
        if prompt.purpose == "hyde":
            assert self.draft is not None, "nobody drafts for this architecture"
            return Generation(self.draft(prompt.question), llm_calls=1)
        return Generation(f"{prompt.passages[0].chunk.text} [1]")

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        yield await self.generate(prompt)


GRADE = Calibration((10.0, *(0.0,) * (len(FEATURES) - 1)), -7.0, 1.0, 0.0, {})
"""The grade is σ(10·(MaxSim − 0.7)): MaxSim's order, and nothing else."""


def ports_over(collection: Collection, grader: Grader, writer: Writer) -> Ports:
    bags = collection.bags
    sparse: dict[LegName, SparseEncoder] = {
        leg: WindowEncoder(bags, window) for leg, window in _WINDOW_OF.items() if leg != "dense"
    }
    return Ports(MemoryStore(collection), WindowEmbedder(bags), sparse, writer, grader, calibration=GRADE)
