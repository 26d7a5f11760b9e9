"""The same filings under another chunker or model: built beside the index in use, switched to when whole, kept."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rich.console import Console
from rich.text import Text

from app.errors import DocumentError, IndexMismatch
from app.settings import Settings
from app.types import Document
from app.versions import Versions
from ingest.builds import Builds, open_builds
from ingest.captioning import open_captioning
from ingest.chunking import read_chunker
from ingest.cli import OK, SOME_FAILED, USAGE
from ingest.indexing import Index
from ingest.pipeline import Batch, Options
from ingest.relating import open_relating
from ingest.report import Report, write_json
from ingest.sidecars import Given, Sidecars
from ingest.sources import Source, fetch, hash_file

OpenIndex: TypeAlias = Callable[[Settings, bool], AbstractAsyncContextManager[Index]]
_MOST_BYTES = 512 << 20


class _AsBefore(Sidecars):
    """What was given about the documents when they were ingested."""

    def __init__(self, documents: Sequence[Document]) -> None:
        super().__init__()
        self._kept = {document.meta.source: dict(document.given) for document in documents}

    def given(self, source: Source) -> Given:
        return self._kept[source.uri]


async def reindex(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    """Raises StoreLocked while a service has the embedded index. A run that was killed is taken up by the next."""
    async with open_builds(settings) as builds, open_index(settings, False) as old:
        if options.dry_run:
            with TemporaryDirectory(prefix="sextant-") as folder:
                documents = await _ready(old)
                found = await asyncio.to_thread(_originals, documents, settings.originals_dir, Path(folder))
            complete = _all_found(documents, found, options, report)
            if complete:
                _tell(options, "forecast", f"{len(found)} documents would be built anew", documents=len(found))
            return OK if complete else SOME_FAILED
        versions = await builds.read()
        new = max(versions.current, versions.previous or 0) + 1
        async with _opened(settings.of_build(new), new, builds, open_index) as index:
            if not await _follow(options, settings, old, index, report):
                return SOME_FAILED
            await builds.switch(Versions(new, versions.current))
        if options.drop_old:
            await _prune(builds)
    at_once = (
        "answers from it at once; start it again for its figures" if settings.qdrant_url else "uses it from its start"
    )
    text = f"{settings.collection} is now build {new}; a service {at_once}"
    _tell(options, "switched", text, build=new)
    return OK


async def _follow(options: argparse.Namespace, settings: Settings, old: Index, new: Index, report: Report) -> bool:
    """Whether the new build has all that the old one has; the old one may change meanwhile where a server keeps it."""
    built: list[Document] = []
    while built != (documents := await _ready(old)):
        built = documents
        with TemporaryDirectory(prefix="sextant-") as folder:
            found = await asyncio.to_thread(_originals, documents, settings.originals_dir, Path(folder))
            if not _all_found(documents, found, options, report):
                return False
            async with open_captioning(settings) as captioning, open_relating(settings) as relating:
                limits = Options(
                    workers=options.workers,
                    graph=settings.graph,
                    ocr=settings.ocr,
                    captioning=captioning,
                    relating=relating,
                )
                whole = await _build(settings, new, limits, [d for d in documents if d.id in found], found, report)
        if not whole and not options.allow_missing:
            report.error("nothing is switched, for some filings failed; the same command tries them again")
            return False
        kept = {document.id for document in documents}
        for document in await new.store.documents():
            if document.id not in kept:
                await new.remove(document)
    return True


async def _ready(index: Index) -> list[Document]:
    return [document for document in await index.store.documents() if document.state == "ready"]


def _all_found(
    documents: Sequence[Document], found: Mapping[str, Path], options: argparse.Namespace, report: Report
) -> bool:
    """Or whether what is missing may be."""
    missing = [document for document in documents if document.id not in found]
    for document in missing:
        report.error(f"{document.id}: {document.meta.source} is gone or has changed, and no copy was kept")
    if missing and not options.allow_missing:
        report.error(f"{len(missing)} of {len(documents)} documents cannot be read again; --allow-missing drops them")
        return False
    return True


def _originals(documents: Sequence[Document], kept: Path, folder: Path) -> dict[str, Path]:
    """Files with the bytes that the documents were made from, by document id; remote ones are copied to `folder`."""
    found: dict[str, Path] = {}
    for document in documents:
        uri = document.meta.source
        parts = urlsplit(uri)
        places = [kept / document.id]
        try:
            if parts.scheme == "file":
                places.append(Path(url2pathname(parts.path)))
            elif parts.scheme != "upload":
                places.append(fetch(Source(uri, uri), folder, _MOST_BYTES).path)
        except DocumentError:
            pass
        for place in places:
            if place.is_file() and hash_file(place) == document.sha256:
                found[document.id] = place
                break
    return found


@asynccontextmanager
async def _opened(building: Settings, number: int, builds: Builds, open_index: OpenIndex) -> AsyncIterator[Index]:
    """What an earlier run has built of it, unless that was by other settings."""
    try:
        async with open_index(building, True):
            pass
    except IndexMismatch:
        await builds.remove(number)
    async with open_index(building, True) as index:
        yield index


async def _build(
    settings: Settings,
    index: Index,
    limits: Options,
    documents: Sequence[Document],
    found: dict[str, Path],
    report: Report,
) -> bool:
    """Whether every document is in the new index now."""
    chunker = read_chunker(settings.chunker)

    def rights(document: Document) -> tuple[str, tuple[str, ...]]:
        return document.meta.tenant, document.meta.acl

    for (tenant, acl), group in groupby(sorted(documents, key=rights), rights):
        own = list(group)
        batch = Batch(index, chunker, replace(limits, tenant=tenant, acl=acl, sidecars=_AsBefore(own)), report.outcome)
        report.begin(f"a new build of {settings.collection}", len(own), batch.tally)
        try:
            await batch.run([Source(d.meta.source, str(found[d.id])) for d in own], await index.store.documents())
        finally:
            report.end(batch.tally)
    built = {(d.meta.tenant, d.sha256) for d in await index.store.documents() if d.state == "ready"}
    return {(d.meta.tenant, d.sha256) for d in documents} <= built


async def rollback(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    """To the build that was in use before; the same again undoes it."""
    async with open_builds(settings) as builds:
        versions = await builds.read()
        if versions.previous is None or versions.previous not in await builds.existing():
            report.error("there is no earlier build to go back to")
            return USAGE
        async with open_index(settings, False):
            await builds.switch(Versions(versions.previous, versions.current))
    report.error(
        f"{settings.collection} is build {versions.previous} again; set the models back that it was built with"
    )
    return OK


async def prune(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    """Remove every build but the one in use."""
    async with open_builds(settings) as builds, open_index(settings, False):
        removed = await _prune(builds)
    _tell(options, "pruned", f"{len(removed)} builds removed", builds=removed)
    return OK


async def _prune(builds: Builds) -> list[int]:
    current = (await builds.read()).current
    await builds.switch(Versions(current))
    others = [each for each in await builds.existing() if each != current]
    for each in others:
        await builds.remove(each)
    return others


def _tell(options: argparse.Namespace, kind: str, text: str, **fields: Any) -> None:
    if options.json:
        write_json(kind, fields)
    else:
        Console(highlight=False, soft_wrap=True).print(Text(text))
