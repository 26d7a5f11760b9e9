"""What is asked of an index, and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from app.types.filings import Chunk

FloatArray: TypeAlias = npt.NDArray[np.float32]
OpKind = Literal["dense", "sparse", "late", "rerank", "graph"]
OpsSource = Literal["counted", "reported", "bound"]
LegName = Literal["dense", "bm25", "splade"]
Operator = Literal["$eq", "$ne", "$in", "$nin", "$gte", "$lte", "$gt", "$lt"]


@dataclass(frozen=True, slots=True)
class IndexStamp:
    """What a collection was built with; opening it with anything else is refused."""

    collection: str
    embedder: str
    dimensions: int
    sparse: str
    """Name and parameters of the BM25 encoder."""
    chunker: str
    """Name and version of the chunker, parameters included."""
    schema: int = 1
    splade: str = "none"
    """Name of the learned sparse model."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Strictly increasing uint32 indices, finite weights of the same length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ChunkVectors:
    dense: FloatArray
    """Shape (dimensions,), unit norm."""
    sparse: Mapping[LegName, SparseVector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison on a payload field; several are joined by AND."""

    field: str
    op: Operator
    value: str | int | tuple[str | int, ...]
    """A tuple for $in and $nin, a scalar otherwise."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks. Applied inside every store call, before top-k."""

    tenant: str = "default"
    groups: tuple[str, ...] = ("public",)


@dataclass(frozen=True, slots=True)
class Filter:
    conditions: tuple[Condition, ...] = ()
    access: Access = Access()

    def narrowed(self, *conditions: Condition) -> "Filter":
        """For the same reader, with these conditions too."""
        return replace(self, conditions=(*self.conditions, *conditions))


@dataclass(frozen=True, slots=True)
class Leg:
    """One search over one named vector."""

    name: LegName
    query: FloatArray | SparseVector
    limit: int


@dataclass(frozen=True, slots=True)
class LegRank:
    rank: int
    """Position in this leg, first is 1."""
    score: float
    """This leg's own score: cosine for dense, BM25 sum for bm25."""


@dataclass(frozen=True, slots=True)
class Hit:
    chunk: Chunk
    rank: int
    """Position in the list this hit came from, first is 1."""
    score: float
    """Higher is better; comparable only inside that list."""
    legs: Mapping[str, LegRank] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class External:
    """A passage from outside the filings: a hint where to look, never cited."""

    source: str
    text: str
    score: float
    """Higher is better."""


@dataclass(frozen=True, slots=True)
class LegResult:
    hits: tuple[Hit, ...]
    ops: int
    """Similarity evaluations this leg made."""
    ops_source: OpsSource
