"""What the command line does once its arguments are understood."""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from app.adapters.figures_sqlite import SqliteFigures
from app.errors import InvalidOptions, SextantError, StoreUnavailable
from app.opening import any_stamp, index_stamp, open_embedder, open_sparse, open_store
from app.settings import Settings, read_settings
from app.types import Document, FloatArray, Removed
from ingest import reindexing
from ingest.captioning import open_captioning
from ingest.chunking import read_chunker
from ingest.cli import OK, SOME_FAILED, UNAVAILABLE, USAGE, parse_arguments
from ingest.commands import fetch as fetch_command
from ingest.commands import figures as figure_commands
from ingest.commands import graph as graph_commands
from ingest.formats.ocr import INSTALL, is_installed
from ingest.indexing import Index
from ingest.pipeline import Batch, Options
from ingest.relating import open_relating
from ingest.report import JsonReport, Report, TextReport, write_json, write_metrics
from ingest.sidecars import Sidecars
from ingest.situating import open_situating
from ingest.sources import Source, find_sources
from ingest.verification import problems

OpenIndex: TypeAlias = Callable[[Settings, bool], AbstractAsyncContextManager[Index]]
"""Called with the settings and whether it is to add to the index, and create it if need be."""

_COLUMNS = ("document", "title", "pages", "chunks", "tenant", "source")
_WIDE = 1000
"""Columns of a pipe: nothing is wrapped."""
_SHARED_FOR = timedelta(hours=1)
"""Age after which an unfinished record in a shared store is taken for a dead process's."""


class NoEmbedder:
    """Of an index that is only looked at: loading a model takes seconds."""

    name = "none"
    dimensions = 0

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        raise AssertionError("this index was opened without its models")

    queries = passages


@asynccontextmanager
async def open_index(settings: Settings, create: bool) -> AsyncIterator[Index]:
    """The store and, to add to it, the models that the settings name. Raises Unavailable and IndexMismatch."""
    figures = SqliteFigures(settings.figures_file)
    if not create:
        async with open_store(settings, any_stamp(settings), create=False) as store:
            yield Index(store, NoEmbedder(), {}, figures, settings.originals_dir)
        return
    embedder = await open_embedder(settings)
    try:
        stamp = index_stamp(settings, embedder, read_chunker(settings.chunker).name)
        async with open_store(settings, stamp, create=True) as store:
            yield Index(store, embedder, await open_sparse(settings), figures, settings.originals_dir)
    finally:
        embedder.close()


async def execute(options: argparse.Namespace, open_index: OpenIndex) -> int:
    """Returns the exit status. A request to terminate ends it as an interrupt would."""
    report: Report = JsonReport() if options.json else TextReport(progress=not getattr(options, "no_progress", True))
    current = asyncio.current_task()
    if current is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    try:
        given = {name: getattr(options, name, None) for name in ("collection", "chunker", "embedding_model")}
        settings = read_settings(**{name: value for name, value in given.items() if value})
        read_chunker(settings.chunker)
    except (ValueError, InvalidOptions) as error:
        report.error(f"settings: {error}")
        return USAGE
    commands = {
        "ingest": _ingest,
        "list": _list,
        "delete": _delete,
        "verify": _verify,
        "figures": _figures,
        "graph": _graph,
        "sql": _sql,
        "fetch": _fetch,
        "reindex": reindexing.reindex,
        "rollback": reindexing.rollback,
        "prune": reindexing.prune,
    }
    command = commands[options.command]
    try:
        return await command(options, settings, open_index, report)
    except InvalidOptions as error:
        report.error(f"settings: {error}")
        return USAGE
    except (SextantError, OSError) as error:
        report.error(f"{error}")
        return UNAVAILABLE


