"""What a language model reads of a filing's relations, within a budget, after the rules have read them."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.settings import Settings
from app.types import Chunk, Document, Entity, Prompt, Relation
from ingest.extraction.model_relations import MOST_TOKENS, SCHEMA, added, asked, believed, calls
from ingest.model_calls import Asked, CallCost, PricedModel, open_model


@dataclass(frozen=True, slots=True)
class RelatingCost(CallCost):
    """What one filing's relations took, or would take."""

    passages: int = 0
    """Shown."""
    relations: int = 0
    """Added to what rules found."""
    dropped: int = 0
    """Of the model's, those that their page does not bear out."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Relating:
    """Who reads, and how much of it a filing may cost."""

    model: PricedModel
    most: int = 20
    """Calls for one filing."""

    def estimate(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> RelatingCost:
        """Before anything is spent."""
        prompts = self._prompts(document, records, chunks)
        cost = RelatingCost(passages=sum(len(shown) for _, shown in prompts))
        return cost.with_prompts([prompt for prompt, _ in prompts], self.model.prices)

    async def records(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> tuple[list[Entity | Relation], RelatingCost]:
        """What to put beside `records`, in place of entities of the same key. A call that fails adds nothing."""
        began = time.perf_counter()
        prompts, registrant = self._prompts(document, records, chunks), _registrant(document)
        replies = await self.model.replies(document, prompts, lambda text, shown: believed(text, shown, registrant))
        reads = [read for found, _ in replies.read for read in found]
        more = added(document, records, reads, self.model.generator.name)
        cost = RelatingCost(
            passages=sum(len(shown) for _, shown in prompts),
            relations=sum(isinstance(record, Relation) for record in more),
            dropped=sum(wrong for _, wrong in replies.read),
            failed=replies.failed,
            seconds=time.perf_counter() - began,
        )
        return more, cost.with_replies(replies.made, self.model.prices)

    def _prompts(
        self, document: Document, records: Sequence[Entity | Relation], chunks: Sequence[Chunk]
    ) -> list[Asked]:
        name = _registrant(document)
        return [
            (Prompt("relations", asked(name, shown), max_tokens=MOST_TOKENS, json_schema=SCHEMA), shown)
            for shown in calls(chunks, records, self.most)
        ]


def _registrant(document: Document) -> str:
    return document.meta.company or document.meta.title


@asynccontextmanager
async def open_relating(settings: Settings) -> AsyncIterator[Relating | None]:
    """None where GRAPH_MODEL names no model, or GRAPH is off."""
    async with open_model(settings, "graph", settings.relations_dir) as model:
        yield Relating(model, settings.graph_max_calls_per_file) if model and settings.graph else None
