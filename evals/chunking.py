"""Chunk strategies on the same filings and questions: an index for each, what is found in it and what is read."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.adapters.bm25 import Bm25Encoder
from app.adapters.extractive import ExtractiveGenerator
from app.evidence.quantities import matched, quantities
from app.opening import index_stamp, open_store
from app.ports import Embedder
from app.settings import Settings
from app.tools import Ports
from app.types import FloatArray
from evals import ablation
from evals.ablation import Effect
from evals.asking import Asking, ReplyLog
from evals.errors import UsageError
from evals.measures import Reply
from evals.questions import Question, stem
from evals.reports.tables import markdown
from evals.retrieval import values_of
from evals.subjects import HttpSubject, Mute, System, fingerprint, serving
from ingest.chunking import Chunker, estimate_tokens, read_chunker
from ingest.indexing import Index
from ingest.pipeline import Batch, Options, Outcome
from ingest.situating import open_situating
from ingest.sources import find_sources

_PATIENT_S = 3600.0
"""To parse one filing in: on a busy machine a strategy is not to lose one that another has."""
NUMBER_READ = "number read"
"""1 where a passage of an evidence page prints a number that the answer wants; of questions whose answer has one."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One strategy's index, and how much of it is read to answer a question."""

    chunker: str
    chunks: int
    tokens_read: Mapping[str, float]
    """By system: of a question's passages with their context, the estimated mean."""


@dataclass(frozen=True, slots=True)
class Comparison:
    questions: int
    variants: Sequence[Variant]
    effects: Mapping[str, Sequence[Effect]]
    """By system: each further strategy against the first."""


@dataclass(frozen=True, slots=True)
class Blind:
    """An embedder to which all texts are alike: for BM25 alone, without a model."""

    name = "none"
    dimensions = 2

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

    queries = passages

    def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where the indexes are built and with which models; those in `folder` are only completed by the next run."""

    folder: Path
    embedder: Embedder
    bm25: Bm25Encoder

    @asynccontextmanager
    async def opened(self, chunker: Chunker, filings: Sequence[str]) -> AsyncIterator[HttpSubject]:
        """The service over an index of these filings, without answers.

        Raises UsageError where a filing cannot be ingested: every strategy is to have the same.
        """
        built_with = "\n".join((chunker.name, self.embedder.name, self.bm25.name))
        name = f"{chunker.kind}-{hashlib.sha256(built_with.encode()).hexdigest()[:10]}"
        settings = Settings(data_dir=self.folder / name, qdrant_url=None)
        stamp = index_stamp(settings, self.embedder, chunker.name)
        async with (
            open_store(settings, replace(stamp, sparse=self.bm25.name, splade="none"), create=True) as store,
            open_situating(Settings(), chunker) as situating,
        ):
            outcomes: list[Outcome] = []
            batch = Batch(
                Index(store, self.embedder, {"bm25": self.bm25}),
                chunker,
                Options(timeout_s=_PATIENT_S, situating=situating),
                outcomes.append,
            )
            await batch.run(list(find_sources(filings)), await store.documents())
            if failed := [f"{o.source.shown}: {o.detail}" for o in outcomes if o.outcome == "failed"]:
                raise UsageError(f"{failed[0]} ({len(failed)} of {len(outcomes)} filings failed)")
            mute = Mute(ExtractiveGenerator(self.embedder))
            async with serving(Ports(store, self.embedder, {"bm25": self.bm25}, mute)) as subject:
                yield subject


async def run(
    scratch: Scratch,
    chunkers: Sequence[str],
    filings: Sequence[str],
    questions: Sequence[Question],
    systems: Sequence[System],
    *,
    k: int,
    parallel: int,
) -> Comparison:
    """Of the questions whose evidence these filings hold."""
    strategies = {spec: read_chunker(spec) for spec in chunkers}  # what is none is said before hours are spent
    log = ReplyLog.open(scratch.folder / "replies.jsonl")
    asked: dict[str, Asking] = {}
    variants = []
    for spec, chunker in strategies.items():
        async with scratch.opened(chunker, filings) as subject:
            documents = await subject.documents()
            asking = Asking(subject, fingerprint(await subject.index(), documents), k, parallel, log)
            held = {stem(document["source"]) for document in documents}
            questions = [q for q in questions if q.documents and q.reliable and q.documents <= held]
            if not questions:
                raise UsageError("no question has all of its evidence in these filings")
            await asking.ask(asking.missing(systems, questions), spec)
        read = {system.name: _tokens_read(asking, system, questions) for system in systems}
        variants.append(Variant(spec, sum(document["chunks"] for document in documents), read))
        asked[spec] = asking
    effects = {system.name: await _effects(system, asked, questions) for system in systems}
    return Comparison(len(questions), variants, effects)


async def _effects(system: System, asked: Mapping[str, Asking], questions: Sequence[Question]) -> list[Effect]:
    first, *others = asked
    found = []
    for measure in (*ablation.MEASURES, NUMBER_READ):
        values = {}
        for spec, asking in asked.items():
            read = measure == NUMBER_READ
            values[spec] = (
                _numbers_read(asking, system, questions)
                if read
                else (await values_of(asking, system, questions, measure))
            )
        found += [(spec, measure, values[first], values[spec]) for spec in others]
    return ablation.effects(found)


def _replies(asking: Asking, system: System, questions: Sequence[Question]) -> dict[str, Reply]:
    return {id_: o.reply for id_, o in asking.outcomes(system, questions).items() if o.reply is not None}


def _numbers_read(asking: Asking, system: System, questions: Sequence[Question]) -> dict[str, float]:
    replies = _replies(asking, system, questions)
    wanted = {q.id: quantities(q.figure or q.answer, q.text) for q in questions if q.pages and q.id in replies}
    found = {}
    for question in questions:
        if numbers := wanted.get(question.id):
            passages = replies[question.id]["passages"]
            texts = [p["text"] for p in passages if (stem(p["source"]), p["page"]) in question.pages]
            printed = [number for text in texts for number in quantities(text)]
            found[question.id] = float(any(matched(number, printed) for number in numbers))
    return found


def _tokens_read(asking: Asking, system: System, questions: Sequence[Question]) -> float:
    replies = _replies(asking, system, questions).values()
    texts = [f"{p['context']}\n{p['text']}" for reply in replies for p in reply["passages"]]
    return round(sum(map(estimate_tokens, texts)) / max(len(replies), 1), 1)


def table(found: Comparison) -> str:
    """The indexes, then for each system what changes against the first strategy."""
    first = found.variants[0]
    rows = [[v.chunker, str(v.chunks), *(f"{n:.0f}" for n in v.tokens_read.values())] for v in found.variants]
    read = [f"tokens read by {name}" for name in first.tokens_read]
    text = f"{found.questions} questions\n\n" + markdown(["chunker", "chunks", *read], rows)
    tables = [ablation.table(f"{first.chunker} ({name})", effects) for name, effects in found.effects.items()]
    return "\n".join((text, *tables)) if len(found.variants) > 1 else text
