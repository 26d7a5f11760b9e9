"""What the vector engine holds for chunks, pages and document records: payloads, identifiers, checks and filters.

Filters are written once, in Qdrant's REST form; each adapter turns that form into its own library's objects. A field
that is unknown (None) has no key in the payload. Comparisons mean what they mean in MongoDB, whose operators these are:
`$ne` and `$nin` also match a record that lacks the field, every other operator needs the field. Dates are compared as
instants, so `2023-06-30` equals `2023-06-30T00:00:00Z`; a stored date that is no ISO date matches nothing but `$ne` and
`$nin`. Tenant and groups are added to every filter, and a caller without groups matches nothing.
"""

import base64
import json
import math
import uuid
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from app.errors import IndexMismatch, InvalidFilter
from app.filters import FIELDS
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Condition,
    Document,
    DocumentMeta,
    Filter,
    FloatArray,
    Hit,
    IndexStamp,
    Leg,
    LegName,
    LegRank,
    Page,
    SparseVector,
    Word,
)

Payload: TypeAlias = dict[str, Any]
IndexType = Literal["tenant", "keyword", "integer", "datetime"]

DENSE: LegName = "dense"
SPARSE: tuple[LegName, ...] = tuple(name for name in get_args(LegName) if name != DENSE)

_ACCESS: Mapping[str, IndexType] = {"tenant": "tenant", "acl": "keyword"}
CHUNK_INDEXES: Mapping[str, IndexType] = {
    **{name: "datetime" if kind == "date" else kind for name, kind in FIELDS.items()},
    **_ACCESS,
}
PAGE_INDEXES: Mapping[str, IndexType] = {"document_id": "keyword", **_ACCESS}
DOCUMENT_INDEXES: Mapping[str, IndexType] = {"state": "keyword", **_ACCESS}
"""Payload fields that are indexed, by collection. Indexes are made before the first point is loaded."""

_CHUNK = ("document_id", "ordinal", "page", "start", "end", "text", "context", "kind", "section", "unit")
_DOCUMENT = ("id", "sha256", "pages", "chunks", "repaired", "state", "ingested_at")
_META = tuple(field.name for field in fields(DocumentMeta))
_RANGES = {"$gte": "gte", "$lte": "lte", "$gt": "gt", "$lt": "lt"}
_NAMESPACE = uuid.UUID("5c1f8e0a-6a55-5d0b-9c34-2f3b7f0a9d11")
_UNIT_TOLERANCE = 1e-3
_REPLACING = "replacing"
"""State, in the payload alone, of a finished document that names others which it replaces."""


def page_id(document_id: str, number: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{document_id}/{number}"))


def record_id(document_id: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, document_id))


def chunk_payload(chunk: Chunk, stamp: IndexStamp) -> Payload:
    own = {name: getattr(chunk, name) for name in _CHUNK} | {"columns": list(chunk.columns) or None}
    own["parent"] = list(chunk.parent) if chunk.parent else None
    return storable({**own, **meta_payload(chunk.meta), "chunker": stamp.chunker, "embedder": stamp.embedder})


def chunk_from(identifier: str, payload: Mapping[str, Any]) -> Chunk:
    own = {name: payload.get(name) for name in _CHUNK}
    columns, parent = tuple(payload.get("columns") or ()), payload.get("parent")
    span = (parent[0], parent[1]) if parent else None
    return Chunk(id=identifier, meta=meta_from(payload), columns=columns, parent=span, **own)  # type: ignore[arg-type]


def page_payload(document: Document, page: Page) -> Payload:
    return storable(
        {
            "document_id": document.id,
            "tenant": document.meta.tenant,
            "acl": list(document.meta.acl),
            "number": page.number,
            "text": page.text,
            "words": pack_words(page.words),
            "width": page.width,
            "height": page.height,
            "label": page.label,
            "ocr": page.ocr or None,
        }
    )


def page_from(payload: Mapping[str, Any]) -> Page:
    return Page(
        number=payload["number"],
        text=payload["text"],
        words=unpack_words(payload["words"]),
        width=payload["width"],
        height=payload["height"],
        label=payload.get("label"),
        ocr=payload.get("ocr", False),
    )


def document_payload(document: Document) -> Payload:
    own = {name: getattr(document, name) for name in _DOCUMENT}
    known: Payload = {
        "empty_pages": list(document.empty_pages),
        "ocr_pages": list(document.ocr_pages) or None,
        "given": dict(document.given) or None,
        "replaces": list(document.replaces) or None,
    }
    if document.replaces and document.state == "ready":
        known["state"] = _REPLACING
    return storable({**own, **meta_payload(document.meta), **known})


def document_from(payload: Mapping[str, Any]) -> Document:
    own = {name: payload[name] for name in _DOCUMENT}
    own |= {"empty_pages": tuple(payload["empty_pages"]), "replaces": tuple(payload.get("replaces", ()))}
    if own["state"] == _REPLACING:
        own["state"] = "ready"
    own |= {"ocr_pages": tuple(payload.get("ocr_pages", ())), "given": payload.get("given", {})}
    return Document(meta=meta_from(payload), **own)


