"""A batch of files into the index: what each file's bytes mean, parsing ahead of the model, nothing left half done.

A filing is identified by its source URI, its content by tenant and SHA-256. Whatever moment a run is killed at, the
next one over the same files ends with the index of an undisturbed run: ids depend on content alone, a record says
`ingesting` until all it stands for is durable, and what has no future is removed at the end of a batch.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from app.errors import DocumentError
from app.types import Document, OcrMode
from ingest.captioning import CaptionCost, Captioning
from ingest.chunking import Chunker
from ingest.executors import MEMORY_BYTES, ProcessPool
from ingest.indexing import Filing, Filings, Index, Indexer, Tally
from ingest.parsing import GraphCost, Job, Parsed, parse, slug
from ingest.registry import Registry
from ingest.relating import Relating, RelatingCost
from ingest.sidecars import Given, Sidecars
from ingest.situating import Situating, SituatingCost
from ingest.sources import LocalFile, Source, fetch, stem_of

OutcomeName = Literal["created", "unchanged", "replaced", "failed"]
OUTCOMES: tuple[OutcomeName, ...] = ("created", "unchanged", "replaced", "failed")

_AHEAD = 2
"""Files parsed beyond those in the worker processes, waiting on disk for the model."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one source."""

    source: Source
    outcome: OutcomeName
    document: Document | None = None
    reason: str | None = None
    """Of a failure: one of the reasons of DocumentError."""
    detail: str | None = None
    graph: GraphCost | None = None
    """Of a filing newly written, where there is a graph."""
    captions: CaptionCost | None = None
    """Of a filing newly written, where pictures are put into words."""
    relating: RelatingCost | None = None
    """Of a filing newly written, where a model reads relations; of a dry run, what it would cost."""
    situating: SituatingCost | None = None
    """Likewise, where a model says where chunks stand."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a batch is ingested with."""

    tenant: str = "default"
    acl: tuple[str, ...] | None = None
    """None keeps the groups of what is replaced, and is `new_acl` for a new filing."""
    new_acl: tuple[str, ...] = ("public",)
    workers: int = 1
    timeout_s: float | None = None
    """Per file, and more for each page read as a picture; None is 60 s and 3 s more for every MiB."""
    max_bytes: int = 512 << 20
    max_pages: int = 5000
    graph: bool = False
    """Whether entities and relations are kept."""
    ocr: OcrMode = "auto"
    sidecars: Sidecars | None = None
    """What is given about files; None keeps what was."""
    captioning: Captioning | None = None
    """None leaves pictures as they are."""
    relating: Relating | None = None
    """None keeps to the relations that rules find."""
    situating: Situating | None = None
    """None searches chunks without a sentence of where they stand."""
    memory_bytes: int = MEMORY_BYTES
    """Address space of a parsing process."""
    abandoned_after: timedelta = timedelta(0)
    """Age from which an unfinished record is nobody's; above zero where several processes share the store."""

    def time_limit(self, size: int) -> float:
        return self.timeout_s or 60.0 + 3.0 * size / 2**20


def open_parsers(options: Options) -> ProcessPool[Job, Parsed]:
    """To be closed."""
    return ProcessPool(parse, options.workers, memory_bytes=options.memory_bytes)


def document_id(stem: str, tenant: str, sha256: str) -> str:
    digest = hashlib.sha256(f"{tenant}\n{sha256}".encode()).hexdigest()
    return f"{slug(stem)}-{digest[:10]}"


