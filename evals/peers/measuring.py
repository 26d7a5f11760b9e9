"""One contender from nothing to the last client: its index, its first answer, its passages, its speed, its memory."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from evals import measures
from evals.bench.load import TIMEOUT_S, Client
from evals.bench.measures import Measure, Say, Scale, memory_mib
from evals.bench.report import as_json
from evals.bench.startup import SERVICE, service, throughput
from evals.demo import environment
from evals.errors import SubjectError
from evals.measures import Reply
from evals.peers.corpus import Corpus
from evals.peers.runners.serving import BUILT
from evals.questions import Question, stem
from evals.subjects import System, parse_system

Contender: TypeAlias = dict[str, Any]
"""What was measured of one, as JSON: files, chunks, seconds, first_answer_s, memory and, by system, what it found."""

Part: TypeAlias = dict[tuple[str, str], Any]
"""By system and what was measured of it: quality, characters, speed."""

K = 10
"""Passages asked for; what the load generator gets, for it names no number."""
OURS = "sextant"
PEER_SYSTEMS = ("dense", "hybrid")
OUR_SYSTEMS = ("naive", "hybrid", "hybrid:query_filters=false")
PASSAGES_ONLY = (sys.executable, "-m", "evals.peers.passages_only")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}


@dataclass(frozen=True, slots=True)
class Work:
    """What every contender is given."""

    corpus: Corpus
    filings: Path
    """A folder with the corpus' files alone."""
    model: str
    """Folder or hub name of the embedding model."""
    scale: Scale

    @property
    def texts(self) -> list[str]:
        return [question.text for question in self.corpus.questions]


@dataclass(frozen=True, slots=True)
class Beside:
    """A service that is loaded in turn with a peer's, so that both meet the same minutes of a busy machine."""

    command: Sequence[str]
    folder: Path
    archs: Sequence[str]


def beside_ours(folder: Path) -> Beside:
    """Ours without answers, over the index that `measure_ours` left in the folder."""
    return Beside(PASSAGES_ONLY, folder, OUR_SYSTEMS[:2])


def measure_peer(command: Sequence[str], folder: Path, work: Work, beside: Beside, say: Say) -> Contender:
    """A process by `runners.serving`'s protocol; `command` is what it is started with, its arguments not yet.

    Raises SubjectError where it does not come up or does not answer.
    """
    built = folder / BUILT
    built.unlink(missing_ok=True)
    say(f"{folder.name} indexes {work.corpus.pages} pages; its log: {folder / 'service.log'}")
    began = time.perf_counter()
    given = [*command, str(work.filings), work.model, str(K)]
    with service(given, folder, **_OFFLINE) as (url, pid):
        first = _first_answer(url, work, began)
        held = json.loads(built.read_text("utf-8"))
        systems = _asked(url, PEER_SYSTEMS, work, say)
        with service(beside.command, beside.folder, **_OFFLINE) as (other, other_pid):
            loads = [Load(url, pid, arch) for arch in PEER_SYSTEMS]
            loads += [Load(other, other_pid, arch) for arch in beside.archs]
            speeds = _loaded(loads, work, folder, say)
        memory = {"after_load_mib": memory_mib(pid), "peak_mib": memory_mib(pid, peak=True)}
    return {
        **held,
        "first_answer_s": first,
        "memory": memory,
        "systems": _merged(systems | _of(url, speeds)),
        "beside": _merged(_of(other, speeds)),
    }


