import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from app.errors import DocumentError
from ingest.executors import ProcessPool, tell

pytestmark = pytest.mark.anyio


def perform(order: str) -> str:
    """What a parser may do to its process, by name."""
    name, _, rest = order.partition(" ")
    if name == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "exit":
        os._exit(7)
    if name == "hang":
        while True:
            pass
    if name == "hoard":
        bytearray(8 << 30)
    if name == "refuse":
        raise DocumentError("needs a password", "password")
    if name == "fail":
        raise ValueError("negative page count")
    if name == "pid":
        return str(os.getpid())
    if name == "note":
        Path(rest).write_text("seen")
        time.sleep(30)
    return f"done {order}"


def ask(order: str) -> str:
    tell("needs longer", more_s=30.0)
    time.sleep(1.5)
    return f"done {order}"


async def reason(pool: ProcessPool[str, str], order: str, timeout_s: float = 20.0) -> tuple[str, str]:
    with pytest.raises(DocumentError) as caught:
        await pool.run(order, timeout_s)
    return caught.value.reason, str(caught.value)


async def test_a_dead_process_costs_its_own_file_alone() -> None:
    pool = ProcessPool(perform, 2)
    try:
        deaths = tuple(await asyncio.gather(*(reason(pool, order) for order in ("segfault", "exit", "fail"))))
        assert deaths == (
            ("crashed", "the parser died on this file (signal SIGSEGV)"),
            ("crashed", "the parser died on this file (exit status 7)"),
            ("crashed", "the parser failed on this file: ValueError: negative page count"),
        )
        assert await asyncio.gather(*(pool.run(f"n{n}", 20) for n in range(5))) == [f"done n{n}" for n in range(5)]
    finally:
        pool.close()


async def test_work_may_say_how_far_it_is_and_be_given_longer() -> None:
    heard: list[str] = []
    pool = ProcessPool(ask, 1)
    try:
        assert await pool.run("much", 1.0, heard.append) == "done much"
    finally:
        pool.close()
    assert heard == ["needs longer"]
    tell("nobody to hear", more_s=1.0)


async def test_a_hang_ends_at_the_time_limit() -> None:
    pool = ProcessPool(perform, 1)
    try:
        await pool.run("warm", 20)
        began = time.perf_counter()
        assert (await reason(pool, "hang", 0.5))[0] == "timeout"
        assert time.perf_counter() - began < 5
        assert await pool.run("next", 20) == "done next"
    finally:
        pool.close()


async def test_memory_is_limited() -> None:
    pool = ProcessPool(perform, 1, memory_bytes=2 << 30)
    try:
        assert (await reason(pool, "hoard"))[0] == "too_large"
    finally:
        pool.close()


async def test_the_works_own_error_arrives_whole() -> None:
    pool = ProcessPool(perform, 1)
    try:
        assert await reason(pool, "refuse") == ("password", "needs a password")
    finally:
        pool.close()


async def test_a_process_is_replaced_after_its_share_of_files() -> None:
    pool = ProcessPool(perform, 1, files_per_process=2)
    try:
        pids = [await pool.run("pid", 20) for _ in range(4)]
        assert pids[0] == pids[1] != pids[2] == pids[3]
    finally:
        pool.close()


async def test_one_that_rests_is_started_anew_when_there_is_work(tmp_path: Path) -> None:
    pool = ProcessPool(perform, 2)
    try:
        first = int(await pool.run("pid", 20))
        pool.rest()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        assert int(await pool.run("pid", 20)) != first
        seen = tmp_path / "seen"
        working = asyncio.create_task(pool.run(f"note {seen}", 20))
        while not seen.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
        pool.rest()
        await asyncio.sleep(0.1)
        assert not working.done(), "what is at work is left alone"
        working.cancel()
    finally:
        pool.close()


async def test_cancelling_ends_the_process(tmp_path: Path) -> None:
    pool = ProcessPool(perform, 1)
    try:
        seen = tmp_path / "seen"
        waiting = asyncio.create_task(pool.run(f"note {seen}", 60))
        while not seen.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await pool.run("next", 20) == "done next"
    finally:
        pool.close()


@pytest.mark.parametrize("after_s", [0.0001 * step for step in range(30)])
async def test_cancelling_while_the_process_starts_is_a_cancellation(after_s: float) -> None:
    pool = ProcessPool(perform, 1)
    running = asyncio.create_task(pool.run("hang", 20.0))
    await asyncio.sleep(after_s)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    pool.close()


async def test_closing_leaves_no_process() -> None:
    pool = ProcessPool(perform, 2)
    pids = [int(await pool.run("pid", 20)) for _ in range(2)]
    pool.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
