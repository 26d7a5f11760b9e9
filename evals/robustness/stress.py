"""Answers over a collection made worse on purpose: what each architecture trusts when passages lie."""

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from app.errors import StoreLocked
from app.evidence.conflicts import PREFIX
from app.evidence.quantities import Quantity, matched, quantities
from app.opening import open_ports
from app.ports import WritableStore
from app.settings import Settings
from app.tools import Ports
from app.types import Chunk, ChunkVectors, Condition, Document, Filter, Leg, Page
from evals.asking import Asking, Outcome, ReplyLog
from evals.errors import UsageError
from evals.judging.judge import MARKER
from evals.questions import Question, stem
from evals.robustness import plants
from evals.robustness.plants import KINDS, Plant, Target
from evals.statistics import Estimate, Paired, estimate, paired
from evals.subjects import fingerprint, serving, systems

CLEAN = "clean"
OUTCOMES: Mapping[str, str] = {
    "source": "states the true figure alone",
    "flagged": "a note says that passages disagree",
    "both": "states the true and the planted figure without such a note",
    "poison": "states the planted figure alone",
    "abstained": "gives no answer",
    "other": "states neither, or there was no reply",
}
_POOL = 200
"""Chunks looked through for a question's evidence, and for noise."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One architecture under one kind of plants."""

    outcomes: Mapping[str, Estimate]
    """Share of each of OUTCOMES, with Wilson's interval."""
    retrieved: Estimate
    """Share of replies whose passages hold a plant of the question."""
    against: Paired | None
    """Whether the true figure is stated, against the clean run."""


@dataclass(frozen=True, slots=True)
class Stress:
    targets: Sequence[Target]
    cells: Mapping[str, Mapping[str, Cell]]
    """kind, `clean` first -> system."""
    replies: Mapping[str, Mapping[str, Mapping[str, dict[str, Any]]]]
    """kind -> system -> question id -> outcome, answer, notes."""


