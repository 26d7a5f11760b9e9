"""A generator that keeps what it was told, by model and prompt: what is at hand costs no call."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from app.ports import Generator
from app.types import Generation, Prompt


class KeptGenerator:
    """An app.ports.Generator over another, for work that is repeated: the same prompt is paid for once.

    The folder holds a JSON file for each reply, and no prompt; deleting it costs calls and nothing else.
    """

    def __init__(self, generator: Generator, folder: Path) -> None:
        self._generator = generator
        self._folder = folder

    @property
    def name(self) -> str:
        return self._generator.name

    @property
    def purposes(self) -> frozenset[str] | None:
        return self._generator.purposes

    async def generate(self, prompt: Prompt) -> Generation:
        """`llm_calls` is 0 where it was at hand."""
        file = self._folder / f"{self._key(prompt)}.json"
        if (text := await asyncio.to_thread(_read, file)) is not None:
            return Generation(text)
        generation = await self._generator.generate(prompt)
        await asyncio.to_thread(_write, file, generation.text)
        return generation

    def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        """Never kept."""
        return self._generator.stream(prompt)

    def _key(self, prompt: Prompt) -> str:
        schema = dict(prompt.json_schema) if prompt.json_schema is not None else None
        asked = [self.name, prompt.purpose, prompt.messages, prompt.max_tokens, prompt.temperature, schema]
        return sha256(json.dumps(asked, sort_keys=True).encode() + (prompt.picture or b"")).hexdigest()


def _read(file: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(file.read_bytes())["text"])
    return None


def _write(file: Path, text: str) -> None:
    """All of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"text": text}), encoding="utf-8")
    part.replace(file)
