import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as edge

from app.adapters.figures_sqlite import SqliteFigures
from app.adapters.qdrant_edge import EdgeStore
from ingest.cli import INTERRUPTED, OK, SOME_FAILED, TERMINATED
from tests.ingest.filings import prose, stamp, write_corpus, write_pdf

ROOT = Path(__file__).parents[2]
KILLS = 10


def start(data: Path, *arguments: str | Path, seconds_per_text: float = 0.03) -> "subprocess.Popen[bytes]":
    """The command line in a process of its own, over the embedded store and the hashing embedder."""
    temporary = data.with_name("temporary")
    temporary.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "DATA_DIR": str(data),
        "TMPDIR": str(temporary),
        "SECONDS_PER_TEXT": str(seconds_per_text),
    }
    command = [sys.executable, "-m", "tests.ingest.filings", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )


def finish(data: Path, *arguments: str | Path) -> int:
    process = start(data, *arguments, seconds_per_text=0)
    process.communicate()
    return process.returncode


def contents(data: Path) -> dict[str, Mapping[str, Any]]:
    """Every point of the index with payload and vectors, but for times."""
    store = EdgeStore.open(data / "index" / "filings", stamp(), create=False)
    try:
        found: dict[str, Mapping[str, Any]] = {}
        for name, shard in store._shards.items():
            request = edge.ScrollRequest(limit=100_000, with_payload=True, with_vector=True)
            for point in shard.scroll(request)[0]:
                payload = {key: value for key, value in (point.payload or {}).items() if key != "ingested_at"}
                found[f"{name}/{point.id}"] = {"payload": payload, "vector": _plain(point.vector)}
        figures = SqliteFigures(data / "figures" / "filings.sqlite")
        for document_id in asyncio.run(figures.counts()):
            found[f"figures/{document_id}"] = {"figures": asyncio.run(figures.of_document(document_id))}
        return found
    finally:
        store.close()


def _plain(vector: Any) -> Any:
    if isinstance(vector, dict):
        return {name: _plain(part) for name, part in vector.items()}
    if isinstance(vector, edge.SparseVector):
        return list(vector.indices), list(vector.values)
    return vector


def kill_within(seconds: float, data: Path, *arguments: str | Path) -> bool:
    """Kill the command that long after it has opened the index; False where it was done before."""
    process = start(data, *arguments)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"Index: ")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    killed = process.poll() is None
    process.kill()
    process.communicate()
    return killed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, files=10, pages=4)
    shutil.copy(folder / "filing-2.pdf", folder / "same-as-2.pdf")
    return folder


@dataclass
class Undisturbed:
    contents: dict[str, Mapping[str, Any]]
    seconds: float
    """From the opened index to the end."""


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    data = tmp_path_factory.mktemp("undisturbed")
    process = start(data, corpus)
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    process.communicate()
    assert process.returncode == OK
    return Undisturbed(contents(data), time.monotonic() - began)


@pytest.mark.slow
def test_killed_at_random_points_it_ends_like_an_undisturbed_run(
    corpus: Path, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    chance, kills, seen = random.Random(7), 0, set[int]()
    data = tmp_path / "data"
    for _ in range(6 * KILLS):
        if kills >= KILLS and len(seen) > 2:
            break
        if kill_within(chance.uniform(0, undisturbed.seconds * 0.8), data, corpus):
            kills += 1
            seen.add(len(contents(data)))
        else:
            assert contents(data) == undisturbed.contents
            shutil.rmtree(data)
    assert finish(data, corpus) == OK
    assert contents(data) == undisturbed.contents
    assert finish(data, "verify") == OK
    assert len(seen) > 2, "no kill hit a half-written index"


@pytest.mark.slow
def test_killed_while_it_replaces_it_ends_like_an_undisturbed_run(
    corpus: Path, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    folder, data, clean = tmp_path / "filings", tmp_path / "data", tmp_path / "clean"
    shutil.copytree(corpus, folder)
    assert finish(data, folder) == OK
    for number in (1, 2, 3):
        write_pdf(folder / f"filing-{number}.pdf", *(prose(f"new firm {number} page {p}", 30) for p in range(6)))
    assert finish(clean, folder) == OK
    chance = random.Random(11)
    delays = [0.0, *(chance.uniform(0, undisturbed.seconds * 0.5) for _ in range(3))]  # the first never comes too late
    kills = [kill_within(delay, data, folder) for delay in delays]
    assert kills[0]
    assert finish(data, folder) == OK
    assert contents(data) == contents(clean)


@pytest.mark.slow
def test_killed_while_it_deletes_it_leaves_nothing_behind(corpus: Path, tmp_path: Path) -> None:
    folder, data, clean = tmp_path / "filings", tmp_path / "data", tmp_path / "clean"
    shutil.copytree(corpus, folder)
    assert finish(data, folder) == OK
    records = [point["payload"] for key, point in contents(data).items() if key.startswith("documents/")]
    ids = [record["id"] for record in records if not record["id"].startswith(("filing-1-", "filing-5-"))]
    for file in folder.iterdir():
        if file.stem not in ("filing-1", "filing-5"):
            file.unlink()
    assert finish(clean, folder) == OK
    chance, left = random.Random(3), len(ids)
    while left > 4:
        process = start(data, "delete", "--json", *ids)
        assert process.stdout is not None
        assert b'"type": "deleted"' in process.stdout.readline()
        time.sleep(chance.uniform(0, 0.02))  # into the next one's removal
        process.kill()
        process.communicate()
        seen = [point["payload"]["id"] for key, point in contents(data).items() if key.startswith("documents/")]
        left = sum(each in ids for each in seen)
    assert finish(data, "delete", *ids) == SOME_FAILED, "what is gone already is said"
    assert contents(data) == contents(clean)
    assert finish(data, "verify") == OK


@pytest.mark.slow
@pytest.mark.parametrize(("request_to_stop", "status"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_asked_to_stop_it_leaves_what_a_second_run_completes(
    corpus: Path,
    undisturbed: Undisturbed,
    tmp_path: Path,
    request_to_stop: signal.Signals,
    status: int,
) -> None:
    process = start(tmp_path, corpus, "--json", seconds_per_text=0.05)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(request_to_stop)
    rest, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (status, b"")
    assert b'"type": "summary"' in rest
    assert b'"outcome": "created"' in first
    assert finish(tmp_path, corpus) == OK
    assert contents(tmp_path) == undisturbed.contents
