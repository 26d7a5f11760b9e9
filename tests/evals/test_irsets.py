"""Retrieval sets through the service's encoder, the embedded store and the fusion, on a set small enough to check."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from app.adapters.bm25 import Bm25Encoder
from evals import irsets
from evals.errors import QuestionFileError
from tests.conftest import DEV_DATA
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio

DOCUMENTS = {
    "a": "The goodwill of Acme was impaired.",
    "b": "Freight rates of Globex fell.",
    "c": "Acme and Globex merged; goodwill rose by the merger.",
    "d": "Weather.",
}
QUERIES = {"1": "impaired goodwill", "2": "freight rates", "3": "weather report", "4": "not judged"}
QRELS = {("1", "a"): 1, ("2", "b"): 1, ("3", "b"): 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = [{"_id": id_, "title": "", "text": text} for id_, text in DOCUMENTS.items()]
    queries = [{"_id": id_, "text": text} for id_, text in QUERIES.items()]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = [f"{query}\t{document}\t{grade}\n" for (query, document), grade in QRELS.items()]
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
    return tmp_path


async def test_bm25_alone(folder: Path) -> None:
    other = {"set": "other", "qrels": "qrels.tsv", "ndcg10": 0.9}
    rows = [other, {"set": folder.name, "qrels": "qrels.tsv", "ndcg10": 0.68}]
    [found] = await irsets.evaluate(folder, None, Bm25Encoder(), rows)
    assert (found.documents, found.queries) == (4, 3)
    assert set(found.ndcg) == {"bm25"}
    # Queries 1 and 2 have their document first; the third finds only the wrong one.
    assert found.ndcg["bm25"] == pytest.approx(2 / 3)
    assert found.hybrid_against_best is None
    assert "0.980" in irsets.table([found])
    assert irsets.short_of_baseline([found]) == []
    short = replace(found, baseline=0.69)
    assert irsets.short_of_baseline([found, short]) == [short]


async def test_both_legs_and_their_fusion(folder: Path) -> None:
    [found] = await irsets.evaluate(folder, LetterEmbedder(), Bm25Encoder())
    assert set(found.ndcg) == {"bm25", "dense", "hybrid"}
    assert found.recall["dense"] == 1
    assert found.hybrid_against_best is not None
    assert found.hybrid_against_best.n == 3
    assert " .667 |" in irsets.table([found])


async def test_in_passages_a_document_ranks_once_by_its_best(folder: Path) -> None:
    """Three passages of one long document match best; it takes the first place alone, and the judged one the second."""
    row = {"_id": "long", "title": "", "text": "\n".join("freight rates " * 60 for _ in range(3))}
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    [found] = await irsets.evaluate(folder, LetterEmbedder(), Bm25Encoder(), passages=True)
    assert (found.documents, found.queries) == (5, 3)
    # Of "impaired goodwill" the judged document is first, of "freight rates" second, of "weather report" not found.
    assert found.ndcg["bm25"] == pytest.approx((1 + 1 / math.log2(3)) / 3)
    assert found.recall["dense"] == 1


async def test_each_file_of_judgements_is_measured_on_its_own_queries(folder: Path) -> None:
    (folder / "qrels_few.tsv").write_text("query-id\tcorpus-id\tscore\n2\tb\t1\n", encoding="utf-8")
    whole, few = await irsets.evaluate(folder, LetterEmbedder(), Bm25Encoder())
    assert [(found.qrels, found.queries) for found in (whole, few)] == [("qrels.tsv", 3), ("qrels_few.tsv", 1)]
    assert few.ndcg["bm25"] == few.recall5["bm25"] == 1


async def test_a_folder_that_is_no_set_is_said(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match="No such file"):
        await irsets.evaluate(tmp_path, None, Bm25Encoder())


def test_the_encoder_is_fitted_to_the_set() -> None:
    assert irsets.fitted(Bm25Encoder(k1=1.0), ["weather rates", "weather"]) == Bm25Encoder(k1=1.0, average_length=1.5)


@pytest.mark.slow
async def test_bm25_reaches_its_baseline_on_a_public_set() -> None:
    sets = DEV_DATA / "ir"
    if not sets.exists():
        pytest.skip("the retrieval sets are not here")
    rows = json.loads((sets / "bm25_baseline.json").read_text("utf-8"))
    results = await irsets.evaluate(sets / "hotpotqa-100-dev", None, Bm25Encoder(), rows)
    assert [r.baseline for r in results] == [0.789]
    assert irsets.short_of_baseline(results) == []