@contextmanager
def scratch(settings: Settings) -> Iterator[Settings]:
    """Settings over a copy of the embedded collection, which is removed however the run ends, but for kill -9.

    The copy is taken under the collection's own lock. Raises StoreLocked, UsageError.
    """
    if settings.qdrant_url or not (settings.index_dir / "owner.lock").exists():
        where = "QDRANT_URL is set" if settings.qdrant_url else f"there is none at {settings.index_dir}"
        raise UsageError(f"a copy can be made of an embedded collection alone, and {where}")
    with tempfile.TemporaryDirectory(prefix="sextant-stress-") as folder:
        lock = os.open(settings.index_dir / "owner.lock", os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            copied = settings.model_copy(update={"data_dir": Path(folder)})
            copied.__dict__.pop("index_dir", None)
            shutil.copytree(settings.index_dir, copied.index_dir)
            if (figures := settings.data_dir / "figures").exists():
                shutil.copytree(figures, copied.data_dir / "figures")
        except BlockingIOError:
            raise StoreLocked(f"{settings.index_dir} is in use; stop the service, then copy") from None
        finally:
            os.close(lock)
        yield copied


@asynccontextmanager
async def interruptible() -> AsyncIterator[None]:
    """SIGTERM ends the run as Ctrl-C does, so that temporary folders are removed."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    loop.add_signal_handler(signal.SIGTERM, lambda: task and task.cancel())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def opened(data_dir: Path | None) -> AsyncIterator[Ports]:
    """Ports over a scratch copy."""
    settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
    async with interruptible():
        with scratch(settings) as copied:
            async with open_ports(copied) as ports:
                yield ports


async def run(
    ports: Ports,
    questions: Sequence[Question],
    arch: str,
    kinds: Sequence[str],
    *,
    k: int,
    parallel: int,
    log: ReplyLog,
) -> tuple[Stress, list[str]]:
    """Asks over the collection as it is, then over it with each kind of plants; also the systems left out, and why."""
    targets = await find_targets(ports, questions)
    if not targets:
        raise UsageError("no question's figure stands on its evidence pages in this collection")
    others = await _any_chunks(ports)
    found: dict[str, dict[str, dict[str, Outcome]]] = {}
    plants_of: dict[str, dict[str, list[Plant]]] = {CLEAN: {t.question.id: [] for t in targets}}
    left_out: list[str] = []
    for kind in (CLEAN, *kinds):
        if kind != CLEAN:
            plants_of[kind] = {
                t.question.id: _plants(kind, t, others, 1 + n * plants.PAGES) for n, t in enumerate(targets)
            }
        every = [(p.document, p.page, p.chunk) for several in plants_of[kind].values() for p in several]
        async with planted(ports, every), serving(ports) as subject:
            version = fingerprint(await subject.index(), await subject.documents())
            asking = Asking(subject, version, k, parallel, log)
            chosen, left_out = await systems(subject, arch)
            asked = [t.question for t in targets]
            await asking.ask(asking.missing(chosen, asked), kind)
            found[kind] = {system.name: asking.outcomes(system, asked) for system in chosen}
    return _weighed(targets, plants_of, found), left_out


def _plants(kind: str, target: Target, others: Sequence[Chunk], page: int) -> list[Plant]:
    foreign = [chunk for chunk in others if chunk.document_id != target.chunk.document_id]
    return plants.plants(kind, target, foreign, page)


async def find_targets(ports: Ports, questions: Sequence[Question]) -> list[Target]:
    """Questions with reliable evidence whose figure is printed on an evidence page."""
    documents = {stem(d.meta.source): d for d in await ports.store.documents()}
    found = []
    for question in questions:
        chunks: list[Chunk] = []
        for name, page in sorted(question.pages):
            if name in documents:
                chunks += await _chunks_of(ports, documents[name], page, question.text)
        if target := plants.target(question, chunks):
            found.append(target)
    return found


async def _chunks_of(ports: Ports, document: Document, page: int, text: str) -> list[Chunk]:
    """Of one page, nearest to the text first."""
    where = Filter((Condition("document_id", "$eq", document.id), Condition("page", "$eq", page)))
    [query] = await ports.embedder.queries([text])
    [result] = await ports.store.search([Leg("dense", query, _POOL)], where)
    return [hit.chunk for hit in result.hits]


async def _any_chunks(ports: Ports) -> list[Chunk]:
    [query] = await ports.embedder.queries(["annual report"])
    [result] = await ports.store.search([Leg("dense", query, _POOL)], Filter())
    return [hit.chunk for hit in result.hits]


@asynccontextmanager
async def planted(ports: Ports, several: Sequence[tuple[Document, Page, Chunk]]) -> AsyncIterator[None]:
    """The collection with these pages of one chunk and their filings; they are taken out again."""
    store = cast(WritableStore, ports.store)  # what open_ports opens can be written, though no request may
    documents = list(dict.fromkeys(document for document, _, _ in several))
    texts = [chunk.searchable for _, _, chunk in several]
    if texts:
        dense = await ports.embedder.passages(texts)
        sparse = {name: encoder.passages(texts) for name, encoder in ports.sparse.items()}
        for document in documents:
            await store.put_pages(document, [page for own, page, _ in several if own == document])
        vectors = [ChunkVectors(v, {name: found[n] for name, found in sparse.items()}) for n, v in enumerate(dense)]
        await store.put_chunks([chunk for _, _, chunk in several], vectors)
        for document in documents:
            await store.put_document(document)
    try:
        yield
    finally:
        for document in documents:
            await store.delete_document(document.id)


def outcome(reply: Mapping[str, Any] | None, gold: Quantity, false: Quantity | None) -> str:
    """One of OUTCOMES."""
    if reply is None:
        return "other"
    if reply["abstained"]:
        return "abstained"
    if any(note.startswith(PREFIX) for note in reply["notes"]):
        return "flagged"
    stated = quantities(MARKER.sub("", reply["answer"]))
    true, lie = matched(gold, stated), false is not None and matched(false, stated)
    return {(True, True): "both", (True, False): "source", (False, True): "poison"}.get((true, lie), "other")


def _weighed(
    targets: Sequence[Target],
    plants_of: Mapping[str, Mapping[str, Sequence[Plant]]],
    found: Mapping[str, Mapping[str, Mapping[str, Outcome]]],
) -> Stress:
    cells: dict[str, dict[str, Cell]] = {}
    replies: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    right: dict[tuple[str, str], dict[str, float]] = {}
    for kind, by_system in found.items():
        cells[kind], replies[kind] = {}, {}
        for name, outcomes in by_system.items():
            rows = {t.question.id: _row(t, plants_of[kind][t.question.id], outcomes[t.question.id]) for t in targets}
            right[kind, name] = {id_: float(row["true"]) for id_, row in rows.items()}
            shares = {o: estimate([float(row["outcome"] == o) for row in rows.values()]) for o in OUTCOMES}
            retrieved = estimate([float(row["retrieved"]) for row in rows.values()])
            against = None if kind == CLEAN else paired(right[kind, name], right[CLEAN, name])
            cells[kind][name] = Cell(shares, retrieved, against)
            replies[kind][name] = rows
    return Stress(targets, cells, replies)


def _row(target: Target, several: Sequence[Plant], asked: Outcome) -> dict[str, Any]:
    reply = asked.reply
    false = next((plant.false for plant in several if plant.false), None)
    ids = {plant.chunk.id for plant in several}
    answer = reply["answer"] if reply else (asked.problem or {}).get("detail", "")
    stated = quantities(MARKER.sub("", answer)) if reply and not reply["abstained"] else []
    return {
        "outcome": outcome(reply, target.gold, false),
        "true": matched(target.gold, stated),
        "retrieved": bool(reply and ids & {p["chunk_id"] for p in reply["passages"]}),
        "answer": answer,
        "notes": list(reply["notes"]) if reply else [],
        "planted": [plant.chunk.text[:320] for plant in several],
    }


def as_json(found: Stress) -> dict[str, Any]:
    return {
        "outcomes": dict(OUTCOMES),
        "kinds": {CLEAN: "the collection as it is", **KINDS},
        "n": len(found.targets),
        "cells": {kind: {name: asdict(cell) for name, cell in row.items()} for kind, row in found.cells.items()},
        "questions": [
            {
                "id": t.question.id,
                "question": t.question.text,
                "answer": t.question.figure or t.question.answer,
                "results": {
                    kind: {name: rows[t.question.id] for name, rows in by_system.items()}
                    for kind, by_system in found.replies.items()
                },
            }
            for t in found.targets
        ],
    }
