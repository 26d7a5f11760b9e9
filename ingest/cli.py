"""The batch command line: its arguments, its exit statuses. What is slow to import is imported when it is needed."""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.commands.batch import OpenIndex
    from ingest.sidecars import Sidecars

OK, SOME_FAILED, USAGE, UNAVAILABLE, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

_COMMANDS = ("ingest", "list", "delete", "verify", "figures", "graph", "sql", "fetch", "reindex", "rollback", "prune")
_INGEST_EXAMPLES = """examples:
  sextant-ingest filings/                          every .pdf, .htm and EDGAR .txt below a folder
  sextant-ingest 'filings/**/*10-K*.pdf'           a glob, quoted so that the shell leaves it alone
  sextant-ingest https://example.com/a.pdf s3://bucket/filings/
  sextant-ingest --tenant acme --acl board,audit confidential/
  sextant-ingest --dry-run --json filings/ | jq .  what would happen, for programs

exit status: 0 all fine, 1 some files failed (of `sql`: it took too long), 2 wrong usage or nothing found, 3 index
locked or unavailable, 130 interrupted. What is written stays whole whenever it stops; the same command again does the
rest.
"""
_DELETE_EXAMPLES = """examples:
  sextant-ingest delete acme-2023-10k-0a1b2c3d4e
  sextant-ingest delete --source filings/acme-2023-10k.pdf
"""
_FETCH_EXAMPLES = """examples:
  sextant-ingest fetch --ticker KO --form 10-K --last 3
  sextant-ingest fetch --ticker KO,PEP --form 10-K,10-Q --since 2022-01-01 --to filings/
  sextant-ingest fetch --cik 21344 --form 8-K --last 5 --amendments --ingest

EDGAR_USER_AGENT must be a name and an e-mail address: EDGAR demands to know who asks. What is here is not fetched
again; a run that is stopped and repeated does the rest.
"""
_SQL_EXAMPLES = """examples:
  sextant-ingest sql "SELECT company, period_end, value, unit FROM figures WHERE label LIKE '%total assets'"
  sextant-ingest sql --json "SELECT * FROM figures WHERE company LIKE 'acme%' AND fiscal_year = 2023 AND page = 41"

columns: document_id, title, company, ticker, cik, form, fiscal_year, fiscal_period, filed, statement, label,
column_header, period_end, period_months (0: an instant), value, scaled_value, scale, unit, concept, dimensions, page,
chunk_id, span_start, span_end
"""


