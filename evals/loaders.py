"""Our reading of PDFs beside other loaders: the same files in one run, each loader in a process of its own."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.errors import UsageError
from evals.loading import LOADERS
from evals.reports.tables import markdown

__all__ = ["LOADERS", "Loaded", "run", "table"]

_ROOT = Path(__file__).parents[1]
_OURS = ("sextant", "sextant-whole")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one loader made of all files."""

    loader: str
    pages: int
    failed: int
    """Files."""
    cpu_s: float
    """Of its process, which other processes cannot change much."""
    wall_s: float
    rows: int
    """Lines that begin with words and end with two numbers or more."""
    numbers: int


async def run(filings: Sequence[Path], python: str, names: Sequence[str]) -> tuple[list[Loaded], list[str]]:
    """One after the other, and the loaders that `python` does not have. Raises UsageError where there is no PDF."""
    files = sorted(str(p) for path in filings for p in (path.glob("*.pdf") if path.is_dir() else [path]))
    if not files:
        raise UsageError("no PDF there")
    if strange := [name for name in names if name not in LOADERS]:
        raise UsageError(f"no loader {strange[0]!r}; there are {', '.join(LOADERS)}")
    found, missing = [], []
    for name in names:
        measured = await _measured(sys.executable if name in _OURS else python, name, files)
        if "missing" in measured:
            missing.append(f"{name} ({measured['missing']} is not installed for {python})")
        else:
            found.append(Loaded(name, **measured))
    return found, missing


async def _measured(python: str, name: str, files: Sequence[str]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        python,
        "-m",
        "evals.loading",
        name,
        *files,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "OMP_THREAD_LIMIT": "1"},
    )
    out, errors = await process.communicate()
    if process.returncode:
        raise UsageError(f"{python} -m evals.loading {name} failed: {errors.decode(errors='replace')[-300:]}")
    measured: dict[str, Any] = json.loads(out)
    return measured


def table(found: Sequence[Loaded]) -> str:
    rows = [
        [
            one.loader,
            str(one.pages),
            str(one.failed),
            f"{one.pages / one.cpu_s:.1f}" if one.cpu_s else "-",
            f"{one.pages / one.wall_s:.1f}" if one.wall_s else "-",
            str(one.rows),
            str(one.numbers),
        ]
        for one in found
    ]
    head = ["loader", "pages", "files failed", "pages/CPU s", "pages/s", "rows on one line", "numbers"]
    return markdown(head, rows)
