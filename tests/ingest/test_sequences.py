"""Whatever is added, replaced and removed, and wherever that is killed: a reader never sees two versions of a filing or
none, and what is left in the end is the index of a fresh build.
"""

import functools
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.adapters.bm25 import Bm25Encoder
from app.adapters.figures_sqlite import SqliteFigures
from app.types import Access, Chunk, ChunkVectors, Document, Entity, Figure, Filter, Page, Relation
from ingest import pipeline
from ingest.chunking import StructureChunker
from ingest.indexing import Index
from ingest.parsing import Job, Parsed, parse
from ingest.pipeline import Batch, Options
from ingest.sources import Source, find_sources
from tests.fakes import FakeStore
from tests.ingest.filings import HashEmbedder, cover, prose, stamp, statement, write_pdf

pytestmark = pytest.mark.anyio
NAMES = ("a", "b", "c")


class Killed(Exception):
    """Stands for kill -9: nothing is done any more."""


@dataclass
class Life:
    """Of a process: how many writes it has left, and what is looked at after each."""

    writes: int | None = None
    after: Callable[[], Awaitable[None]] | None = None

    async def write(self, work: Awaitable[Any]) -> Any:
        if self.writes == 0:
            work.close()  # type: ignore[attr-defined]
            raise Killed
        self.writes = None if self.writes is None else self.writes - 1
        result = await work
        if self.after:
            await self.after()
        return result


class MortalStore(FakeStore):
    """Each of its writes may be the last; a removal is three of them."""

    def __init__(self, life: Life) -> None:
        super().__init__(stamp())
        self.life = life

    async def put_document(self, document: Document) -> None:
        await self.life.write(super().put_document(document))

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None:
        for page in pages:
            await self.life.write(super().put_pages(document, [page]))

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None:
        for chunk, vector in zip(chunks, vectors, strict=True):
            await self.life.write(super().put_chunks([chunk], [vector]))

    async def put_records(self, document_id: str, records: Sequence[Entity | Relation]) -> None:
        await self.life.write(super().put_records(document_id, records))

    async def delete_records(self, document_id: str) -> int:
        removed: int = await self.life.write(super().delete_records(document_id))
        return removed

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        chunks, pages = await self.chunk_ids(document_id), [key for key in self._pages if key[0] == document_id]
        for held, keys in ((self._chunks, chunks), (self._pages, pages), (self._documents, [document_id])):
            await self.life.write(_remove(held, keys))
        return len(chunks), len(pages)


async def _remove(held: dict[Any, Any], keys: Sequence[Any]) -> None:
    for key in keys:
        held.pop(key, None)


class MortalFigures(SqliteFigures):
    """On the same machine."""

    def __init__(self, file: Path, life: Life) -> None:
        super().__init__(file)
        self.life = life

    async def put(self, document: Document, figures: Sequence[Figure]) -> None:
        await self.life.write(super().put(document, figures))

    async def show(self, document_id: str, instead_of: Sequence[str] = ()) -> None:
        await self.life.write(super().show(document_id, instead_of))

    async def delete(self, document_id: str) -> int:
        removed: int = await self.life.write(super().delete(document_id))
        return removed


