import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.adapters.bm25 import Bm25Encoder
from app.errors import DocumentError, StoreUnavailable
from app.types import Chunk, ChunkVectors, Document, Figure, Filter, Page, Relation
from ingest.chunking import StructureChunker
from ingest.indexing import Index
from ingest.parsing import Job, parse, slug
from ingest.pipeline import Batch, Options, Outcome, document_id
from ingest.sources import find_sources
from tests.fakes import FakeFigures, FakeStore
from tests.ingest.filings import HashEmbedder, prose, stamp, statement, write_corpus, write_pdf

pytestmark = pytest.mark.anyio


class FullDisk(FakeStore):
    """A store that takes a number of writes and no more."""

    def __init__(self, writes: int) -> None:
        super().__init__(stamp())
        self.writes = writes

    def _write(self) -> None:
        if not self.writes:
            raise StoreUnavailable("no space left on device")
        self.writes -= 1

    async def put_document(self, document: Document) -> None:
        self._write()
        await super().put_document(document)

    async def put_pages(self, document: Document, pages: Sequence[Page]) -> None:
        self._write()
        await super().put_pages(document, pages)

    async def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[ChunkVectors]) -> None:
        self._write()
        await super().put_chunks(chunks, vectors)

    async def delete_document(self, document_id: str) -> tuple[int, int]:
        self._write()
        return await super().delete_document(document_id)


class FullTable(FakeFigures):
    """Figures on the same disk as the store."""

    def __init__(self, disk: FullDisk) -> None:
        super().__init__()
        self.disk = disk

    async def put(self, document: Document, figures: Sequence[Figure]) -> None:
        self.disk._write()
        await super().put(document, figures)

    async def delete(self, document_id: str) -> int:
        self.disk._write()
        return await super().delete(document_id)


