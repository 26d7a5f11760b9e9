"""What a language model reads of a filing's relations, within a budget, after the rules have read them."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal

from app.errors import SextantError
from app.ports import Generator
from app.settings import Settings
from app.tools import Prices
from app.types import Chunk, Document, Entity, Generation, Prompt, Relation
from ingest.extraction.model_relations import MOST_TOKENS, SCHEMA, Read, added, asked, believed, calls

log = logging.getLogger("sextant.relating")
_FAILURES = 3
"""In one filing, after which its other passages are left."""
_AT_ONCE = 4
"""Calls under way."""


@dataclass(frozen=True, slots=True)
class RelatingCost:
    """What one filing's relations took, or would take."""

    passages: int = 0
    """Shown."""
    relations: int = 0
    """Added to what rules found."""
    dropped: int = 0
    """Of the model's, those that their page does not bear out."""
    failed: int = 0
    """Calls."""
    cached: int = 0
    """Replies at hand from an earlier run."""
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = Decimal(0)
    """None where a price is unknown."""
    seconds: float = 0.0
    estimated: bool = False
    """Nothing was called: calls and tokens are at most these, a token being four characters."""


def summed(costs: Sequence[RelatingCost]) -> RelatingCost:
    """Of several filings; a price that is unknown for one is unknown for all."""
    prices = [cost.usd for cost in costs]
    total = RelatingCost(*(sum(column) for column in zip(*(_counts(cost) for cost in costs), strict=True)))
    known = [usd for usd in prices if usd is not None]
    usd = sum(known, Decimal(0)) if len(known) == len(prices) else None
    return replace(total, usd=usd, seconds=sum(c.seconds for c in costs), estimated=any(c.estimated for c in costs))


def _counts(cost: RelatingCost) -> tuple[int, ...]:
    passages = (cost.passages, cost.relations, cost.dropped, cost.failed, cost.cached)
    return (*passages, cost.llm_calls, cost.input_tokens, cost.output_tokens)


@dataclass(slots=True)
class Relating:
    """Who reads, and how much of it a filing may cost."""

    generator: Generator
    prices: Prices = field(default_factory=Prices)
    most: int = 20
    """Calls for one filing."""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def estimate(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> RelatingCost:
        """Before anything is spent."""
        prompts = self._prompts(document, records, chunks)
        read = sum(len(text) for prompt, _ in prompts for _, text in prompt.messages) // 4
        written = MOST_TOKENS * len(prompts)
        usd = self.prices.of(read, written) if prompts else Decimal(0)
        shown = sum(len(passages) for _, passages in prompts)
        return RelatingCost(shown, 0, 0, 0, 0, len(prompts), read, written, usd, estimated=True)

    async def records(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> tuple[list[Entity | Relation], RelatingCost]:
        """What to put beside `records`, in place of entities of the same key. A call that fails adds nothing."""
        began = time.perf_counter()
        prompts = self._prompts(document, records, chunks)
        failures: list[str] = []
        replies = await asyncio.gather(*(self._asked(document, prompt, failures) for prompt, _ in prompts))
        reads: list[Read] = []
        dropped = 0
        for reply, (_, shown) in zip(replies, prompts, strict=True):
            if reply is not None:
                try:
                    found, wrong = believed(reply.text, shown, _registrant(document))
                except ValueError as error:
                    log.warning("no relations", extra={"fields": {"document_id": document.id, "why": str(error)}})
                    failures.append(str(error))
                    continue
                reads, dropped = reads + found, dropped + wrong
        more = added(document, records, reads, self.generator.name)
        made = [reply for reply in replies if reply is not None]
        spent = [reply for reply in made if reply.llm_calls]
        read, written = sum(r.input_tokens for r in spent), sum(r.output_tokens for r in spent)
        return more, RelatingCost(
            passages=sum(len(shown) for _, shown in prompts),
            relations=sum(isinstance(record, Relation) for record in more),
            dropped=dropped,
            failed=len(failures),
            cached=len(made) - len(spent),
            llm_calls=sum(r.llm_calls for r in spent),
            input_tokens=read,
            output_tokens=written,
            usd=self.prices.of(read, written) if spent else Decimal(0),
            seconds=time.perf_counter() - began,
        )

    def _prompts(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> list[tuple[Prompt, list[Chunk]]]:
        name = _registrant(document)
        return [
            (Prompt("relations", asked(name, shown), max_tokens=MOST_TOKENS, json_schema=SCHEMA), shown)
            for shown in calls(chunks, records, self.most)
        ]

    async def _asked(self, document: Document, prompt: Prompt, failures: list[str]) -> Generation | None:
        async with self._slots:
            if len(failures) >= _FAILURES:
                return None
            try:
                return await self.generator.generate(prompt)
            except SextantError as error:
                log.warning("no relations", extra={"fields": {"document_id": document.id, "why": str(error)}})
                failures.append(str(error))
                return None


def _registrant(document: Document) -> str:
    return document.meta.company or document.meta.title


@asynccontextmanager
async def open_relating(settings: Settings) -> AsyncIterator[Relating | None]:
    """None where GRAPH_MODEL names no model, or GRAPH is off."""
    if settings.graph_model is None or not settings.graph:
        yield None
        return
    from app.adapters.kept import KeptGenerator
    from app.adapters.openai_chat import OPENAI_URL, OpenAIGenerator

    chat = OpenAIGenerator(
        settings.graph_model,
        base_url=settings.graph_base_url or OPENAI_URL,
        api_key=settings.graph_api_key.get_secret_value() if settings.graph_api_key else None,
        timeout_s=settings.graph_timeout_s,
        timeout_setting="GRAPH_TIMEOUT_S",
    )
    prices = Prices(settings.graph_usd_per_million_input_tokens, settings.graph_usd_per_million_output_tokens)
    try:
        yield Relating(KeptGenerator(chat, settings.relations_dir), prices, settings.graph_max_calls_per_file)
    finally:
        await chat.aclose()