class InProcess:
    """A pool of parsing processes without the processes, that parses the same file once."""

    parsed: "dict[tuple[str, str], tuple[Parsed, bytes]]" = {}  # noqa: RUF012  for all tests

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    async def run(self, job: Job, *_: Any, **__: Any) -> Parsed:
        key = (job.sha256, job.source)
        if key not in self.parsed:
            made = parse(job)
            self.parsed[key] = made, made.file.read_bytes()
        made, content = self.parsed[key]
        here = replace(made, file=job.spool / made.file.name)
        here.file.write_bytes(content)
        return here

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "ProcessPool", InProcess)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions of three filings of one, two and three pages."""
    folder = tmp_path_factory.mktemp("versions")
    for name in NAMES:
        for version in (1, 2, 3):
            about = f"firm {name} in version {version}"
            pages = [
                f"{cover(f'Firm{name} Inc.')}\n{statement(about, page)}\n\n{prose(f'{about} page {page}', 4)}"
                for page in range(1, version + 1)
            ]
            write_pdf(folder / name / f"{version}.pdf", *pages)
    InProcess.parsed.clear()
    return folder


@dataclass
class World:
    """An index in a folder, the filings that it is made from, and who may be expected in it."""

    folder: Path
    filings: Path
    life: Life = field(default_factory=Life)
    expected: set[str] = field(default_factory=set)
    """Names of the filings that are in the index for certain: one version of each is seen at every moment."""
    gone: set[str] = field(default_factory=set)
    """Names of those whose removal was asked for."""

    def __post_init__(self) -> None:
        self.store = MortalStore(self.life)
        self.figures = MortalFigures(self.folder / "figures.sqlite", self.life)
        self.originals = self.folder / "originals"
        self.originals.mkdir()
        self.index = Index(self.store, HashEmbedder(), {"bm25": Bm25Encoder()}, self.figures, self.originals)

    def path(self, name: str) -> Path:
        return self.filings / f"{name}.pdf"

    async def ingest(self, *paths: Path) -> None:
        batch = Batch(self.index, StructureChunker(), Options(graph=True), lambda _: None)
        sources: list[Source] = list(find_sources([str(path) for path in paths]))
        await batch.run(sources, await self.store.documents())

    async def put(self, name: str, version: int, versions: Path) -> None:
        self.gone.discard(name)
        shutil.copyfile(versions / name / f"{version}.pdf", self.path(name))
        await self.ingest(self.path(name))
        self.expected.add(name)

    async def remove(self, name: str) -> None:
        self.expected.discard(name)
        self.gone.add(name)
        self.path(name).unlink(missing_ok=True)
        for document in await self.store.documents():
            if document.meta.source == self.path(name).as_uri():
                await self.index.remove(document)

    async def look(self) -> None:
        """What a reader is shown this moment is one whole version of each filing, whichever way he looks."""
        documents = await self.store.documents(Access())
        names = [Path(document.meta.source).stem for document in documents]
        assert len(names) == len(set(names)), f"two versions at once: {documents}"
        assert self.expected <= set(names), "no version at all"
        chunks = self.store._passing(Filter())
        records = {record.document_id for record in self.store._records.values()} - self.store._hidden()
        for document in documents:
            assert sum(chunk.document_id == document.id for chunk in chunks) == document.chunks
            pages = await self.store.pages([(document.id, n + 1) for n in range(document.pages)], Access())
            assert None not in pages
        shown = {document.id for document in documents}
        assert records | {chunk.document_id for chunk in chunks} <= shown
        if self.expected:
            rows = (await self.figures.query("SELECT DISTINCT document_id FROM figures", Access())).rows
            owners = [row[0].partition("-")[0] for row in rows]
            assert len(owners) == len(set(owners)), f"figures of two versions at once: {rows}"
            assert self.expected <= set(owners), "figures of no version at all"

    async def contents(self) -> dict[str, Any]:
        """All that is stored, but for times."""
        store = self.store
        counts = await self.figures.counts()
        every = "SELECT document_id, label, value, page FROM figures"
        seen = (await self.figures.query(every, Access(), limit=10_000)).rows if counts else ()
        return {
            "documents": {key: replace(value, ingested_at="") for key, value in store._documents.items()},
            "pages": store._pages,
            "records": store._records,
            "chunks": {key: (chunk, each.dense.tolist(), each.sparse) for key, (chunk, each) in store._chunks.items()},
            "figures": {document_id: await self.figures.of_document(document_id) for document_id in sorted(counts)},
            "seen figures": sorted(seen),
            "originals": sorted(path.name for path in self.originals.iterdir()),
        }


STEP = st.tuples(
    st.sampled_from(("put", "put", "put", "remove", "nothing")),
    st.sampled_from(NAMES),
    st.integers(1, 3),
    st.none() | st.integers(0, 30),
)
"""What is done, to which filing, in which version, and after how many writes it is killed."""


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=2, max_size=8))
async def test_any_sequence_ends_like_a_fresh_build(
    versions: Path, steps: list[tuple[str, str, int, int | None]]
) -> None:
    filings = versions / "now"  # the same path each time, for what is parsed once need not be parsed again
    shutil.rmtree(filings, ignore_errors=True)
    filings.mkdir()
    with tempfile.TemporaryDirectory(dir=_memory()) as killed, tempfile.TemporaryDirectory(dir=_memory()) as fresh:
        world = World(Path(killed), filings)
        await _live(world, versions, steps)
        undisturbed = World(Path(fresh), filings)
        await undisturbed.ingest(filings)
        assert await world.contents() == await undisturbed.contents()


async def _live(world: World, versions: Path, steps: list[tuple[str, str, int, int | None]]) -> None:
    """All steps, each killed where it says so; then what was asked for again, undisturbed."""
    world.life.after = world.look
    for what, name, version, writes in steps:
        world.life.writes = writes
        try:
            if what == "put":
                await world.put(name, version, versions)
            elif what == "remove":
                await world.remove(name)
            else:
                await world.ingest()
        except Killed:
            continue
    world.life.writes = None
    for name in world.gone:
        await world.remove(name)
    await world.ingest(world.filings)
    await world.look()


@functools.cache
def _memory() -> str | None:
    """A folder in memory, where there is one: the figures are synced at each write."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
