"""What only the embedded store promises: one owner, a checked stamp, durable writes, a clear word on a full disk."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.adapters.qdrant_edge import EdgeStore
from app.errors import IndexMismatch, StoreLocked, StoreUnavailable
from app.types import Leg
from tests.integration.samples import EVERYONE, STAMP, X, chunk, document, page, sparse, vectors

pytestmark = pytest.mark.anyio

WRITER = """
import asyncio, itertools, sys
from pathlib import Path
from app.adapters.qdrant_edge import EdgeStore
from tests.integration.samples import STAMP, chunk, document, page, sparse, vectors

async def write(folder, first):
    store = EdgeStore.open(Path(folder), STAMP)
    print("open", flush=True)
    for n in itertools.count(int(first)):
        name = f"doc-{n}"
        await store.put_pages(document(name), [page(1)])
        await store.put_chunks([chunk(i, name) for i in range(20)], [vectors(bm25=sparse(t1=1))] * 20)
        await store.put_document(document(name))
        print("put", n, flush=True)
        if n % 3 == 2:
            await store.delete_document(f"doc-{n - 1}")
            print("deleted", n - 1, flush=True)

asyncio.run(write(*sys.argv[1:]))
"""


async def test_a_reopened_index_holds_what_was_put(folder: Path) -> None:
    store = EdgeStore.open(folder, STAMP)
    await store.put_chunks([chunk(0)], [vectors(bm25=sparse(t1=1))])
    await store.put_pages(document(), [page(1)])
    await store.put_document(document())
    legs = [Leg("dense", X, 1), Leg("bm25", sparse(t1=1), 1)]
    before = await store.search(legs, EVERYONE)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.stamp()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.count(EVERYONE)

    again = EdgeStore.open(folder, STAMP, create=False)
    assert await again.search(legs, EVERYONE) == before
    assert await again.pages([("acme-1", 1)], EVERYONE.access) == [page(1)]
    assert await again.documents() == [document()]
    again.close()


async def test_optimizing_changes_no_answer(folder: Path) -> None:
    store = EdgeStore.open(folder, STAMP)
    await store.put_chunks([chunk(i) for i in range(1500)], [vectors(bm25=sparse(t1=1))] * 1500)
    await store.put_chunks([chunk(i, "beta-2") for i in range(5)], [vectors(bm25=sparse(t1=1, t2=1))] * 5)
    await store.delete_document("acme-1")
    legs = [Leg("dense", X, 5), Leg("bm25", sparse(t1=1, t2=1), 5)]
    before = await store.search(legs, EVERYONE)
    await store.optimize()
    assert await store.search(legs, EVERYONE) == before
    store.close()


async def test_a_scan_repeated_to_settle_a_tie_is_billed_again(folder: Path) -> None:
    store = EdgeStore.open(folder, STAMP)
    await store.put_chunks([chunk(i) for i in range(60)], [vectors()] * 60)
    [wide, narrow] = await store.search([Leg("dense", X, 60), Leg("dense", X, 3)], EVERYONE)
    assert [wide.ops, narrow.ops] == [60, 3 * 60]  # 3 + 8, then 44, then 176 fetched
    store.close()


def test_an_index_that_is_not_there_is_not_made_for_a_reader(folder: Path) -> None:
    with pytest.raises(StoreUnavailable, match="ingest some filings first"):
        EdgeStore.open(folder / "none", STAMP, create=False)
    assert not (folder / "none").exists()


def test_another_stamp_is_refused_with_both_values_and_what_to_do(folder: Path) -> None:
    EdgeStore.open(folder, STAMP).close()
    with pytest.raises(IndexMismatch) as refused:
        EdgeStore.open(folder, replace(STAMP, embedder="thirds", dimensions=3))
    said = str(refused.value)
    assert "embedder is 'halves' there and 'thirds' in the settings" in said
    assert "dimensions is 4 there and 3 in the settings" in said
    assert "another collection" in said
    EdgeStore.open(folder, STAMP).close()


def test_a_stamp_of_wrong_types_is_refused(folder: Path) -> None:
    EdgeStore.open(folder, STAMP).close()
    path = folder / "stamp.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dimensions": "many"}))
    with pytest.raises(StoreUnavailable, match=r"stamp\.json is damaged"):
        EdgeStore.open(folder, STAMP)


@pytest.mark.parametrize("create", [True, False])
def test_a_shard_that_is_gone_does_not_come_back_empty(folder: Path, create: bool) -> None:
    EdgeStore.open(folder, STAMP).close()
    shutil.rmtree(folder / "chunks")
    with pytest.raises(StoreUnavailable, match="lacks chunks"):
        EdgeStore.open(folder, STAMP, create=create)


def test_a_folder_that_cannot_be_made_is_said(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        EdgeStore.open(folder / "file" / "index", STAMP)


def test_a_stamp_that_cannot_be_read_is_refused(folder: Path) -> None:
    EdgeStore.open(folder, STAMP).close()
    (folder / "stamp.json").write_text('{"collection": "contract"')
    with pytest.raises(StoreUnavailable, match=r"stamp\.json"):
        EdgeStore.open(folder, STAMP)


def test_a_half_made_index_is_completed(folder: Path) -> None:
    EdgeStore.open(folder, STAMP).close()
    (folder / "documents").rename(folder / "documents.new")
    (folder / "pages").rename(folder / "pages.new")
    with pytest.raises(StoreUnavailable, match="lacks pages, documents"):
        EdgeStore.open(folder, STAMP, create=False)
    EdgeStore.open(folder, STAMP).close()
    assert sorted(each.name for each in folder.iterdir()) == [
        "chunks",
        "documents",
        "graph",
        "owner.lock",
        "pages",
        "stamp.json",
    ]


async def test_a_second_process_is_refused_and_harms_nothing(folder: Path) -> None:
    with writer(folder, 0) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked, match=f"process {first.pid}"):
            EdgeStore.open(folder, STAMP)
        first.kill()
        first.wait()
        EdgeStore.open(folder, STAMP).close()


def writer(folder: Path, first: int) -> "subprocess.Popen[str]":
    """A process that puts documents of one page and 20 chunks from number `first` on, and deletes every third."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def killed_while_writing(folder: Path, first: int, after: int, wait_s: float) -> list[tuple[str, int]]:
    """Kill a writer `wait_s` after its `after`th act; the acts ("put" or "deleted", number) it had acknowledged."""
    with writer(folder, first) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        lines = [process.stdout.readline() for _ in range(after)]
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    acts = [line.split() for line in lines]
    return [(act, int(number)) for act, number in acts]


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(folder: Path) -> None:
    moments = random.Random(7)
    present: set[int] = set()
    following = 0
    for _ in range(6):
        acts = killed_while_writing(folder, following, moments.randrange(8), moments.uniform(0, 0.02))
        for act, number in acts:
            (present.add if act == "put" else present.discard)(number)
        last_act, last = acts[-1] if acts else ("put", following - 1)
        following = max([following, *(number + 1 for act, number in acts if act == "put")])
        under_way = last - 1 if last_act == "put" and last % 3 == 2 and acts else following

        store = EdgeStore.open(folder, STAMP)
        await store.delete_document(f"doc-{under_way}")
        present.discard(under_way)
        assert {record.id for record in await store.documents()} == {f"doc-{number}" for number in present}
        for number in present:
            assert await store.chunk_ids(f"doc-{number}") == [chunk(i, f"doc-{number}").id for i in range(20)]
            assert await store.pages([(f"doc-{number}", 1)], EVERYONE.access) == [page(1)]
        [dense, bm25] = await store.search([Leg("dense", X, 500), Leg("bm25", sparse(t1=1), 500)], EVERYONE)
        assert dense.ops == bm25.ops == await store.count(EVERYONE) == 20 * len(present)
        assert {hit.chunk.id for hit in bm25.hits} <= {chunk(i, f"doc-{n}").id for n in present for i in range(20)}
        store.close()
    assert following > 5


