"""Whether the index is what its records say: nothing missing, every chunk a slice of its page, no orphans."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set

import numpy as np

from app.graph.themes import BY_NAME, theme_key
from app.ports import WritableFigures, WritableStore
from app.types import Access, Condition, Document, Entity, Figure, Filter, Hit, Leg, Mention, Page, Relation
from ingest.extraction.figures import read_number

_PAGES_AT_ONCE = 64
_THEMES = frozenset(theme_key(name) for name in BY_NAME)


async def problems(store: WritableStore, figures: WritableFigures | None = None) -> AsyncIterator[tuple[str, str]]:
    """Pairs of document id (or tenant) and what is wrong with it."""
    kept = dict(await figures.counts()) if figures else {}
    chunks: dict[str, int] = defaultdict(int)
    groups: dict[str, set[str]] = defaultdict(set)
    documents = await store.documents()
    replaced = {each for document in documents for each in document.replaces}
    for document in documents:
        tenant = document.meta.tenant
        groups[tenant] |= set(document.meta.acl)
        ids = await store.chunk_ids(document.id)
        known = kept.pop(document.id, None)
        if hidden := _left_behind(document, replaced):
            yield document.id, hidden
            continue
        chunks[tenant] += len(ids)
        pages = await pages_of(store, document)
        async for problem in _of_document(store, document, pages, ids):
            yield document.id, problem
        if figures and known is None:
            yield document.id, "its figures are missing; `sextant-ingest figures` derives them"
        elif figures:
            for problem in _of_figures(await figures.of_document(document.id), pages, ids):
                yield document.id, problem
    for tenant, of_tenant in chunks.items():
        found = await store.count(Filter(access=Access(tenant, tuple(sorted(groups[tenant])))))
        if found != of_tenant:
            yield f"tenant {tenant}", f"{found} chunks, but the documents have {of_tenant}"
    for orphan, problem in _of_no_document(await orphaned_records(store, documents), kept):
        yield orphan, problem


def _left_behind(document: Document, replaced: Set[str]) -> str | None:
    """What a killed run left, which no reader sees."""
    if document.id in replaced:
        return "replaced, but not yet removed; ingesting any file does it"
    return None if document.state == "ready" else "unfinished; ingest its file again, or any other, which removes it"


async def _of_document(
    store: WritableStore, document: Document, found: Sequence[Page], ids: list[str]
) -> AsyncIterator[str]:
    if len(ids) != document.chunks or len(set(ids)) != len(ids):
        yield f"{len(ids)} chunks, but the record says {document.chunks}"
    access = Access(document.meta.tenant, document.meta.acl)
    pages = {page.number: page for page in found}
    for number in sorted(set(range(1, document.pages + 1)) - pages.keys()):
        yield f"page {number} is missing"
    if any("\0" in page.text for page in pages.values()):
        yield "a page's text holds NUL"
    hits = await chunks_of(store, document, access, max(len(ids), 1))
    if {hit.chunk.id for hit in hits} != set(ids):
        yield f"{len(hits)} of {len(ids)} chunks can be found by a search"
    if sorted(hit.chunk.ordinal for hit in hits) != list(range(len(hits))):
        yield "chunks are not numbered without a gap"
    for hit in hits:
        chunk, stored = hit.chunk, pages.get(hit.chunk.page)
        if stored is None or stored.text[chunk.start : chunk.end] != chunk.text or not chunk.text:
            yield f"chunk {chunk.id} is no slice of page {chunk.page}"
    for problem in await _of_graph(store, document, found, ids):
        yield problem


async def chunks_of(store: WritableStore, document: Document, access: Access, limit: int) -> tuple[Hit, ...]:
    """All of a document's chunks: the best `limit` of its own for any query vector."""
    dimensions = (await store.stamp()).dimensions
    query = np.zeros(dimensions, np.float32)
    query[0] = 1.0
    where = Filter((Condition("document_id", "$eq", document.id),), access)
    return (await store.search([Leg("dense", query, limit)], where))[0].hits


