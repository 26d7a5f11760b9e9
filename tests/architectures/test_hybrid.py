"""Hybrid: two legs, one round trip, one fused ranking."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

import pytest

from app.architectures.hybrid import Hybrid
from app.errors import InvalidOptions
from app.tools import Ports, Tools
from app.types import ChunkVectors, Condition, Filter, Question
from tests.conftest import MakePorts
from tests.fakes import FakeStore, LetterEmbedder, QuotingGenerator, WordEncoder, fake_ports

pytestmark = pytest.mark.anyio

TEXTS = ("aa zz", "ab", "bb q")
"""To "bb" by letters: the third has cosine 2/sqrt(5), the second 1/sqrt(2), the first 0; by words: the third alone."""


async def ranking(hybrid: Hybrid, question: str, k: int = 10) -> list[tuple[str, dict[str, int]]]:
    tools = Tools(await fake_ports(texts=TEXTS, generator=QuotingGenerator()))
    answer = await hybrid.answer(Question(question, k=k), tools)
    return [(hit.chunk.text, {name: leg.rank for name, leg in hit.legs.items()}) for hit in answer.passages]


async def test_each_passage_keeps_its_rank_in_each_leg() -> None:
    assert await ranking(Hybrid(), "bb") == [
        ("bb q", {"bm25": 1, "dense": 1}),
        ("ab", {"dense": 2}),
        ("aa zz", {"dense": 3}),
    ]


async def test_scores_are_reciprocal_ranks() -> None:
    tools = Tools(await fake_ports(texts=TEXTS, generator=QuotingGenerator()))
    answer = await Hybrid(c=10, bm25_weight=3).answer(Question("bb"), tools)
    assert [hit.score for hit in answer.passages] == pytest.approx([1 / 11 + 3 / 11, 1 / 12, 1 / 13])


async def test_a_weight_of_zero_silences_a_leg() -> None:
    by_dense = await ranking(Hybrid(bm25_weight=0), "ab q")
    by_words = await ranking(Hybrid(dense_weight=0), "ab zz zz")
    assert [legs.get("dense") for _, legs in by_dense] == [1, 2, 3]
    assert [legs.get("bm25") for _, legs in by_words][:2] == [1, 2]


async def test_the_pool_is_at_least_k() -> None:
    assert len(await ranking(Hybrid(pool=1), "bb", k=3)) == 3
    assert len(await ranking(Hybrid(pool=1), "aa", k=1)) == 1


async def test_legs_travel_together(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports())
    await Hybrid(pool=7).answer(Question("debt"), tools)
    [search] = [step for step in tools.trace if step.name == "search"]
    assert search.detail["legs"] == ["dense", "bm25"]
    assert search.detail["limits"] == [20, 20]
    assert search.ops == {"dense": 3, "sparse": 3}


async def test_a_company_named_narrows_the_search(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports())
    answer = await Hybrid().answer(Question("What is the debt of Globex?"), tools)
    assert {hit.chunk.document_id for hit in answer.passages} == {"globex-2022"}
    tools = Tools(await make_ports())
    answer = await Hybrid(query_filters=False).answer(Question("What is the debt of Globex?"), tools)
    assert {hit.chunk.document_id for hit in answer.passages} == {"globex-2022", "acme-2023"}
    assert "catalogue" not in [step.name for step in tools.trace]


async def test_where_the_company_named_has_nothing_the_filter_given_stands(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports())
    where = Filter((Condition("fiscal_year", "$eq", 2023),))
    answer = await Hybrid().answer(Question("Globex's debt", where=where), tools)
    assert {hit.chunk.document_id for hit in answer.passages} == {"acme-2023"}
    assert "relaxed" in [step.name for step in tools.trace]


async def test_fused_by_scores_a_hit_far_ahead_in_one_leg_stays_ahead() -> None:
    texts = ["debt debt debt", "a debt", "be bat tub", "zzz"]
    hits = (await Hybrid(fusion="scores").answer(Question("debt", k=4), Tools(await fake_ports(texts=texts)))).passages
    bm25 = {hit.chunk.text: hit.legs["bm25"].score if "bm25" in hit.legs else 0.0 for hit in hits}
    assert sum(hit.score for hit in hits) == pytest.approx(0.0, abs=1e-9)
    assert hits[0].chunk.text == max(bm25, key=lambda text: bm25[text]) == "debt debt debt"
    by_ranks = (await Hybrid().answer(Question("debt", k=4), Tools(await fake_ports(texts=texts)))).passages
    assert all(hit.score < 2 / 60 for hit in by_ranks)


class LastFirst:
    """Prefers what the fusion put last."""

    name = "last-first"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return [float(n) for n in range(len(passages))]


async def test_a_cross_encoders_scores_are_added_to_the_legs_over_the_best() -> None:
    tools = Tools(await fake_ports(texts=TEXTS, generator=QuotingGenerator(), reranker=LastFirst()))
    answer = await Hybrid(c=0, rerank=2).answer(Question("bb"), tools)
    # Fused: "bb q" 1/1 + 1/1, "ab" 1/2, "aa zz" 1/3. Of two, the better of a leg stands 1 above its mean: "bb q" in
    # dense alone (bm25 found but one), "ab" in the cross-encoder's. Equal sums are ordered by id; the rest comes below.
    first, second, third = answer.passages
    assert ({first.chunk.text, second.chunk.text}, third.chunk.text) == ({"bb q", "ab"}, "aa zz")
    assert (first.score, second.score) == (0, 0)
    assert first.chunk.id < second.chunk.id
    assert third.score == pytest.approx(1 / 3 - 1 / 2)
    ranks = {hit.chunk.text: hit.legs["rerank"].rank for hit in (first, second)}
    assert ranks == {"ab": 1, "bb q": 2}
    assert tools.cost.ops_by_kind["rerank"] == 2


async def test_reranking_without_a_cross_encoder_says_which_setting() -> None:
    tools = Tools(await fake_ports(texts=TEXTS, generator=QuotingGenerator()))
    with pytest.raises(InvalidOptions, match="RERANKER_MODEL"):
        await Hybrid(rerank=5).answer(Question("bb"), tools)


async def test_a_third_leg_is_searched_in_the_same_round_trip_and_fused() -> None:
    ports = await fake_ports()
    tools = Tools(replace(ports, sparse={**ports.sparse, "splade": WordEncoder()}))
    answer = await Hybrid(splade_weight=2.0).answer(Question("revenue"), tools)
    [search] = [step for step in tools.trace if step.name == "search"]
    assert search.detail["legs"] == ["dense", "bm25", "splade"]
    assert search.detail["hits"] == [3, 2, 0], "no chunk has a splade vector here"
    assert set(answer.passages[0].legs) == {"dense", "bm25"}


async def test_a_third_leg_that_the_index_lacks_is_an_error_rather_than_left_out() -> None:
    with pytest.raises(InvalidOptions, match="splade"):
        await Hybrid(splade_weight=1.0).answer(Question("revenue"), Tools(await fake_ports()))


async def with_splade() -> Ports:
    """All three texts have a learned vector, here of their words again."""
    ports = await fake_ports(texts=TEXTS, generator=QuotingGenerator())
    chunks = await ports.store.chunks([str(uuid5(NAMESPACE_OID, text)) for text in TEXTS], Filter())
    words, dense = WordEncoder().passages(TEXTS), await LetterEmbedder().passages(TEXTS)
    vectors = [ChunkVectors(d, {"bm25": w, "splade": w}) for d, w in zip(dense, words, strict=True)]
    assert isinstance(ports.store, FakeStore)
    await ports.store.put_chunks(chunks, vectors)
    return replace(ports, sparse={**ports.sparse, "splade": WordEncoder()})


async def test_the_third_leg_is_searched_where_the_index_has_it() -> None:
    tools = Tools(await with_splade())
    answer = await Hybrid(c=0).answer(Question("bb"), tools)
    assert {name: leg.rank for name, leg in answer.passages[0].legs.items()} == {"bm25": 1, "dense": 1, "splade": 1}
    assert answer.passages[0].score == 3.0
    assert tools.cost.ops_by_kind == {"dense": 3, "sparse": 6}
    silenced = Tools(await with_splade())
    await Hybrid(splade_weight=0).answer(Question("bb"), silenced)
    assert silenced.cost.ops_by_kind == {"dense": 3, "sparse": 3}


async def test_late_interaction_reorders_the_best_and_is_priced_by_rows() -> None:
    ports = await fake_ports(texts=("q abab", "ab", "x bb"), generator=QuotingGenerator())
    tools = Tools(replace(ports, tokens=LetterEmbedder()))
    answer = await Hybrid(late=2).answer(Question("bb x"), tools)
    scores = {hit.chunk.text: hit.legs["late"].score for hit in answer.passages if "late" in hit.legs}
    assert len(scores) == 2
    assert scores["x bb"] == pytest.approx(1.0)
    # Two words of the question, each a row over each of the two passages' words.
    assert tools.cost.ops_by_kind["late"] == 4
    assert [hit.rank for hit in answer.passages] == [1, 2, 3]
    with pytest.raises(InvalidOptions, match="late"):
        await Hybrid(late=2).answer(Question("bb"), Tools(ports))