def run(arguments: Sequence[str], open_index: "OpenIndex | None" = None) -> int:
    """Returns the exit status; `open_index` stands in for the store and models that the settings name."""
    options = parse_arguments(arguments)
    from ingest.commands import batch as commands

    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    try:
        return asyncio.run(commands.execute(options, open_index or commands.open_index))
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Paths without a command are to be ingested. Exits with status 2 and a message on wrong usage."""
    arguments = list(arguments)
    if not arguments:
        _parser().print_help(sys.stderr)
        sys.exit(USAGE)
    if arguments[0] not in (*_COMMANDS, "-h", "--help"):
        arguments.insert(0, "ingest")
    options = _parser().parse_args(arguments)
    if options.command == "delete" and not any(options.ids) and not options.source:
        _parser().error("delete needs the ids of documents, or --source")
    if options.command == "fetch":
        if not (options.ticker or options.cik):
            _parser().error("fetch needs --ticker or --cik")
        options.last = options.last or (None if options.since else 1)
    return options


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="sextant-ingest",
        description="Put filings into the index. Paths without a command are ingested; `ingest --help` says more.",
        epilog=_INGEST_EXAMPLES,
        formatter_class=raw,
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--collection", metavar="C", help="collection to work on (default: COLLECTION, or filings)")
    common.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    commands = parser.add_subparsers(dest="command", required=True, metavar=f"{{{','.join(_COMMANDS)}}}")
    _ingest(commands.add_parser("ingest", parents=[common], epilog=_INGEST_EXAMPLES, formatter_class=raw, help="add"))
    listing = commands.add_parser("list", parents=[common], help="the documents in the index")
    listing.add_argument("--tenant", metavar="T", help="only this tenant's")
    delete = commands.add_parser(
        "delete",
        parents=[common],
        epilog=_DELETE_EXAMPLES,
        formatter_class=raw,
        help="remove documents and all of theirs",
    )
    delete.add_argument("ids", nargs="*", metavar="ID", help="as `list` shows them")
    delete.add_argument("--source", metavar="URI", help="the file or URL that was ingested")
    delete.add_argument("--tenant", metavar="T", default="default", help="whose --source is meant (default: default)")
    commands.add_parser("verify", parents=[common], help="check that the index is whole; exit status 1 if not")
    commands.add_parser("figures", parents=[common], help="derive figures for an index that was built without them")
    graph = commands.add_parser(
        "graph", parents=[common], help="derive the graph for an index that was built without it"
    )
    graph.add_argument("--dry-run", action="store_true", help="write nothing; say what GRAPH_MODEL would cost")
    _fetch(commands.add_parser("fetch", parents=[common], epilog=_FETCH_EXAMPLES, formatter_class=raw, help="download"))
    _reindex(commands.add_parser("reindex", parents=[common], help="build it anew beside the old, and switch to it"))
    commands.add_parser("rollback", parents=[common], help="go back to what was in use before the last reindex")
    commands.add_parser("prune", parents=[common], help="remove what is kept for a rollback")
    _sql(commands.add_parser("sql", parents=[common], epilog=_SQL_EXAMPLES, formatter_class=raw, help="query figures"))
    return parser


def _fetch(parser: argparse.ArgumentParser) -> None:
    parser.description = "Download filings from EDGAR, each with a file of what EDGAR's index says of it beside it."
    parser.add_argument("--ticker", metavar="A,B", type=_codes, default=(), help="companies by ticker")
    parser.add_argument("--cik", metavar="N,M", type=_ciks, default=(), help="companies by EDGAR's number")
    parser.add_argument(
        "--form", metavar="A,B", type=_codes, default=("10-K",), help="forms (default: 10-K); 10-K405 is among 10-K"
    )
    parser.add_argument(
        "--last", metavar="N", type=_positive, help="newest of each form (default: 1, all with --since)"
    )
    parser.add_argument("--since", metavar="DATE", type=_day, help="filed on this day or later: 2024-01-31")
    parser.add_argument("--amendments", action="store_true", help="10-K/A too where 10-K is asked for")
    parser.add_argument("--to", metavar="DIR", type=Path, default=Path("filings"), help="folder (default: %(default)s)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--html", action="store_true", help="the primary document (default)")
    kind.add_argument("--txt", action="store_true", help="the full submission: EDGAR's header and every document")
    parser.add_argument("--dry-run", action="store_true", help="say what would be fetched")
    parser.add_argument("--ingest", action="store_true", help="ingest the folder at once")


def _reindex(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "The same filings under another chunker or model. Of the embedded index stop the service first, and start it "
        "afterwards; over a Qdrant server it may run on."
    )
    parser.add_argument("--chunker", metavar="S", help="as `ingest` takes it (default: CHUNKER, or structure)")
    parser.add_argument("--embedding-model", metavar="M", help="default: EMBEDDING_MODEL")
    parser.add_argument(
        "--workers", metavar="N", type=_positive, default=_cores(), help="parsing processes (default: %(default)s)"
    )
    parser.add_argument("--allow-missing", action="store_true", help="switch without what cannot be read again")
    parser.add_argument("--drop-old", action="store_true", help="keep nothing for a rollback")
    parser.add_argument("--dry-run", action="store_true", help="say what cannot be read again, build nothing")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def _sql(parser: argparse.ArgumentParser) -> None:
    parser.description = "One SELECT over the view `figures`: a row for each number in a filing's tables."
    parser.add_argument("statement", metavar="SELECT", help="in SQLite's dialect; comparisons of text ignore case")
    parser.add_argument("--tenant", metavar="T", default="default", help="whose figures (default: default)")
    parser.add_argument(
        "--groups", metavar="A,B", type=_names, default=("public",), help="to read as a member of (default: public)"
    )
    parser.add_argument("--limit", metavar="N", type=_positive, default=100, help="rows (default: %(default)s)")
    parser.add_argument(
        "--timeout-s", metavar="S", type=_seconds, default=10.0, help="to run it in (default: %(default)s)"
    )


def _ingest(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ingest filings from folders, globs and URLs: PDF, HTML, EDGAR's full-submission text files."
    parser.add_argument("paths", nargs="+", metavar="PATH|URL", help="folder, file, glob, or URL that fsspec knows")
    parser.add_argument("--tenant", metavar="T", type=_name, default="default", help="owner (default: default)")
    parser.add_argument(
        "--acl", metavar="A,B", type=_names, help="groups who may read (default: as before, public if new)"
    )
    parser.add_argument(
        "--workers", metavar="N", type=_positive, default=_cores(), help="parsing processes (default: %(default)s)"
    )
    parser.add_argument(
        "--timeout-s", metavar="S", type=_seconds, help="to parse one file in (default: 60, and 3 more for every MiB)"
    )
    parser.add_argument(
        "--max-bytes", metavar="N", type=_positive, default=512 << 20, help="largest file (default: 512 MiB)"
    )
    parser.add_argument(
        "--max-pages", metavar="N", type=_positive, default=5000, help="longest file (default: %(default)s)"
    )
    parser.add_argument(
        "--chunker", metavar="S", help="how they are cut, as structure:max_tokens=256 (default: CHUNKER, or structure)"
    )
    parser.add_argument(
        "--metadata", metavar="FILE", type=_sidecars, help="a table of files and what is known of them, CSV or JSON"
    )
    parser.add_argument(
        "--ocr",
        choices=("auto", "off", "force"),
        help="read as pictures the pages whose text is missing or garbled, none, or all (default: OCR, or auto)",
    )
    parser.add_argument("--dry-run", action="store_true", help="parse and report, write nothing")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    parser.add_argument("--metrics-file", metavar="PATH", help="write counters for Prometheus' textfile collector")


def _cores() -> int:
    """All but one, for the model."""
    return min(8, max(1, len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def _sidecars(text: str) -> "Sidecars":
    from app.errors import DocumentError
    from ingest.sidecars import Sidecars

    try:
        return Sidecars(Path(text))
    except DocumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2024-01-31") from None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _codes(text: str) -> tuple[str, ...]:
    """Tickers or forms, in the order given."""
    codes = tuple(dict.fromkeys(code.strip().upper() for code in text.split(",") if code.strip()))
    if wrong := [code for code in codes if not re.fullmatch(r"[A-Z0-9][A-Z0-9. -]{0,19}", code)]:
        raise argparse.ArgumentTypeError(f"{wrong[0]} is no ticker or form")
    return codes


def _ciks(text: str) -> tuple[str, ...]:
    """Ten digits each."""
    codes = _codes(text)
    if wrong := [code for code in codes if not re.fullmatch("[0-9]{1,10}", code)]:
        raise argparse.ArgumentTypeError(f"{wrong[0]} is not a number of up to ten digits")
    return tuple(code.zfill(10) for code in codes)


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError("a name is needed")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))
    if not names or not text.isprintable():
        raise argparse.ArgumentTypeError("at least one group is needed")
    return names
