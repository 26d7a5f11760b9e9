"""What a run was and found, as one JSON document: reports are rendered from it, and two runs are compared by it."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

from evals.asking import Asking, Outcome
from evals.matrix import MEASURES, Matrix, Scores
from evals.measures import Reply
from evals.questions import Question, stem
from evals.statistics import estimate

Record: TypeAlias = dict[str, Any]
"""`run`, `judge`, `matrix`, `systems`, `questions`: see the functions below."""

SCHEMA = 1
_SNIPPET = 320
"""Characters of a passage that a record keeps."""
SEED = 0
"""Of every bootstrap."""


async def of_run(asking: Asking, path: Path, questions: Sequence[Question]) -> dict[str, Any]:
    """`run`: commit, index, models, architectures with their options' defaults, question file, seed, machine."""
    documents = await asking.subject.documents()
    return {
        "schema": SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["sextant-eval", *sys.argv[1:]]),
        "commit": commit(),
        "version": _version(),
        "index": {
            "fingerprint": asking.version,
            **await asking.subject.index(),
            "documents": len(documents),
            "pages": sum(d["pages"] for d in documents),
            "chunks": sum(d["chunks"] for d in documents),
        },
        "architectures": {
            a["name"]: {o["name"]: o["default"] for o in a["options"]} for a in await asking.subject.architectures()
        },
        "questions": {"file": path.name, "sha256": _sha256(path), "n": len(questions)},
        "k": asking.k,
        "parallel": asking.parallel,
        "seed": SEED,
        "machine": f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


def commit() -> str | None:
    """Of the working directory's repository, with a mark where files differ from it; None outside one."""

    def git(*args: str) -> str:
        return subprocess.run(["git", *args], capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _version() -> str | None:
    try:
        return version("sextant")
    except PackageNotFoundError:
        return None


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def build(
    run: Mapping[str, Any],
    matrix: Matrix,
    scores: Sequence[Scores],
    questions: Sequence[Question],
    judge: Mapping[str, Any] | None = None,
) -> Record:
    return {
        "run": dict(run),
        "judge": dict(judge) if judge else None,
        "matrix": {
            "baseline": matrix.baseline,
            "quality": matrix.quality,
            "kinds": list(matrix.kinds),
            "measures": dict(MEASURES),
            "pareto": sorted(matrix.pareto),
            "warnings": list(matrix.warnings),
            "cells": {
                measure: {name: {kind: asdict(cell) for kind, cell in row.items()} for name, row in by_system.items()}
                for measure, by_system in matrix.cells.items()
            },
        },
        "systems": [_system(matrix, s) for s in scores],
        "questions": [_question(q, scores) for q in questions],
    }


def _system(matrix: Matrix, scores: Scores) -> dict[str, Any]:
    system, bill = scores.system, matrix.bills[scores.system.name]
    return {
        "name": system.name,
        "arch": system.arch,
        "options": dict(system.options),
        "pareto": system.name in matrix.pareto,
        "bill": asdict(bill)
        | {
            "mean_ops": asdict(estimate(bill.ops, SEED)),
            "mean_calls": asdict(estimate(bill.calls, SEED)),
            "p50_ms": bill.latency(0.5),
            "p95_ms": bill.latency(0.95),
        },
    }


def _question(question: Question, scores: Sequence[Scores]) -> dict[str, Any]:
    return {
        "id": question.id,
        "question": question.text,
        "class": question.kind,
        "answer": question.answer,
        "evidence_kind": question.evidence_kind,
        "evidence": [{"document": e.document, "page": e.page, "text": e.text[:_SNIPPET]} for e in question.evidence],
        "results": {
            s.system.name: _result(s.outcomes[question.id], s.values[question.id], s.broken.get(question.id, ()))
            for s in scores
            if question.id in s.outcomes
        },
    }


def _result(outcome: Outcome, values: Mapping[str, float], broken: Sequence[tuple[str, str]]) -> dict[str, Any]:
    cost, reply = outcome.cost, outcome.reply
    return {
        "measures": {name: round(values[name], 4) for name in MEASURES if name in values},
        "ops": cost.get("ops"),
        "ops_by_kind": cost.get("ops_by_kind"),
        "llm_calls": cost.get("llm_calls"),
        "latency_ms": cost.get("latency_ms"),
        "problem": (outcome.problem or {}).get("detail"),
        "broken": [f"{promise}: {detail}" for promise, detail in broken],
        **(_said(reply) if reply is not None else {}),
    }


def _said(reply: Reply) -> dict[str, Any]:
    return {
        "answer": reply["answer"],
        "reason": reply["reason"],
        "citations": [
            {"marker": c["marker"], "document": stem(c["source"]), "page": c["page"], "quote": c["quote"]}
            | {"verified": c["verified"]}
            for c in reply["citations"]
        ],
        "passages": [
            {"rank": p["rank"], "document": stem(p["source"]), "page": p["page"], "section": p["section"]}
            | {"legs": {name: leg["rank"] for name, leg in p["legs"].items()}, "text": p["text"][:_SNIPPET]}
            for p in reply["passages"]
        ],
    }
