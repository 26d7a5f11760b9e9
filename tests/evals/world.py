"""A small world with known answers, the real service over it, and ways to break that service."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.tools import Ports
from app.types import Chunk, ChunkVectors, Document, DocumentMeta, Filter, Generation, Leg, LegResult, Page, Prompt
from evals.asking import Asking, ReplyLog
from evals.questions import Evidence, Question
from evals.subjects import HttpSubject, fingerprint, over
from tests.conftest import started
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder

COMPANIES = ("Acme", "Globex", "Hooli", "Umbra")
TOPICS = ("goodwill", "freight", "payroll", "royalties", "dividends", "inventory")
FIGURES = {(c, t): 11 + 7 * i + 13 * j for i, c in enumerate(COMPANIES) for j, t in enumerate(TOPICS)}
"""$ million by company and topic; topic j stands on page j + 1."""

QUESTIONS = [
    Question(
        id=f"{company}-{topic}",
        text=f"what was the {topic} of {company}",
        kind=f"about {topic[:1]}" if topic in ("goodwill", "freight") else "other",
        answer=f"${figure} million",
        evidence=(Evidence(company, TOPICS.index(topic) + 1),),
    )
    for (company, topic), figure in FIGURES.items()
]
UNANSWERABLE = [
    Question(f"{company}-zeppelins", f"how many zeppelins had {company}", "unanswerable") for company in COMPANIES
]


class HonestGenerator(QuotingGenerator):
    """Quotes the first passage where it holds the question's rarest word, else abstains."""

    name = "honest"

    async def generate(self, prompt: Prompt) -> Generation:
        if "zeppelins" in prompt.question:
            return Generation("", abstained="not_supported")
        return await super().generate(prompt)


class AbstainingGenerator(QuotingGenerator):
    name = "abstaining"

    async def generate(self, prompt: Prompt) -> Generation:
        return Generation("", abstained="not_supported")


class LeakyStore(FakeStore):
    """Its BM25 leg ignores the request's conditions."""

    async def search(self, legs: Sequence[Leg], where: Filter) -> list[LegResult]:
        wide = Filter((), where.access)
        return [
            (await super(LeakyStore, self).search([leg], where if leg.name == "dense" else wide))[0] for leg in legs
        ]


async def ports(store: FakeStore | None = None, generator: QuotingGenerator | None = None) -> Ports:
    store = store or FakeStore(STAMP)
    for company in COMPANIES:
        meta = DocumentMeta(company, f"filings/{company}.pdf", company=company)
        texts = [f"The {topic} of {company} was ${FIGURES[company, topic]} million." for topic in TOPICS]
        document = Document(company.lower(), "0" * 64, meta, len(texts), len(texts), ingested_at="2024-05-01T00:00:00Z")
        chunks = [
            Chunk(f"{company}/{n}", document.id, n, n + 1, 0, len(text), text, "", "text", None, meta)
            for n, text in enumerate(texts)
        ]
        dense, sparse = await LetterEmbedder().passages(texts), WordEncoder().passages(texts)
        await store.put_pages(document, [Page(n, text) for n, text in enumerate(texts, start=1)])
        await store.put_chunks(chunks, [ChunkVectors(d, {"bm25": s}) for d, s in zip(dense, sparse, strict=True)])
        await store.put_document(document)
    return Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, generator or HonestGenerator())


Tamper: TypeAlias = Callable[[dict[str, Any]], None]


@dataclass
class Tampered:
    """A subject whose replies are changed in place on their way."""

    subject: HttpSubject
    tamper: Tamper

    def __getattr__(self, name: str) -> Any:
        return getattr(self.subject, name)

    async def ask(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        reply = await self.subject.ask(*args, **kwargs)
        self.tamper(reply)
        return reply


@asynccontextmanager
async def asking(
    of: Ports | None = None, tamper: Tamper | None = None, *, k: int = 10, log: ReplyLog | None = None
) -> AsyncIterator[Asking]:
    """The service over the small world, or over `of`, ready to be asked."""
    async with started(of or await ports()) as app, over(app) as subject:
        version = fingerprint(await subject.index(), await subject.documents())
        told: Any = Tampered(subject, tamper) if tamper else subject
        yield Asking(told, version, k, log=log or ReplyLog())


def shuffled(reply: dict[str, Any]) -> None:
    """Fusion that puts its passages into any order: scores and ranks look right."""
    passages = reply["passages"]
    order = random.Random(len(reply["passages"][0]["text"])).sample(passages, len(passages))
    scores = [p["score"] for p in passages]
    reply["passages"] = [p | {"rank": n, "score": s} for n, (p, s) in enumerate(zip(order, scores, strict=True), 1)]


def ranks_from_zero(reply: dict[str, Any]) -> None:
    for passage in reply["passages"]:
        passage["rank"] -= 1


def leg_ranks_from_zero(reply: dict[str, Any]) -> None:
    for passage in reply["passages"]:
        for leg in passage["legs"].values():
            leg["rank"] -= 1


def cited_a_page_off(reply: dict[str, Any]) -> None:
    for citation in reply["citations"]:
        citation["page"] = citation["page"] % len(TOPICS) + 1


def cost_not_counted(reply: dict[str, Any]) -> None:
    reply["cost"] |= {"ops": 0, "ops_by_kind": {}}
    for step in reply["trace"]:
        step["ops"] = {}


def leg_not_billed(reply: dict[str, Any]) -> None:
    reply["cost"]["ops"] -= reply["cost"]["ops_by_kind"].pop("dense")


def sum_off(reply: dict[str, Any]) -> None:
    reply["cost"]["ops"] += 1


def bold(reply: dict[str, Any]) -> None:
    """Claims that a quote without the sentence's number verifies it."""
    for citation in reply["citations"]:
        citation["quote"] = citation["quote"].partition("$")[0]
        citation["span"]["end"] = citation["span"]["start"] + len(citation["quote"])
        citation["verified"] = True


def dangling_marker(reply: dict[str, Any]) -> None:
    reply["answer"] += " And more [9]."
