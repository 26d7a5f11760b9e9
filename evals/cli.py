"""The evaluation's command line: its arguments and exit statuses. What is slow to import is imported when needed."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from evals.errors import UsageError

if TYPE_CHECKING:
    from evals.asking import Asking
    from evals.questions import Question
    from evals.record import Record
    from evals.subjects import HttpSubject

OK, VIOLATED, USAGE, UNAVAILABLE, OVER_BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130

_EXAMPLES = """examples:
  sextant-eval matrix --questions qa.jsonl --run runs/a             every architecture, every class; writes a report
  sextant-eval matrix --questions qa.jsonl --run runs/a --estimate  what would that cost
  sextant-eval compare runs/a runs/b                                what changed, question by question
  sextant-eval retrieval --questions qa.jsonl                       where naive, BM25 and hybrid rank the evidence
  sextant-eval retrieval --questions qa.jsonl --arch hybrid,hybrid:c=20:bm25_weight=0.5
  sextant-eval citations --questions qa.jsonl --url http://127.0.0.1:8000    are quotes exact, are bills true

The service is run inside this process over DATA_DIR (or --data-dir), unless --url names a running one.
exit status: 0 fine, 1 a promise was broken or questions failed, 2 wrong usage, 3 no service or index, 4 over budget,
130 interrupted.
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
    matrix = commands.add_parser("matrix", parents=[subject], formatter_class=raw, help="architectures by classes")
    matrix.add_argument("--k", metavar="N", type=_positive, default=10, help="passages asked for (default: 10)")
    matrix.add_argument("--baseline", metavar="A", default="naive", help="what others win or damage against (naive)")
    matrix.add_argument("--quality", metavar="M", default="answer", help="measure weighed against price (answer)")
    matrix.add_argument("--estimate", action="store_true", help="ask two questions, say what the rest will cost, stop")
    matrix.add_argument("--max-calls", metavar="N", type=int, help="stop where more LLM calls than this are to come")
    matrix.add_argument("--max-usd", metavar="X", type=float, help="stop where more US dollars than this are to come")
    comparison = commands.add_parser("compare", formatter_class=raw, help="two runs of matrix")
    comparison.add_argument("a", type=Path, metavar="A", help="folder of a run")
    comparison.add_argument("b", type=Path, metavar="B", help="folder of a later run")
    comparison.add_argument("--json", action="store_true", help="print JSON, for programs")
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


async def _matrix(options: argparse.Namespace) -> int:
    from evals import budget, matrix, record
    from evals.subjects import systems

    questions = _questions(options)
    if options.quality not in matrix.MEASURES:
        raise UsageError(f"no measure {options.quality!r}; there are {', '.join(matrix.MEASURES)}")
    options.run = options.run or Path("build") / "runs" / options.questions.stem
    async with _subject(options) as subject:
        chosen, left_out = await systems(subject, options.arch)
        if options.baseline not in {system.name for system in chosen}:
            raise UsageError(f"the baseline {options.baseline!r} is not among the systems; set --baseline or --arch")
        asking = await _asking(options, subject)
        forecasts = await budget.pilot(asking, chosen, questions)
        sys.stderr.write(budget.table(forecasts))
        if reason := budget.exceeded(forecasts, options.max_calls, options.max_usd):
            return _fail(reason, OVER_BUDGET)
        if options.estimate:
            return OK
        await asking.ask(asking.missing(chosen, questions))
        scores = [await matrix.score(asking, system, questions) for system in chosen]
        run_of = await record.of_run(asking, options.questions, questions)
    found = matrix.build(scores, questions, options.baseline, options.quality)
    _publish(record.build(run_of, found, scores, questions), options)
    for reason in left_out:
        sys.stderr.write(f"left out: {reason}\n")
    failed = any(o.reply is None for s in scores for o in s.outcomes.values())
    return VIOLATED if failed or any(several for s in scores for several in s.broken.values()) else OK


def _publish(found: "Record", options: argparse.Namespace) -> None:
    from evals import html, report

    texts = {
        "json": json.dumps(found, ensure_ascii=False),
        "md": report.to_markdown(found),
        "html": html.to_html(found),
    }
    for suffix, text in texts.items():
        (options.run / f"report.{suffix}").write_text(text, encoding="utf-8")
    _write(texts["json" if options.json else "md"])
    sys.stderr.write(f"written: {options.run}/report.html, report.md, report.json\n")


async def _compare(options: argparse.Namespace) -> int:
    from evals import compare

    a, b = _read_record(options.a), _read_record(options.b)
    changes = compare.compare(a, b)
    as_json = [asdict(change) for change in changes]
    _write(json.dumps(as_json, indent=2) if options.json else compare.to_markdown(a, b, changes))
    return OK


def _read_record(folder: Path) -> "Record":
    path = folder / "report.json" if folder.is_dir() else folder
    try:
        found: Record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no report of a run: {error}") from error
    return found


def _write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


_COMMANDS = {"retrieval": _retrieval, "citations": _citations, "matrix": _matrix, "compare": _compare}
