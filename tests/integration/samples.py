"""Small chunks, vectors and records for the store tests, in four dimensions where a cosine is done in the head."""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np

from app.adapters.payload import SPARSE
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Document,
    DocumentMeta,
    Entity,
    Filter,
    FloatArray,
    IndexStamp,
    LegName,
    Mention,
    Page,
    Relation,
    SparseVector,
)

STAMP = IndexStamp("contract", embedder="halves", dimensions=4, sparse="bm25", chunker="pages-1")
META = DocumentMeta(title="Acme 10-K", source="pdfs/acme.pdf")
EVERYONE = Filter()
_OWN = ("page", "section", "kind", "text", "context", "start", "end", "columns", "unit", "parent")


def chunk(ordinal: int, document_id: str = "acme-1", **changes: Any) -> Chunk:
    """Chunk `ordinal` of a document; `changes` are of the chunk or of its document's metadata."""
    own = {name: changes.pop(name) for name in _OWN if name in changes}
    identifier = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{document_id}/{ordinal}"))
    bare = Chunk(identifier, document_id, ordinal, 1, 0, 4, "text", "", "text", None, replace(META, **changes))
    return replace(bare, **own)


def unit(*values: float) -> FloatArray:
    return np.array(values, np.float32)


X, Y = unit(1, 0, 0, 0), unit(0, 1, 0, 0)


def sparse(**weights: float) -> SparseVector:
    """`sparse(t1=2, t7=1)`: term 1 with weight 2, term 7 with weight 1."""
    terms = sorted((int(name[1:]), value) for name, value in weights.items())
    return SparseVector(tuple(term for term, _ in terms), tuple(value for _, value in terms))


def vectors(dense: FloatArray = X, **named: SparseVector) -> ChunkVectors:
    known: dict[LegName, SparseVector] = {name: named[name] for name in SPARSE if name in named}
    return ChunkVectors(dense, known)


def document(identifier: str = "acme-1", **changes: Any) -> Document:
    own = ("state", "ingested_at", "empty_pages", "repaired", "replaces")
    known = {name: changes.pop(name) for name in own if name in changes}
    bare = Document(identifier, "5f" * 32, replace(META, **changes), pages=2, chunks=3)
    return replace(bare, ingested_at=known.pop("ingested_at", "2026-03-01T12:00:00Z"), **known)


def page(number: int, text: str = "text") -> Page:
    return Page(number, text)


def _mention(ordinal: int, document_id: str) -> Mention:
    return Mention(chunk(ordinal, document_id).id, 1, 0, 4)


def entity(
    key: str,
    document_id: str = "acme-1",
    *,
    chunks: tuple[int, ...] = (0,),
    aliases: tuple[str, ...] = (),
    **changes: Any,
) -> Entity:
    """An entity with one mention in each of the document's chunks of these ordinals."""
    kind: Any = key.partition(":")[0]
    mentions = tuple(_mention(ordinal, document_id) for ordinal in chunks)
    meta = replace(META, **changes)
    return Entity(document_id, key, kind, key.rpartition(":")[2], aliases, mentions, len(mentions), meta)


def relation(
    subject: str,
    predicate: str,
    object_: str,
    document_id: str = "acme-1",
    *,
    chunk: int = 0,
    detail: str | None = None,
    **changes: Any,
) -> Relation:
    meta = replace(META, **changes)
    where = _mention(chunk, document_id)
    return Relation(document_id, subject, predicate, object_, subject, object_, detail, where, meta)


def as_seen_by(tenant: str, *groups: str) -> Filter:
    return Filter(access=Access(tenant, groups))
