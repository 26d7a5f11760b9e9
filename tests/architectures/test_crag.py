"""CRAG: what the best grade calls for, what is searched anew, what is kept of a passage, and honest refusals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.adapters.external_folder import FolderSearch
from app.architectures.crag import Crag
from app.errors import InvalidOptions, Unavailable
from app.http.metrics import Metrics
from app.retrieval.grading import GRADE
from app.tools import Ports, Tools
from app.types import Question
from tests.conftest import FILINGS, MakePorts
from tests.fakes import LOGIT_ALONE, QuotingGenerator, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio

LOGIT = {0.9: 2.1972, 0.5: 0.0, 0.1: -2.1972}


@dataclass
class Graded:
    """A cross-encoder that gives passages the logits of these grades by a word that they hold, else of 0.1."""

    by_word: Mapping[str, float]
    name: str = "graded"

    async def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return [LOGIT[next((g for w, g in self.by_word.items() if w in p.lower()), 0.1)] for p in passages]


def verdicts(tools: Tools) -> list[tuple[str, Any, Any]]:
    return [
        (step.name, step.detail["action"], step.detail["best"])
        for step in tools.trace
        if step.name in ("verdict", "second verdict")
    ]


async def test_a_correct_passage_is_answered_from_at_once(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"debt": 0.9})))
    answer = await Crag().answer(Question("debt"), tools)
    assert verdicts(tools) == [("verdict", "correct", 0.9)]
    assert answer.citations
    best = answer.passages[0]
    assert best.chunk.text.startswith("Debt was")
    assert best.legs[GRADE].score == pytest.approx(0.9, abs=1e-4)
    assert (best.legs[GRADE].rank, best.legs["rerank"].rank) == (1, 1)
    assert [step.name for step in tools.trace].count("search") == 1


async def test_passages_stand_in_the_order_of_their_grades(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"weather": 0.9, "debt": 0.5})))
    answer = await Crag(strips=0).answer(Question("revenue risk debt", k=2), tools)
    found = [
        (hit.chunk.document_id, hit.chunk.page, hit.rank, round(hit.legs["grade"].score, 2)) for hit in answer.passages
    ]
    assert found == [("globex-2022", 1, 1, 0.9), ("acme-2023", 2, 2, 0.5)]


async def test_an_ambiguous_one_is_searched_for_again_in_other_words(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"debt": 0.5})))
    answer = await Crag(pool=1).answer(Question("What is Acme's debt?"), tools)
    assert verdicts(tools) == [("verdict", "ambiguous", 0.5), ("second verdict", "ambiguous", 0.5)]
    [rewritten] = [step.detail["terms"] for step in tools.trace if step.name == "rewritten"]
    assert "borrow" in rewritten
    searches = [step.detail["limits"] for step in tools.trace if step.name == "search"]
    assert searches == [[100, 100], [300, 300]]
    assert {hit.chunk.document_id for hit in answer.passages} == {"acme-2023"}
    assert answer.citations


async def test_an_incorrect_one_is_looked_for_beyond_the_filings_named(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"weather": 0.9})))
    answer = await Crag().answer(Question("What does Acme say of risk?"), tools)
    assert verdicts(tools) == [("verdict", "incorrect", 0.1), ("second verdict", "correct", 0.9)]
    assert answer.passages[0].chunk.document_id == "globex-2022"


async def test_where_nothing_grades_it_refuses_and_names_the_nearest(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({})))
    answer = await Crag().answer(Question("What was Acme's dividend in 2019?"), tools)
    assert (answer.reason, answer.citations) == ("off_corpus", ())
    assert "Nearest: Acme 10-K 2023, page" in answer.text
    assert answer.notes == ("no filing of Acme is for 2019; there are Acme 10-K 2023",)
    assert "generate" not in [step.name for step in tools.trace]
    assert (await Crag().answer(Question("Acme's dividend"), tools)).reason == "not_supported"


async def test_a_company_without_filings_or_mention_is_off_corpus(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"debt": 0.9})))
    answer = await Crag().answer(Question("What was Umbrella Corporation's debt?"), tools)
    assert answer.reason == "off_corpus"
    assert verdicts(tools) == [("verdict", "incorrect", 0.0)]
    assert answer.notes == ("no filing here is of Umbrella Corporation; there are filings of Acme, Globex",)


async def test_a_language_model_rewrites_where_there_is_one(make_ports: MakePorts) -> None:
    generator = ScriptedGenerator(["total borrowings", "Debt was $4 million [1]."])
    tools = Tools(await make_ports(generator, reranker=Graded({"debt": 0.5})))
    await Crag().answer(Question("debt"), tools)
    assert tools.cost.llm_calls_by_purpose == {"rewrite": 1, "answer": 1}
    assert [step.detail["terms"] for step in tools.trace if step.name == "rewritten"] == ["total borrowings"]


async def test_the_first_action_is_counted(make_ports: MakePorts) -> None:
    metrics = Metrics()
    for grades in ({"debt": 0.9}, {"debt": 0.5}, {}):
        tools = Tools(await make_ports(reranker=Graded(grades)))
        with metrics.question("crag", tools):
            await Crag().answer(Question("debt"), tools)
    counted = [line for line in metrics.render().decode().splitlines() if line.startswith("rag_crag_actions_total{")]
    assert sorted(counted) == [
        'rag_crag_actions_total{action="ambiguous"} 1.0',
        'rag_crag_actions_total{action="correct"} 1.0',
        'rag_crag_actions_total{action="incorrect"} 1.0',
    ]


async def test_thresholds_given_replace_the_calibrated_ones(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(reranker=Graded({"debt": 0.5})))
    await Crag(upper=0.4, rewrite=False).answer(Question("debt"), tools)
    assert verdicts(tools) == [("verdict", "correct", 0.5)]


LONG = "The plant opened. It has a roof. It is red. Debt was 4 million. It fell. Rates rose. The board met. It ate."


async def strips_of(grades: Mapping[str, float], **options: Any) -> list[tuple[int, int, str]]:
    ports = await fake_ports(texts=(LONG,), generator=QuotingGenerator(), reranker=Graded(grades))
    tools = Tools(replace(ports, calibration=LOGIT_ALONE))
    answer = await Crag(**options).answer(Question("debt"), tools)
    return [(hit.chunk.start, hit.chunk.end, hit.chunk.text) for hit in answer.passages]


async def test_a_passage_keeps_its_strips_that_grade_in_its_order() -> None:
    found = await strips_of({"debt": 0.9, "board": 0.5, "plant": 0.1})
    assert found == [(44, len(LONG), LONG[44:])]
    assert await strips_of({"debt": 0.9}) == [(44, 84, "Debt was 4 million. It fell. Rates rose.")]


async def test_the_best_strip_stays_whatever_its_grade_and_strips_can_be_off() -> None:
    assert [text for _, _, text in await strips_of({LONG.lower(): 0.9, "debt": 0.1})] != []
    assert await strips_of({"debt": 0.9}, strips=0) == [(0, len(LONG), LONG)]


async def test_outside_sources_are_named_and_never_cited(make_ports: MakePorts, tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("Dividends of Acme rose in 2019.\n\nThe weather was fine.")
    ports: Ports = await make_ports(reranker=Graded({}), external=FolderSearch(tmp_path))
    answer = await Crag(external=True).answer(Question("What was Acme's dividend in 2019?"), Tools(ports))
    assert answer.abstained
    assert answer.notes[-1] == "outside the filings, news.txt: Dividends of Acme rose in 2019."
    assert {hit.chunk.document_id for hit in answer.passages} <= set(FILINGS)
    with pytest.raises(InvalidOptions, match="EXTERNAL_DIR"):
        await Crag(external=True).answer(Question("Acme's dividend"), Tools(replace(ports, external=None)))


async def test_without_a_cross_encoder_it_says_which_setting(make_ports: MakePorts) -> None:
    with pytest.raises(Unavailable, match="RERANKER_MODEL"):
        await Crag().answer(Question("debt"), Tools(await make_ports(reranker=None)))
