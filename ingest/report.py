"""What a batch tells its caller: lines and a bar for people, JSON lines for programs, counters for Prometheus."""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from app.types import Document
from ingest.captioning import CaptionCost
from ingest.indexing import Tally
from ingest.model_calls import CallCost, summed
from ingest.pipeline import OUTCOMES, Outcome
from ingest.relating import RelatingCost
from ingest.situating import SituatingCost

_STYLES = {"created": "green", "replaced": "cyan", "unchanged": "dim", "failed": "bold red", "removed": "yellow"}


@dataclass(slots=True)
class Summary:
    """A batch in figures; pages and chunks are those newly written."""

    created: int = 0
    unchanged: int = 0
    replaced: int = 0
    failed: int = 0
    pages: int = 0
    chunks: int = 0
    seconds: float = 0.0
    pages_per_second: float = 0.0
    embedding_seconds: float = 0.0
    embedding_share: float = 0.0
    """Of the batch's wall time, that the embedding model was at work."""


@dataclass(slots=True)
class Outcomes:
    """All outcomes of a batch so far."""

    began: float = field(default_factory=time.perf_counter)
    """When the index was open and the models loaded."""
    every: list[Outcome] = field(default_factory=list)

    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.every if outcome.outcome == "failed"]

    def relating(self) -> list[RelatingCost]:
        """What a model read, or would read, of each filing."""
        return [outcome.relating for outcome in self.every if outcome.relating]

    def situating(self) -> list[SituatingCost]:
        """What a model said of the chunks of each filing, or would."""
        return [outcome.situating for outcome in self.every if outcome.situating]

    def summary(self, tally: Tally) -> Summary:
        counts = Counter(outcome.outcome for outcome in self.every)
        written = [o.document for o in self.every if o.document and o.outcome in ("created", "replaced")]
        seconds = time.perf_counter() - self.began
        pages, embedding = sum(document.pages for document in written), tally.seconds["embed"]
        return Summary(
            **{name: counts[name] for name in OUTCOMES},
            pages=pages,
            chunks=sum(document.chunks for document in written),
            seconds=round(seconds, 3),
            pages_per_second=round(pages / seconds, 2) if seconds else 0.0,
            embedding_seconds=round(embedding, 3),
            embedding_share=round(embedding / seconds, 4) if seconds else 0.0,
        )


class JsonReport:
    """One object a line on standard output; `type` is file, removed, error or summary."""

    def __init__(self) -> None:
        self.outcomes = Outcomes()

    def begin(self, place: str, files: int, tally: Tally) -> None:
        self.outcomes.began = time.perf_counter()

    def outcome(self, outcome: Outcome) -> None:
        self.outcomes.every.append(outcome)
        document = outcome.document
        line: dict[str, Any] = {"source": outcome.source.uri, "outcome": outcome.outcome}
        if document:
            line |= {"document_id": document.id, "pages": document.pages, "chunks": document.chunks}
            line |= {"empty_pages": list(document.empty_pages), "ocr_pages": list(document.ocr_pages)}
            line |= {"repaired": document.repaired}
        if graph := outcome.graph:
            line |= {"entities": graph.entities, "relations": graph.relations, "graph_seconds": round(graph.seconds, 3)}
        if captions := outcome.captions:
            line |= {"captions": as_json(captions)}
        if outcome.relating:
            line |= {"model_relations": as_json(outcome.relating)}
        if outcome.situating:
            line |= {"situations": as_json(outcome.situating)}
        if outcome.reason:
            line |= {"reason": outcome.reason, "detail": outcome.detail}
        write_json("file", line)

    def removed(self, document: Document) -> None:
        write_json("removed", {"document_id": document.id, "source": document.meta.source})

    def note(self, text: str) -> None:
        write_json("note", {"detail": text})

    def error(self, text: str) -> None:
        write_json("error", {"detail": text})

    def end(self, tally: Tally) -> None:
        if costs := self.outcomes.relating():
            write_json("model_relations", as_json(summed(costs)))
        if situating := self.outcomes.situating():
            write_json("situations", as_json(summed(situating)))
        write_json("summary", asdict(self.outcomes.summary(tally)))


class TextReport:
    """A line for each file and, on a terminal, a progress bar below them."""

    def __init__(self, *, progress: bool) -> None:
        self.outcomes = Outcomes()
        self._console = Console(highlight=False, soft_wrap=True)
        columns = (
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("files"),
            _Rate(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(
            *columns, console=self._console, transient=True, disable=not (progress and self._console.is_terminal)
        )

    def begin(self, place: str, files: int, tally: Tally) -> None:
        self.outcomes.began = time.perf_counter()
        self._console.print(Text(f"Index: {place}"))
        self._progress.add_task("ingest", total=files, tally=tally)
        self._progress.start()

    def outcome(self, outcome: Outcome) -> None:
        self.outcomes.every.append(outcome)
        self._line(outcome.outcome, outcome.source.shown, described(outcome))
        for task in self._progress.task_ids:
            self._progress.advance(task)

    def removed(self, document: Document) -> None:
        self._line(
            "removed", document.meta.source, "left unfinished by an earlier run, and its file was not in this one"
        )

    def _line(self, word: str, what: str, rest: str) -> None:
        self._console.print(Text.assemble((f"{word:<10}", _STYLES[word]), what, (f"  {rest}", "dim")))

    def note(self, text: str) -> None:
        self._console.print(Text(text, "yellow"))

    def error(self, text: str) -> None:
        self._progress.stop()
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"sextant-ingest: {text}"))

    def end(self, tally: Tally) -> None:
        self._progress.stop()
        summary = self.outcomes.summary(tally)
        failures = self.outcomes.failures()
        if len(costs := self.outcomes.relating()) > 1:
            self._console.print(Text(f"\nin all: {related(summed(costs))}"))
        if len(situating := self.outcomes.situating()) > 1:
            self._console.print(Text(f"\nin all: {situated(summed(situating))}"))
        if failures and len(self.outcomes.every) > len(failures):
            self._console.print(Text(f"\n{len(failures)} failed:", "bold red"))
            for outcome in failures:
                self._console.print(Text(f"  {outcome.source.shown}: {outcome.reason}: {outcome.detail}"))
        counts = (
            ", ".join(f"{getattr(summary, name)} {name}" for name in OUTCOMES if getattr(summary, name))
            or "nothing done"
        )
        self._console.print(
            Text(
                f"\n{counts}; {summary.pages:,} pages, {summary.chunks:,} chunks in {summary.seconds:.1f} s "
                f"({summary.pages_per_second:.1f} pages/s, embedding {summary.embedding_share:.0%} of the time)"
            )
        )


