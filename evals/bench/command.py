"""`sextant-eval bench`: measures everything in one run, writes `bench.json`, prints the table."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio import to_thread

from app.opening import open_embedder, open_ports
from app.settings import Settings
from evals.bench import report
from evals.bench.graph import graph_growth
from evals.bench.growth import growth
from evals.bench.ingestion import COLLECTION, TIMEOUT_S, copied, ingestion
from evals.bench.measures import DEFAULT, FULL, QUICK, Measure, Say, Scale
from evals.bench.speed import loop_lag, service_times
from evals.bench.startup import startup
from evals.errors import UsageError
from evals.questions import load_questions
from evals.reports.record import commit
from evals.specimens.__main__ import write_specimens

SECTIONS = ("ingestion", "service", "lag", "start", "growth", "graph")
_ALONE: Mapping[str, Any] = {
    "qdrant_url": None,
    "embedding_cache": None,
    "cache_queries": 0,
    "cache_grades": 0,
    "cache_generations": 0,
}


async def bench_command(options: argparse.Namespace) -> int:
    """0 whether or not an aim is met: a regression is what `compare` is for."""
    name, scale = ("quick", QUICK) if options.quick else ("full", FULL) if options.full else ("default", DEFAULT)
    if options.seconds:
        scale = replace(scale, seconds=options.seconds)
    sections = SECTIONS if options.only == "all" else tuple(options.only.split(","))
    if strange := set(sections) - set(SECTIONS):
        raise UsageError(f"no section {', '.join(sorted(strange))}; there are {', '.join(SECTIONS)}")
    began, before = time.perf_counter(), os.getloadavg()[0]

    def say(line: str) -> None:
        sys.stderr.write(f"{time.perf_counter() - began:6.0f} s  {line}\n")
        sys.stderr.flush()

    with TemporaryDirectory(prefix="sextant-bench-") as folder:
        found = await measured(Path(folder), scale, sections, say)
    record = {
        "schema": report.SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["sextant-eval", *sys.argv[1:]]),
        "commit": commit(),
        "seconds": round(time.perf_counter() - began, 1),
        "scale": {"name": name, **asdict(scale)},
        "machine": report.machine(),
        "load": {"before": before, "after": os.getloadavg()[0]},
        "measures": report.as_json(found),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, ensure_ascii=False, indent=1)
    (options.out / "bench.json").write_text(text + "\n", encoding="utf-8")
    sys.stderr.write(f"written: {options.out}/bench.json\n")
    sys.stdout.write(text + "\n" if options.json else report.to_markdown(record))
    return 0


def compare_benches(a: report.Record, b: report.Record, *, as_json: bool) -> int:
    """Prints B against A. 1 where anything is worse beyond the noise, else 0."""
    changes = report.compare(a, b)
    found = json.dumps([asdict(change) for change in changes], indent=2) if as_json else report.compared(a, b, changes)
    sys.stdout.write(found.rstrip() + "\n")
    return int(any(change.verdict == "worse" for change in changes))


async def measured(folder: Path, scale: Scale, sections: Sequence[str], say: Say) -> list[Measure]:
    """All of `sections`. Those that ask questions ask them of the last index that was ingested."""
    found: list[Measure] = []
    say("loading the models")
    embedder = await open_embedder(Settings(embedding_cache=None))
    try:
        if "growth" in sections:
            found += await growth(folder / "growth", embedder, scale, say)
            shutil.rmtree(folder / "growth")
        if set(sections) == {"growth"}:
            return found
        say("writing specimen filings")
        await to_thread.run_sync(write_specimens, folder / "specimens")
        files = sorted((folder / "specimens" / "filings").glob("*.pdf"))[: scale.files]
        if "graph" in sections:
            found += await graph_growth(files, folder, embedder, scale, say)
        if set(sections) <= {"growth", "graph"}:
            return found
        least = replace(scale, copies=scale.copies[-1:], workers=scale.workers[-1:], ingestions=1)
        wanted = "ingestion" in sections
        measures, data = await ingestion(files, folder, embedder, scale if wanted else least, say)
        found += measures if wanted else []
    finally:
        embedder.close()
    questions = _spread([q.text for q in load_questions(folder / "specimens" / "questions.jsonl")], scale.questions)
    if "start" in sections:
        found += await to_thread.run_sync(lambda: startup(data, questions, scale, say, COLLECTION=COLLECTION))
    if {"service", "lag"} & set(sections):
        settings = Settings(data_dir=data, collection=COLLECTION, parse_timeout_s=TIMEOUT_S, **_ALONE)
        async with open_ports(settings, uploads=True) as ports:
            if "service" in sections:
                found += await service_times(ports, questions, scale, say)
            if "lag" in sections:
                found += await loop_lag(ports, copied(files, folder / "uploads", 1), scale, say)
    return found


def _spread(texts: Sequence[str], number: int) -> list[str]:
    """So many of them, evenly spread over all, so that every class of question is there."""
    number = min(number, len(texts))
    return [texts[i * len(texts) // number] for i in range(number)]
