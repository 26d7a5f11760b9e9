"""What the command line does with the graph: derive it for an index that was built without, from what is stored."""

import argparse
import asyncio
import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from app.types import Access, Chunk, Document, Entity, Relation
from ingest.captions import printed
from ingest.cli import OK
from ingest.extraction.entities import extract
from ingest.extraction.model_relations import merged
from ingest.indexing import Index
from ingest.model_calls import summed
from ingest.relating import Relating, RelatingCost
from ingest.report import as_json, related, write_json
from ingest.verification import chunks_of, orphaned_records, pages_of


async def derive(options: argparse.Namespace, index: Index, relating: Relating | None) -> int:
    """Entities and relations of every document, in place of those it had; those of no document go. Nothing is embedded.

    A dry run says what a model that reads relations would cost, and writes nothing.
    """
    costs: list[RelatingCost] = []
    documents = await index.store.documents()
    for orphan in await orphaned_records(index.store, documents) if not options.dry_run else ():
        await index.store.delete_records(orphan)
    for document in documents:
        if document.state != "ready":
            continue
        began = time.perf_counter()
        records, chunks = await _extracted(document, index)
        cost = None
        if relating and options.dry_run:
            cost = relating.estimate(document, records, chunks)
        elif relating:
            more, cost = await relating.records(document, records, chunks)
            records = merged([*records, *more])
        costs += [cost] if cost else []
        if not options.dry_run:
            await index.store.put_records(document.id, records)
        _tell(options, document, records, time.perf_counter() - began, cost)
    if len(costs) > 1:
        _total(options, costs)
    return OK


async def _extracted(document: Document, index: Index) -> tuple[list[Entity | Relation], Sequence[Chunk]]:
    access = Access(document.meta.tenant, document.meta.acl)
    pages = [printed(page) for page in await pages_of(index.store, document)]
    hits = await chunks_of(index.store, document, access, document.chunks)
    chunks = sorted((hit.chunk for hit in hits if hit.chunk.kind != "figure"), key=lambda chunk: chunk.ordinal)
    return await asyncio.to_thread(extract, document.id, document.meta, pages, chunks), chunks


def _tell(
    options: argparse.Namespace,
    document: Document,
    records: Sequence[Entity | Relation],
    seconds: float,
    cost: RelatingCost | None,
) -> None:
    entities = sum(isinstance(record, Entity) for record in records)
    counts = {"entities": entities, "relations": len(records) - entities, "seconds": round(seconds, 3)}
    if options.json:
        by_model = {"model_relations": as_json(cost)} if cost else {}
        write_json("graph", {"document_id": document.id, **counts, **by_model})
        return
    listed = f"{entities} entities and {len(records) - entities} relations in {seconds:.1f} s"
    parts = [f"{document.id}: {listed}", *([related(cost)] if cost else [])]
    Console(highlight=False, soft_wrap=True).print(Text(" · ".join(parts)))


def _total(options: argparse.Namespace, costs: Sequence[RelatingCost]) -> None:
    total = summed(costs)
    if options.json:
        write_json("model_relations", as_json(total))
    else:
        Console(highlight=False, soft_wrap=True).print(Text(f"in all: {related(total)}", "bold"))
