"""Fits to a collection from which residual on the agent follows a passage: by the evidence that its hops find."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import get_args

from app.agent.actions import Actions
from app.agent.controller import Controller
from app.agent.findings import merged
from app.agent.threshold import LEAST_RESIDUAL, Follow
from app.architectures.agentic import Agentic
from app.tools import Ports, Tools
from app.types import Hit, Limits
from app.types import Question as Asked
from evals.asking import progress
from evals.errors import UsageError
from evals.questions import Question, stem
from evals.reports.tables import fraction, markdown

THRESHOLDS = tuple(round(n / 20, 2) for n in range(21))
"""0 to 1; at 1 nothing is followed."""
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Fitted:
    follow: Follow
    questions: int
    """With evidence pages, in which something is followed at a threshold of 0: the others say nothing of it."""
    recall: Mapping[float, float]
    """By threshold, the mean share of the evidence pages among k passages."""

    @property
    def threshold(self) -> float:
        """The middle of the best."""
        best = max(self.recall.values())
        return round(median([t for t, recall in self.recall.items() if recall == best]), 3)


async def fitted(ports: Ports, questions: Sequence[Question], k: int) -> list[Fitted]:
    """Of each way to follow. Raises UsageError where no question leads anywhere."""
    asked = [question for question in questions if question.pages]
    with progress() as bar:
        steps = bar.track(
            [(follow, question) for follow in get_args(Follow) for question in asked], description="asking"
        )
        found = [
            (follow, recalls) for follow, question in steps if (recalls := await _recalls(ports, question, follow, k))
        ]
    if not found:
        raise UsageError("no question with evidence pages leads beyond what it names: there is nothing to fit to")
    return [_fitted(follow, [recalls for own, recalls in found if own == follow]) for follow in get_args(Follow)]


def _fitted(follow: Follow, found: Sequence[Mapping[float, float]]) -> Fitted:
    if not found:
        return Fitted(follow, 0, {LEAST_RESIDUAL: 0.0})
    return Fitted(follow, len(found), {t: round(fmean(each[t] for each in found), 4) for t in THRESHOLDS})


async def _recalls(ports: Ports, question: Question, follow: Follow, k: int) -> dict[float, float]:
    """Empty where nothing is followed whatever the threshold."""
    first, followed = await _evidence(ports, question, follow, k, THRESHOLDS[0])
    if not followed:
        return {}
    found = {THRESHOLDS[0]: _recall(question, first)}
    for threshold in THRESHOLDS[1:]:
        found[threshold] = _recall(question, (await _evidence(ports, question, follow, k, threshold))[0])
    return found


async def _evidence(
    ports: Ports, question: Question, follow: Follow, k: int, threshold: float
) -> tuple[tuple[Hit, ...], bool]:
    """The k passages, and whether one was followed."""
    tools, default = Tools(ports, Limits(timeout_s=_PATIENCE_S)), Agentic()
    controller = Controller(
        Asked(question.text, k),
        await tools.catalogue(),
        tools,
        Actions(tools, default.max_actions, _PATIENCE_S),
        max_parts=1,
        max_hops=default.max_hops,
        follow=follow,
        question_signal=default.question_signal,
        least_lead=default.least_lead,
        least_residual=threshold,
    )
    hits = merged(await controller.evidence(()), k)
    return hits, any(step.name in ("lead", "direction") for step in tools.trace)


def _recall(question: Question, hits: Sequence[Hit]) -> float:
    pages = {(stem(hit.chunk.meta.source), hit.chunk.page) for hit in hits}
    return len(pages & set(question.pages)) / len(question.pages)


def to_json(found: Sequence[Fitted]) -> str:
    """What the service reads beside its index, and how it was found."""
    taken = {each.follow: each.threshold for each in found}
    return (
        json.dumps({"schema": 1, "least_residual": taken, "fitted": [asdict(each) for each in found]}, indent=1) + "\n"
    )


def table(found: Sequence[Fitted]) -> str:
    """Markdown: the evidence found at each threshold, and the one that is taken."""
    rows = [
        [f"{threshold:g}", *(fraction(each.recall[threshold]) if each.questions else "–" for each in found)]
        for threshold in THRESHOLDS
    ]
    taken = ", ".join(f"{each.follow} {each.threshold:g}" for each in found)
    headings = ["least residual", *(f"{each.follow} (n = {each.questions})" for each in found)]
    head = "Share of the evidence pages among the passages, of questions that lead on.\n\n"
    return f"{head}{markdown(headings, rows)}\ntaken: {taken}\n"