async def test_a_full_disk_is_said_and_leaves_the_index_readable(folder: Path) -> None:
    store = EdgeStore.open(folder, STAMP)
    await store.put_chunks([chunk(0)], [vectors()])
    store.close()
    full = EdgeStore.open(folder, STAMP, min_free_bytes=2**62)
    for write in (
        full.put_chunks([chunk(1)], [vectors()]),
        full.put_pages(document(), [page(1)]),
        full.put_document(document()),
    ):
        with pytest.raises(StoreUnavailable, match="make room and repeat"):
            await write
    assert await full.count(EVERYONE) == 1
    assert [hit.chunk for hit in (await full.search([Leg("dense", X, 5)], EVERYONE))[0].hits] == [chunk(0)]
    full.close()


async def test_an_identifier_that_is_no_uuid_is_refused(folder: Path) -> None:
    store = EdgeStore.open(folder, STAMP)
    with pytest.raises(ValueError, match="UUID"):
        await store.put_chunks([chunk(0), replace(chunk(1), id="second")], [vectors(), vectors()])
    assert await store.count(EVERYONE) == 0
    store.close()


def test_the_stamp_is_written_as_readable_json(folder: Path) -> None:
    EdgeStore.open(folder, STAMP).close()
    assert json.loads((folder / "stamp.json").read_text())["embedder"] == "halves"
