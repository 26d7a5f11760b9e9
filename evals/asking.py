"""Every question to every system, in parallel, each reply kept so that a stopped run goes on where it was."""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evals.errors import SubjectError
from evals.questions import Question
from evals.subjects import Subject, System


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for one question from one system: a reply, or the problem in its place."""

    system: str
    question_id: str
    reply: dict[str, Any] | None
    problem: dict[str, Any] | None
    wall_ms: float
    """As the client saw it, waiting for a free slot left out."""

    @property
    def cost(self) -> Mapping[str, Any]:
        """The bill, of a problem too; empty where nothing answered."""
        found: Mapping[str, Any] = (self.reply or self.problem or {}).get("cost") or {}
        return found

    @property
    def lasting(self) -> bool:
        """Whether asking again would bring the same: a reply, or a question the service refuses (4xx but 429)."""
        status = (self.problem or {}).get("status", 200)
        return status < 500 and status not in (0, 429)


@dataclass(slots=True)
class ReplyLog:
    """Outcomes by key, in memory and, where there is a path, in a JSONL file that grows by a line per outcome."""

    path: Path | None = None
    found: dict[str, Outcome] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> "ReplyLog":
        """A last line cut short by a crash is dropped."""
        log = cls(path)
        if path.exists():
            whole = path.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]
            if len(kept) < len(whole):
                path.write_bytes(kept)
            for line in kept.splitlines():
                row = json.loads(line)
                key = row.pop("key")
                log.found[key] = Outcome(**row)
        return log

    def put(self, key: str, outcome: Outcome) -> None:
        """A problem that is not the question's own is not written: the next run asks again."""
        self.found[key] = outcome
        if self.path is not None and outcome.lasting:
            row = {"key": key} | {name: getattr(outcome, name) for name in Outcome.__slots__}
            with self.path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class Asking:
    """How a run asks: the same question of the same index under the same settings has the same key."""

    subject: Subject
    version: str
    """Fingerprint of the index, its models, the generator and the code."""
    k: int
    parallel: int = 4
    log: ReplyLog = field(default_factory=ReplyLog)

    def key(self, system: System, question: Question) -> str:
        asked = [self.version, system.arch, dict(system.options), self.k, dict(question.filters), question.text]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]

    def missing(self, systems: Sequence[System], questions: Sequence[Question]) -> list[tuple[System, Question]]:
        """Question by question, so that a run cut short has every system on the same ones."""
        return [(s, q) for q in questions for s in systems if self.key(s, q) not in self.log.found]

    def outcomes(self, system: System, questions: Sequence[Question]) -> dict[str, Outcome]:
        """By question id, of those asked."""
        keys = {q.id: self.key(system, q) for q in questions}
        return {id_: self.log.found[key] for id_, key in keys.items() if key in self.log.found}

    async def ask(self, pairs: Iterable[tuple[System, Question]], label: str = "asking") -> None:
        pairs = list(pairs)
        slots = asyncio.Semaphore(self.parallel)
        with progress() as bar:
            task = bar.add_task(label, total=len(pairs))

            async def one(system: System, question: Question) -> None:
                async with slots:
                    outcome = await self._ask(system, question)
                self.log.put(self.key(system, question), outcome)
                bar.advance(task)

            async with asyncio.TaskGroup() as group:
                for system, question in pairs:
                    group.create_task(one(system, question))

    async def _ask(self, system: System, question: Question) -> Outcome:
        begun = time.perf_counter()
        reply = problem = None
        try:
            reply = await self.subject.ask(
                system.arch, question.text, k=self.k, filters=question.filters, options=system.options
            )
        except SubjectError as error:
            problem = error.problem
        return Outcome(system.name, question.id, reply, problem, round((time.perf_counter() - begun) * 1000, 3))


def progress() -> Progress:
    """On standard error; silent where that is no terminal."""
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)
