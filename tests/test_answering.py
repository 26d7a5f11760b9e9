"""From hits to an answer or an honest refusal."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.answering import answer_from
from app.architectures.hybrid import Hybrid
from app.architectures.naive import Naive
from app.ports import Generator
from app.prompts import REFUSAL
from app.tools import Tools
from app.types import AbstainReason, Answer, Condition, Filter, Generation, Leg, Prompt, Question, Unsupported
from tests.conftest import MakePorts
from tests.fakes import QuotingGenerator, ScriptedGenerator, fake_ports

pytestmark = pytest.mark.anyio


@dataclass
class Quoting(QuotingGenerator):
    """Quotes the first sentence of the first passage, or refuses; `exact` says that it is the line asked for."""

    abstained: AbstainReason | None = None
    exact: bool = False

    async def generate(self, prompt: Prompt) -> Generation:
        quoted = await QuotingGenerator.generate(self, prompt)
        text = "" if self.abstained else quoted.text
        return Generation(text, ops={"sparse": 7}, abstained=self.abstained, exact=self.exact)


async def answered(
    reply: str | Generation,
    *,
    text: str = "net revenue?",
    hits: bool = True,
    unsupported: Unsupported = "drop",
    quoting: Generator | None = None,
) -> tuple[Answer, Tools]:
    class Replying(ScriptedGenerator):
        async def generate(self, prompt: Prompt) -> Generation:
            generation = await ScriptedGenerator.generate(self, prompt)
            return reply if isinstance(reply, Generation) else generation

    generator = Replying([reply if isinstance(reply, str) else ""])
    tools = Tools(replace(await fake_ports(generator=generator), quoting=quoting))
    [query] = await tools.embed_queries(["net revenue was 10 million"])
    [result] = await tools.search([Leg("dense", query, 2)], Filter())
    return await answer_from(Question(text, unsupported=unsupported), result.hits if hits else (), tools), tools


async def test_a_cited_answer_keeps_its_passages() -> None:
    answer, tools = await answered("The net revenue was 10 million [1].")
    assert (answer.reason, len(answer.passages), len(answer.citations)) == (None, 2, 1)
    assert answer.citations[0].verified
    assert tools.cost.llm_calls_by_purpose == {"answer": 1}


async def test_no_hits_cost_no_call() -> None:
    answer, tools = await answered("never asked", hits=False)
    assert answer.reason == "no_passages"
    assert answer.abstained
    assert tools.cost.llm_calls == 0


@pytest.mark.parametrize("reply", [REFUSAL, f"{REFUSAL}.", f"I am sorry: {REFUSAL}"])
async def test_a_refusal_is_an_abstention_that_says_where_to_look(reply: str) -> None:
    answer, _ = await answered(reply)
    assert answer.reason == "not_supported"
    assert "Acme Corp 10-K FY2022, page 1" in answer.text
    assert answer.citations == ()


@pytest.mark.parametrize("reply", ["", "Revenue was 12 million.", "Litigation over asbestos continues [7]."])
async def test_an_answer_without_a_citation_is_withheld_and_said(reply: str) -> None:
    answer, _ = await answered(reply)
    assert answer.reason == "not_supported"
    assert "12 million" not in answer.text
    assert answer.notes


async def test_a_forgotten_marker_is_set_where_one_passage_carries_the_sentence() -> None:
    answer, _ = await answered("Net revenue was 10 million.")
    assert answer.text == "Net revenue was 10 million. [1]"
    assert answer.notes == ("passage [1] was found by the service to carry: Net revenue was 10 million.",)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("drop", "The net revenue was 10 million [1]."),
        ("flag", "The net revenue was 10 million [1]. Profit was 99 million [1]. (not supported)"),
        ("keep", "The net revenue was 10 million [1]. Profit was 99 million [1]."),
    ],
)
async def test_what_no_passage_carries_is_treated_as_asked(policy: Unsupported, text: str) -> None:
    answer, _ = await answered("The net revenue was 10 million [1]. Profit was 99 million [1].", unsupported=policy)
    assert answer.text == text
    assert any("Profit was 99 million" in note for note in answer.notes) == (policy != "keep")


async def test_a_generators_own_abstention_keeps_its_reason() -> None:
    answer, _ = await answered(Generation("", abstained="off_corpus"))
    assert answer.reason == "off_corpus"


@pytest.mark.parametrize(
    ("reply", "noted"),
    [
        (REFUSAL, ()),
        ("It was 12 million [1].", ("a sentence that no cited passage supports was removed: It was 12 million.",)),
    ],
)
async def test_where_nothing_of_a_models_answer_stands_the_passages_are_quoted(
    reply: str, noted: tuple[str, ...]
) -> None:
    answer, tools = await answered(reply, quoting=Quoting())
    assert (answer.text, answer.reason) == ("net revenue was 10 million [1].", None)
    assert [c.verified for c in answer.citations] == [True]
    assert answer.notes[: len(noted)] == noted
    assert answer.notes[-1].endswith("the best statements of them are quoted instead")
    assert tools.cost.llm_calls == 1
    assert tools.cost.ops_by_kind["sparse"] == 7


async def test_what_of_a_models_answer_stands_is_not_replaced_by_a_quotation() -> None:
    reply = "The board has nine members [2]. The net revenue was 10 million [1]. Profit was 99 million [1]."
    for exact in (False, True):
        answer, _ = await answered(reply, quoting=Quoting(exact=exact))
        assert answer.text == "The net revenue was 10 million [1]."


async def test_an_answer_without_a_figure_of_the_line_asked_for_gives_way_to_its_row() -> None:
    reply = "Revenue by segment and region [2]."
    answer, _ = await answered(reply, quoting=Quoting())
    assert answer.text == reply
    answer, _ = await answered(reply, quoting=Quoting(exact=True))
    assert answer.text == "net revenue was 10 million [1]."
    assert any(note.endswith(f"was withheld: {reply}") for note in answer.notes)
    for unsupported in ("flag", "keep"):
        answer, _ = await answered(reply, quoting=Quoting(exact=True), unsupported=unsupported)
        assert answer.text == reply


@pytest.mark.parametrize(
    ("reply", "stands"), [("Yes, revenue by segment [2].", False), ("Yes, revenue by segment and region [2].", True)]
)
async def test_an_answer_that_only_repeats_the_question_gives_way(reply: str, stands: bool) -> None:
    answer, _ = await answered(reply, quoting=Quoting(), text="Is there revenue by segment?")
    assert (answer.text == reply) == stands
    answer, _ = await answered(reply, text="Is there revenue by segment?")
    assert answer.text == reply


async def test_a_question_about_another_company_is_refused_before_anything_is_written() -> None:
    answer, tools = await answered("The net revenue was 10 million [1].", quoting=Quoting("off_corpus"))
    assert (answer.reason, tools.cost.llm_calls) == ("off_corpus", 0)
    answer, tools = await answered("The net revenue was 10 million [1].", quoting=Quoting("not_supported"))
    assert (answer.reason, tools.cost.llm_calls) == (None, 1)


@pytest.mark.parametrize("reply", [REFUSAL, "Revenue was 12 million [1]."])
async def test_what_cannot_be_quoted_either_is_refused(reply: str) -> None:
    answer, _ = await answered(reply, quoting=Quoting("not_supported"))
    assert (answer.reason, answer.citations) == ("not_supported", ())


async def test_who_follows_the_answer_is_told_that_it_begins_anew_with_the_quotation() -> None:
    events: list[tuple[str, Any]] = []
    ports = replace(await fake_ports(generator=ScriptedGenerator([REFUSAL])), quoting=Quoting())
    tools = Tools(ports, emit=lambda event, data: events.append((event, data)), streaming=True)
    await Naive().answer(Question("net revenue?", k=1), tools)
    heard = [event for event, _ in events if event != "stage"]
    assert heard == ["passages", "token", "token", "token", "token", "passages", "token"]
    assert events[-1] == ("token", "revenue by segment and region [1].")


async def test_a_filter_that_no_filing_matches_is_told_what_there_is() -> None:
    tools = Tools(await fake_ports())
    where = Filter((Condition("company", "$eq", "acme"), Condition("form", "$eq", "10-K")))
    answer = await answer_from(Question("net revenue?", where=where), (), tools)
    assert answer.reason == "no_passages"
    assert answer.notes == ("no filing has company 'acme'; there are: Acme Corp",)


async def test_what_the_index_cannot_hold_is_refused_before_anything_is_written(make_ports: MakePorts) -> None:
    """A company without a filing, or a year after the last one: no call is made for either."""
    for question in ("What was Wexhall Corporation's debt?", "What was the debt of Acme in 2031?"):
        tools = Tools(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."])))
        answer = await Hybrid().answer(Question(question), tools)
        assert answer.reason == "off_corpus"
        assert answer.passages
        assert [note for note in answer.notes if note.startswith("the index holds nothing of")]
        assert tools.cost.llm_calls == 0
    tools = Tools(await make_ports(ScriptedGenerator(["Debt was $4 million [1]."])))
    assert not (await Hybrid().answer(Question("What debt will Acme have due in 2031?"), tools)).abstained
