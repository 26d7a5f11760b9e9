"""Files uploaded to the service: kept on disk, queued, ingested one after the other while questions are answered."""

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import re
import shutil
import unicodedata
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import numpy as np

from app.errors import (
    Busy,
    Forbidden,
    IndexMismatch,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    StoreLocked,
    Unavailable,
    UnsupportedMedia,
)
from app.ports import Embedder, SparseEncoder, WritableFigures, WritableStore
from app.settings import Settings
from app.types import Access, Document, FloatArray, Job, JobState, LegName, Removed
from ingest.captioning import open_captioning
from ingest.chunking import Chunker, read_chunker
from ingest.formats.reading import HEAD_BYTES, is_filing
from ingest.indexing import Index, Tally
from ingest.jobs import Jobs
from ingest.pipeline import Batch, Options, Outcome, open_parsers
from ingest.relating import open_relating
from ingest.situating import open_situating
from ingest.sources import Source

log = logging.getLogger("sextant.intake")
_BLOCK = 1 << 20
"""Bytes written at once."""
_LONGEST_NAME = 200
_TURN = 8
"""Passages embedded at once: a question waits for at most so many."""
_ATTEMPTS = 3
"""Of a job, where the service died at it or the store was down."""
_RETRY_S = 30.0
_WARM_S = 120.0
"""For which a parser is kept without an upload: loading its tagger takes 2 s, holding it 0.3 GB of memory."""
_LOCK = "owner.lock"


@dataclass(frozen=True, slots=True)
class InTurns:
    """An embedder that leaves questions a turn after every few passages."""

    embedder: Embedder

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        turns = [texts[start : start + _TURN] for start in range(0, len(texts), _TURN)]
        return np.concatenate([await self.embedder.passages(turn) for turn in turns])

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        return await self.embedder.queries(texts)


@dataclass(frozen=True, slots=True)
class _Work:
    """The job that is being done, and how far it is."""

    job: Job
    tally: Tally

    def seen(self) -> Job:
        tally = self.tally
        state: JobState = "indexing" if tally.pages else "parsing"
        read, to_read = tally.ocr_pages
        job = replace(self.job, state=state, pages=tally.pages, ocr_pages=read, ocr_pages_total=to_read)
        return replace(job, chunks=tally.chunks, chunks_total=tally.chunks_parsed)

    def concerns(self, document: Document) -> bool:
        """Whether the job may read or write this document."""
        of_it = (document.meta.source, document.sha256)
        return document.meta.tenant == self.job.tenant and not {self.job.source, self.job.sha256}.isdisjoint(of_it)


