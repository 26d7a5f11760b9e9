"""Cross-encoders: sentence-transformers' CrossEncoder, or FlagEmbedding's FlagReranker behind the `flag:` prefix."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from app.adapters.embedding import FLAG
from app.errors import Unavailable

_BATCH = 32
Score = Callable[[list[tuple[str, str]]], Sequence[float]]


def load_reranker(model: str) -> "ModelReranker":
    """A folder or hub name; `flag:BAAI/bge-reranker-v2-m3` goes through FlagEmbedding. Raises Unavailable."""
    try:
        return ModelReranker(model, _flag_score(model) if model.startswith(FLAG) else _cross_encoder_score(model))
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise Unavailable(
            f"reranker {model!r} cannot be loaded ({type(error).__name__}); RERANKER_MODEL takes a folder or a "
            "hub name reachable from here, or nothing"
        ) from error


def _cross_encoder_score(model: str) -> Score:
    from sentence_transformers import CrossEncoder

    loaded: Any = CrossEncoder(model, device="cpu")
    return lambda pairs: [float(s) for s in loaded.predict(pairs, batch_size=_BATCH, show_progress_bar=False)]


def _flag_score(model: str) -> Score:
    from FlagEmbedding import FlagReranker

    loaded: Any = FlagReranker(model.removeprefix(FLAG), use_fp16=False, devices="cpu")
    return lambda pairs: [float(s) for s in loaded.compute_score(pairs, batch_size=_BATCH)]


class ModelReranker:
    """Runs a cross-encoder in one worker thread, all pairs of a call in length-sorted batches."""

    def __init__(self, name: str, score: Score) -> None:
        self.name = name
        self._score = score
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reranker")

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        pairs = [(query, passage) for passage in passages]
        return list(await asyncio.get_running_loop().run_in_executor(self._thread, self._score, pairs))

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