async def pages_of(store: WritableStore, document: Document) -> list[Page]:
    """All of a document's pages that there are, in order."""
    access = Access(document.meta.tenant, document.meta.acl)
    found: list[Page] = []
    numbers = range(1, document.pages + 1)
    for start in range(0, len(numbers), _PAGES_AT_ONCE):
        keys = [(document.id, number) for number in numbers[start : start + _PAGES_AT_ONCE]]
        found += [page for page in await store.pages(keys, access) if page is not None]
    return found


async def _of_graph(
    store: WritableStore, document: Document, pages: Sequence[Page], chunk_ids: Sequence[str]
) -> list[str]:
    """Records that point to what is not there, or to text that is none."""
    where = Filter((Condition("document_id", "$eq", document.id),), Access(document.meta.tenant, document.meta.acl))
    entities, relations = await store.records(Entity, where, {}), await store.records(Relation, where, {})
    keys, ids, texts = {e.key for e in entities}, set(chunk_ids), {page.number: page.text for page in pages}
    found = [f"entity {e.key!r}: no such theme" for e in entities if e.type == "theme" and e.key not in _THEMES]
    for relation in relations:
        what = f"relation {relation.subject!r} {relation.predicate} {relation.object!r}"
        found += [f"{what}: no entity {end!r}" for end in (relation.subject, relation.object) if end not in keys]
        found += [f"{what}: {problem}" for problem in _misplaced([relation.mention], texts, ids)]
    for entity in entities:
        found += [f"entity {entity.key!r}: {problem}" for problem in _misplaced(entity.mentions, texts, ids)]
    return found


def _misplaced(mentions: Sequence[Mention], texts: Mapping[int, str], chunk_ids: Set[str]) -> Iterator[str]:
    for mention in mentions:
        if mention.chunk_id not in chunk_ids:
            yield f"its passage {mention.chunk_id} does not exist"
        elif not 0 <= mention.start < mention.end <= len(texts.get(mention.page, "")):
            yield f"page {mention.page} has no characters {mention.start} to {mention.end}"


def _of_no_document(records: Mapping[str, int], figures: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for what, command, left in (("entities and relations", "graph", records), ("figures", "figures", figures)):
        for document_id, count in left.items():
            yield document_id, f"{count} {what} of no document; `sextant-ingest {command}` removes them"


async def orphaned_records(store: WritableStore, documents: Sequence[Document]) -> dict[str, int]:
    """How many records the graph has of documents that are not there, by their ids.

    Of the tenants and groups of those that are: nobody else is known.
    """
    known, left = {document.id for document in documents}, Counter[str]()
    groups: dict[str, set[str]] = {Access().tenant: set(Access().groups)}
    for document in documents:
        groups.setdefault(document.meta.tenant, set()).update(document.meta.acl)
    for tenant, of_tenant in groups.items():
        everything = Filter(access=Access(tenant, tuple(sorted(of_tenant))))
        left.update(e.document_id for e in await store.records(Entity, everything, {}))
        left.update(r.document_id for r in await store.records(Relation, everything, {}))
    return {document_id: left[document_id] for document_id in sorted(left.keys() - known)}


def _of_figures(figures: Sequence[Figure], pages: Sequence[Page], chunk_ids: Sequence[str]) -> Iterator[str]:
    """A figure whose place does not hold its number, or whose passage does not exist."""
    texts, ids = {page.number: page.text for page in pages}, set(chunk_ids)
    for figure in figures:
        printed = texts.get(figure.page, "")[figure.start : figure.end]
        number = read_number(printed)
        if number is None or abs(number.value) != abs(figure.value):
            yield f"figure {figure.label!r}: page {figure.page} has {printed!r} where it should have {figure.value}"
        if figure.chunk_id is not None and figure.chunk_id not in ids:
            yield f"figure {figure.label!r}: its passage {figure.chunk_id} does not exist"
