"""One file from bytes to chunks, in a worker process; the result waits on disk until it is written."""

import pickle
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.errors import DocumentError
from app.types import Chunk, Document, DocumentMeta, Entity, Figure, OcrMode, Page, Relation
from ingest.captions import Caption, captioned, figure_chunks
from ingest.chunking import Chunker
from ingest.executors import tell
from ingest.extraction.declared import from_given, joined
from ingest.extraction.entities import extract
from ingest.extraction.figures import figures
from ingest.extraction.metadata import read_metadata
from ingest.extraction.model_relations import merged
from ingest.formats.filing_text import FilingText
from ingest.formats.ocr import INSTALL, is_installed
from ingest.formats.reading import read_filing
from ingest.formats.scans import Ocr
from ingest.formats.sections import sections
from ingest.formats.tables import tables
from ingest.sidecars import Given
from ingest.sources import hash_file

_PAGES_PER_BATCH = 32
_CHUNKS_PER_BATCH = 64
_RECORDS_PER_BATCH = 256
_FIGURES_PER_BATCH = 1024
_OCR_S = 60.0
"""By which the time limit grows with each page read as a picture: what one may take on a busy machine."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker process is told about one file."""

    path: Path
    sha256: str
    document_id: str
    name: str
    """File name without suffix, as its owner knows it (`path` may be a temporary copy)."""
    source: str
    tenant: str
    acl: tuple[str, ...]
    chunker: Chunker
    max_pages: int
    spool: Path
    """Folder in which the pages and chunks are left."""
    graph: bool = False
    """Whether entities and relations are wanted."""
    ocr: OcrMode = "auto"
    given: Given = field(default_factory=dict)
    """Metadata that outranks what is read."""
    captions: tuple[Caption, ...] = ()
    """Of its pictures."""


@dataclass(frozen=True, slots=True)
class GraphCost:
    """What the graph took for one filing."""

    seconds: float
    entities: int
    relations: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed filing: its record, and all else on disk, so that a long queue costs no memory."""

    document: Document
    file: Path
    seconds: float
    """It took to parse."""
    graph: GraphCost | None = None

    def pages(self) -> Iterator[list[Page]]:
        """In order, some at a time."""
        return self._batches("pages")

    def chunks(self) -> Iterator[list[Chunk]]:
        """In order, some at a time."""
        return self._batches("chunks")

    def figures(self) -> list[Figure]:
        return [figure for batch in self._batches("figures") for figure in batch]

    def records(self) -> list[Entity | Relation]:
        """Of entities of one key the last."""
        return merged([record for batch in self._batches("records") for record in batch])

    def add_records(self, records: Sequence[Entity | Relation]) -> None:
        """To those there are; an entity in place of one of its key."""
        with self.file.open("ab") as spool:
            pickle.dump(("records", list(records)), spool, pickle.HIGHEST_PROTOCOL)

    def situations(self) -> dict[str, str]:
        """By chunk id, what a model says of where it stands."""
        return dict(pair for batch in self._batches("situations") for pair in batch)

    def add_situations(self, sentences: Mapping[str, str]) -> None:
        with self.file.open("ab") as spool:
            pickle.dump(("situations", list(sentences.items())), spool, pickle.HIGHEST_PROTOCOL)

    def _batches(self, kind: str) -> Iterator[list[Any]]:
        with self.file.open("rb") as file:
            while True:
                try:
                    found, batch = pickle.load(file)
                except EOFError:
                    return
                if found == kind:
                    yield batch

    def discard(self) -> None:
        self.file.unlink(missing_ok=True)


def parse(job: Job) -> Parsed:
    """Read, section, describe and chunk one file. Raises DocumentError."""
    began = time.perf_counter()
    text = read_filing(job.path, max_pages=job.max_pages, ocr=Ocr(job.ocr, _tell_progress))
    meta = _metadata(job, text)
    found = text.tables if text.tables is not None else [tables(page) for page in text.pages]
    chunks = job.chunker.chunks(job.document_id, meta, text.pages, sections(text.pages, text.outline), found)
    empty = tuple(page.number for page in text.pages if not page.text.strip())
    shown = [captioned(text.displayed.get(page.number, page), job.captions) for page in text.pages]
    captions = list(figure_chunks(job.captions, shown, chunks, job.document_id, meta))
    if not chunks and not captions:
        raise DocumentError(_no_text(text, job.ocr), "no_text")
    if hash_file(job.path) != job.sha256:
        raise DocumentError("changed while it was read; repeat when it is complete", "unreadable")
    document = Document(
        job.document_id,
        job.sha256,
        meta,
        len(text.pages),
        len(chunks) + len(captions),
        empty_pages=empty,
        ocr_pages=tuple(page.number for page in text.pages if page.ocr),
        repaired=text.repaired,
        state="ingesting",
        given=job.given,
    )
    numbers = figures(job.document_id, meta, text.pages, found, chunks, text.facts)
    records, graph = _graph(job, meta, text.pages, chunks)
    file = job.spool / f"{job.document_id}.parsed"
    with file.open("wb") as spool:
        for kind, items, size in (
            ("pages", shown, _PAGES_PER_BATCH),
            ("chunks", chunks + captions, _CHUNKS_PER_BATCH),
            ("figures", numbers, _FIGURES_PER_BATCH),
            ("records", records, _RECORDS_PER_BATCH),
        ):
            for batch in _batched(items, size):
                pickle.dump((kind, batch), spool, pickle.HIGHEST_PROTOCOL)
    return Parsed(document, file, time.perf_counter() - began, graph)


def _metadata(job: Job, text: FilingText) -> DocumentMeta:
    declared = joined(from_given(job.given), text.declared)
    read = _clean(read_metadata(text.pages, text.info, job.path.with_name(f"{job.name}.pdf"), declared))
    given: dict[str, Any] = {name: value for name, value in job.given.items() if name not in ("acl", "form")}
    return replace(read, **given, source=job.source, tenant=job.tenant, acl=job.acl)


def _tell_progress(done: int, of: int) -> None:
    tell((done, of), more_s=0.0 if done else of * _OCR_S)


def _no_text(text: FilingText, mode: OcrMode) -> str:
    found = f"no text in {len(text.pages)} page(s)"
    if mode == "off":
        return f"{found}; pictures of text are read unless OCR is off"
    if text.unread and not is_installed():
        return f"{found}, which are pictures of text; to read them, install {INSTALL}"
    return f"{found}, and none that could be read in their pictures"


def _graph(
    job: Job, meta: DocumentMeta, pages: Sequence[Page], chunks: Sequence[Chunk]
) -> tuple[list[Entity | Relation], GraphCost | None]:
    if not job.graph:
        return [], None
    began = time.perf_counter()
    records = extract(job.document_id, meta, pages, chunks)
    entities = sum(isinstance(record, Entity) for record in records)
    return records, GraphCost(time.perf_counter() - began, entities, len(records) - entities)


def _batched(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def _clean(meta: DocumentMeta) -> DocumentMeta:
    """File names and PDF properties may hold bytes that are no text, which no store would take."""
    return replace(meta, title="".join(filter(str.isprintable, meta.title)).strip() or "untitled")


def slug(stem: str) -> str:
    """At most 60 of a-z, 0-9 and hyphens; `filing` where nothing is left."""
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:60].rstrip("-") or "filing"
