"""What each architecture was worth on each kind of question that the router tells apart, for it to choose by."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from app.question.routing import ROUTES, Kind, route
from app.types import Document, DocumentMeta, Measured
from evals.matrix import Scores
from evals.questions import Question
from evals.reports.tables import markdown

_META = ("title", "source", "company", "cik", "ticker", "form", "fiscal_year", "fiscal_period", "period_end", "filed")


def catalogue(documents: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Records as the router reads them, from the service's list."""
    return [
        Document(d["document_id"], "", DocumentMeta(**{name: d[name] for name in _META}), d["pages"], d["chunks"])
        for d in documents
    ]


def kinds_of(questions: Sequence[Question], documents: Sequence[Document]) -> dict[str, Kind]:
    """By question id."""
    return {question.id: route(question.text, documents).kind for question in questions}


def measured(
    scores: Sequence[Scores], questions: Sequence[Question], kinds: Mapping[str, Kind], quality: str
) -> dict[Kind, list[Measured]]:
    """Architectures asked with their defaults alone, on the questions that all of them were scored on."""
    plain = [one for one in scores if not one.system.options and one.system.arch != "auto"]
    columns = {one.system.arch: one.column(quality, questions) for one in plain}
    found: dict[Kind, list[Measured]] = {}
    for kind in ROUTES:
        ids = [q.id for q in questions if kinds[q.id] == kind and all(q.id in column for column in columns.values())]
        if ids:
            found[kind] = [_measured(one, columns[one.system.arch], ids) for one in plain]
    return found


def _measured(scores: Scores, column: Mapping[str, float], ids: Sequence[str]) -> Measured:
    costs = [scores.outcomes[id_].cost for id_ in ids]
    return Measured(
        scores.system.arch,
        len(ids),
        round(fmean(column[id_] for id_ in ids), 4),
        round(fmean(cost.get("ops", 0) for cost in costs), 1),
        round(fmean(cost.get("llm_calls", 0) for cost in costs), 2),
    )


def to_json(found: Mapping[Kind, Sequence[Measured]]) -> str:
    return json.dumps({kind: [asdict(one) for one in several] for kind, several in found.items()}, indent=1) + "\n"


def regret(scores: Sequence[Scores], questions: Sequence[Question], quality: str) -> str:
    """Markdown: each system's mean, what it gains on the best fixed one, and its distance to the oracle.

    The oracle takes the best fixed architecture question by question; no router can do better than that.
    """
    columns = {one.system.name: one.column(quality, questions) for one in scores}
    ids = [q.id for q in questions if all(q.id in column for column in columns.values())]
    if not ids:
        return ""
    fixed = [name for name in columns if not name.startswith("auto")]
    means = {name: fmean(column[id_] for id_ in ids) for name, column in columns.items()}
    best = max((means[name] for name in fixed), default=0.0)
    oracle = fmean(max((columns[name][id_] for name in fixed), default=0.0) for id_ in ids)
    rows = [[name, f"{mean:.3f}", f"{mean - best:+.3f}", f"{mean - oracle:+.3f}"] for name, mean in means.items()]
    rows.append(["oracle", f"{oracle:.3f}", f"{oracle - best:+.3f}", "+0.000"])
    return markdown([f"{quality}, n = {len(ids)}", "mean", "against the best fixed", "against the oracle"], rows)