class Intake:
    """An app.ports.Ingestion over the index that this process owns.

    An upload and its job are durable before the caller is answered. After a crash the jobs that were not finished are
    done again from their uploads; what that leaves is the index of an undisturbed run, by the rules of the pipeline.
    """

    def __init__(
        self, index: Index, chunker: Chunker, jobs: Jobs, uploads: Path, limits: Options, max_queued: int = 100
    ) -> None:
        self._index = replace(index, embedder=InTurns(index.embedder))
        self._chunker = chunker
        self._jobs = jobs
        self._uploads = uploads
        self._limits = limits
        self._parsers = open_parsers(limits)
        self._max_queued = max_queued
        self._arriving = 0
        self._work: _Work | None = None
        self._arrived = asyncio.Event()
        self._finished = asyncio.Event()
        self._deleting = asyncio.Lock()
        self._listeners: list[Callable[[Job], None]] = []

    async def submit(
        self, filename: str, content: AsyncIterator[bytes], access: Access, acl: tuple[str, ...] | None = None
    ) -> Job:
        name = _name(filename)
        if acl is not None and (not acl or not set(acl) <= set(access.groups)):
            raise Forbidden(f"acl takes one or more of the groups of this API key: {', '.join(access.groups)}")
        if self.queued() + self._arriving >= self._max_queued:
            raise Busy(f"{self._max_queued} uploads are waiting already; try again when some are done", retry_after=30)
        job_id = uuid.uuid4().hex
        upload = self._uploads / job_id
        self._arriving += 1
        try:
            sha256, size = await self._keep(upload, content)
            source = f"upload://{quote(access.tenant, safe='')}/{quote(name, safe='')}"
            groups = tuple(access.groups)
            job = Job(job_id, name, source, access.tenant, groups, acl, sha256, size, _now())
            await self._jobs.put(job)
        except BaseException as error:
            upload.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise Unavailable(f"the upload cannot be stored: {error.strerror}") from error
            raise
        finally:
            self._arriving -= 1
        self._arrived.set()
        return job

    async def _keep(self, upload: Path, content: AsyncIterator[bytes]) -> tuple[str, int]:
        """SHA-256 and size of what is now on disk. Raises PayloadTooLarge, UnsupportedMedia, InvalidInput, OSError."""
        digest, size, head, block = hashlib.sha256(), 0, b"", bytearray()
        with upload.open("wb") as file:

            def write(data: bytes) -> None:
                digest.update(data)
                file.write(data)

            async for piece in content:
                size += len(piece)
                if size > self._limits.max_bytes:
                    raise PayloadTooLarge(f"the file is larger than {self._limits.max_bytes} bytes")
                if len(head) < HEAD_BYTES:
                    head += piece
                    if len(head) >= HEAD_BYTES:
                        _check_kind(head)
                block += piece
                if len(block) >= _BLOCK:
                    await asyncio.to_thread(write, bytes(block))
                    block.clear()
            if not size:
                raise InvalidInput("the file is empty")
            _check_kind(head)
            write(bytes(block))
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        return digest.hexdigest(), size

    async def job(self, job_id: str, access: Access) -> Job | None:
        job = self._jobs.get(job_id)
        return self._seen(job) if job and job.visible_to(access) else None

    async def jobs(self, access: Access) -> list[Job]:
        return [self._seen(job) for job in reversed([*self._jobs]) if job.visible_to(access)]

    def _seen(self, job: Job) -> Job:
        return self._work.seen() if self._work and self._work.job.id == job.id else job

    def queued(self) -> int:
        return len(self._jobs.unfinished())

    def follow(self, listener: Callable[[Job], None]) -> None:
        self._listeners.append(listener)

    async def delete(self, document_id: str, access: Access) -> Removed:
        """Waits for the job at work where that concerns the document; no other begins meanwhile."""
        while True:
            async with self._deleting:
                found = [each for each in await self._index.store.documents(access) if each.id == document_id]
                if not found:
                    raise NotFound(f"no document {document_id!r:.80}; GET /documents lists those there are")
                if self._work is None or not self._work.concerns(found[0]):
                    return await self._index.remove(found[0])
                self._finished.clear()
            await self._finished.wait()

    async def recover(self) -> None:
        """Once, before `run`: end what a killed process left half removed or half ingested."""
        waiting = {job.id for job in self._jobs.unfinished()}
        for upload in self._uploads.iterdir():
            if upload.name not in (*waiting, _LOCK):
                upload.unlink()
        await Batch(self._index, self._chunker, self._limits, lambda _: None).run([], await self._documents())

    async def _documents(self) -> list[Document]:
        return await self._index.store.documents()

    async def run(self) -> None:
        """One job after the other, until cancelled."""
        while True:
            self._arrived.clear()
            waiting = self._jobs.unfinished()
            if not waiting:
                await self._rest()
                continue
            try:
                again = await self._do(waiting[0])
            except OSError:
                log.exception("jobs cannot be stored")
                again = True
            finally:
                self._work = None
                self._finished.set()
            if again:
                await asyncio.sleep(_RETRY_S)

    async def _rest(self) -> None:
        """Until an upload arrives."""
        try:
            async with asyncio.timeout(_WARM_S):
                await self._arrived.wait()
        except TimeoutError:
            self._parsers.rest()
            await self._arrived.wait()

    def close(self) -> None:
        self._parsers.close()

    async def _do(self, job: Job) -> bool:
        """Whether it waits for another attempt. Raises OSError."""
        begun = replace(job, state="parsing", attempts=job.attempts + 1, started_at=job.started_at or _now())
        try:
            if job.attempts >= _ATTEMPTS:
                ended = _failed(begun, "crashed", f"the service ended {_ATTEMPTS} times while it was at this file")
            else:
                await self._jobs.put(begun)
                ended = await self._ingested(begun)
        except asyncio.CancelledError:
            await asyncio.shield(self._jobs.put(job))
            raise
        except Unavailable as error:
            if begun.attempts < _ATTEMPTS:
                await self._jobs.put(replace(begun, state="queued"))
                return True
            ended = _failed(begun, "unavailable", str(error))
        except Exception as error:  # the outer loop of a worker
            log.exception("unexpected error", extra={"fields": {"job": job.id}})
            ended = _failed(begun, "crashed", f"indexing failed on this file: {type(error).__name__}")
        await self._jobs.put(ended)
        (self._uploads / job.id).unlink(missing_ok=True)
        for listener in self._listeners:
            listener(ended)
        return False

    async def _ingested(self, job: Job) -> Job:
        """The job as it ended. Raises Unavailable where the store is down."""
        outcomes: list[Outcome] = []
        options = replace(self._limits, tenant=job.tenant, acl=job.acl, new_acl=_default_acl(job))
        batch = Batch(self._index, self._chunker, options, outcomes.append, self._parsers)
        async with self._deleting:
            documents = await self._documents()
            self._work = work = _Work(job, batch.tally)
        reader = Access(job.tenant, job.groups)
        if any(work.concerns(document) and not _may_read(document, reader) for document in documents):
            return _failed(job, "forbidden", "its name or content is that of a document which this API key may not see")
        upload = self._uploads / job.id
        await batch.run([Source(job.source, str(upload))], documents)
        [outcome] = outcomes
        document = outcome.document
        if outcome.outcome == "failed" or document is None:
            self._parsers.rest()  # what such a file left behind in the parser's memory is not the next one's
            detail = (outcome.detail or "").replace(upload.name, job.filename)
            return _failed(job, outcome.reason or "unreadable", detail)
        await asyncio.to_thread(self._keep_original, upload, document.id)
        seconds = outcome.graph.seconds if outcome.graph else 0.0
        job = replace(job, pages=document.pages, chunks=document.chunks, chunks_total=document.chunks)
        read, to_read = batch.tally.ocr_pages
        job = replace(job, graph_seconds=seconds, ocr_pages=read, ocr_pages_total=to_read)
        if related := outcome.relating:
            usd = None if related.usd is None else str(related.usd)
            job = replace(job, graph_llm_calls=related.llm_calls, graph_usd=usd)
            job = replace(job, graph_input_tokens=related.input_tokens, graph_output_tokens=related.output_tokens)
        return replace(job, state="done", outcome=outcome.outcome, document_id=document.id, finished_at=_now())

    def _keep_original(self, upload: Path, document_id: str) -> None:
        """For page images, and for building the index anew."""
        if self._index.originals is None:
            return
        original = self._index.originals / document_id
        original.unlink(missing_ok=True)
        try:
            os.link(upload, original)
        except OSError:  # a file system without hard links
            shutil.copyfile(upload, original)


