"""Rewriting: what is searched for in other words, and that each search and call is on the bill."""

import json

import pytest

from app.architectures.hybrid import Hybrid
from app.errors import GeneratorUnavailable, LimitExceeded
from app.question.glossary import reworded
from app.question.rewriting import Rewrite, searches, synonyms
from app.tools import Tools
from app.types import Answer, Filter, Limits, Question
from tests.conftest import MakeClient, MakePorts
from tests.fakes import QuotingGenerator, ScriptedGenerator

pytestmark = pytest.mark.anyio

LINE = "Debt was $4 million [1]."
BOTH = "Compare the risk of Acme and Globex"


def listed(*questions: str) -> str:
    return json.dumps({"questions": questions})


async def asked(make: MakePorts, rewrite: Rewrite, question: str, *replies: str) -> tuple[Answer, Tools]:
    tools = Tools(await make(ScriptedGenerator([*replies, LINE]) if replies else QuotingGenerator()))
    return await Hybrid(rewrite=rewrite).answer(Question(question), tools), tools


def rewritten(tools: Tools) -> list[list[str]]:
    [step] = [step for step in tools.trace if step.name == "rewritten"]
    found: list[list[str]] = step.detail["searches"]
    return found


def test_synonyms_spell_out_abbreviations_and_head_periods_as_filings_do() -> None:
    assert {"earn", "per", "share"} <= set(synonyms("EPS of the year"))
    assert "second quarter three months ended" in synonyms("sales in Q2 2023")
    assert "fiscal year ended" in synonyms("sales in FY2023")
    assert synonyms("auditor on June 30, 2023") == []


def test_the_glossary_puts_one_phrase_otherwise_at_a_time() -> None:
    assert reworded("Net sales and EPS", 9) == [
        *("revenue and EPS", "revenues and EPS", "net revenues and EPS", "total revenues and EPS", "turnover and EPS"),
        *("Net sales and earnings per share", "Net sales and net income per share"),
    ]
    assert reworded("the auditor", 9) == []
    assert len(reworded("Net sales", 3)) == 3


async def test_as_it_is_the_question_is_searched_for_alone(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports())
    question = Question("debt")
    [own] = await searches("none", question, "debt terms", Filter(), tools)
    assert (own.text, own.terms, tools.trace) == ("debt", "debt terms", [])


async def test_expansion_adds_terms_and_costs_nothing(make_ports: MakePorts) -> None:
    unexpanded, plain = await asked(make_ports, "none", "borrowings in 2023")
    answer, tools = await asked(make_ports, "expand", "borrowings in 2023")
    before, after = (
        next(hit.legs["bm25"].score for hit in each.passages if hit.chunk.text.startswith("Debt"))
        for each in (unexpanded, answer)
    )
    assert after > before
    [[text, terms]] = rewritten(tools)
    assert text == "borrowings in 2023"
    assert {"debt", "fiscal"} <= set(terms.split())
    assert tools.cost.ops_by_kind == plain.cost.ops_by_kind == {"dense": 3, "sparse": 3}


async def test_a_comparison_is_searched_part_by_part_in_its_own_filings(make_ports: MakePorts) -> None:
    answer, tools = await asked(make_ports, "decompose", BOTH)
    assert [text for text, _ in rewritten(tools)] == [
        BOTH,
        "Compare the risk of Acme",
        "Compare the risk of Globex",
    ]
    # All three chunks, then Acme's two, then Globex's one.
    assert tools.cost.ops_by_kind == {"dense": 6, "sparse": 6}
    assert {name for hit in answer.passages for name in hit.legs} >= {"dense", "dense 2", "dense 3"}
    second = {hit.chunk.document_id for hit in answer.passages if "dense 2" in hit.legs}
    assert second == {"acme-2023"}


async def test_what_no_rule_splits_a_model_does(make_ports: MakePorts) -> None:
    _, tools = await asked(make_ports, "decompose", "the debt and who is owed", listed("the debt", "who is owed"))
    assert [text for text, _ in rewritten(tools)][1:] == ["the debt", "who is owed"]
    assert tools.cost.llm_calls_by_purpose == {"decompose": 1, "answer": 1}
    assert tools.cost.ops_by_kind == {"dense": 9, "sparse": 9}
    _, without = await asked(make_ports, "decompose", "the debt and who is owed")
    assert len(rewritten(without)) == 1


async def test_stepping_back_needs_a_model(make_ports: MakePorts, make_client: MakeClient) -> None:
    _, tools = await asked(make_ports, "step_back", "debt due in 2027", "How is it financed?\nBecause ...")
    assert [text for text, _ in rewritten(tools)] == ["debt due in 2027", "How is it financed?"]
    assert tools.cost.llm_calls_by_purpose == {"step_back": 1, "answer": 1}
    with pytest.raises(GeneratorUnavailable, match="OPENAI_BASE_URL"):
        await asked(make_ports, "step_back", "debt")
    async with make_client() as client:
        reply = await client.post("/query/hybrid", json={"question": "debt", "options": {"rewrite": "step_back"}})
    assert (reply.status_code, reply.json()["error_code"]) == (503, "generator_unavailable")


async def test_other_wordings_by_a_model_or_by_rule(make_ports: MakePorts) -> None:
    _, tools = await asked(make_ports, "multi_query", "debt", listed("borrowings", "debt", "borrowings", " "))
    assert [text for text, _ in rewritten(tools)] == ["debt", "borrowings"]
    assert tools.cost.llm_calls_by_purpose == {"rewrite": 1, "answer": 1}
    _, tools = await asked(make_ports, "multi_query", "What was the debt?")
    assert [text for text, _ in rewritten(tools)] == [
        "What was the debt?",
        "What was the borrowings?",
        "What was the notes payable?",
    ]
    assert tools.cost.llm_calls == 0
    assert tools.cost.ops_by_kind == {"dense": 9, "sparse": 9}


@pytest.mark.parametrize(
    "nonsense", ["no JSON", "[]", "[" * 100_000, '{"questions": 3}', '{"other": []}', '{"questions": [1, null]}']
)
async def test_what_a_model_wrote_askew_leaves_the_question(make_ports: MakePorts, nonsense: str) -> None:
    answer, tools = await asked(make_ports, "multi_query", "debt", nonsense)
    assert len(rewritten(tools)) == 1
    assert answer.citations


async def test_its_calls_are_limited(make_ports: MakePorts) -> None:
    tools = Tools(await make_ports(ScriptedGenerator([listed("x"), LINE])), Limits(max_llm_calls=1))
    with pytest.raises(LimitExceeded):
        await Hybrid(rewrite="multi_query").answer(Question("debt"), tools)
    assert tools.cost.llm_calls_by_purpose == {"rewrite": 1}
