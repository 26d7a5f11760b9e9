"""What the vector engine holds for the graph: one payload for each entity or relation of a document, without vectors.

A record belongs to one document and carries its metadata, tenant and groups. What is known of an entity is what is said
in the records that a caller may see, so that a filter hides, and a deletion removes, all that rests on a document.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app.adapters.payload import (
    CHUNK_INDEXES,
    IndexType,
    Payload,
    meta_from,
    meta_payload,
    record_id,
    rest_filter,
    storable,
)
from app.ports import R, RecordField
from app.types import Entity, Filter, Mention, Relation

_OF_CHUNKS = frozenset({"section", "page", "kind", "ingested_at", "chunker", "embedder"})
"""Filter fields that say nothing of a whole filing."""
_OWN: Mapping[str, IndexType] = dict.fromkeys(("record", "keys", "aliases", "chunks", "type", "predicate"), "keyword")
RECORD_INDEXES: Mapping[str, IndexType] = {
    **{name: kind for name, kind in CHUNK_INDEXES.items() if name not in _OF_CHUNKS},
    **_OWN,
}


def point_id(record: Entity | Relation) -> str:
    """The same for the same statement of the same document."""
    if isinstance(record, Entity):
        parts: tuple[Any, ...] = ("entity", record.key)
    else:
        where = (record.mention.page, record.mention.start, record.mention.end)
        parts = ("relation", record.subject, record.predicate, record.object, *where)
    return str(uuid.uuid5(uuid.UUID(record_id(record.document_id)), "/".join(map(str, parts))))


def record_payload(record: Entity | Relation) -> Payload:
    own: Payload = {"document_id": record.document_id, **meta_payload(record.meta)}
    if isinstance(record, Entity):
        own |= {"record": "entity", "keys": [record.key], "type": record.type, "name": record.name}
        own |= {"aliases": list(record.aliases), "count": record.count}
        mentions: Sequence[Mention] = record.mentions
    else:
        own |= {"record": "relation", "keys": [record.subject, record.object], "predicate": record.predicate}
        own |= {"subject_name": record.subject_name, "object_name": record.object_name, "detail": record.detail}
        own |= {"model": record.model} if record.model else {}
        mentions = (record.mention,)
    own["chunks"] = list(dict.fromkeys(mention.chunk_id for mention in mentions))
    own["mentions"] = [[own["chunks"].index(m.chunk_id), m.page, m.start, m.end] for m in mentions]
    return storable(own)


def record_from(kind: type[R], payload: Mapping[str, Any]) -> R:
    mentions = tuple(Mention(payload["chunks"][chunk], *place) for chunk, *place in payload["mentions"])
    meta = meta_from(payload)
    if issubclass(kind, Entity):
        return kind(
            document_id=payload["document_id"],
            key=payload["keys"][0],
            type=payload["type"],
            name=payload["name"],
            aliases=tuple(payload["aliases"]),
            mentions=mentions,
            count=payload["count"],
            meta=meta,
        )
    return kind(
        document_id=payload["document_id"],
        subject=payload["keys"][0],
        predicate=payload["predicate"],
        object=payload["keys"][1],
        subject_name=payload["subject_name"],
        object_name=payload["object_name"],
        detail=payload.get("detail"),
        mention=mentions[0],
        meta=meta,
        model=payload.get("model"),
    )


def records_filter(
    kind: type[R], where: Filter, matching: Mapping[RecordField, Sequence[str]], hidden: Collection[str] = ()
) -> Payload:
    """Conditions on chunks alone are left to whoever reads the chunks."""
    of_filings = Filter(tuple(c for c in where.conditions if c.field not in _OF_CHUNKS), where.access)
    rest_filter(where)
    rest = rest_filter(of_filings, hidden)
    rest["must"].append({"key": "record", "match": {"value": kind.__name__.lower()}})
    rest["must"] += [{"key": field, "match": {"any": list(values)}} for field, values in matching.items()]
    return rest