def _name(given: str) -> str:
    """The last part of a path, without what cannot be printed. Raises InvalidInput."""
    name = unicodedata.normalize("NFC", re.split(r"[/\\]", given)[-1])
    name = "".join(filter(str.isprintable, name)).strip()
    if not name.strip("."):
        raise InvalidInput("the file needs a name")
    if len(name) > _LONGEST_NAME:
        raise InvalidInput(f"the file's name is longer than {_LONGEST_NAME} characters")
    return name


def _check_kind(head: bytes) -> None:
    if not is_filing(head):
        raise UnsupportedMedia("the file is neither PDF nor HTML nor text, whatever it is called; convert it to one")


def _may_read(document: Document, access: Access) -> bool:
    return not set(document.meta.acl).isdisjoint(access.groups)


def _default_acl(job: Job) -> tuple[str, ...]:
    """Nobody uploads what he cannot see, nor publishes what his key has no public for."""
    return ("public",) if "public" in job.groups else tuple(sorted(job.groups))


def _failed(job: Job, reason: str, detail: str) -> Job:
    return replace(job, state="failed", reason=reason, detail=detail, finished_at=_now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@asynccontextmanager
async def open_intake(
    settings: Settings,
    store: WritableStore,
    embedder: Embedder,
    sparse: Mapping[LegName, SparseEncoder],
    figures: WritableFigures | None = None,
) -> AsyncIterator[Intake]:
    """At work for as long as it is open; what it is at then is begun anew the next time.

    Raises IndexMismatch, StoreLocked, and OSError where DATA_DIR cannot be written.
    """
    chunker = read_chunker(settings.chunker)
    if (built := (await store.stamp()).chunker) != chunker.name:
        why = f"the index was built with chunker {built!r}, not {chunker.name!r}"
        raise IndexMismatch(f"{why}; set CHUNKER back, or build it anew with sextant-ingest reindex")
    uploads = settings.data_dir / "uploads" / settings.collection
    index = Index(store, embedder, sparse, figures, settings.originals_dir)
    limits = Options(
        timeout_s=settings.parse_timeout_s,
        max_bytes=settings.max_upload_bytes,
        max_pages=settings.max_upload_pages,
        graph=settings.graph,
        ocr=settings.ocr,
        memory_bytes=settings.parse_memory_bytes,
        abandoned_after=timedelta(hours=1) if settings.qdrant_url else timedelta(0),
    )
    try:
        for folder in (uploads, settings.originals_dir):
            folder.mkdir(parents=True, exist_ok=True)
        lock = (uploads / _LOCK).open("a")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        jobs = Jobs.load(settings.data_dir / "jobs" / settings.collection)
    except BlockingIOError:
        raise StoreLocked(f"another process takes the uploads of {uploads}") from None
    async with (
        open_captioning(settings) as captioning,
        open_relating(settings) as relating,
        open_situating(settings, chunker) as situating,
    ):
        limits = replace(limits, captioning=captioning, relating=relating, situating=situating)
        intake = Intake(index, chunker, jobs, uploads, limits, settings.max_queued_jobs)
        with contextlib.closing(lock), contextlib.closing(intake):
            await intake.recover()
            working = asyncio.create_task(intake.run())
            try:
                yield intake
            finally:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working
