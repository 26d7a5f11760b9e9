"""The pictures of a batch's files put into words by a vision model, within a budget, before the files are parsed."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from app.errors import DocumentError, SextantError
from app.ports import Captioner
from app.settings import Settings
from app.tools import Prices
from ingest.captions import Caption
from ingest.executors import ProcessPool
from ingest.formats.pictures import Picture, Request, pictures

log = logging.getLogger("sextant.captioning")
_FAILURES = 3
"""In one file, after which its other pictures are left."""


@dataclass(frozen=True, slots=True)
class CaptionCost:
    """What one file's captions took."""

    pictures: int = 0
    """Found, as many as may be put into words."""
    captions: int = 0
    cached: int = 0
    """Of the captions, those at hand from an earlier run."""
    failed: int = 0
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal | None = Decimal(0)
    """None where a price is unknown."""


class Captioning:
    """Who captions, and how much of it a file may cost."""

    def __init__(
        self,
        captioner: Captioner,
        pool: ProcessPool[Request, list[Picture]],
        prices: Prices = Prices(),  # noqa: B008 - frozen
        most: int = 20,
    ) -> None:
        """`most` pictures of one file, the first ones; `pool` runs `pictures`."""
        self._captioner = captioner
        self._pool = pool
        self._prices = prices
        self._most = most

    async def captions(self, path: Path, timeout_s: float) -> tuple[tuple[Caption, ...], CaptionCost]:
        """None of a file that cannot be read; a picture whose caption fails goes without one."""
        try:
            found = await self._pool.run(Request(path, self._most), timeout_s)
        except DocumentError:
            return (), CaptionCost()
        captions: list[Caption] = []
        cached = failed = calls = read = written = 0
        for picture in found:
            try:
                said = await self._captioner.caption(picture.png)
            except SextantError as error:
                log.warning("no caption", extra={"fields": {"page": picture.page, "why": str(error)}})
                failed += 1
                if failed == _FAILURES:
                    break
                continue
            calls, read, written = calls + said.llm_calls, read + said.input_tokens, written + said.output_tokens
            cached += not said.llm_calls
            if said.text.strip():
                captions.append(Caption(picture.page, picture.box, said.text, self._captioner.name))
        usd = self._prices.of(read, written) if calls else Decimal(0)
        return tuple(captions), CaptionCost(len(found), len(captions), cached, failed, calls, read, written, usd)


@asynccontextmanager
async def open_captioning(settings: Settings) -> AsyncIterator[Captioning | None]:
    """None where CAPTION_MODEL names no model."""
    if settings.caption_model is None:
        yield None
        return
    from app.adapters.captioning import ChatCaptioner
    from app.adapters.kept import KeptGenerator
    from app.adapters.openai_chat import OPENAI_URL, OpenAIGenerator

    chat = OpenAIGenerator(
        settings.caption_model,
        base_url=settings.caption_base_url or OPENAI_URL,
        api_key=settings.caption_api_key.get_secret_value() if settings.caption_api_key else None,
        timeout_s=settings.caption_timeout_s,
        timeout_setting="CAPTION_TIMEOUT_S",
    )
    prices = Prices(settings.caption_usd_per_million_input_tokens, settings.caption_usd_per_million_output_tokens)
    pool = ProcessPool(pictures, 1, memory_bytes=settings.parse_memory_bytes)
    try:
        kept = ChatCaptioner(KeptGenerator(chat, settings.captions_dir))
        yield Captioning(kept, pool, prices, settings.caption_max_per_file)
    finally:
        pool.close()
        await chat.aclose()