class Batch:
    """One run over many sources. An error of store or model ends it; a file's own error is that file's outcome.

    Without an index it is a dry run: everything but embedding and writing.
    """

    def __init__(
        self,
        index: Index | None,
        chunker: Chunker,
        options: Options,
        report: Callable[[Outcome], None],
        parsers: ProcessPool[Job, Parsed] | None = None,
    ) -> None:
        """`parsers` are lent, and stay for the next run; without, the run has its own."""
        self.tally = Tally()
        self.removed: list[Document] = []
        """Records that an earlier run had left unfinished and this one did not finish."""
        self._index = index
        self._chunker = chunker
        self._options = options
        self._report = report
        self._registry = Registry((), options.tenant)
        self._lent = parsers is not None
        self._parsers = parsers or open_parsers(options)
        self._ahead = asyncio.Semaphore(options.workers + _AHEAD)
        self._unread: set[str] = set()
        self._taken: set[str] = set()
        self._awaited: set[str] = set()
        self._errors: dict[str, DocumentError] = {}

    async def run(self, sources: Sequence[Source], records: Iterable[Document]) -> None:
        """Gives every source one outcome; `records` is what the store holds now.

        Raises SextantError where store or model fail; what is written by then stays, and a later run completes it.
        """
        self._registry = Registry(records, self._options.tenant)
        self._unread = {source.uri for source in sources}
        await self._complete()
        with TemporaryDirectory(prefix="sextant-") as folder:
            try:
                while sources:
                    sources = await self._pass(sources, Path(folder))
            except BaseExceptionGroup as group:
                raise _first(group) from None
            finally:
                if not self._lent:
                    self._parsers.close()
        if self._index:
            await self._sweep()

    async def _pass(self, sources: Sequence[Source], folder: Path) -> list[Source]:
        """Returns the sources that had to wait for another of this pass: the same bytes, or a record that may go."""
        self._taken.clear()
        self._awaited.clear()
        filings: Filings = asyncio.Queue()
        async with asyncio.TaskGroup() as tasks:
            if self._index:
                indexer = Indexer(self._index, self.tally, taken_in=self._done_with, finished=self._finish)
                tasks.create_task(indexer.run(filings))
            async with asyncio.TaskGroup() as parsing:
                waiting = await self._read_all(sources, folder, filings, parsing)
            await filings.put(None)
        return waiting

    async def _read_all(
        self, sources: Sequence[Source], folder: Path, filings: Filings, parsing: asyncio.TaskGroup
    ) -> list[Source]:
        waiting: list[Source] = []
        for source in sources:
            await self._ahead.acquire()
            try:
                file = await asyncio.to_thread(fetch, source, folder, self._options.max_bytes)
                given = await self._given(source)
            except DocumentError as error:
                self._fail(source, error)
                continue
            finally:
                self._unread.discard(source.uri)
            self._registry.now[source.uri] = file.sha256
            if self._must_wait(file.sha256):
                waiting.append(source)
                self._awaited.add(file.sha256)
            elif job := self._job(source, file, folder, given):
                self._taken.add(file.sha256)
                parsing.create_task(self._parse(source, file, job, filings))
                continue
            self._ahead.release()
            _remove_copy(source, file)
        return waiting

    def _must_wait(self, sha256: str) -> bool:
        record = self._registry.holding(sha256)
        return sha256 in self._taken or (record is not None and record.meta.source in self._unread)

    async def _given(self, source: Source) -> Given | None:
        """None where nothing is known but what was given before."""
        sidecars = self._options.sidecars
        return await asyncio.to_thread(sidecars.given, source) if sidecars else None

    def _job(self, source: Source, file: LocalFile, folder: Path, given: Given | None) -> Job | None:
        """What to parse, or None where the outcome is known (and reported) without."""
        options, record = self._options, self._registry.holding(file.sha256)
        if given is None or (record is not None and record.meta.source != source.uri):
            given = dict(record.given) if record else {}
        acl = tuple(str(given["acl"]).split(",")) if "acl" in given else options.acl
        acl = acl or self._registry.acl(source.uri, file.sha256) or options.new_acl
        if file.sha256 in self._errors:
            error = self._errors[file.sha256]
            self._report(Outcome(source, "failed", reason=error.reason, detail=str(error)))
            return None
        if record is not None and record.meta.acl == acl and record.given == given:
            replaced = self._registry.replaced_by(source.uri, record.id)
            self._report(Outcome(source, "replaced" if replaced else "unchanged", record))
            return None
        uri = record.meta.source if record else source.uri
        return Job(
            path=file.path,
            sha256=file.sha256,
            document_id=record.id if record else document_id(source.stem, options.tenant, file.sha256),
            name=stem_of(uri),
            source=uri,
            tenant=options.tenant,
            acl=acl,
            chunker=self._chunker,
            max_pages=options.max_pages,
            spool=folder,
            graph=options.graph,
            ocr=options.ocr,
            given=given,
        )

    async def _parse(self, source: Source, file: LocalFile, job: Job, filings: Filings) -> None:
        captioning, cost = self._options.captioning, None
        try:
            if captioning:
                captions, cost = await captioning.captions(file.path, self._options.time_limit(file.size))
                job = replace(job, captions=captions)
            parsed = await self._parsers.run(
                job,
                self._options.time_limit(file.size),
                lambda pictures: self.tally.pictures.update({job.document_id: pictures}),
            )
        except DocumentError as error:
            self._errors[file.sha256] = error
            self._fail(source, error)
            return
        finally:
            _remove_copy(source, file)
        document = parsed.document
        self.tally.pages += document.pages
        self.tally.chunks_parsed += document.chunks
        self.tally.seconds["parse"] += parsed.seconds
        self.tally.seconds["graph"] += parsed.graph.seconds if parsed.graph else 0.0
        older = self._registry.holding(file.sha256) or self._registry.replaced_by(source.uri, document.id)
        related = await self._related(parsed)
        situated, held = await self._situated(parsed), document.id in self._registry
        filing = Filing(source, parsed, bool(older), document.chunks, cost, held, related, situated)
        if self._index:
            await filings.put(filing)
        else:
            self._done_with(filing)
            await self._finish(filing, document)

    async def _related(self, parsed: Parsed) -> RelatingCost | None:
        """What a model adds to a filing's graph, or what that would cost."""
        relating = self._options.relating
        if relating is None or parsed.graph is None:
            return None
        records = await asyncio.to_thread(parsed.records)
        chunks = await asyncio.to_thread(lambda: [chunk for batch in parsed.chunks() for chunk in batch])
        if self._index is None:
            return relating.estimate(parsed.document, records, chunks)
        more, cost = await relating.records(parsed.document, records, chunks)
        await asyncio.to_thread(parsed.add_records, more)
        return cost

    async def _situated(self, parsed: Parsed) -> SituatingCost | None:
        """What a model says of each chunk's place, or what that would cost."""
        situating = self._options.situating
        if situating is None:
            return None
        chunks = await asyncio.to_thread(lambda: [chunk for batch in parsed.chunks() for chunk in batch])
        if self._index is None:
            return situating.estimate(parsed.document, chunks)
        said, cost = await situating.sentences(parsed.document, chunks)
        await asyncio.to_thread(parsed.add_situations, said)
        return cost

    def _fail(self, source: Source, error: DocumentError) -> None:
        self._ahead.release()
        self._report(Outcome(source, "failed", reason=error.reason, detail=str(error)))

    def _done_with(self, filing: Filing) -> None:
        filing.parsed.discard()
        self._ahead.release()

    async def _finish(self, filing: Filing, document: Document) -> None:
        old = self._outdated(filing.source, document)
        for each in old:
            self._registry.remove(each.id)
            self._taken.add(each.sha256)
        if self._index:
            await self._index.publish(replace(document, replaces=tuple(each.id for each in old)))
        self._registry.put(document)
        outcome: OutcomeName = "replaced" if filing.replaces else "created"
        costs = (filing.parsed.graph, filing.captions, filing.related, filing.situated)
        self._report(Outcome(filing.source, outcome, document, None, None, *costs))

    def _outdated(self, source: Source, document: Document) -> list[Document]:
        """Other versions of the same source, what a killed run left of one included, but for bytes still at work."""
        busy = self._taken | self._awaited
        left = self._registry.unfinished(self._options.abandoned_after, datetime.now(UTC))
        whose = (source.uri, document.meta.tenant)
        left = [d for d in left if (d.meta.source, d.meta.tenant) == whose and d.id != document.id]
        return [d for d in (*self._registry.replaced_by(source.uri, document.id), *left) if d.sha256 not in busy]

    async def _complete(self) -> None:
        """End the replacements that a killed run had begun."""
        for document in self._registry.replacing():
            for each in document.replaces:
                self._registry.remove(each)
            if self._index:
                await self._index.complete(document)
            self._registry.put(replace(document, replaces=()))

    async def _sweep(self) -> None:
        """Remove what earlier runs left when they died, and records that other files of this batch needed longer."""
        for old in list(self._registry.superseded()):
            await self._delete(old)
        for left in self._registry.unfinished(self._options.abandoned_after, datetime.now(UTC)):
            await self._delete(left)
            self.removed.append(left)

    async def _delete(self, document: Document) -> None:
        if self._index:
            await self._index.remove(document)
        self._registry.remove(document.id)


def _remove_copy(source: Source, file: LocalFile) -> None:
    if source.remote:
        file.path.unlink(missing_ok=True)


def _first(error: BaseException) -> BaseException:
    """The first error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
