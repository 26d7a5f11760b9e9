"""`sextant-eval study`: measures every seed, judges the statements, writes and prints the report."""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from evals.errors import UsageError
from evals.reports.record import commit
from evals.study import filings, measure, report


async def study_command(options: argparse.Namespace) -> int:
    """0 whether or not a statement holds: that is what is found out here."""
    record = _record(options.filings) if options.filings else None
    began = time.perf_counter()
    processes = options.parallel or os.cpu_count() or 1
    seeds = await anyio.to_thread.run_sync(measure.measure_all, options.seeds, processes, options.queries)
    study = report.build(
        seeds,
        {
            "queries": options.queries,
            "command": " ".join(["sextant-eval", *sys.argv[1:]]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "seconds": round(time.perf_counter() - began),
        },
    )
    if record is not None:
        study["filings"] = filings.judged(record)
    options.out.mkdir(parents=True, exist_ok=True)
    texts = {
        "json": json.dumps(study, ensure_ascii=False, indent=1),
        "md": report.to_markdown(study),
        "html": report.to_html(study),
    }
    for suffix, text in texts.items():
        (options.out / f"study.{suffix}").write_text(text, encoding="utf-8")
    sys.stderr.write(f"written: {options.out}/study.html, study.md, study.json\n")
    sys.stdout.write(texts["json" if options.json else "md"].rstrip() + "\n")
    return 0


def _record(folder: Path) -> dict[str, Any]:
    path = folder / "report.json" if folder.is_dir() else folder
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if "matrix" not in found:
        raise UsageError(f"{path} is no report of sextant-eval matrix")
    return found
