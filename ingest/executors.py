"""Work on untrusted files in processes that may die: a crash, a hang or a hunger for memory costs one file alone."""

import asyncio
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from app.errors import DocumentError

A = TypeVar("A")
R = TypeVar("R")

MEMORY_BYTES = 4 << 30
"""Address space of one worker process, libraries included."""
_FILES_PER_PROCESS = 50
_PRELOADED: set[str] = set()
"""Modules of every pool's work: all pools fork from one server, and what it has imported no process imports again."""
_GRACE_S = 30.0
"""For a process to start and to die; its own alarm is what ends it on time."""


_owner: "Connection[Any, Any] | None" = None
"""In a worker process, the way to its owner."""


@dataclass(frozen=True, slots=True)
class _Note:
    """What work says before it is done."""

    said: Any
    more_s: float


def tell(said: Any, *, more_s: float = 0.0) -> None:
    """For work to call: its owner hears this, and the time limit moves by `more_s`. Does nothing outside a worker."""
    if _owner is None:
        return
    if more_s:
        signal.setitimer(signal.ITIMER_REAL, signal.getitimer(signal.ITIMER_REAL)[0] + more_s)
    _owner.send(_Note(said, more_s))


class ProcessPool(Generic[A, R]):
    """Runs `work(argument)` in up to `workers` processes, started when needed and replaced after a number of files.

    `work` and its arguments must be picklable, and the module it stands in is imported by every process: keep it lean.
    A process ends by itself at the time limit (an alarm in the kernel, so that no hung library can refuse it) and when
    the owner is gone, however that ended.
    """

    def __init__(
        self,
        work: Callable[[A], R],
        workers: int,
        *,
        memory_bytes: int = MEMORY_BYTES,
        files_per_process: int = _FILES_PER_PROCESS,
    ) -> None:
        _PRELOADED.add(work.__module__)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="parsing")
        self._idle: asyncio.Queue[_Worker[A, R]] = asyncio.Queue()
        self._workers = [_Worker(work, memory_bytes, files_per_process) for _ in range(workers)]
        for worker in self._workers:
            self._idle.put_nowait(worker)

    async def run(self, argument: A, timeout_s: float, heard: Callable[[Any], None] = lambda said: None) -> R:
        """`heard` is called with whatever the work tells.

        Raises DocumentError: the work's own, or with reason timeout, crashed or too_large (memory).
        """
        worker = await self._idle.get()
        loop = asyncio.get_running_loop()
        call = self._threads.submit(
            worker.call, argument, timeout_s, lambda said: loop.call_soon_threadsafe(heard, said)
        )
        call.add_done_callback(lambda _: loop.call_soon_threadsafe(self._idle.put_nowait, worker))
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            worker.stop()
            raise

    def rest(self) -> None:
        """Ends the processes that have nothing to do; what comes next starts one anew."""
        for _ in range(self._idle.qsize()):
            worker = self._idle.get_nowait()
            worker.discard()
            self._idle.put_nowait(worker)

    def close(self) -> None:
        """Ends every process, at once."""
        for worker in self._workers:
            worker.closed = True
            worker.stop()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.discard()


class _Worker(Generic[A, R]):
    """The owner's side of one process."""

    def __init__(self, work: Callable[[A], R], memory_bytes: int, files_per_process: int) -> None:
        self._work = work
        self._memory_bytes = memory_bytes
        self._files_per_process = files_per_process
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection[Any, Any] | None = None
        self._files = 0
        self.closed = False

    def call(self, argument: A, timeout_s: float, heard: Callable[[Any], object]) -> R:
        connection = self._ready()
        self._files += 1
        began = time.monotonic()
        try:
            connection.send((argument, timeout_s))
            reply: R | DocumentError | _Note = _Note(None, 0.0)
            while isinstance(reply, _Note):
                if not connection.poll(max(0.0, began + timeout_s + _GRACE_S - time.monotonic())):
                    self.discard()
                    raise _too_slow(timeout_s)
                reply = connection.recv()
                if isinstance(reply, _Note):
                    timeout_s += reply.more_s
                    heard(reply.said)
        except (EOFError, OSError) as error:
            raise self._cause_of_death(timeout_s) from error
        if isinstance(reply, DocumentError):
            raise reply
        return reply

    def _ready(self) -> "Connection[Any, Any]":
        if self._files >= self._files_per_process or not (self._process and self._process.is_alive()):
            self.discard()
        if self._connection is None:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(sorted(_PRELOADED))
            self._connection, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._work, self._memory_bytes), daemon=True)
            process.start()
            self._process = process  # not before: what has not started cannot be killed
            theirs.close()
            self._files = 0
        if self.closed:
            self.stop()
        return self._connection

    def _cause_of_death(self, timeout_s: float) -> DocumentError:
        process = self._process
        if process is None:
            return DocumentError("parsing was stopped", "crashed")
        process.join(_GRACE_S)
        code = process.exitcode
        self.discard()
        if code == -signal.SIGALRM:
            return _too_slow(timeout_s)
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit status {code}"
        return DocumentError(f"the parser died on this file ({how})", "crashed")

    def stop(self) -> None:
        """Kill the process from any thread; the call that waits for it ends with its death."""
        if self._process is not None:
            self._process.kill()

    def discard(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _too_slow(timeout_s: float) -> DocumentError:
    return DocumentError(f"not parsed within {timeout_s:.0f} s; raise --timeout-s if the file is sound", "timeout")


def _serve(connection: "Connection[Any, Any]", work: Callable[[Any], Any], memory_bytes: int) -> None:
    """The process's side: one argument after the other, until the owner hangs up."""
    global _owner
    _owner = connection
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    os.nice(5)
    while True:
        try:
            argument, timeout_s = connection.recv()
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        reply = _attempt(work, argument)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            connection.send(reply)
        except OSError:
            return


def _attempt(work: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return work(argument)
    except DocumentError as error:
        return error
    except MemoryError:
        return DocumentError("parsing needs more memory than one worker may have", "too_large")
    except Exception as error:  # noqa: BLE001 - the outer loop of a worker
        return DocumentError(f"the parser failed on this file: {type(error).__name__}: {error}"[:500], "crashed")


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
