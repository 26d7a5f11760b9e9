"""What the command line does with the graph: derive it for an index that was built without, from what is stored."""

import argparse
import asyncio
import time

from rich.console import Console
from rich.text import Text

from app.types import Access, Entity
from ingest.captions import printed
from ingest.cli import OK
from ingest.extraction.entities import extract
from ingest.indexing import Index
from ingest.report import Report, write_json
from ingest.verification import chunks_of, pages_of


async def derive(options: argparse.Namespace, index: Index, report: Report) -> int:
    """Entities and relations of every document, in place of those it had. Nothing is embedded."""
    for document in await index.store.documents():
        if document.state != "ready":
            continue
        began = time.perf_counter()
        access = Access(document.meta.tenant, document.meta.acl)
        pages = [printed(page) for page in await pages_of(index.store, document)]
        hits = await chunks_of(index.store, document, access, document.chunks)
        chunks = sorted((hit.chunk for hit in hits if hit.chunk.kind != "figure"), key=lambda chunk: chunk.ordinal)
        records = await asyncio.to_thread(extract, document.id, document.meta, pages, chunks)
        await index.store.put_records(document.id, records)
        entities, seconds = sum(isinstance(record, Entity) for record in records), time.perf_counter() - began
        counts = {"entities": entities, "relations": len(records) - entities, "seconds": round(seconds, 3)}
        if options.json:
            write_json("graph", {"document_id": document.id, **counts})
        else:
            listed = f"{entities} entities and {len(records) - entities} relations in {seconds:.1f} s"
            Console(highlight=False, soft_wrap=True).print(Text(f"{document.id}: {listed}"))
    return OK
