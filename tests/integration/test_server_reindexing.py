"""A new build on a server, beside the one in use: seen whole at one moment, gone back from, kept until it is pruned."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from app.adapters.bm25 import Bm25Encoder
from app.adapters.figures_sqlite import SqliteFigures
from app.adapters.qdrant_builds import ServerBuilds
from app.adapters.qdrant_server import ServerStore
from app.errors import IndexMismatch
from app.opening import open_store
from app.settings import Settings
from app.types import Access, IndexStamp
from app.versions import Versions, write_versions
from ingest.chunking import read_chunker
from ingest.cli import OK, SOME_FAILED, USAGE, run
from ingest.indexing import Index
from ingest.pipeline import Batch, Options
from ingest.sources import find_sources
from tests.ingest.filings import HashEmbedder, prose, stamp, statement, write_pdf
from tests.integration.edge_rest import EdgeRest, serve
from tests.integration.samples import chunk, vectors

CHUNKER = "structure:max_tokens=40"
REINDEX = ["reindex", "--chunker", CHUNKER, "--workers", "1", "--no-progress"]
ALIASES = ("", "-pages", "-documents", "-graph")


@asynccontextmanager
async def open_served(settings: Settings, create: bool) -> AsyncIterator[Index]:
    """The store that the settings name, with the hashing embedder."""
    built = stamp(settings.collection, read_chunker(settings.chunker).name)
    wanted = built if create else IndexStamp(settings.collection, "", 0, "", "", 0, "")
    async with open_store(settings, wanted, create=create) as store:
        figures = SqliteFigures(settings.figures_file)
        yield Index(store, HashEmbedder(), {"bm25": Bm25Encoder()}, figures)


@pytest.fixture
def url(rest: EdgeRest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An index of two filings on a server."""
    with serve(rest.app()) as url:
        monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
        monkeypatch.setenv("QDRANT_URL", url)
        monkeypatch.setenv("GRAPH", "false")
        for name in ("a", "b"):
            write_pdf(tmp_path / "filings" / f"{name}.pdf", f"{statement(name)}\n\n{prose(name, 20)}")
        assert run([str(tmp_path / "filings"), "--no-progress"], open_served) == OK
        yield url


def build(number: int) -> dict[str, str]:
    return {f"filings{suffix}": f"filings-v{number}{suffix}" for suffix in ALIASES}


def held(rest: EdgeRest, name: str = "filings") -> int:
    return rest.find(name).count({})


def test_all_aliases_go_to_the_new_build_in_one_request_and_back(rest: EdgeRest, url: str) -> None:
    before = held(rest)
    assert rest.aliases == build(1)
    assert run(["rollback"], open_served) == USAGE, "there is nothing to go back to"
    rest.requests.clear()
    assert run(REINDEX, open_served) == OK
    assert rest.requests.count("/collections/aliases") == 1
    assert rest.aliases == {**build(2), "filings@previous": "filings-v1"}
    assert held(rest) > before == held(rest, "filings-v1")
    assert held(rest, "filings-documents") == 2
    assert Settings().figures_file.name == "filings@2.sqlite"
    assert run(["verify"], open_served) == OK
    assert run(["rollback"], open_served) == OK
    assert rest.aliases == {**build(1), "filings@previous": "filings-v2"}
    assert Settings().figures_file.name == "filings.sqlite"
    assert run(["verify"], open_served) == OK
    assert run(["prune"], open_served) == OK
    assert (rest.aliases, sorted(rest.collections)) == (build(1), sorted(build(1).values()))
    assert held(rest) == before


def test_a_service_that_runs_on_reads_the_figures_of_the_new_build(rest: EdgeRest, url: str) -> None:
    open_since = SqliteFigures(Settings().figures_in_use)
    before = anyio.run(open_since.counts)
    assert run(REINDEX, open_served) == OK
    assert run(["prune"], open_served) == OK
    assert not (Settings().data_dir / "figures" / "filings.sqlite").exists()
    assert anyio.run(open_since.counts) == before != {}
    [[number]] = anyio.run(open_since.query, "SELECT count(*) FROM figures", Access()).rows
    assert number == sum(before.values())


