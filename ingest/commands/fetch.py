"""What the command line does with EDGAR: find companies' filings, download them and what is known of each."""

import argparse
import asyncio
import json
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from app.errors import InvalidInput, NotFound, Unavailable
from app.settings import Settings
from ingest.cli import OK, SOME_FAILED, USAGE
from ingest.edgar.client import Edgar, write_whole
from ingest.edgar.filings import EdgarFiling, Wanted, cik_of, filings_of
from ingest.report import Report, write_json

_AT_ONCE = 4
"""Downloads under way; their requests share one pace."""
_STYLES = {"fetched": "green", "kept": "dim", "found": "cyan", "failed": "bold red"}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of one filing."""

    filing: EdgarFiling
    url: str
    path: Path
    outcome: Literal["fetched", "kept", "found", "failed"]
    """`kept` was here already, `found` is a dry run's."""
    size: int | None = None
    """Bytes."""
    detail: str | None = None


async def fetch(options: argparse.Namespace, settings: Settings, report: Report) -> int:
    """Returns the exit status. One company's or filing's failure leaves the others alone."""
    agent, cache, rate = settings.edgar_user_agent, settings.edgar_dir, settings.edgar_requests_per_second
    try:
        edgar = Edgar(agent, cache, per_second=rate)
    except InvalidInput as error:
        report.error(str(error))
        return USAGE
    try:
        counts = await _fetch(edgar, options, settings, report)
    finally:
        await edgar.aclose()
    following = f"sextant-ingest {shlex.quote(str(options.to))}"
    here = counts["fetched"] + counts["kept"]
    if options.json:
        write_json("fetched", {**counts, "next": following if here else None})
    elif here and not options.ingest:
        Console(highlight=False, soft_wrap=True).print(Text(f"\nnext: {following}"))
    return SOME_FAILED if counts["failed"] else OK


async def _fetch(edgar: Edgar, options: argparse.Namespace, settings: Settings, report: Report) -> Counter[str]:
    wanted = Wanted(options.form, options.last, options.since, options.amendments, options.txt)
    counts = Counter({name: 0 for name in _STYLES})
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(filing: EdgarFiling) -> None:
        async with slots:
            fetched = await _one(edgar, settings.edgar_url, filing, options.to, options.dry_run)
        counts[fetched.outcome] += 1
        _tell(fetched, options.json)

    async with asyncio.TaskGroup() as downloads:
        for cik, ticker in [*((None, each) for each in options.ticker), *((each, None) for each in options.cik)]:
            try:
                known = cik or await cik_of(edgar, settings.edgar_url, ticker)
                filings = await filings_of(edgar, settings.edgar_data_url, known, ticker, wanted)
            except (NotFound, Unavailable) as error:
                counts["failed"] += 1
                report.error(str(error))
                continue
            if not filings:
                report.note(f"EDGAR has no such filing of {ticker or cik}: {', '.join(wanted.forms)}")
            for filing in filings:
                downloads.create_task(one(filing))
    return counts


async def _one(edgar: Edgar, edgar_url: str, filing: EdgarFiling, folder: Path, dry_run: bool) -> Fetched:
    """A filing never changes under its accession number, so a file that is here is whole and stays."""
    url, path = filing.url(edgar_url), folder / filing.filename
    if dry_run:
        return Fetched(filing, url, path, "found")
    kept = path.exists()
    try:
        size = path.stat().st_size if kept else await edgar.download(url, path)
    except (NotFound, Unavailable) as error:
        return Fetched(filing, url, path, "failed", detail=str(error))
    sidecar = path.with_name(f"{path.name}.json")
    if not sidecar.exists():  # what is there may have been corrected by hand
        write_whole(sidecar, f"{json.dumps(filing.known(), indent=1)}\n".encode())
    return Fetched(filing, url, path, "kept" if kept else "fetched", size)


def _tell(fetched: Fetched, as_json: bool) -> None:
    filing = fetched.filing
    if as_json:
        known = {"ticker": filing.ticker, "cik": filing.cik, "form": filing.form, "period_end": filing.period_end}
        known |= {"filed": filing.filed, "accession": filing.accession, "url": fetched.url}
        end = {"path": str(fetched.path), "outcome": fetched.outcome, "bytes": fetched.size, "detail": fetched.detail}
        write_json("filing", {**known, **end})
        return
    rest = fetched.detail or f"filed {filing.filed}" + (f", {fetched.size:,} bytes" if fetched.size else "")
    word = (f"{fetched.outcome:<10}", _STYLES[fetched.outcome])
    Console(highlight=False, soft_wrap=True).print(Text.assemble(word, str(fetched.path), (f"  {rest}", "dim")))
