"""Write the specimen filings and their questions into a folder."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from evals.specimens.documents import pdf
from evals.specimens.questions import Question, build, page_texts
from evals.specimens.reports import Report, companies, reports


def write_specimens(out: Path, *, show: bool = False) -> dict[str, object]:
    """Write `out`/filings/*.pdf and `out`/questions.jsonl, the same bytes on every run; returns what was written.

    `show` names each filing on stderr as it is written.
    """
    filings = out / "filings"
    filings.mkdir(parents=True, exist_ok=True)
    written: list[Report] = []
    pages: dict[str, list[str]] = {}
    for variant, company in enumerate(companies()):
        for report in reports(company):
            data = pdf(report, variant)
            (filings / f"{report.stem}.pdf").write_bytes(data)
            pages[report.stem] = page_texts(data)
            written.append(report)
            if show:
                sys.stderr.write(f"{len(written):3}  {report.stem}.pdf  {len(pages[report.stem])} pages\n")
    questions = build(written, pages)
    lines = [json.dumps(question, ensure_ascii=False) + "\n" for question in questions]
    (out / "questions.jsonl").write_text("".join(lines), encoding="utf-8")
    return _summary(out, written, pages, questions)


def _summary(
    out: Path, written: list[Report], pages: dict[str, list[str]], questions: list[Question]
) -> dict[str, object]:
    return {
        "out": str(out),
        "filings": len(written),
        "companies": len({report.company["slug"] for report in written}),
        "pages": sum(map(len, pages.values())),
        "questions": len(questions),
        "classes": dict(Counter(question["class"] for question in questions)),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m evals.specimens",
        description="Write invented 10-K and 10-Q filings as PDFs, with questions whose evidence was found in them.",
        epilog="example: python -m evals.specimens build/specimens && python -m ingest build/specimens/filings",
    )
    parser.add_argument("out", type=Path, help="folder to write; gets filings/*.pdf and questions.jsonl")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON and no progress")
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    try:
        summary = write_specimens(arguments.out, show=not arguments.json)
    except OSError as error:
        sys.stderr.write(f"cannot write to {arguments.out}: {error}\n")
        return 1
    seconds = time.perf_counter() - started
    if arguments.json:
        sys.stdout.write(json.dumps({**summary, "seconds": round(seconds, 2)}) + "\n")
    else:
        sys.stdout.write(
            f"{summary['filings']} filings ({summary['pages']} pages) of {summary['companies']} companies and "
            f"{summary['questions']} questions in {arguments.out}, {seconds:.1f} s\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
