"""A cross-encoder's gain on candidates whose orders can be worked out by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.types import Chunk, DocumentMeta, Hit, LegRank
from evals import reranking
from evals.questions import Evidence, Question
from evals.reranking import ALONE, LEGS, RANKS, SCORES, WITHOUT, Candidates
from tests.conftest import MakePorts
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio


def hit(name: str, rank: int, dense: float, bm25: float) -> Hit:
    chunk = Chunk(name, name, 0, 1, 0, 1, name, "", "text", None, DocumentMeta(name, f"{name}.pdf"))
    return Hit(chunk, rank, 1 / rank, {"dense": LegRank(rank, dense), "bm25": LegRank(rank, bm25)})


CANDIDATES = Candidates(
    "q",
    (hit("a", 1, 0.9, 9.0), hit("b", 2, 0.8, 8.9), hit("c", 3, 0.1, 1.0)),
    ("a", "b", "c"),
    ("A", "B", "C"),
    {"B": 1},
)


class Scripted:
    name = "scripted"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return [{"a": -1.0, "b": 4.0, "c": 5.0}[passage] for passage in passages]


class ByLength:
    name = "by length"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return [-float(len(passage)) for passage in passages]


async def test_each_order_of_the_same_candidates() -> None:
    scores, speed = await reranking.scored([CANDIDATES], Scripted())
    found = reranking.measured("set", [CANDIDATES], scores, speed)
    gains = {gain.order: gain for gain in found.gains}
    assert (found.found, found.depth, found.queries) == (1, 3, 1)
    # Without: a b c. Alone: c b a. By ranks a leads: 2/61 + 1/63 > 3/62. By scores b does, near the best of every leg.
    assert gains[WITHOUT].first == gains[LEGS].first == 0
    assert gains[ALONE].ndcg == pytest.approx(1 / 1.5849625)
    assert gains[RANKS].first == 0
    assert gains[SCORES].first == 1
    assert (gains[SCORES].against.wins, gains[SCORES].against.damages) == (1, 0)
    assert "| set | 1 | 1.000 | standard scores | 1.000 |" in " ".join(reranking.table([found]).split())


async def test_a_set_is_read_by_its_best_passages(tmp_path: Path) -> None:
    long = "\n".join([*["Nothing of note happened in this quarter." for _ in range(40)], "Goodwill was impaired."])
    rows = {
        "corpus.jsonl": [{"_id": "x", "title": "", "text": long}, {"_id": "y", "title": "", "text": "Freight."}],
        "queries.jsonl": [{"_id": "1", "text": "goodwill impaired"}, {"_id": "2", "text": "freight"}],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tx\t1\n2\ty\t1\n", "utf-8")
    found = {c.query: c for c in await reranking.of_set(tmp_path, LetterEmbedder(), 30, 10)}
    one = found["goodwill impaired"]
    assert set(one.items) == {"x", "y"}
    read = one.read[one.items.index("x")]
    assert read.endswith("Goodwill was impaired.")
    assert len(read) <= 900
    assert one.gold == {"x": 1}
    assert len(await reranking.of_set(tmp_path, LetterEmbedder(), 30, 1)) == 1


async def test_a_document_in_passages_ranks_where_its_best_one_does(tmp_path: Path) -> None:
    filler = ["Nothing of note happened in this quarter." for _ in range(40)]
    rows = {
        "corpus.jsonl": [
            {"_id": "x", "title": "", "text": "\n".join([*filler, "Goodwill was impaired."])},
            {"_id": "y", "title": "", "text": "Freight."},
        ],
        "queries.jsonl": [{"_id": "1", "text": "goodwill impaired"}],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tx\t1\n", "utf-8")
    [found] = await reranking.of_set(tmp_path, LetterEmbedder(), 30, 10, passages=True)
    assert sorted(found.items) == ["x", "x", "y"]
    assert found.read == tuple(hit.chunk.text for hit in found.hits)
    assert found.read[0].endswith("Goodwill was impaired.")
    scores, speed = await reranking.scored([found], ByLength())
    gains = {gain.order: gain for gain in reranking.measured("set", [found], scores, speed).gains}
    # The shortest passage is y's alone; of x, the first of its two decides.
    assert (gains[ALONE].first, gains[WITHOUT].first) == (0, 1)
    assert gains[ALONE].ndcg == pytest.approx(1 / 1.5849625)


async def test_questions_give_hybrids_candidates_by_page(make_ports: MakePorts) -> None:
    known = Question("1", "What was Acme's debt?", "numeric", evidence=(Evidence("acme-2023", 2),))
    unknown = Question("2", "Why?", "numeric", evidence=(Evidence("acme-2023"),))
    [found] = await reranking.of_questions([known, unknown], await make_ports(), 5)
    assert found.gold == {"acme-2023 page 2": 1}
    assert "acme-2023 page 2" in found.items
    assert found.read[0].startswith("Acme 10-K 2023\n")