async def _ingest(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    async with (
        open_captioning(settings) as captioning,
        open_relating(settings) as relating,
        open_situating(settings, read_chunker(settings.chunker)) as situating,
    ):
        if options.dry_run:
            captioning = None
        models = Options(captioning=captioning, relating=relating, situating=situating)
        return await _add(options, settings, open_index, report, models)


async def _add(
    options: argparse.Namespace,
    settings: Settings,
    open_index: OpenIndex,
    report: Report,
    models: Options,
) -> int:
    sources = await asyncio.to_thread(lambda: list(find_sources(options.paths)))
    if not any(source.problem is None for source in sources):
        for source in sources:
            report.error(f"{source.shown}: {source.problem}")
        report.error("no filing found: no PDF, HTML or EDGAR text file" if not sources else "nothing to ingest")
        return USAGE
    ocr = options.ocr or settings.ocr
    if ocr != "off" and not is_installed():
        report.note(f"Pictures of text stay unread; to read them, install {INSTALL}")
    limits = replace(
        models,
        tenant=options.tenant,
        acl=options.acl,
        workers=min(options.workers, len(sources)),
        timeout_s=options.timeout_s,
        max_bytes=options.max_bytes,
        max_pages=options.max_pages,
        graph=settings.graph,
        ocr=ocr,
        sidecars=options.metadata or Sidecars(),
        abandoned_after=_SHARED_FOR if settings.qdrant_url else timedelta(0),
    )
    if options.dry_run:
        batch = Batch(None, read_chunker(settings.chunker), limits, report.outcome)
        await _run(batch, sources, await _records(settings, open_index), "nothing is written", report)
    else:
        async with open_index(settings, True) as index:
            batch = Batch(index, read_chunker(settings.chunker), limits, report.outcome)
            await _run(batch, sources, await index.store.documents(), place(settings), report)
    if options.metrics_file:
        write_metrics(Path(options.metrics_file), report.outcomes, batch.tally)
    return SOME_FAILED if report.outcomes.failures() else OK


async def _run(
    batch: Batch, sources: Sequence[Source], records: Sequence[Document], where: str, report: Report
) -> None:
    report.begin(where, len(sources), batch.tally)
    try:
        await batch.run(sources, records)
        for document in batch.removed:
            report.removed(document)
    finally:
        report.end(batch.tally)
        if unfinished := len(sources) - len(report.outcomes.every):
            report.error(
                f"stopped before {unfinished} of {len(sources)} files were done; the same command does the rest"
            )


async def _records(settings: Settings, open_index: OpenIndex) -> Sequence[Document]:
    """Those of the index, if there is one."""
    try:
        async with open_index(settings, False) as index:
            return await index.store.documents()
    except StoreUnavailable:
        if settings.qdrant_url:
            raise
        return ()


def place(settings: Settings) -> str:
    """Where the index lives."""
    if settings.qdrant_url:
        return f"collection {settings.collection} at {settings.qdrant_url}"
    return str(settings.index_dir.absolute())


async def _list(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    async with open_index(settings, False) as index:
        documents = [d for d in await index.store.documents() if options.tenant in (None, d.meta.tenant)]
    if options.json:
        for document in documents:
            meta = document.meta
            known = {"company": meta.company, "form": meta.form, "fiscal_year": meta.fiscal_year, "title": meta.title}
            where = {"source": meta.source, "tenant": meta.tenant, "acl": list(meta.acl), "sha256": document.sha256}
            size = {"pages": document.pages, "chunks": document.chunks, "state": document.state}
            write_json("document", {"document_id": document.id, **known, **where, **size})
        return OK
    table = Table(*(Column(name, overflow="fold") for name in _COLUMNS), box=None)
    for document in documents:
        meta, state = document.meta, "" if document.state == "ready" else " (unfinished)"
        row = (document.id + state, meta.title, str(document.pages), str(document.chunks), meta.tenant, meta.source)
        table.add_row(*map(Text, row))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    console.print(table)
    console.print(Text(f"{len(documents)} documents in {place(settings)}"))
    return OK


async def _delete(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    sources = {source.uri for source in find_sources([options.source])} | {options.source} if options.source else set()
    async with open_index(settings, False) as index:
        documents = {document.id: document for document in await index.store.documents()}
        found = [d.id for d in documents.values() if d.meta.source in sources and d.meta.tenant == options.tenant]
        wanted = dict.fromkeys([*options.ids, *found])
        unknown = [each for each in wanted if each not in documents]
        for each in wanted:
            if each in documents:
                _deleted(options.json, each, await index.remove(documents[each]))
    for each in unknown:
        report.error(f"no document {each!r} in {place(settings)}; `list` shows what there is")
    if options.source and not found:
        report.error(f"no document of tenant {options.tenant!r} came from {options.source}")
    return SOME_FAILED if unknown or (options.source and not found) else OK


def _deleted(as_json: bool, document_id: str, removed: Removed) -> None:
    counts = asdict(removed)
    if as_json:
        write_json("deleted", {"document_id": document_id, **counts})
    else:
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        Console(highlight=False, soft_wrap=True).print(Text(f"deleted {document_id}: {listed} and its record"))


async def _figures(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    async with open_index(settings, False) as index:
        return await figure_commands.derive(options, index, report)


async def _graph(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    async with open_index(settings, False) as index, open_relating(settings) as relating:
        return await graph_commands.derive(options, index, relating)


async def _fetch(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    status = await fetch_command.fetch(options, settings, report)
    if options.dry_run or not options.ingest or not options.to.is_dir():
        return status
    return max(status, await _ingest(parse_arguments(["ingest", str(options.to)]), settings, open_index, report))


async def _sql(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    return await figure_commands.sql(options, settings, report)


async def _verify(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    async with open_index(settings, False) as index:
        documents = await index.store.documents()
        found = [problem async for problem in problems(index.store, index.figures)]
    for name, problem in found:
        if options.json:
            write_json("problem", {"document_id": name, "detail": problem})
        else:
            report.error(f"{name}: {problem}")
    result = {"documents": len(documents), "chunks": sum(d.chunks for d in documents), "problems": len(found)}
    if options.json:
        write_json("verified", result)
    else:
        figures = ", ".join(f"{value} {name}" for name, value in result.items())
        Console(highlight=False, soft_wrap=True).print(Text(f"{figures} in {place(settings)}"))
    return SOME_FAILED if found else OK
