"""The service as a process of its own: from its start to its first answer, its memory, its throughput."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evals.bench.load import Client
from evals.bench.measures import Measure, Say, Scale, cpu_s, memory_mib, percentile
from evals.demo import environment
from evals.errors import SubjectError

SERVICE = (sys.executable, "-m", "app", "--host", "127.0.0.1", "--port", "0")


@contextmanager
def service(command: Sequence[str], folder: Path, **variables: str) -> Iterator[tuple[str, int]]:
    """URL and process id; stopped however the block is left. Raises SubjectError where it does not start."""
    log, off = folder / "service.log", dict.fromkeys(("CACHE_QUERIES", "CACHE_GRADES", "CACHE_GENERATIONS"), "0")
    given = environment(folder, EMBEDDING_CACHE="", **off, **variables)
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            url = next((line[line.index("http://") :].strip() for line in process.stdout if "http://" in line), None)
            if url is None:
                raise SubjectError(f"the service did not start; see {log}: {log.read_text('utf-8')[-300:]}")
            yield url, process.pid
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def startup(
    folder: Path,
    questions: Sequence[str],
    scale: Scale,
    say: Say,
    *,
    arch: str = "hybrid",
    command: Sequence[str] = SERVICE,
    **variables: str,
) -> list[Measure]:
    """Over the index in `folder`; throughput is that of the last process started."""
    first, idle, loaded = [], [], []
    for number in range(scale.starts):
        say(f"cold start {number + 1}")
        began = time.perf_counter()
        with service(command, folder, **variables) as (url, pid):
            client = Client(url)
            status, _ = client.ask(arch, questions[0])
            first.append(time.perf_counter() - began)
            client.close()
            if status != 200:
                raise SubjectError(f"the first answer has status {status}; see {folder / 'service.log'}")
            idle.append(memory_mib(pid))
            if number == scale.starts - 1:
                found = throughput(url, arch, questions, folder, scale, say, pid)
                loaded.append(memory_mib(pid))
    return [
        Measure("start/process to first answer", "s", tuple(first)),
        *(Measure(f"start/memory {when}", "MiB", known) for when, known in _known(idle, loaded)),
        *found,
    ]


def _known(idle: list[float | None], loaded: list[float | None]) -> list[tuple[str, tuple[float, ...]]]:
    both = (("after the first answer", idle), ("after the load", loaded))
    return [(when, known) for when, values in both if (known := tuple(v for v in values if v is not None))]


def throughput(
    url: str, arch: str, questions: Sequence[str], folder: Path, scale: Scale, say: Say, pid: int | None = None
) -> list[Measure]:
    """Of a running service, round after round over all numbers of clients; refused and failed questions are counted.

    With its process id also what an answer costs in processor time, which other work on the machine distorts least.
    """
    file = folder / "asked.json"
    file.write_text(json.dumps(list(questions)), encoding="utf-8")
    runs: dict[int, list[Mapping[str, Any]]] = {clients: [] for clients in scale.clients}
    for number in range(scale.rounds):
        for clients in scale.clients:
            say(f"throughput of {arch} with {clients} clients, round {number + 1}")
            command = [sys.executable, "-m", "evals.bench.load", url, str(file), "--arch", arch]
            command += ["--clients", str(clients), "--seconds", str(scale.seconds)]
            before = None if pid is None else cpu_s(pid)
            done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=False)
            if done.returncode:
                raise SubjectError(f"the clients failed: {done.stderr[-300:]}")
            after = None if pid is None else cpu_s(pid)
            used = None if before is None or after is None else after - before
            runs[clients].append(json.loads(done.stdout) | {"cpu": used})
    return [measure for clients, of in runs.items() for measure in _of_clients(f"throughput/{clients} clients", of)]


def _of_clients(name: str, runs: Sequence[Mapping[str, Any]]) -> list[Measure]:
    def status(run: Mapping[str, Any], *, busy: bool) -> float:
        return float(sum(n for s, n in run["statuses"].items() if s != "200" and (s == "429") == busy))

    answered = [run for run in runs if run["ms"]]
    counted = [run for run in answered if run["cpu"] is not None]
    return [
        Measure(f"{name}/answers", "1/s", tuple(len(run["ms"]) / run["seconds"] for run in runs), "higher"),
        *(
            Measure(f"{name}/{label}", "ms", tuple(percentile(run["ms"], share) for run in answered))
            for label, share in (("p50", 0.5), ("p95", 0.95))
            if answered
        ),
        *(
            [Measure(f"{name}/cpu an answer", "ms", tuple(run["cpu"] * 1000 / len(run["ms"]) for run in counted))]
            if counted
            else []
        ),
        Measure(f"{name}/refused (429)", "count", tuple(status(run, busy=True) for run in runs)),
        Measure(f"{name}/failed", "count", tuple(status(run, busy=False) for run in runs)),
    ]