async def ingest(
    store: FakeStore,
    *paths: Path,
    embedder: HashEmbedder | None = None,
    figures: FakeFigures | None = None,
    **options: Any,
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    index = Index(store, embedder or HashEmbedder(), {"bm25": Bm25Encoder()}, figures)
    batch = Batch(index, StructureChunker(), Options(**options), outcomes.append)
    await batch.run(list(find_sources([str(path) for path in paths])), await store.documents())
    return sorted(outcomes, key=lambda outcome: outcome.source.uri)


def said(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {Path(o.source.location).name: o.reason or o.outcome for o in outcomes}


def contents(store: FakeStore) -> dict[str, Any]:
    """All that is stored, but for times."""
    return {
        "documents": {key: replace(value, ingested_at="") for key, value in store._documents.items()},
        "pages": store._pages,
        "records": store._records,
        "chunks": {
            key: (chunk, vectors.dense.tolist(), vectors.sparse) for key, (chunk, vectors) in store._chunks.items()
        },
    }


async def sources(store: FakeStore) -> list[str]:
    return sorted(Path(document.meta.source).name for document in await store.documents())


async def test_a_filing_is_stored_whole_and_once(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "Acme Corp_2023.pdf", prose("acme"), prose("acme in detail"))
    store = FakeStore(stamp())
    (outcome,) = await ingest(store, path)
    (document,) = await store.documents()
    assert outcome.outcome == "created"
    assert outcome.document == document
    assert (document.pages, document.state, document.meta.source) == (2, "ready", path.as_uri())
    assert document.id.startswith("acme-corp-2023-")
    assert len(document.id) == len("acme-corp-2023-") + 10
    assert await store.chunk_ids(document.id) == sorted(store._chunks, key=lambda i: store._chunks[i][0].ordinal)
    assert len(store._chunks) == document.chunks > 0
    for chunk, _ in store._chunks.values():
        page, _ = store._pages[document.id, chunk.page]
        assert page.text[chunk.start : chunk.end] == chunk.text
    before = contents(store)
    assert said(await ingest(store, path)) == {"Acme Corp_2023.pdf": "unchanged"}
    assert contents(store) == before


async def test_new_bytes_of_a_file_replace_the_old(tmp_path: Path) -> None:
    path, store, clean = tmp_path / "a.pdf", FakeStore(stamp()), FakeStore(stamp())
    await ingest(store, write_pdf(path, prose("first"), prose("second")))
    assert said(await ingest(store, write_pdf(path, prose("third")))) == {"a.pdf": "replaced"}
    await ingest(clean, path)
    assert contents(store) == contents(clean)


async def test_a_new_version_that_cannot_be_read_leaves_the_old(tmp_path: Path) -> None:
    path, store = write_pdf(tmp_path / "a.pdf", prose("first")), FakeStore(stamp())
    await ingest(store, path)
    before = contents(store)
    path.write_bytes(b"no longer a PDF")
    assert said(await ingest(store, path)) == {"a.pdf": "not_pdf"}
    assert contents(store) == before


async def test_one_bad_file_stops_nobody(tmp_path: Path) -> None:
    write_pdf(tmp_path / "good.pdf", prose("good"))
    write_pdf(tmp_path / "blank.pdf", "", "")
    write_pdf(tmp_path / "half.pdf", prose("half"), "")
    (tmp_path / "empty.pdf").touch()
    (tmp_path / "gone.pdf").symlink_to(tmp_path / "nowhere")
    store = FakeStore(stamp())
    outcomes = await ingest(store, tmp_path, workers=2)
    assert said(outcomes) == {
        "good.pdf": "created",
        "half.pdf": "created",
        "blank.pdf": "no_text",
        "empty.pdf": "empty",
        "gone.pdf": "unreadable",
    }
    (half,) = [d for d in await store.documents() if d.id.startswith("half-")]
    assert half.empty_pages == (2,)


async def test_the_same_bytes_are_ingested_once(tmp_path: Path) -> None:
    first = write_pdf(tmp_path / "a.pdf", prose("same"))
    for copy in ("b.pdf", "c.pdf"):
        shutil.copy(first, tmp_path / copy)
    store = FakeStore(stamp())
    assert said(await ingest(store, tmp_path, workers=2)) == {
        "a.pdf": "created",
        "b.pdf": "unchanged",
        "c.pdf": "unchanged",
    }
    first.rename(tmp_path / "moved.pdf")
    assert set(said(await ingest(store, tmp_path)).values()) == {"unchanged"}
    assert await sources(store) == ["a.pdf"]


async def test_copies_of_a_bad_file_fail_each(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        (tmp_path / name).write_bytes(b"no PDF")
    assert set(said(await ingest(FakeStore(stamp()), tmp_path)).values()) == {"not_pdf"}


@pytest.mark.parametrize(
    "names", [("a.pdf", "b.pdf"), ("b.pdf", "a.pdf"), ("x/n.pdf", "y/n.pdf"), ("y/n.pdf", "x/n.pdf")]
)
async def test_a_copy_outlives_the_original(tmp_path: Path, names: tuple[str, str]) -> None:
    original, copy = (tmp_path / name for name in names)
    write_pdf(original, prose("old"))
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(original, copy)
    store = FakeStore(stamp())
    await ingest(store, original, copy)
    write_pdf(original, prose("new"))
    outcomes = await ingest(store, tmp_path)
    clean = FakeStore(stamp())
    await ingest(clean, tmp_path)
    assert {o.outcome for o in outcomes} <= {"replaced", "created"}
    assert contents(store) == contents(clean)


async def test_two_files_that_change_places_lose_nothing(tmp_path: Path) -> None:
    a, b = write_pdf(tmp_path / "a.pdf", prose("one")), write_pdf(tmp_path / "b.pdf", prose("two"))
    store, clean = FakeStore(stamp()), FakeStore(stamp())
    await ingest(store, tmp_path)
    a.rename(tmp_path / "c.pdf")
    b.rename(a)
    (tmp_path / "c.pdf").rename(b)
    await ingest(store, tmp_path)
    await ingest(clean, tmp_path)
    assert contents(store) == contents(clean)


async def test_an_update_keeps_the_groups_and_only_a_request_changes_them(tmp_path: Path) -> None:
    path, store = write_pdf(tmp_path / "a.pdf", prose("one")), FakeStore(stamp())

    async def groups() -> set[tuple[str, ...]]:
        return {meta.acl for _, meta in store._pages.values()} | {c.meta.acl for c, _ in store._chunks.values()}

    await ingest(store, path, acl=("board",))
    assert said(await ingest(store, path)) == {"a.pdf": "unchanged"}
    assert said(await ingest(store, write_pdf(path, prose("two")))) == {"a.pdf": "replaced"}
    assert await groups() == {("board",)}
    assert said(await ingest(store, path, acl=("audit",))) == {"a.pdf": "replaced"}
    assert await groups() == {("audit",)}
    assert len(await store.documents()) == 1


async def test_tenants_do_not_share_records(tmp_path: Path) -> None:
    path, store = write_pdf(tmp_path / "a.pdf", prose("one")), FakeStore(stamp())
    assert said(await ingest(store, path, tenant="x")) == {"a.pdf": "created"}
    assert said(await ingest(store, path, tenant="y")) == {"a.pdf": "created"}
    write_pdf(path, prose("two"))
    assert said(await ingest(store, path, tenant="y")) == {"a.pdf": "replaced"}
    assert [d.meta.tenant for d in sorted(await store.documents(), key=lambda d: d.meta.tenant)] == ["x", "y"]


async def test_windows_are_filled_across_filings(tmp_path: Path) -> None:
    write_corpus(tmp_path, files=6, pages=4)
    store, embedder = FakeStore(stamp()), HashEmbedder()
    await ingest(store, tmp_path, embedder=embedder)
    per_filing = max(document.chunks for document in await store.documents())
    assert sum(embedder.windows) == len(store._chunks)
    assert max(embedder.windows) > per_filing
    assert all(size >= 64 for size in embedder.windows[:-1])


async def test_a_dry_run_tells_what_a_run_would_do(tmp_path: Path) -> None:
    write_pdf(tmp_path / "old.pdf", prose("old"))
    write_pdf(tmp_path / "changed.pdf", prose("before"))
    store = FakeStore(stamp())
    await ingest(store, tmp_path)
    write_pdf(tmp_path / "changed.pdf", prose("after"))
    write_pdf(tmp_path / "new.pdf", prose("new"))
    before, outcomes = contents(store), list[Outcome]()
    await Batch(None, StructureChunker(), Options(), outcomes.append).run(
        list(find_sources([str(tmp_path)])), await store.documents()
    )
    assert said(outcomes) == {"old.pdf": "unchanged", "changed.pdf": "replaced", "new.pdf": "created"}
    assert contents(store) == before


async def test_figures_come_and_go_with_their_filing(tmp_path: Path) -> None:
    path, store, figures = tmp_path / "a.pdf", FakeStore(stamp()), FakeFigures()
    await ingest(store, write_pdf(path, statement("acme")), figures=figures)
    (first,) = await store.documents()
    assert [(f.label, str(f.value), f.scale, f.page) for f in figures.kept[first.id]] == [
        ("Sales of acme", "11100", 6, 1), ("Sales of acme", "11150", 6, 1),
        ("Cost of acme", "12200", 6, 1), ("Cost of acme", "12250", 6, 1),
        ("Tax of acme", "13300", 6, 1), ("Tax of acme", "13350", 6, 1),
    ]  # fmt: skip
    assert {f.chunk_id for f in figures.kept[first.id]} <= store._chunks.keys()
    await ingest(store, write_pdf(path, statement("acme", 2)), figures=figures)
    (second,) = await store.documents()
    assert second.id != first.id
    assert {key: len(value) for key, value in figures.kept.items()} == {second.id: 6}


async def test_whatever_write_fails_a_second_run_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for name in ("a.pdf", "b.pdf"):
        write_pdf(old / name, prose(f"old {name}"), statement(f"old {name}"))
        write_pdf(new / name, prose(f"new {name}"), statement(f"new {name}"))
    clean, clean_figures = FakeStore(stamp()), FakeFigures()
    place = tmp_path / "filings"
    shutil.copytree(new, place)
    await ingest(clean, place, figures=clean_figures)
    for writes in range(100):
        shutil.copytree(old, place, dirs_exist_ok=True)
        store = FullDisk(-1)
        figures = FullTable(store)
        await ingest(store, place, figures=figures)
        shutil.copytree(new, place, dirs_exist_ok=True)
        store.writes = writes
        try:
            await ingest(store, place, figures=figures)
            break
        except StoreUnavailable:
            store.writes = -1
        assert "failed" not in said(await ingest(store, place, figures=figures)).values()
        assert contents(store) == contents(clean), f"after {writes} writes"
        assert figures.kept == clean_figures.kept, f"after {writes} writes"
    assert writes > 8


async def test_what_a_dead_run_left_is_removed_when_its_file_is_gone(tmp_path: Path) -> None:
    lost, kept = write_pdf(tmp_path / "lost.pdf", prose("lost")), write_pdf(tmp_path / "kept.pdf", prose("kept"))
    store, clean = FullDisk(3), FakeStore(stamp())
    with pytest.raises(StoreUnavailable):
        await ingest(store, lost)
    assert [document.state for document in await store.documents()] == ["ingesting"]
    store.writes = -1
    await ingest(store, kept, abandoned_after=timedelta(hours=1))
    assert await sources(store) == ["kept.pdf", "lost.pdf"]
    await ingest(store, kept)
    await ingest(clean, kept)
    assert contents(store) == contents(clean)


async def test_of_two_finished_versions_the_later_stays(tmp_path: Path) -> None:
    path, other = write_pdf(tmp_path / "a.pdf", prose("one")), write_pdf(tmp_path / "other.pdf", prose("other"))
    store = FakeStore(stamp())
    await ingest(store, path)
    (first,) = await store.documents()
    twin = replace(first, id="a-0000000000", sha256="0" * 64, ingested_at="2001-01-01T00:00:00+00:00")
    await store.put_document(twin)
    await ingest(store, other)
    assert first.id in {document.id for document in await store.documents()}
    assert await sources(store) == ["a.pdf", "other.pdf"]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", prose("one"))
    job = Job(path, "0" * 64, "a-0", "a", "file:///a.pdf", "default", ("public",), StructureChunker(), 10, tmp_path)
    with pytest.raises(DocumentError, match="changed while it was read") as caught:
        parse(job)
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("ACME_2023 10-K (final)", "acme-2023-10-k-final"),
        ("Jahresabschluß Ärzte", "jahresabschlu-arzte"),
        ("年報", "filing"),
        ("../..", "filing"),
        ("x" * 100, "x" * 60),
    ],
)
def test_slug(stem: str, expected: str) -> None:
    assert slug(stem) == expected


def test_a_document_id_depends_on_tenant_and_content() -> None:
    # printf 'default\nabc' | sha256sum
    assert document_id("a", "default", "abc") == "a-eaf5bea678"
    assert document_id("a", "other", "abc") != document_id("a", "default", "abc")


SIGNED = "Report of Penny & Dime LLP, an independent registered public accounting firm.\n/s/ Penny & Dime LLP"


async def test_the_graph_of_a_filing_comes_and_goes_with_it(tmp_path: Path) -> None:
    """Three filings share an auditor; without the second, all is as if it had never been there."""
    paths = [write_pdf(tmp_path / f"{name}.pdf", prose(name), SIGNED) for name in ("alder", "birch", "cedar")]
    held, never = FakeStore(stamp()), FakeStore(stamp())
    outcomes = await ingest(held, *paths, graph=True)
    await ingest(never, paths[0], paths[2], graph=True)
    assert all(outcome.graph and outcome.graph.relations for outcome in outcomes)
    assert len(await held.records(Relation, Filter(), {"predicate": ["auditor"]})) == 3
    birch = next(document for document in await held.documents() if "birch" in document.id)
    removed = await Index(held, HashEmbedder(), {}).remove(birch)
    assert removed.records > 0
    assert contents(held) == contents(never)


async def test_a_filing_ingested_without_the_graph_loses_the_one_it_had(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "alder.pdf", SIGNED)
    store = FakeStore(stamp())
    await ingest(store, path, graph=True)
    assert store._records
    await ingest(store, path, acl=("board",))
    assert store._records == {}