def test_what_is_half_built_is_not_switched_to_and_taken_up_or_begun_anew(
    rest: EdgeRest, url: str, tmp_path: Path
) -> None:
    original = (tmp_path / "filings" / "a.pdf").read_bytes()
    write_pdf(tmp_path / "filings" / "a.pdf", prose("changed"))
    assert run(REINDEX, open_served) == SOME_FAILED
    assert rest.aliases == build(1)
    (tmp_path / "filings" / "a.pdf").write_bytes(original)
    rest.create("filings-v2", {"vectors": {"dense": {"size": 2}}, "metadata": {"collection": "another's"}})
    assert run([*REINDEX, "--drop-old"], open_served) == OK
    assert (rest.aliases, held(rest, "filings-documents")) == (build(2), 2)
    assert sorted(rest.collections) == sorted(build(2).values())


def test_what_is_ingested_and_deleted_while_it_builds_is_followed(rest: EdgeRest, url: str, tmp_path: Path) -> None:
    opened: list[Settings] = []

    @asynccontextmanager
    async def meanwhile(settings: Settings, create: bool) -> AsyncIterator[Index]:
        """Once the new build has been looked at, another process changes the old one."""
        async with open_served(settings, create) as index:
            yield index
            if settings.build and not opened:
                write_pdf(tmp_path / "filings" / "c.pdf", prose("c", 20))
                await _ingested_elsewhere(tmp_path / "filings" / "c.pdf", tmp_path / "filings" / "a.pdf")
            opened.append(settings)

    assert run(REINDEX, meanwhile) == OK
    points = rest.find("filings-documents").scroll({"limit": 100, "with_payload": True})["points"]
    names = {point["payload"]["source"][-5:] for point in points}
    assert (rest.aliases, names) == ({**build(2), "filings@previous": "filings-v1"}, {"b.pdf", "c.pdf"})


async def _ingested_elsewhere(added: Path, removed: Path) -> None:
    async with open_served(Settings(), True) as index:
        batch = Batch(index, read_chunker("structure"), Options(), lambda _: None)
        await batch.run(list(find_sources([str(added)])), await index.store.documents())
        for document in await index.store.documents():
            if document.meta.source == removed.as_uri():
                await index.remove(document)


@pytest.mark.anyio
async def test_a_store_that_is_open_reads_the_new_build_and_writes_nothing_of_other_models_to_it(
    rest: EdgeRest, url: str
) -> None:
    reader = await ServerStore.open(url, None, 10, stamp())
    for model, refused in ((HashEmbedder.name, False), ("another", True)):
        number = 3 if refused else 2
        other = IndexStamp("filings", model, 8, Bm25Encoder().name, stamp().chunker)
        await (await ServerStore.open(url, None, 10, other, build=number)).close()
        async with ServerBuilds.open(url, None, 10, "filings") as builds:
            assert await builds.read() == Versions(number - 1, number - 2 or None)
            await builds.switch(Versions(number, number - 1))
        assert await reader.documents(Access()) == []
        if refused:
            with pytest.raises(IndexMismatch, match="embedder is 'another' there"):
                await reader.stamp()
            with pytest.raises(IndexMismatch, match="embedder is 'another' there"):
                await reader.put_chunks([chunk(0)], [vectors((await HashEmbedder().passages(["text"]))[0])])
        else:
            assert await reader.stamp() == stamp()
    await reader.close()


def test_a_switch_that_was_killed_before_the_figures_followed_is_mended(rest: EdgeRest, url: str) -> None:
    assert run(REINDEX, open_served) == OK
    write_versions(Settings().data_dir, "filings", Versions())
    assert Settings().figures_file.name == "filings.sqlite"
    assert run(["prune"], open_served) == OK
    assert Settings().figures_file.name == "filings@2.sqlite"
    assert run(["verify"], open_served) == OK
