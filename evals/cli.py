"""The evaluation's command line: its arguments and exit statuses. What is slow to import is imported when needed."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from evals.errors import UsageError

if TYPE_CHECKING:
    from evals.asking import Asking
    from evals.questions import Question
    from evals.subjects import HttpSubject

OK, VIOLATED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130

_EXAMPLES = """examples:
  sextant-eval retrieval --questions qa.jsonl                       where naive, BM25 and hybrid rank the evidence
  sextant-eval retrieval --questions qa.jsonl --arch hybrid,hybrid:c=20:bm25_weight=0.5
  sextant-eval citations --questions qa.jsonl --url http://127.0.0.1:8000    are quotes exact, are bills true

The service is run inside this process over DATA_DIR (or --data-dir), unless --url names a running one.
exit status: 0 fine, 1 a promise was broken or questions failed, 2 wrong usage, 3 no service or index, 130 interrupted.
"""


def run(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    options = _parser().parse_args(list(arguments) or ["--help"])
    from app.errors import SextantError
    from evals.errors import SubjectError

    try:
        return asyncio.run(_COMMANDS[options.command](options))
    except UsageError as error:
        return _fail(str(error), USAGE)
    except (SextantError, SubjectError) as error:
        return _fail(str(error), UNAVAILABLE)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"sextant-eval: {message}\n")
    return status


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="sextant-eval",
        description="Measure architectures on questions with known evidence.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    subject = argparse.ArgumentParser(add_help=False)
    subject.add_argument("--questions", metavar="FILE", type=Path, required=True, help="JSONL file or BEIR folder")
    subject.add_argument("--arch", metavar="A,B", default="all", help="comma-separated (default: all that can run)")
    subject.add_argument("--url", metavar="URL", help="a running service; its API key is read from SEXTANT_API_KEY")
    subject.add_argument("--data-dir", metavar="DIR", type=Path, help="index for the service in this process")
    subject.add_argument("--class", dest="kinds", metavar="C,D", help="only questions of these classes")
    subject.add_argument("--limit", metavar="N", type=_positive, help="only the first N questions")
    subject.add_argument("--parallel", metavar="N", type=_positive, default=4, help="questions at once (default: 4)")
    subject.add_argument("--run", metavar="DIR", type=Path, help="keep replies here and take those already kept")
    subject.add_argument("--json", action="store_true", help="print JSON, for programs")
    commands = parser.add_subparsers(dest="command", required=True)
    retrieval = commands.add_parser(
        "retrieval", parents=[subject], formatter_class=raw, help="where evidence is ranked"
    )
    retrieval.add_argument("--k", metavar="N", type=_positive, default=100, help="passages asked for (default: 100)")
    retrieval.add_argument("--weak", action="store_true", help="weak evidence too, at document level")
    citations = commands.add_parser("citations", parents=[subject], formatter_class=raw, help="are promises kept")
    citations.add_argument("--k", metavar="N", type=_positive, default=10, help="passages asked for (default: 10)")
    citations.add_argument(
        "--filter-probes", metavar="N", type=int, default=10, help="questions asked again with a filter (default: 10)"
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


def _subject(options: argparse.Namespace, *, mute: bool = False) -> "AbstractAsyncContextManager[HttpSubject]":
    from evals import subjects

    if options.url:
        return subjects.remote(options.url, os.environ.get("SEXTANT_API_KEY"))
    return subjects.local(options.data_dir, mute=mute)


def _questions(options: argparse.Namespace) -> "list[Question]":
    from evals.questions import load_questions

    found = load_questions(options.questions)
    if options.kinds:
        kinds = set(options.kinds.split(","))
        if strange := kinds - {q.kind for q in found}:
            raise UsageError(f"no question of class {', '.join(sorted(strange))} in {options.questions}")
        found = [q for q in found if q.kind in kinds]
    return found[: options.limit]


async def _asking(options: argparse.Namespace, subject: "HttpSubject") -> "Asking":
    from evals.asking import Asking, ReplyLog
    from evals.subjects import fingerprint

    version = fingerprint(await subject.index(), await subject.documents())
    if options.run:
        options.run.mkdir(parents=True, exist_ok=True)
    log = ReplyLog.open(options.run / "replies.jsonl") if options.run else ReplyLog()
    return Asking(subject, version, options.k, options.parallel, log)


async def _retrieval(options: argparse.Namespace) -> int:
    from evals import retrieval
    from evals.subjects import systems

    questions = [q for q in _questions(options) if q.documents and (q.reliable or options.weak)]
    if not questions:
        raise UsageError("no question has reliable evidence; --weak takes weak evidence at document level")
    async with _subject(options, mute=True) as subject:
        chosen, left_out = await systems(subject, options.arch, bm25=True)
        found = await retrieval.run(await _asking(options, subject), chosen, questions)
    _write(json.dumps(retrieval.as_json(found), indent=2) if options.json else retrieval.table(found))
    for reason in left_out:
        sys.stderr.write(f"left out: {reason}\n")
    failed = {name: count for name, count in found["problems"].items() if count}
    return _fail(f"questions without a reply: {failed}", VIOLATED) if failed else OK


async def _citations(options: argparse.Namespace) -> int:
    from evals import conformance
    from evals.subjects import systems

    questions = _questions(options)
    async with _subject(options) as subject:
        chosen, left_out = await systems(subject, options.arch)
        asking = await _asking(options, subject)
        rows, violations = await conformance.run(asking, chosen, questions, options.filter_probes)
    as_json = conformance.as_json(rows, violations)
    _write(json.dumps(as_json, indent=2) if options.json else conformance.table(rows, violations))
    for reason in left_out:
        sys.stderr.write(f"left out: {reason}\n")
    return VIOLATED if violations else OK


def _write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


_COMMANDS = {"retrieval": _retrieval, "citations": _citations}
