"""Whether the index is what its records say: nothing missing, every chunk a slice of its page, no orphans."""

from collections import defaultdict
from collections.abc import AsyncIterator

import numpy as np

from app.ports import WritableStore
from app.types import Access, Condition, Document, Filter, Hit, Leg, Page

_PAGES_AT_ONCE = 64


async def problems(store: WritableStore) -> AsyncIterator[tuple[str, str]]:
    """Pairs of document id (or tenant) and what is wrong with it."""
    chunks: dict[str, int] = defaultdict(int)
    groups: dict[str, set[str]] = defaultdict(set)
    for document in await store.documents():
        tenant = document.meta.tenant
        groups[tenant] |= set(document.meta.acl)
        ids = await store.chunk_ids(document.id)
        chunks[tenant] += len(ids)
        if document.state != "ready":
            yield document.id, "unfinished; ingest its file again, or any other, which removes it"
            continue
        async for problem in _of_document(store, document, ids):
            yield document.id, problem
    for tenant, known in chunks.items():
        found = await store.count(Filter(access=Access(tenant, tuple(sorted(groups[tenant])))))
        if found != known:
            yield f"tenant {tenant}", f"{found} chunks, but the documents have {known}"


async def _of_document(store: WritableStore, document: Document, ids: list[str]) -> AsyncIterator[str]:
    if len(ids) != document.chunks or len(set(ids)) != len(ids):
        yield f"{len(ids)} chunks, but the record says {document.chunks}"
    access = Access(document.meta.tenant, document.meta.acl)
    pages: dict[int, Page] = {}
    numbers = range(1, document.pages + 1)
    for start in range(0, len(numbers), _PAGES_AT_ONCE):
        part = numbers[start : start + _PAGES_AT_ONCE]
        for number, page in zip(part, await store.pages([(document.id, n) for n in part], access), strict=True):
            if page is None:
                yield f"page {number} is missing"
            else:
                pages[number] = page
    if any("\0" in page.text for page in pages.values()):
        yield "a page's text holds NUL"
    hits = await _chunks(store, document, access, max(len(ids), 1))
    if {hit.chunk.id for hit in hits} != set(ids):
        yield f"{len(hits)} of {len(ids)} chunks can be found by a search"
    if sorted(hit.chunk.ordinal for hit in hits) != list(range(len(hits))):
        yield "chunks are not numbered without a gap"
    for hit in hits:
        chunk, stored = hit.chunk, pages.get(hit.chunk.page)
        if stored is None or stored.text[chunk.start : chunk.end] != chunk.text or not chunk.text:
            yield f"chunk {chunk.id} is no slice of page {chunk.page}"


async def _chunks(store: WritableStore, document: Document, access: Access, limit: int) -> tuple[Hit, ...]:
    """All of a document's chunks: the best `limit` of its own for any query vector."""
    dimensions = (await store.stamp()).dimensions
    query = np.zeros(dimensions, np.float32)
    query[0] = 1.0
    where = Filter((Condition("document_id", "$eq", document.id),), access)
    return (await store.search([Leg("dense", query, limit)], where))[0].hits
