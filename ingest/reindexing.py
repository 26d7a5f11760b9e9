"""The same filings under another chunker or model: built beside the index in use, switched to when whole, kept."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
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
from ingest.situating import open_situating
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
    async with open_builds(settings) as builds:
        with TemporaryDirectory(prefix="sextant-") as folder:
            async with open_index(settings, False) as old:
                work = _Work(options, settings, old, Path(folder), report)
                filings = await work.filings()
                if filings is None:
                    return SOME_FAILED
                if options.dry_run:
                    _tell(options, "forecast", f"{len(filings)} documents would be built anew", documents=len(filings))
                    return OK
                versions = await builds.read()
                new = max(versions.current, versions.previous or 0) + 1
                async with _opened(settings.of_build(new), new, builds, open_index) as index:
                    if not await work.done(index, filings):
                        return SOME_FAILED
                await builds.switch(Versions(new, versions.current))
        if options.drop_old:
            await _prune(builds)
    when = "answers from it now" if settings.qdrant_url else ""
    text = f"{settings.collection} is now build {new}; a service {when or 'started from now on uses it'}"
    _tell(options, "switched", text, build=new)
    return OK


@dataclass(frozen=True, slots=True)
class _Filing:
    """A document of the old build and where its bytes are."""

    document: Document
    path: Path


@dataclass(frozen=True, slots=True)
class _Work:
    """From the old build to the new one."""

    options: argparse.Namespace
    settings: Settings
    old: Index
    folder: Path
    """For copies of remote files."""
    report: Report
    told: set[str] = field(default_factory=set)
    """Ids of documents that are said to be missing."""

    async def filings(self) -> list[_Filing] | None:
        """Those of the old build that can be read again; None where others cannot, and may not be left out."""
        documents = [document for document in await self.old.store.documents() if document.state == "ready"]
        found = await asyncio.to_thread(_originals, documents, self.settings.originals_dir, self.folder)
        missing = [document for document in documents if document.id not in found]
        for document in missing:
            if document.id in self.told:
                continue
            self.told.add(document.id)
            self.report.error(f"{document.id}: {document.meta.source} is gone or has changed, and no copy was kept")
        if missing and not self.options.allow_missing:
            self.report.error(
                f"{len(missing)} of {len(documents)} documents cannot be read again; --allow-missing drops them"
            )
            return None
        return [_Filing(document, found[document.id]) for document in documents if document.id in found]

    async def done(self, new: Index, filings: list[_Filing]) -> bool:
        """Whether the new build has all of the old one, which may change meanwhile where a server keeps it."""
        now: list[_Filing] | None = filings
        while now is not None:
            filings = now
            if not await self._build(new, filings) and not self.options.allow_missing:
                self.report.error("nothing is switched, for some filings failed; the same command tries them again")
                return False
            kept = {filing.document.id for filing in filings}
            for document in await new.store.documents():
                if document.id not in kept:
                    await new.remove(document)
            if (now := await self.filings()) == filings:
                return True
        return False

    async def _build(self, new: Index, filings: Sequence[_Filing]) -> bool:
        """Whether every one is in the new build now."""
        chunker = read_chunker(self.settings.chunker)

        def rights(filing: _Filing) -> tuple[str, tuple[str, ...]]:
            return filing.document.meta.tenant, filing.document.meta.acl

        async with (
            open_captioning(self.settings) as captioning,
            open_relating(self.settings) as relating,
            open_situating(self.settings, chunker) as situating,
        ):
            limits = Options(
                workers=self.options.workers,
                graph=self.settings.graph,
                ocr=self.settings.ocr,
                captioning=captioning,
                relating=relating,
                situating=situating,
            )
            for (tenant, acl), group in groupby(sorted(filings, key=rights), rights):
                own = list(group)
                given = _AsBefore([filing.document for filing in own])
                batch = Batch(
                    new, chunker, replace(limits, tenant=tenant, acl=acl, sidecars=given), self.report.outcome
                )
                self.report.begin(f"a new build of {self.settings.collection}", len(own), batch.tally)
                try:
                    sources = [Source(filing.document.meta.source, str(filing.path)) for filing in own]
                    await batch.run(sources, await new.store.documents())
                finally:
                    self.report.end(batch.tally)
        built = {(d.meta.tenant, d.sha256) for d in await new.store.documents() if d.state == "ready"}
        return {(filing.document.meta.tenant, filing.document.sha256) for filing in filings} <= built


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


async def rollback(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    """To the build that was in use before; the same again undoes it."""
    async with open_builds(settings) as builds:
        versions = await builds.read()
        if versions.previous is None or versions.previous not in await builds.existing():
            report.error("there is no earlier build to go back to")
            return USAGE
        async with open_index(settings, False):
            await builds.switch(Versions(versions.previous, versions.current))
    report.note(f"{settings.collection} is build {versions.previous} again; set the models back that it was built with")
    return OK


async def prune(options: argparse.Namespace, settings: Settings, open_index: OpenIndex, report: Report) -> int:
    """Remove every build but the one in use."""
    async with open_builds(settings) as builds, open_index(settings, False):
        removed = await _prune(builds)
    _tell(options, "pruned", f"{len(removed)} build{'s' * (len(removed) != 1)} removed", builds=removed)
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
