"""The pictures of a batch's files put into words by a vision model, within a budget, before the files are parsed."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.billing import Prices
from app.errors import DocumentError, SextantError
from app.ports import Captioner
from app.settings import Settings
from app.types import Generation
from ingest.captions import Caption
from ingest.executors import ProcessPool
from ingest.formats.pictures import Picture, Request, pictures
from ingest.model_calls import MOST_FAILURES, CallCost, open_model

log = logging.getLogger("sextant.captioning")


@dataclass(frozen=True, slots=True)
class CaptionCost(CallCost):
    """What one file's captions took."""

    pictures: int = 0
    """Found, as many as may be put into words."""
    captions: int = 0


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
        replies: list[Generation] = []
        failed = 0
        for picture in found:
            try:
                said = await self._captioner.caption(picture.png)
            except SextantError as error:
                log.warning("no caption", extra={"fields": {"page": picture.page, "why": str(error)}})
                failed += 1
                if failed == MOST_FAILURES:
                    break
                continue
            replies.append(said)
            if said.text.strip():
                captions.append(Caption(picture.page, picture.box, said.text, self._captioner.name))
        cost = CaptionCost(pictures=len(found), captions=len(captions), failed=failed)
        return tuple(captions), cost.with_replies(replies, self._prices)


@asynccontextmanager
async def open_captioning(settings: Settings) -> AsyncIterator[Captioning | None]:
    """None where CAPTION_MODEL names no model."""
    from app.adapters.captioning import ChatCaptioner

    async with open_model(settings, "caption", settings.captions_dir) as model:
        if model is None:
            yield None
            return
        pool = ProcessPool(pictures, 1, memory_bytes=settings.parse_memory_bytes)
        try:
            yield Captioning(ChatCaptioner(model.generator), pool, model.prices, settings.caption_max_per_file)
        finally:
            pool.close()
