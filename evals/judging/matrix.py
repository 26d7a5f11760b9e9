"""The judge of a matrix: opened by its name, forecast, checked against labels, then put to every reply."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.errors import SextantError
from app.opening import open_embedder
from app.settings import Settings
from evals.asking import Asking, progress
from evals.budget import Forecast
from evals.judging.agreement import Label, agreement, load_labels, sentence
from evals.judging.judge import RuleJudge
from evals.judging.model import CALLS_PER_REPLY, JudgeSettings, ModelJudge, forecast_tokens, open_model_judge
from evals.judging.ragas import Ragas, passages_of
from evals.matrix import Scores
from evals.questions import Question
from evals.subjects import System

_SECONDS_PER_CALL = 2.0
"""Assumed by the forecast."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge at work in one run."""

    ragas: Ragas
    labels: Sequence[Label]
    source: str
    """The labels' file name."""
    settings: JudgeSettings
    parallel: int = 4

    @property
    def model(self) -> ModelJudge | None:
        return self.ragas.judge if isinstance(self.ragas.judge, ModelJudge) else None

    def forecast(self, asking: Asking, systems: Sequence[System], questions: Sequence[Question]) -> list[Forecast]:
        """At most, judged by the replies known so far; nothing for a judge that costs nothing."""
        if self.model is None:
            return []
        outcomes = [(q, asking.outcomes(s, [q]).get(q.id)) for s in systems for q in questions]
        known = [(q, o.reply) for q, o in outcomes if o and o.reply]
        depth = self.ragas.depth
        sizes = [forecast_tokens(passages_of(r, depth), q.text, q.answer, r["answer"]) for q, r in known] or [(0, 0)]
        replies = len(systems) * len(questions)
        read, written = (sum(column) / len(sizes) * replies for column in zip(*sizes, strict=True))
        labelled = [forecast_tokens([label.passage], "", "", label.claim) for label in self.labels]
        read, written = read + sum(r for r, _ in labelled) / CALLS_PER_REPLY, written + sum(w for _, w in labelled) / 4
        calls = replies * CALLS_PER_REPLY + len(self.labels)
        name, usd = f"judge {self.ragas.judge.name}", self.settings.usd(read, written)
        seconds = calls * _SECONDS_PER_CALL / self.settings.concurrency
        return [Forecast(name, replies, calls, read + written, usd, seconds)]

    async def agreements(self) -> list[dict[str, Any]]:
        """With each part of the labels; told on standard error."""
        parts = dict.fromkeys(label.part for label in self.labels)
        found = []
        for part in parts:
            own = [label for label in self.labels if label.part == part]
            found.append(asdict(await agreement(self.ragas.judge, own, f"{self.source} {part}".strip())))
            sys.stderr.write(sentence(found[-1]) + "\n")
        return found

    async def judge(
        self, scores: Sequence[Scores], questions: Sequence[Question]
    ) -> tuple[list[Scores], dict[str, Any]]:
        """The scores with the judge's measures, and what a run's record keeps of the judge."""
        agreements, unjudged, found = await self.agreements(), list[str](), []
        for one in scores:
            judged, failed = await self._judged(one, questions)
            found.append(judged)
            unjudged += failed
        spent = asdict(self.model.spent) if self.model else None
        if spent is not None:
            spent["usd"] = self.settings.usd(spent["input_tokens"], spent["output_tokens"])
        name = self.ragas.judge.name
        return found, {"name": name, "agreements": agreements, "spent": spent, "unjudged": unjudged}

    async def _judged(self, scores: Scores, questions: Sequence[Question]) -> tuple[Scores, list[str]]:
        """The scores with the judge's measures, and why any reply went without."""
        replies = {q.id: o.reply for q in questions if (o := scores.outcomes.get(q.id)) and o.reply}
        slots, failed = asyncio.Semaphore(self.parallel), list[str]()
        values: dict[str, Mapping[str, float]] = dict(scores.values)
        with progress() as bar:
            task = bar.add_task(f"judging {scores.system.name}", total=len(replies))

            async def one(question: Question) -> None:
                async with slots:
                    try:
                        found = await self.ragas.measures(question, replies[question.id])
                        values[question.id] = {**values[question.id], **found}
                    except SextantError as error:
                        failed.append(f"{question.id}: {error}")
                bar.advance(task)

            async with asyncio.TaskGroup() as group:
                for question in (q for q in questions if q.id in replies):
                    group.create_task(one(question))
        return replace(scores, values=values), failed


@asynccontextmanager
async def open_bench(name: str, labels: Path | None, run: Path, parallel: int) -> AsyncIterator[Bench | None]:
    """The judge named, deterministic or openai; None for `none`. Raises UsageError, GeneratorUnavailable."""
    if name == "none":
        yield None
        return
    found, source, settings = load_labels(labels), labels.name if labels else "the product", JudgeSettings()
    embedder = await open_embedder(Settings())
    try:
        if name == "deterministic":
            yield Bench(Ragas(RuleJudge(embedder), embedder), found, source, settings, parallel)
            return
        async with open_model_judge(settings, run / "judge.jsonl") as judge:
            yield Bench(Ragas(judge, embedder), found, source, settings, settings.concurrency)
    finally:
        embedder.close()


def told(judge: Mapping[str, Any]) -> list[str]:
    """Of a record's judge, the lines that a reader needs before its scores."""
    lines = [sentence(found) for found in judge["agreements"]]
    if spent := judge["spent"]:
        usd = "an unknown price" if spent["usd"] is None else f"US$ {spent['usd']:.2f}"
        tokens = spent["input_tokens"] + spent["output_tokens"]
        lines.append(f"It took {spent['calls']} calls, {tokens:,} tokens, {usd}; {spent['kept']} verdicts were kept.")
    if judge["unjudged"]:
        lines.append(f"{len(judge['unjudged'])} replies went unjudged, such as {judge['unjudged'][0]}.")
    return lines