HIDING: Payload = {"must": [{"key": "state", "match": {"any": ["ingesting", _REPLACING]}}]}
"""The records by which a document is hidden: few, and found by an index."""


def hidden_by(record: Mapping[str, Any]) -> frozenset[str]:
    """Ids of the documents of which a reader sees nothing because of this record."""
    own = {record["id"]} if record["state"] == "ingesting" else set()
    return frozenset({*own, *record.get("replaces", ())})


def meta_payload(meta: DocumentMeta) -> Payload:
    return {name: getattr(meta, name) for name in _META} | {"acl": list(meta.acl)}


def meta_from(payload: Mapping[str, Any]) -> DocumentMeta:
    known = {name: payload[name] for name in _META if name in payload}
    return DocumentMeta(**known | {"acl": tuple(payload["acl"])})


def storable(payload: Payload) -> Payload:
    """The payload without its unknown fields. Raises ValueError where text cannot be encoded as UTF-8."""
    known = {name: value for name, value in payload.items() if value is not None}
    try:
        json.dumps(known, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"a payload holds text that is not valid Unicode: {exc}") from exc
    return known


def pack_words(words: Sequence[Word]) -> str:
    """Word boxes as base64 of zlib of little-endian columns: starts, ends (int32), x0, y0, x1, y1 (float32).

    An order of magnitude smaller than JSON; a coordinate keeps float32's precision (1e-4 points on any page).
    """
    spans = np.array([(word.start, word.end) for word in words], "<i4").reshape(-1, 2)
    boxes = np.array([word.box for word in words], "<f4").reshape(-1, 4)
    return base64.b64encode(zlib.compress(spans.T.tobytes() + boxes.T.tobytes())).decode("ascii")


def unpack_words(packed: str) -> tuple[Word, ...]:
    raw = zlib.decompress(base64.b64decode(packed))
    count = len(raw) // 24
    starts, ends = np.frombuffer(raw, "<i4", 2 * count).reshape(2, count).tolist()
    boxes = np.frombuffer(raw, "<f4", 4 * count, offset=8 * count).reshape(4, count).T.tolist()
    return tuple(Word(s, e, (x0, y0, x1, y1)) for s, e, (x0, y0, x1, y1) in zip(starts, ends, boxes, strict=True))


def check_stamp(found: IndexStamp, expected: IndexStamp, place: str) -> None:
    """Raises IndexMismatch naming every differing field with both values, and what to do.

    What a reader leaves open ("" or 0) is taken as found: the service its chunker, a look at the records all of it.
    """
    differences = [
        f"{field.name} is {getattr(found, field.name)!r} there and {getattr(expected, field.name)!r} in the settings"
        for field in fields(IndexStamp)
        if getattr(expected, field.name) not in ("", 0, getattr(found, field.name))
    ]
    if differences:
        raise IndexMismatch(
            f"the index at {place} was built differently: {'; '.join(differences)}. "
            "Set the models and CHUNKER back, or ingest into another collection (COLLECTION=<new name>)."
        )


def rows(vectors: Sequence[Any], dimensions: int) -> FloatArray:
    """Dense vectors as an engine gives them, as shape (vectors, dimensions)."""
    return np.asarray(vectors, np.float32).reshape(len(vectors), dimensions)


def check_chunks(chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors], dimensions: int) -> None:
    """Refuse a whole batch before the engine sees it, for the engine stores the part before a fault.

    Raises ValueError naming the first chunk at fault.
    """
    if len(chunks) != len(vectors):
        raise ValueError(f"{len(chunks)} chunks but {len(vectors)} vectors")
    if len({chunk.id for chunk in chunks}) != len(chunks):
        raise ValueError("a chunk id occurs twice in one batch")
    for chunk, vector in zip(chunks, vectors, strict=True):
        check_dense(vector.dense, dimensions, f"chunk {chunk.id}")
        norm = float(np.linalg.norm(vector.dense))
        if abs(norm - 1.0) > _UNIT_TOLERANCE:
            raise ValueError(f"chunk {chunk.id}: dense vector has norm {norm:.4f}, not 1")
        for name, sparse in vector.sparse.items():
            if name not in SPARSE:
                raise ValueError(f"chunk {chunk.id}: unknown sparse vector {name!r}; known: {', '.join(SPARSE)}")
            check_sparse(sparse, f"chunk {chunk.id}, {name}")


def check_leg(leg: Leg, dimensions: int) -> None:
    """Raises ValueError for an unknown vector name, a malformed query vector or a limit below 1."""
    if leg.limit < 1:
        raise ValueError(f"leg {leg.name}: limit {leg.limit} is below 1")
    if isinstance(leg.query, SparseVector):
        if leg.name not in SPARSE:
            raise ValueError(f"leg {leg.name!r} is not sparse; sparse vectors: {', '.join(SPARSE)}")
        check_sparse(leg.query, f"leg {leg.name}")
    elif leg.name != DENSE:
        raise ValueError(f"leg {leg.name!r} is not dense; the dense vector is {DENSE!r}")
    else:
        check_dense(leg.query, dimensions, f"leg {leg.name}")


