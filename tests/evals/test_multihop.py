"""A graph of names over a retrieval set, whose second hop no single passage of the question's words reaches."""

import json
from pathlib import Path

import pytest

from app.adapters.bm25 import Bm25Encoder
from app.types import Chunk, DocumentMeta, Hit
from evals import irsets
from evals.multihop import phrase_graph
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio

TITLES = {"mill": "Alder Mill (Ohio)", "doe": "Jane Doe", "dam": "Birch Dam"}
TEXTS = {
    "mill": "Alder Mill (Ohio)\nThe mill was founded in 1901 by Jane Quincy Doe.",
    "doe": "Jane Doe\nJane Doe was born in Reykjavik and died in Oslo.",
    "dam": "Birch Dam\nThe dam was founded in 1955 by engineers of the county.",
}
QUERIES = {"1": "Where was the founder of Alder Mill born?"}


def hit(name: str, rank: int, score: float) -> Hit:
    meta = DocumentMeta(name, name)
    return Hit(Chunk(name, name, 0, 1, 0, 1, "x", "", "text", None, meta), rank, score)


def test_a_walk_goes_on_to_the_one_whom_the_named_document_names() -> None:
    graph = phrase_graph(TEXTS, TITLES, QUERIES)
    assert graph.asked == {"1": ["alder mill"]}
    assert set(graph.passages["alder mill"]) == {"mill"}, "its title, without what tells it from others"
    assert graph.passages["jane doe"]["doe"] >= 2, "its title and its text"
    assert ("jane doe", "jane quincy doe") in graph.alike
    near = [hit("mill", 1, 0.9), hit("dam", 2, 0.2), hit("doe", 3, 0.1)]
    assert graph.order("1", near, 0.5) == ["mill", "doe", "dam"]


async def test_its_recall_stands_beside_that_of_hybrid(tmp_path: Path) -> None:
    corpus = [{"_id": key, "title": TITLES[key], "text": text.partition("\n")[2]} for key, text in TEXTS.items()]
    for name, rows in (("corpus", corpus), ("queries", [{"_id": key, "text": text} for key, text in QUERIES.items()])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tmill\t1\n1\tdoe\t1\n", encoding="utf-8")
    [plain] = await irsets.evaluate(tmp_path, LetterEmbedder(), Bm25Encoder())
    assert plain.graph_against_hybrid is None
    [found] = await irsets.evaluate(tmp_path, LetterEmbedder(), Bm25Encoder(), graph=True)
    assert found.ndcg["graph"] > 0
    assert found.recall5.keys() - plain.recall5.keys() == {"graph", "graph+hybrid"}
    assert found.recall5["hybrid"] == plain.recall5["hybrid"]
    assert found.graph_against_hybrid is not None
    assert found.graph_against_hybrid.n == 1
    assert " 1.000 |" in irsets.multihop_table([found])
    assert irsets.multihop_table([plain]).count("\n") == 2, "no row"