Report = JsonReport | TextReport


class _Rate(TextColumn):
    """Pages parsed per second and chunks written, from the task's tally."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Text:
        tally: Tally = task.fields["tally"]
        elapsed = task.elapsed or 0.0
        rate = tally.pages / elapsed if elapsed else 0.0
        read, to_read = tally.ocr_pages
        pictures = f", {read:,} of {to_read:,} scans" if to_read else ""
        return Text(f"{tally.pages:,} pages ({rate:.1f}/s){pictures}, {tally.chunks:,} chunks")


def described(outcome: Outcome) -> str:
    """Pages, chunks and warnings, or why it failed."""
    if outcome.document is None:
        return f"{outcome.reason}: {outcome.detail}"
    document = outcome.document
    parts = [f"{document.pages} pages, {document.chunks} chunks", document.id]
    if graph := outcome.graph:
        parts.append(f"{graph.entities} entities and {graph.relations} relations in {graph.seconds:.1f} s")
    if captions := outcome.captions:
        parts.append(_captioned(captions))
    if outcome.relating:
        parts.append(related(outcome.relating))
    if outcome.situating:
        parts.append(situated(outcome.situating))
    if document.repaired:
        parts.append("repaired, text may be missing")
    if document.ocr_pages:
        parts.append(f"OCR on {len(document.ocr_pages)} page{'s' if len(document.ocr_pages) > 1 else ''}")
    if document.empty_pages:
        numbers = ", ".join(map(str, document.empty_pages[:10])) + (", ..." if len(document.empty_pages) > 10 else "")
        parts.append(f"no text on page{'s' if len(document.empty_pages) > 1 else ''} {numbers}")
    return " · ".join(parts)


def as_json(cost: CallCost) -> dict[str, Any]:
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(cost).items()}
    return {**rounded, "usd": None if cost.usd is None else str(cost.usd)}


def _priced(cost: CallCost) -> str:
    usd = "price unknown" if cost.usd is None else f"{cost.usd:.4f} USD"
    return f"{cost.input_tokens:,} tokens read and {cost.output_tokens:,} written, {usd}"


def _called(cost: CallCost) -> str:
    return f"{cost.llm_calls} calls" + (f", {cost.failed} failed" if cost.failed else "")


def situated(cost: SituatingCost) -> str:
    """What a model said, or would be asked, and at which price."""
    if cost.estimated:
        return f"a model would situate {cost.passages} chunks by {_called(cost)}: at most {_priced(cost)}"
    return f"{cost.sentences} of {cost.passages} chunks situated by {_called(cost)}, {_priced(cost)}"


def related(cost: RelatingCost) -> str:
    """What a model added, or would read, and at which price."""
    if cost.estimated:
        return f"a model would read {cost.passages} passages by {_called(cost)}: at most {_priced(cost)}"
    found = f"{cost.relations} relations by a model, {cost.dropped} not borne out by their page"
    return f"{found}, {_called(cost)}, {_priced(cost)}"


def _captioned(cost: CaptionCost) -> str:
    """What captions came of how many pictures, and at which price."""
    return f"{cost.captions} of {cost.pictures} pictures put into words by {_called(cost)}, {_priced(cost)}"


def write_json(kind: str, fields: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps({"type": kind, **fields}, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def write_metrics(path: Path, outcomes: Outcomes, tally: Tally) -> None:
    """The batch's counters in Prometheus' text format, replaced in one step. Raises OSError."""
    from prometheus_client import CollectorRegistry, Counter, write_to_textfile

    registry = CollectorRegistry()
    documents = Counter("rag_ingest_documents", "Files by outcome.", ["outcome"], registry=registry)
    failures = Counter("rag_ingest_failures", "Files that failed, by reason.", ["reason"], registry=registry)
    pages = Counter("rag_ingest_pages", "Pages parsed.", registry=registry)
    seconds = Counter("rag_ingest_stage_seconds", "Busy time by stage.", ["stage"], registry=registry)
    for name in OUTCOMES:
        documents.labels(name)
    for outcome in outcomes.every:
        documents.labels(outcome.outcome).inc()
        if outcome.reason:
            failures.labels(outcome.reason).inc()
    calls = Counter("rag_ingest_graph_llm_calls", "Calls to a model that reads relations.", registry=registry)
    tokens = Counter("rag_ingest_graph_tokens", "Tokens it read and wrote.", ["direction"], registry=registry)
    for cost in outcomes.relating():
        if not cost.estimated:
            calls.inc(cost.llm_calls)
            tokens.labels("input").inc(cost.input_tokens)
            tokens.labels("output").inc(cost.output_tokens)
    pages.inc(tally.pages)
    for stage, busy in tally.seconds.items():
        seconds.labels(stage).inc(busy)
    write_to_textfile(str(path), registry)
