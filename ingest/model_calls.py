"""Calls to a language model for one filing: a few at once, no more after some that fail, each counted and priced."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import SecretStr

from app.billing import Prices
from app.errors import SextantError
from app.ports import Generator
from app.settings import Settings
from app.types import Chunk, Document, Generation, Prompt

log = logging.getLogger("sextant.model_calls")
MOST_FAILURES = 3
"""For one filing, after which what is left is not asked."""
_AT_ONCE = 4
"""Calls under way, whichever filings they are for."""

T = TypeVar("T")
Asked: TypeAlias = tuple[Prompt, list[Chunk]]
"""A prompt and the chunks that it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What the calls for one filing took, or would take."""

    failed: int = 0
    """Calls, and replies that could not be read."""
    cached: int = 0
    """Replies at hand from an earlier run."""
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = Decimal(0)
    """None where a price is unknown."""
    estimated: bool = False
    """Nothing was called: calls and tokens are at most these, a token being four characters."""

    def with_replies(self, replies: Sequence[Generation], prices: Prices) -> Self:
        """The same with the price of these replies; one that was at hand took no call."""
        spent = [reply for reply in replies if reply.llm_calls]
        read, written = sum(reply.input_tokens for reply in spent), sum(reply.output_tokens for reply in spent)
        return replace(
            self,
            cached=len(replies) - len(spent),
            llm_calls=sum(reply.llm_calls for reply in spent),
            input_tokens=read,
            output_tokens=written,
            usd=prices.of(read, written) if spent else Decimal(0),
        )

    def with_prompts(self, prompts: Sequence[Prompt], prices: Prices) -> Self:
        """The same with the most that these prompts would take."""
        read = sum(len(text) for prompt in prompts for _, text in prompt.messages) // 4
        written = sum(prompt.max_tokens for prompt in prompts)
        return replace(
            self,
            llm_calls=len(prompts),
            input_tokens=read,
            output_tokens=written,
            usd=prices.of(read, written) if prompts else Decimal(0),
            estimated=True,
        )

    def __add__(self, other: Self) -> Self:
        """A price that is unknown for one is unknown for both."""
        names = [each.name for each in fields(self) if each.name != "estimated"]
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        sums: dict[str, Any] = {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}
        return replace(self, **sums, estimated=self.estimated or other.estimated)


Cost = TypeVar("Cost", bound=CallCost)


def summed(costs: Sequence[Cost]) -> Cost:
    """Of one or more filings."""
    return reduce(add, costs)


@dataclass(frozen=True, slots=True)
class Replies(Generic[T]):
    """To several prompts."""

    read: list[T]
    """What was made of those that could be read, in the prompts' order."""
    made: list[Generation]
    failed: int


@dataclass(slots=True)
class PricedModel:
    """A model, its price and its calls under way."""

    generator: Generator
    prices: Prices = field(default_factory=Prices)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def replies(
        self, document: Document, asked: Sequence[Asked], read: Callable[[str, list[Chunk]], T]
    ) -> Replies[T]:
        """`read` is given a reply and the chunks it is about; a ValueError of it is a failure as one of the call is."""
        failures: list[str] = []
        made = await asyncio.gather(*(self._reply(document, prompt, failures) for prompt, _ in asked))
        found: list[T] = []
        for reply, (prompt, shown) in zip(made, asked, strict=True):
            if reply is not None:
                try:
                    found.append(read(reply.text, shown))
                except ValueError as error:
                    _fail(document, prompt, error, failures)
        return Replies(found, [reply for reply in made if reply is not None], len(failures))

    async def _reply(self, document: Document, prompt: Prompt, failures: list[str]) -> Generation | None:
        async with self._slots:
            if len(failures) >= MOST_FAILURES:
                return None
            try:
                return await self.generator.generate(prompt)
            except SextantError as error:
                _fail(document, prompt, error, failures)
                return None


def _fail(document: Document, prompt: Prompt, error: Exception, failures: list[str]) -> None:
    log.warning(f"no {prompt.purpose}", extra={"fields": {"document_id": document.id, "why": str(error)}})
    failures.append(str(error))


@asynccontextmanager
async def open_model(
    settings: Settings, use: Literal["caption", "graph", "context"], folder: Path
) -> AsyncIterator[PricedModel | None]:
    """By the settings whose names begin with `use`, its replies kept in the folder; None where they name no model."""

    def named(name: str) -> Any:
        return getattr(settings, f"{use}_{name}")

    if named("model") is None:
        yield None
        return
    from app.adapters.kept import KeptGenerator
    from app.adapters.openai_chat import OPENAI_URL, OpenAIGenerator

    key: SecretStr | None = named("api_key")
    chat = OpenAIGenerator(
        named("model"),
        base_url=named("base_url") or OPENAI_URL,
        api_key=key.get_secret_value() if key else None,
        timeout_s=named("timeout_s"),
        timeout_setting=f"{use}_timeout_s".upper(),
    )
    prices = Prices(named("usd_per_million_input_tokens"), named("usd_per_million_output_tokens"))
    try:
        yield PricedModel(KeptGenerator(chat, folder), prices)
    finally:
        await chat.aclose()
