"""`sextant-eval peers`: every contender on the same work in one run, side by side in one report."""

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path

from anyio import to_thread

from app.adapters.embedding import FLAG, PACKAGED, packaged_folder
from app.settings import Settings
from evals.bench.measures import Say, Scale
from evals.bench.report import machine
from evals.errors import UsageError
from evals.peers import environments, report
from evals.peers.corpus import Corpus, chosen
from evals.peers.measuring import OURS, Contender, Work, beside_ours, measure_ours, measure_peer
from evals.questions import load_questions
from evals.reports.record import commit

PEERS = {"llamaindex": "llama-index-core", "langchain": "langchain-core", "haystack": "haystack-ai"}
"""By name the package whose version stands for it."""
RESULT = "result.json"


async def peers_command(options: argparse.Namespace) -> int:
    """0 whether or not the aim is met."""
    names = options.peers.split(",")
    if strange := set(names) - set(PEERS):
        raise UsageError(f"no peer {', '.join(sorted(strange))}; there are {', '.join(PEERS)}")
    clients = _clients(options.clients)
    corpus = chosen(options.filings, load_questions(options.questions), options.cover)
    began = time.perf_counter()

    def say(line: str) -> None:
        sys.stderr.write(f"{time.perf_counter() - began:6.0f} s  {line}\n")
        sys.stderr.flush()

    out: Path = options.out.absolute()
    work = Work(corpus, _copied(corpus, out / "filings"), _model(), replace(Scale(), clients=clients))
    if options.seconds:
        work = replace(work, scale=replace(work.scale, seconds=options.seconds))
    measured = await to_thread.run_sync(lambda: _measured(names, out, work, say, again=options.again))
    record = {
        "schema": 1,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["sextant-eval", *sys.argv[1:]]),
        "commit": commit(),
        "machine": machine(),
        "corpus": {"files": len(corpus.files), "pages": corpus.pages, "questions": len(corpus.questions)},
        "scale": {
            name: value for name, value in asdict(work.scale).items() if name in ("rounds", "seconds", "clients")
        },
        "contenders": measured,
        "ratios": report.ratios(measured),
    }
    text = json.dumps(record, ensure_ascii=False, indent=1)
    (out / "peers.json").write_text(text + "\n", encoding="utf-8")
    (out / "peers.md").write_text(report.to_markdown(record), encoding="utf-8")
    sys.stderr.write(f"written: {out}/peers.json, peers.md\n")
    sys.stdout.write(text + "\n" if options.json else report.to_markdown(record))
    return 0


def _clients(text: str) -> tuple[int, ...]:
    if not all(part.isdigit() and int(part) for part in text.split(",")):
        raise UsageError(f"--clients takes numbers from 1, as in 1,8,32, not {text!r}")
    return tuple(map(int, text.split(",")))


def _model() -> str:
    model = Settings().embedding_model
    if model.startswith(FLAG):
        raise UsageError("peers load sentence-transformers' models; EMBEDDING_MODEL is one of FlagEmbedding's")
    return packaged_folder(model) if model in PACKAGED else model


def _copied(corpus: Corpus, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in corpus.files:
        shutil.copy(path, folder)
    return folder


def _measured(names: list[str], out: Path, work: Work, say: Say, *, again: bool) -> dict[str, Contender]:
    """Environments first, so that a package index out of reach is known before anything is measured."""
    pythons = {name: environments.interpreter(out / name, environments.requirements(name), say) for name in names}

    def peer(name: str) -> Contender:
        command = (str(pythons[name]), "-m", f"evals.peers.runners.{name}")
        return {"version": _version(name), **measure_peer(command, out / name, work, beside_ours(out / OURS), say)}

    ours, theirs = fingerprint(work, "app", "ingest"), fingerprint(work, "app", "ingest", "evals.peers.runners")
    found = {OURS: kept(out / OURS, ours, say, lambda: measure_ours(out / OURS, work, say), again=again)}
    for name in names:
        found[name] = kept(out / name, theirs, say, partial(peer, name), again=again)
    return found


def kept(folder: Path, fingerprint: str, say: Say, measure: Callable[[], Contender], *, again: bool) -> Contender:
    """What an earlier run has measured of the same work, else what is measured now."""
    path = folder / RESULT
    if path.exists() and not again:
        earlier: Contender = json.loads(path.read_text("utf-8"))
        if earlier["fingerprint"] == fingerprint:
            say(f"{folder.name}: kept from {earlier['date']}; --again measures it anew")
            return earlier
    before = os.getloadavg()[0]
    found = measure()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    found = {"fingerprint": fingerprint, "date": date, "load": {"before": before, "after": os.getloadavg()[0]}, **found}
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return found


def _version(name: str) -> str:
    pins = (line.partition("==") for line in environments.requirements(name).read_text("utf-8").splitlines())
    return next(version for package, _, version in pins if package == PEERS[name])


def fingerprint(work: Work, *packages: str) -> str:
    """Changes with the work and with the contender's code and pins."""
    sources = sorted(
        path for package in packages for path in Path(str(files(package))).rglob("*.*") if _is_source(path)
    )
    given = [
        *((path.name, path.stat().st_size) for path in work.corpus.files),
        *((question.id, question.text, sorted(question.pages)) for question in work.corpus.questions),
        work.model,
        asdict(work.scale),
    ]
    digest = hashlib.sha256(json.dumps(given).encode())
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _is_source(path: Path) -> bool:
    return path.suffix in (".py", ".txt")