def check_dense(vector: np.ndarray[Any, Any], dimensions: int, where: str) -> None:
    if vector.shape != (dimensions,):
        raise ValueError(f"{where}: dense vector has shape {vector.shape}, not ({dimensions},)")
    if not np.isfinite(vector).all():
        raise ValueError(f"{where}: dense vector holds a value that is not finite")


def check_sparse(vector: SparseVector, where: str) -> None:
    indices, values = vector.indices, vector.values
    if len(indices) != len(values):
        raise ValueError(f"{where}: {len(indices)} indices but {len(values)} weights")
    if any(a >= b for a, b in pairwise(indices)):
        raise ValueError(f"{where}: indices do not strictly increase")
    if indices and not 0 <= indices[0] <= indices[-1] < 2**32:
        raise ValueError(f"{where}: an index is outside 0 to 2^32-1")
    if not all(map(math.isfinite, values)):
        raise ValueError(f"{where}: a weight is not finite")


def chunks_filter(ids: Iterable[str], where: Filter, hidden: Collection[str] = ()) -> Payload:
    rest = rest_filter(where, hidden)
    rest["must"].append({"has_id": list(ids)})
    return rest


def rest_filter(where: Filter, hidden: Collection[str] = ()) -> Payload:
    """The caller's conditions and access, all of which must hold, but of no hidden document. Raises InvalidFilter."""
    must = access_conditions(where.access)
    must_not = _none_of(hidden)
    for condition in where.conditions:
        negated = condition.op in ("$ne", "$nin")
        (must_not if negated else must).append(_rest_condition(condition))
    return {"must": must, "must_not": must_not}


def _none_of(hidden: Collection[str]) -> list[Payload]:
    return [{"key": "document_id", "match": {"any": sorted(hidden)}}] if hidden else []


def access_conditions(access: Access) -> list[Payload]:
    return [
        {"key": "tenant", "match": {"value": access.tenant}},
        {"key": "acl", "match": {"any": list(access.groups)}},
    ]


def match(key: str, value: str) -> Payload:
    return {"must": [{"key": key, "match": {"value": value}}]}


def documents_filter(access: Access | None, hidden: Collection[str] = ()) -> Payload | None:
    """None sees all; a caller sees only finished records that are theirs."""
    if access is None:
        return None
    must_not = [{"has_id": [record_id(each) for each in hidden]}] if hidden else []
    must = [*access_conditions(access), {"key": "state", "match": {"any": ["ready", _REPLACING]}}]
    return {"must": must, "must_not": must_not}


def pages_filter(keys: Iterable[tuple[str, int]], access: Access, hidden: Collection[str] = ()) -> Payload:
    must = [{"has_id": [page_id(*key) for key in keys]}, *access_conditions(access)]
    return {"must": must, "must_not": _none_of(hidden)}


def _rest_condition(condition: Condition) -> Payload:
    """The condition itself, or for $ne and $nin what must not hold."""
    key, op, value = condition.field, condition.op, condition.value
    if key not in FIELDS:
        raise InvalidFilter(f"unknown filter field {key!r:.80}; filterable fields: {', '.join(FIELDS)}")
    date = FIELDS[key] == "date"
    if op in _RANGES:
        return {"key": key, "range": {_RANGES[op]: instant(key, value) if date else value}}
    values = list(value) if isinstance(value, tuple) else [value]
    if date:
        instants = [instant(key, item) for item in values]
        return {"should": [{"key": key, "range": {"gte": item, "lte": item}} for item in instants]}
    return {"key": key, "match": {"any": values} if isinstance(value, tuple) else {"value": value}}


def instant(field: str, value: Any) -> str:
    """An ISO date or time as UTC, where no zone is given taken to be UTC already. Raises InvalidFilter."""
    try:
        moment = datetime.fromisoformat(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as exc:
        raise InvalidFilter(f"{field!r} takes an ISO date such as 2023-06-30, not {value!r:.80}") from exc
    return moment.isoformat(timespec="microseconds")


def settled(scores: Sequence[float], limit: int, asked: int) -> bool:
    """Whether the first `limit` of `asked` results are certain: no tie reaches beyond what the engine returned."""
    return len(scores) < asked or scores[-1] < scores[limit - 1]


def hits_from(leg: Leg, found: Iterable[tuple[str, float, Mapping[str, Any]]]) -> tuple[Hit, ...]:
    """(id, score, payload) in any order to hits: best score first, ties by chunk id, cut at the leg's limit."""
    ordered = sorted(found, key=lambda point: (-point[1], point[0]))[: leg.limit]
    return tuple(
        Hit(chunk_from(identifier, payload), rank, score, {leg.name: LegRank(rank, score)})
        for rank, (identifier, score, payload) in enumerate(ordered, start=1)
    )
