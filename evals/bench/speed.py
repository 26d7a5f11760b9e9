"""Service time against the sum of its parts, and the event loop's lag."""

import asyncio
import socket
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from app.caching import Caches
from app.main import create_app
from app.settings import Settings
from app.tools import Ports
from app.types import Access, Job
from evals.bench.load import Client
from evals.bench.measures import Measure, Say, Scale, percentile
from evals.bench.parts import PARTS, Recorder, again
from evals.errors import SubjectError
from evals.subjects import serving, systems

_TICK_S = 0.002
_K = 10


@asynccontextmanager
async def listening(ports: Ports, **settings: Any) -> AsyncIterator[str]:
    """The URL of the service over these ports, without caches, on a free loopback port of this process."""
    app = create_app(lambda _: nullcontext(replace(ports, caches=Caches())), Settings(api_keys={}, **settings))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, server_header=False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not task.done():  # noqa: ASYNC110  uvicorn offers no event to wait for
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


async def service_times(
    ports: Ports, questions: Sequence[str], scale: Scale, say: Say, archs: Sequence[str] = ()
) -> list[Measure]:
    """Of each architecture that can run (or `archs`): a question over HTTP, then the calls it makes, bare, and so on.

    One request at a time; its client is a thread that waits. Raises SubjectError where a question has no answer.
    """
    recorder, found = Recorder(), []
    async with serving(recorder.ports(ports)) as recorded, listening(ports) as url:
        able, left_out = await systems(recorded, ",".join(archs) or "all")
        for reason in left_out:
            say(f"left out: {reason}")
        client = Client(url)
        for arch in [system.arch for system in able]:
            say(f"service time of {arch}")
            calls = []
            for question in questions:
                recorder.taken()
                await recorded.ask(arch, question, k=_K, filters={}, options={})
                calls.append(recorder.taken())
            rounds = []
            for _ in range(scale.rounds):
                pairs = []
                for question, parts in zip(questions, calls, strict=True):
                    status, ms = await asyncio.to_thread(client.ask, arch, question)
                    if status != 200:
                        raise SubjectError(f"{arch} answered {question!r} with status {status}")
                    pairs.append((ms, await again(parts)))
                rounds.append(pairs)
            found += of_arch(arch, rounds)
        client.close()
    return found


def of_arch(arch: str, rounds: Sequence[Sequence[tuple[float, dict[str, float]]]]) -> list[Measure]:
    """From milliseconds of each request and of its parts, by round."""

    def each(ratio: Any) -> tuple[float, ...]:
        return tuple(ratio(pairs) for pairs in rounds)

    def bare(spent: dict[str, float]) -> float:
        return sum(spent.get(part, 0.0) for part in PARTS)

    over = each(lambda pairs: statistics.median(ms / max(bare(spent), 1e-6) for ms, spent in pairs))
    name = f"service/{arch}"
    return [
        Measure(f"{name}/over parts", "ratio", over, aim=1.10),
        Measure(f"{name}/p50", "ms", each(lambda pairs: percentile([ms for ms, _ in pairs], 0.5))),
        Measure(f"{name}/p95", "ms", each(lambda pairs: percentile([ms for ms, _ in pairs], 0.95))),
        Measure(f"{name}/parts p50", "ms", each(lambda pairs: percentile([bare(spent) for _, spent in pairs], 0.5))),
        *(
            Measure(f"{name}/{part}", "ms", each(lambda pairs, p=part: statistics.fmean(s.get(p, 0) for _, s in pairs)))
            for part in (*PARTS, "read")
            if any(part in spent for pairs in rounds for _, spent in pairs)
        ),
    ]


async def loop_lag(ports: Ports, files: Sequence[Path], scale: Scale, say: Say) -> list[Measure]:
    """How late the loop wakes a sleeper, idle and while it takes in `files`, uploaded at once."""
    assert ports.ingestion is not None
    say(f"event-loop lag, idle for {scale.seconds:g} s")
    found = _lags("idle", await lag_during(asyncio.sleep(scale.seconds)), aim=None)
    say(f"event-loop lag while ingesting {len(files)} filings")
    return found + _lags("ingesting", await lag_during(_upload(ports, files)), aim=20.0)


async def _upload(ports: Ports, files: Sequence[Path]) -> None:
    async def content(path: Path) -> AsyncIterator[bytes]:
        yield await asyncio.to_thread(path.read_bytes)

    assert ports.ingestion is not None
    jobs: list[Job] = []
    ports.ingestion.follow(jobs.append)
    for path in files:
        await ports.ingestion.submit(path.name, content(path), Access())
    while ports.ingestion.queued():  # noqa: ASYNC110  jobs are followed by a listener that must not block
        await asyncio.sleep(0.05)
    if failed := [job for job in jobs if job.state != "done" or job.outcome != "created"]:
        raise SubjectError(f"{failed[0].filename} was not ingested: {failed[0].detail or failed[0].outcome}")


async def lag_during(work: Awaitable[None]) -> list[float]:
    """Milliseconds by which each of many short sleeps was late, until the work is done."""
    task, late = asyncio.ensure_future(work), []
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(_TICK_S)
        late.append((time.perf_counter() - began - _TICK_S) * 1000)
    await task
    return late


def _lags(when: str, late: Sequence[float], aim: float | None) -> list[Measure]:
    third = max(len(late) // 3, 1)
    pieces = [late[start : start + third] for start in range(0, third * 3, third) if late[start : start + third]]
    return [
        Measure(f"lag/{when}/p50", "ms", tuple(percentile(piece, 0.5) for piece in pieces)),
        Measure(f"lag/{when}/p99", "ms", tuple(percentile(piece, 0.99) for piece in pieces), aim=aim),
        Measure(f"lag/{when}/max", "ms", tuple(max(piece) for piece in pieces)),
    ]
