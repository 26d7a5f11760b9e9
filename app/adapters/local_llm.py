"""The local language model: llama.cpp inside this process, behind the same adapter as any endpoint.

The runtime serves OpenAI's chat completions on a loopback port that only this process has the key for. A request whose
caller has gone closes its connection, and llama.cpp stops that generation after the batch in hand.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx
from anyio import to_thread

from app.adapters.openai_chat import OpenAIGenerator
from app.errors import GeneratorUnavailable, UpstreamFailed

_CONTEXT_TOKENS = 8192
"""Prompt and answer together."""
_BATCH_TOKENS = 128
"""Read at a time: also how soon a generation that nobody waits for any more stops."""
_CACHE_MIB = 256
"""For the states of earlier prompts, so that a system prompt that comes back is not read again."""


class LocalGenerator(OpenAIGenerator):
    """One model, one request at a time; further ones wait, and their wait counts against their time limit."""

    def __init__(self, address: str, key: str, model: Path, timeout_s: float) -> None:
        super().__init__(
            model.stem,
            base_url=f"{address}/v1",
            api_key=key,
            timeout_s=timeout_s,
            timeout_setting="LOCAL_TIMEOUT_S",
            max_retries=0,
            concurrency=1,
            tools="false",  # a small model keeps to a grammar better than to a template of calls
        )
        self._http = httpx.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=1),  # its threads are few, and each waits 5 s at an idle connection
            trust_env=False,
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, model: Path, *, threads: int = 0, timeout_s: float = 180.0) -> AsyncIterator[Self]:
        """Loads the file (seconds) and unloads it. `threads` 0 is one for each core. Raises GeneratorUnavailable."""
        key = secrets.token_urlsafe(24)
        server = await to_thread.run_sync(_start, model, key, threads)
        generator = cls(server.listening_address, key, model, timeout_s)
        try:
            yield generator
        finally:
            await generator.aclose()
            await generator._http.aclose()
            del server  # stops what still runs and unloads the model

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """By the model's own tokenizer. Raises UpstreamFailed."""
        return list(await asyncio.gather(*map(self._count, texts)))

    async def _count(self, text: str) -> int:
        try:
            reply = await self._http.post("/tokenize", json={"content": text})
            return len(reply.raise_for_status().json()["tokens"])
        except (httpx.HTTPError, LookupError, ValueError) as error:
            raise UpstreamFailed(f"the local model did not count tokens ({type(error).__name__})") from None


def _start(model: Path, key: str, threads: int) -> Any:
    """A running `xllamacpp.Server`."""
    try:
        import xllamacpp
    except ImportError:
        raise GeneratorUnavailable(
            "GENERATOR=local needs the package xllamacpp: pip install 'sextant[local]'"
        ) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel = _CONTEXT_TOKENS, 1
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.cache_ram_mib = _CACHE_MIB
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or _cores()
    params.warmup = params.ui = False
    params.verbosity = -1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise GeneratorUnavailable(f"the local model cannot be loaded from {model}: {error}") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
