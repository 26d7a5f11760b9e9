"""The bench over fakes and tiny parameters: what is measured is measured, counted and compared as it says."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.ports import Generator
from app.tools import Ports
from app.types import FloatArray
from evals.bench import report
from evals.bench.graph import graph_growth, on_disk
from evals.bench.growth import chunks, growth
from evals.bench.ingestion import copied, ingestion
from evals.bench.load import load
from evals.bench.measures import Measure, Scale, cpu_s, memory_mib, percentile
from evals.bench.parts import Recorder, again
from evals.bench.speed import lag_during, of_arch, service_times
from evals.bench.startup import startup, throughput
from evals.cli import run
from evals.errors import SubjectError
from tests.conftest import live
from tests.evals import world
from tests.ingest.filings import HashEmbedder, prose, write_pdf

pytestmark = pytest.mark.anyio

TINY = Scale(
    rounds=2,
    questions=2,
    seconds=0.05,
    clients=(1, 2),
    starts=1,
    chunks=(30, 60),
    searches=3,
    files=1,
    copies=(1, 2),
    workers=(1,),
    ingestions=1,
)
QUESTIONS = [q.text for q in world.QUESTIONS[:2]]


def silent(line: str) -> None:
    assert line


def by_name(measures: Sequence[Measure]) -> dict[str, Measure]:
    assert len({m.name for m in measures}) == len(measures)
    return {m.name: m for m in measures}


class Slow:
    """A generator that takes as long as is said."""

    def __init__(self, behind: Generator, seconds: float) -> None:
        self.name, self.purposes, self.stream = behind.name, behind.purposes, behind.stream
        self._behind, self._seconds = behind, seconds

    async def generate(self, prompt: Any) -> Any:
        await asyncio.sleep(self._seconds)
        return await self._behind.generate(prompt)


@pytest.mark.parametrize(("share", "value"), [(0.5, 20), (0.75, 30), (0.76, 40), (0.95, 40), (1, 40), (0.01, 10)])
def test_a_percentile_is_a_value_that_was_seen(share: float, value: float) -> None:
    assert percentile([40, 10, 30, 20], share) == value


def test_of_nothing_there_is_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_measure_is_the_median_of_its_rounds() -> None:
    assert Measure("a", "ms", (3, 1, 2)).value == 2
    assert Measure("a", "ms", (3, 1, 2)).met is None
    assert Measure("a", "ms", (3, 1, 2), aim=2).met is True
    assert Measure("a", "1/s", (3, 1, 2), "higher", aim=2.5).met is False


async def test_a_request_s_calls_are_made_again() -> None:
    recorder = Recorder()
    ports = recorder.ports(await world.ports())
    [row] = await ports.embedder.queries(["a"])
    assert ports.embedder.name == "letters"
    assert [call.part for call in recorder.calls] == ["embed"]
    taken = recorder.taken()
    assert set(await again(taken)) == {"embed"}
    assert not recorder.taken()
    assert (await taken[0].method(*taken[0].arguments))[0].tolist() == row.tolist()


async def test_the_parts_of_a_request_are_held_against_the_whole() -> None:
    ports = await world.ports()
    slow = Ports(ports.store, ports.embedder, ports.sparse, Slow(ports.generator, 0.05))
    found = by_name(await service_times(slow, QUESTIONS, TINY, silent, ["naive"]))
    assert found["service/naive/generate"].value >= 50
    assert "service/naive/rerank" not in found
    assert found["service/naive/search"].value > 0
    assert min(found["service/naive/p50"].rounds) >= 50
    assert len(found["service/naive/over parts"].rounds) == 2


def test_reads_are_overhead() -> None:
    rounds = [
        [(130.0, {"embed": 40.0, "search": 60.0, "read": 20.0}), (100.0, {"generate": 100.0})],
        [(150.0, {"embed": 100.0}), (170.0, {"rerank": 100.0})],
    ]
    found = by_name(of_arch("crag", rounds))
    assert found["service/crag/over parts"].rounds == pytest.approx((1.15, 1.6))
    assert found["service/crag/over parts"].met is False
    assert {name.removeprefix("service/crag/"): list(m.rounds) for name, m in found.items() if m.unit == "ms"} == {
        "p50": [100, 150],
        "p95": [130, 170],
        "parts p50": [100, 100],
        "embed": [20, 50],
        "search": [30, 0],
        "rerank": [0, 50],
        "generate": [50, 0],
        "read": [10, 0],
    }


async def test_a_question_without_an_answer_ends_it() -> None:
    with pytest.raises(SubjectError, match="404"):
        await service_times(await world.ports(), QUESTIONS, TINY, silent, ["nobody"])


async def test_lag_is_how_late_the_loop_wakes() -> None:
    async def block() -> None:
        for _ in range(3):
            await asyncio.sleep(0.02)
            time.sleep(0.06)  # noqa: ASYNC251

    assert max(await lag_during(block())) >= 55


async def test_clients_count_what_is_refused() -> None:
    ports = await world.ports()
    slow = Ports(ports.store, ports.embedder, ports.sparse, Slow(ports.generator, 0.1))
    async with live(slow, max_concurrency=1) as service:
        found = await asyncio.to_thread(load, service.url, "naive", QUESTIONS, 3, 0.3)
    assert set(found["statuses"]) == {200, 429}
    assert len(found["ms"]) == found["statuses"][200]
    assert min(found["ms"]) >= 100
    assert found["seconds"] >= 0.3


async def test_a_service_that_is_gone_is_counted_as_failed() -> None:
    found = await asyncio.to_thread(load, "http://127.0.0.1:1", "naive", QUESTIONS, 1, 0.01)
    assert found["statuses"] == {0: 1}
    assert found["ms"] == []


async def test_throughput_is_measured_from_another_process(tmp_path: Path) -> None:
    async with live(await world.ports()) as service:
        found = by_name(await asyncio.to_thread(throughput, service.url, "naive", QUESTIONS, tmp_path, TINY, silent))
    assert found["throughput/2 clients/answers"].value > 0
    assert found["throughput/2 clients/answers"].better == "higher"
    assert len(found["throughput/1 clients/p95"].rounds) == 2
    assert found["throughput/1 clients/failed"].rounds == (0, 0)


def test_a_service_that_does_not_start_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no index here')"]
    with pytest.raises(SubjectError, match="no index here"):
        startup(tmp_path, QUESTIONS, TINY, silent, command=command)


_ANSWERS_ALL = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"answers on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def test_a_start_lasts_until_the_first_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ANSWERS_ALL]
    one = replace(TINY, rounds=1, starts=2, clients=(1,))
    found = by_name(startup(tmp_path, QUESTIONS, one, silent, command=command))
    first = found["start/process to first answer"]
    assert len(first.rounds) == 2
    assert 0 < min(first.rounds)
    assert found["throughput/1 clients/answers"].value > 0
    assert (memory_mib() is None) == ("start/memory after the load" not in found)
    assert (cpu_s(os.getpid()) is None) == ("throughput/1 clients/cpu an answer" not in found)


def test_processor_time_grows_with_work() -> None:
    before = cpu_s(os.getpid())
    if before is None:
        pytest.skip("there is no /proc here")
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass
    after = cpu_s(os.getpid())
    assert after is not None
    assert 0.05 < after - before < 5
    assert cpu_s(2**22 + 1) is None


def test_the_same_chunks_are_invented_on_every_run() -> None:
    (first, vectors), (again_, others) = next(chunks(0, 5, 8)), next(chunks(0, 5, 8))
    assert first == again_
    assert [v.sparse for v in vectors] == [v.sparse for v in others]
    assert np.linalg.norm(vectors[0].dense) == pytest.approx(1, abs=1e-6)
    assert 40 < len(vectors[0].sparse["bm25"].indices) <= 77
    assert sum(len(lot) for lot, _ in chunks(500, 2600, 8)) == 2100


async def test_an_exact_scan_costs_an_op_per_chunk_and_leg(tmp_path: Path) -> None:
    found = by_name(await growth(tmp_path, HashEmbedder(), TINY, silent))
    assert found["growth/30 chunks/ops a question"].value == 60
    assert found["growth/60 chunks/ops a question"].value == 120
    assert found["growth/60 chunks/search p50"].value <= found["growth/60 chunks/search p95"].value
    assert found["growth/60 chunks/hybrid without generation p95"].value > 0
    assert (memory_mib() is None) == ("growth/60 chunks/memory added" not in found)


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Sequence[str]] = []

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        self.calls.append(texts)
        return await super().passages(texts)


async def test_ingestion_is_held_against_embedding_the_same_chunks(tmp_path: Path) -> None:
    file, embedder = write_pdf(tmp_path / "a.pdf", prose("ash"), prose("birch")), Counting()
    measures, data = await ingestion([file], tmp_path / "work", embedder, TINY, silent)
    found = by_name(measures)
    one, alone, two, twice = embedder.calls
    assert sorted(one, key=len) == alone
    assert sorted(two, key=len) == twice
    assert len(two) == 2 * len(one)
    name = "ingestion/2x, 1 parsing"
    over, whole, bare = (found[f"{name}/{what}"].value for what in ("over embedding", "end to end", "embedding alone"))
    assert over == pytest.approx(whole / bare)
    assert found[f"{name}/pages"].value == pytest.approx(4 / whole)
    assert found[f"{name}/parse busy"].value > 0
    assert (data / "index").is_dir()


def test_copies_are_filings_of_their_own(tmp_path: Path) -> None:
    file = write_pdf(tmp_path / "a.pdf", "One.")
    first, second = copied([file], tmp_path / "copies", 2)
    assert first.read_bytes() != second.read_bytes()
    assert first.read_bytes().startswith(file.read_bytes())


def record(**rounds: Sequence[float]) -> dict[str, Any]:
    measures = [Measure(name, "ms", tuple(values)) for name, values in rounds.items() if name != "rate"]
    measures += [Measure("rate", "1/s", tuple(rounds["rate"]), "higher")] if "rate" in rounds else []
    machine = {"platform": "p", "cores": 2, "memory_gib": 8, "python": "3.11", "torch_threads": 2}
    return {
        "date": "2024-01-01",
        "commit": "abc",
        "scale": {"name": "quick"},
        "seconds": 9,
        "machine": machine,
        "load": {"before": 0.1, "after": 1.9},
        "measures": report.as_json(measures),
    }


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((10, 11, 12), (13, 14, 15), "worse"),
        ((10, 11, 12), (11.9, 14, 15), "same"),
        ((10, 10, 10), (10.2, 10.2, 10.2), "same"),
        ((13, 14, 15), (10, 11, 12), "better"),
        ((10,), (15,), "same"),
        ((10,), (17,), "worse"),
        ((0, 0), (1, 2), "worse"),
        ((0, 0), (0, 0), "same"),
    ],
)
def test_worse_is_what_is_beyond_the_noise(before: Sequence[float], after: Sequence[float], verdict: str) -> None:
    [change] = report.compare(record(time=before), record(time=after))
    assert change.verdict == verdict


def test_more_answers_a_second_are_better() -> None:
    [change] = report.compare(record(rate=(10, 11)), record(rate=(20, 22), other=(1, 2)))
    assert (change.verdict, change.ratio) == ("better", 2.0)


def test_compare_flags_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, report_ = tmp_path / "a.json", tmp_path / "b", tmp_path / "report.json"
    b.mkdir()
    a.write_text(json.dumps(record(search=(10, 11))), encoding="utf-8")
    (b / "bench.json").write_text(json.dumps(record(search=(20, 22))), encoding="utf-8")
    report_.write_text('{"run": {}, "matrix": {}}', encoding="utf-8")
    assert run(["compare", str(a), str(a)]) == 0
    assert "0 of 1 measures are worse" in capsys.readouterr().out
    assert run(["compare", str(a), str(b)]) == 1
    assert "| search  | 10.5 ms | 21 ms |  2.00 | worse |" in capsys.readouterr().out
    assert run(["compare", "--json", str(b), str(a)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "better"
    assert run(["compare", str(a), str(report_)]) == 2


def test_the_table_tells_aims_and_a_busy_machine() -> None:
    made = record(time=(1, 3))
    made["measures"] |= report.as_json([Measure("over", "ratio", (1.05, 1.2), aim=1.1)])
    assert "≤ 1.1: missed" in report.to_markdown(made)
    assert "Beware" not in report.to_markdown(made)
    made["load"]["before"] = 1.5
    assert "Beware" in report.to_markdown(made)


def test_a_section_must_be_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--only", "lag,speed"]) == 2
    assert "no section speed" in capsys.readouterr().err


async def test_what_the_graph_adds_is_measured_at_each_size(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "alder.pdf", prose("Alder Mills, Inc."), prose("Birch Flour Corp"))
    found = by_name(await graph_growth([path], tmp_path, HashEmbedder(), replace(TINY, copies=(1, 3)), silent))
    assert {name.partition("/")[2].partition(",")[0] for name in found} == {"1x", "3x"}
    for size in ("1x", "3x"):
        assert found[f"graph/{size}, without/end to end per 1,000 pages"].value > 0
        assert found[f"graph/{size}, with/extraction busy per 1,000 pages"].value > 0
        assert found[f"graph/{size}, with/records per 1,000 pages"].value > 0
        assert len(found[f"graph/{size}, with/communities derived"].rounds) == 2
    assert "graph/1x, without/records per 1,000 pages" not in found


def test_what_is_on_disk_is_what_files_take(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "full").write_bytes(b"x" * 10_000)
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10_000_000)
    assert 10_000 <= on_disk(tmp_path) < 100_000