def measure_ours(folder: Path, work: Work, say: Say) -> Contender:
    """Ingested by the worker with its defaults; asked over HTTP without answers, as peers give none, and with them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"{OURS} indexes {work.corpus.pages} pages")
    began = time.perf_counter()
    summary, ingest_peak = _ingested(folder, work)
    seconds = time.perf_counter() - began
    with service(PASSAGES_ONLY, folder, **_OFFLINE) as (url, pid):
        first = _first_answer(url, work, began)
        systems = _asked(url, OUR_SYSTEMS, work, say)
        systems |= _of(url, _loaded([Load(url, pid, arch) for arch in OUR_SYSTEMS[:2]], work, folder, say))
        after, peak = memory_mib(pid), memory_mib(pid, peak=True)
    with service(SERVICE, folder, **_OFFLINE) as (url, pid):
        _first_answer(url, work, began)
        answering = _of(url, _loaded([Load(url, pid, arch) for arch in OUR_SYSTEMS[:2]], work, folder, say))
    systems |= {(f"{name}, answering", what): found for (name, what), found in answering.items()}
    return {
        "files": summary["created"],
        "chunks": summary["chunks"],
        "seconds": seconds,
        "first_answer_s": first,
        "memory": {"after_load_mib": after, "peak_mib": None if peak is None else max(peak, ingest_peak)},
        "systems": _merged(systems),
    }


def _ingested(folder: Path, work: Work) -> tuple[dict[str, Any], float]:
    """The worker's summary and the MiB of its largest process at its largest."""
    command = [sys.executable, "-m", "ingest", str(work.filings), "--json"]
    given, log = environment(folder, EMBEDDING_CACHE="", **_OFFLINE), folder / "ingest.jsonl"
    with log.open("w") as lines:
        process = subprocess.Popen(command, cwd=folder, env=given, stdout=lines, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SubjectError(f"the ingestion failed with status {process.returncode}; see {log}")
    found: dict[str, Any] = json.loads(log.read_text("utf-8").splitlines()[-1])
    return found, used.ru_maxrss / 1024


def _first_answer(url: str, work: Work, began: float) -> float:
    client = Client(url)
    status, _ = client.ask("hybrid", work.texts[0])
    seconds = time.perf_counter() - began
    client.close()
    if status != 200:
        raise SubjectError(f"the first answer has status {status}")
    return seconds


def _asked(url: str, names: Sequence[str], work: Work, say: Say) -> Part:
    """Measures by question and the mean characters of K passages."""
    found: Part = {}
    questions = work.corpus.questions
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        for system in map(parse_system, names):
            say(f"asking {system.name} {len(questions)} questions")
            replies = {question.id: _reply(client, system, question) for question in questions}
            found[system.name, "quality"] = measures.retrieval(questions, replies, K)
            lengths = [sum(len(p["text"]) for p in reply["passages"]) for reply in replies.values()]
            found[system.name, "characters"] = statistics.fmean(lengths)
    return found


def _reply(client: httpx.Client, system: System, question: Question) -> Reply:
    asked = {"question": question.text, "k": K, "options": dict(system.options)}
    try:
        response = client.post(f"/query/{system.arch}", json=asked)
        response.raise_for_status()
    except httpx.HTTPError as error:
        raise SubjectError(f"{system.name} did not answer {question.id}: {error}") from error
    return credited(response.json(), question)


def credited(reply: Reply, question: Question) -> Reply:
    """A passage that runs over several pages stands on the first of them that holds evidence, if any does."""
    return {**reply, "passages": [{**p, "page": _page(p, question)} for p in reply["passages"]]}


def _page(passage: Mapping[str, Any], question: Question) -> int:
    first: int = passage["page"]
    covered = range(first, (passage.get("last_page") or first) + 1)
    return next((page for page in covered if (stem(passage["source"]), page) in question.pages), first)


@dataclass(frozen=True, slots=True)
class Load:
    url: str
    pid: int
    arch: str


def _loaded(loads: Sequence[Load], work: Work, folder: Path, say: Say) -> dict[Load, list[Measure]]:
    """Round after round over all of them."""
    rounds: dict[Load, list[list[Measure]]] = {load: [] for load in loads}
    for _ in range(work.scale.rounds):
        for load, clients in product(loads, work.scale.clients):
            once = replace(work.scale, rounds=1, clients=(clients,))
            rounds[load].append(throughput(load.url, load.arch, work.texts, folder, once, say, load.pid))
    return {load: joined(found) for load, found in rounds.items()}


def joined(rounds: Sequence[Sequence[Measure]]) -> list[Measure]:
    """Each measure with its values of all rounds, those that lack it left out."""
    found: dict[str, Measure] = {}
    for measure in (measure for each in rounds for measure in each):
        earlier = found.get(measure.name)
        found[measure.name] = replace(measure, rounds=(earlier.rounds if earlier else ()) + measure.rounds)
    return list(found.values())


def _of(url: str, speeds: Mapping[Load, Sequence[Measure]]) -> Part:
    return {(load.arch, "speed"): as_json(found) for load, found in speeds.items() if load.url == url}


def _merged(parts: Part) -> dict[str, dict[str, Any]]:
    systems: dict[str, dict[str, Any]] = {}
    for (name, what), found in parts.items():
        systems.setdefault(name, {})[what] = found
    return systems
