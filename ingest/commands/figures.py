"""What the command line does with figures: query them, and derive them for an index that was built without."""

import argparse
import sys
from collections.abc import AsyncIterator

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from app.adapters.figures_sqlite import SqliteFigures
from app.errors import InvalidQuery, Timeout
from app.ports import WritableFigures, WritableStore
from app.settings import Settings
from app.types import Access, Document, Rows
from ingest.captions import printed
from ingest.cli import OK, SOME_FAILED, USAGE
from ingest.extraction.figures import figures
from ingest.formats.tables import tables
from ingest.indexing import Index
from ingest.report import Report, write_json
from ingest.verification import chunks_of, pages_of

_WIDE = 1000
"""Columns of a pipe: nothing is wrapped."""


async def sql(options: argparse.Namespace, settings: Settings, report: Report) -> int:
    """One SELECT over the figures of a tenant, as its groups see them. The index need not be closed for it."""
    access = Access(options.tenant, options.groups)
    try:
        rows = await SqliteFigures(settings.figures_file).query(
            options.statement, access, limit=options.limit, timeout_s=options.timeout_s
        )
    except InvalidQuery as error:
        report.error(f"{error}")
        return USAGE
    except Timeout as error:
        report.error(f"{error}, or give it more than {options.timeout_s:g} s (--timeout-s)")
        return SOME_FAILED
    if options.json:
        for row in rows.rows:
            write_json("row", dict(zip(rows.columns, row, strict=True)))
    else:
        _print(rows)
    if rows.truncated:
        report.error(f"more rows than {options.limit}; --limit takes more")
    return OK


def _print(rows: Rows) -> None:
    table = Table(*(Column(name, overflow="fold") for name in rows.columns), box=None)
    for row in rows.rows:
        table.add_row(*(Text("" if cell is None else f"{cell}") for cell in row))
    Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE).print(table)


async def derive(options: argparse.Namespace, index: Index, report: Report) -> int:
    """Figures of every document from its stored pages and chunks; those of documents that are gone are removed."""
    assert index.figures is not None
    documents = [d for d in await index.store.documents() if d.state == "ready"]
    for orphan in (await index.figures.counts()).keys() - {document.id for document in documents}:
        await index.figures.delete(orphan)
    failed = 0
    async for document, count in _derived(index.store, index.figures, documents):
        if count is None:
            failed += 1
            report.error(f"{document.id}: its pages keep no places of words (HTML or text); ingest its file again")
        elif options.json:
            write_json("figures", {"document_id": document.id, "figures": count})
        else:
            Console(highlight=False, soft_wrap=True).print(Text(f"{document.id}: {count} figures"))
    return SOME_FAILED if failed else OK


async def _derived(
    store: WritableStore, kept: WritableFigures, documents: list[Document]
) -> AsyncIterator[tuple[Document, int | None]]:
    """How many each has; None where its tables cannot be found again and none are known."""
    known = await kept.counts()
    for document in documents:
        pages = [printed(page) for page in await pages_of(store, document)]
        if not any(page.words for page in pages):
            yield document, known.get(document.id)
            continue
        access = Access(document.meta.tenant, document.meta.acl)
        chunks = [hit.chunk for hit in await chunks_of(store, document, access, document.chunks)]
        found = figures(document.id, document.meta, pages, [tables(page) for page in pages], chunks)
        await kept.put(document, found)
        yield document, len(found)
