"""The judge by rules, its agreement with labels, and RAGAS's measures, on examples worked out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evals.errors import UsageError
from evals.judging.agreement import Label, agreement, kappa, load_labels
from evals.judging.judge import RuleJudge, Verdict, claims, gold_statement
from evals.judging.ragas import Ragas, context_precision
from evals.questions import Question
from tests.fakes import LetterEmbedder

pytestmark = pytest.mark.anyio

TABLE = (
    "Plover Foods 10-K 2023\nIncome (in millions, except per share data): 2023; 2022\n"
    "Net sales $ 812 $ 790\nNet income 96 103\nEarnings per share 1.20 1.31"
)
PROSE = "Plover Foods 10-K 2023\nDividends of EUR 14 million were paid. We did not repurchase shares in 2023."


@pytest.mark.parametrize(
    ("claim", "passage", "supported"),
    [
        ("Net sales were $812 million in 2023.", TABLE, True),
        ("Net sales were $0.812 billion in 2023.", TABLE, True),
        ("Net sales were about $810 million in 2023.", TABLE, True),
        ("Net sales were $810 million in 2023.", TABLE, False),
        ("Net sales were $812 billion in 2023.", TABLE, False),
        ("Net sales were $790 million in 2023.", TABLE, False),
        ("Net sales were $790 million in 2022.", TABLE, True),
        ("Net sales were $96 million in 2023.", TABLE, False),
        ("Net sales were $812 million in 2021.", TABLE, False),
        ("Curlew Bank net sales were $812 million in 2023.", TABLE, False),
        ("Earnings per share were $1.20 in 2023.", TABLE, True),
        ("Earnings per share were $1.20 million in 2023.", TABLE, False),
        ("Dividends of EUR 14 million were paid.", PROSE, True),
        ("Dividends of $14 million were paid.", PROSE, False),
        ("Shares were not repurchased in 2023.", PROSE, True),
        ("We did repurchase shares in 2023.", PROSE, False),
        ("The auditor resigned.", PROSE, False),
    ],
)
async def test_a_claim_is_supported_or_not(claim: str, passage: str, supported: bool) -> None:
    assert await RuleJudge(LetterEmbedder()).attribute(claim, ["nothing here", passage]) == [Verdict(claim, supported)]


async def test_direction_counts() -> None:
    judge = RuleJudge(LetterEmbedder())
    found = await judge.attribute("Freight costs rose by $36 million.", ["Freight costs fell by $36 million."])
    assert [v.supported for v in found] == [False]


def test_claims_are_sentences_without_markers() -> None:
    assert claims("Sales rose 5% [1]. Costs fell [2][3].\nNet income: 4 [1]\n12 [1]") == [
        "Sales rose 5%.",
        "Costs fell.",
        "Net income: 4",
    ]


def test_a_bare_figure_is_claimed_with_its_question() -> None:
    assert gold_statement("What were net sales?", "$812 million") == "What were net sales: $812 million"
    assert gold_statement("Why?", "Prices rose and so did volumes.") == "Prices rose and so did volumes."


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([], 0.0),
        ([False, False], 0.0),
        ([True, True], 1.0),
        ([False, True, False, True], (1 / 2 + 2 / 4) / 2),
        ([True, False, True], (1 + 2 / 3) / 2),
    ],
)
def test_context_precision(useful: list[bool], expected: float) -> None:
    assert context_precision(useful) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("1100", "1100", 1.0),
        ("1100", "0011", -1.0),
        ("1100", "1010", 0.0),
        ("1111", "1111", 0.0),
        ("11110000", "11100001", 0.5),
    ],
)
def test_kappa(a: str, b: str, expected: float) -> None:
    """The last: observed 6/8, expected 1/2, so (3/4 - 1/2) / (1/2)."""
    assert kappa([c == "1" for c in a], [c == "1" for c in b]) == pytest.approx(expected)


class Scripted:
    """A judge that says what it is told: a claim is supported where it holds `yes`."""

    name = "scripted"

    async def attribute(self, text: str, passages: Sequence[str]) -> list[Verdict]:
        return [Verdict(part, "yes" in part) for part in text.split(";") if part.strip()]

    async def asked(self, answer: str) -> list[str]:
        return ["abb", "b"] if answer else []

    async def useful(self, question: str, gold: str, passages: Sequence[str]) -> list[bool]:
        return ["good" in passage for passage in passages]


def reply(answer: str, *passages: str, abstained: bool = False) -> dict[str, Any]:
    found = [{"rank": n, "title": "t", "context": "", "text": text} for n, text in enumerate(passages, 1)]
    return {"answer": answer, "abstained": abstained, "passages": found}


async def test_measures_by_hand() -> None:
    """Letters: the question `a` is (1, 0); asked back are (1, 2)/√5 and (0, 1), so cosines 1/√5 and 0."""
    ragas = Ragas(Scripted(), LetterEmbedder())
    question = Question("q", "a", "numeric", answer="yes it is so and; it is not so at all")
    found = await ragas.measures(question, reply("yes; no; yes; no [1]", "bad", "good"))
    assert found == pytest.approx(
        {"faithfulness": 0.5, "answer_relevancy": 0.2**0.5 / 2, "context_precision": 0.5, "context_recall": 0.5}
    )


async def test_a_refusal_is_irrelevant_but_not_unfaithful() -> None:
    ragas = Ragas(Scripted(), LetterEmbedder())
    found = await ragas.measures(Question("q", "a", "numeric", answer="yes"), reply("No answer.", abstained=True))
    assert found == {"answer_relevancy": 0.0, "context_precision": 0.0, "context_recall": 1.0}
    assert await ragas.measures(Question("q", "a", "unanswerable"), reply("No answer.", abstained=True)) == {}


async def test_agreement_counts_both_ways_of_being_wrong() -> None:
    labels = [
        Label("yes", "p", True),
        Label("yes", "p", False, "wrong year"),
        Label("no", "p", True, "paraphrase"),
        Label("yes; no", "p", False),
    ]
    found = await agreement(Scripted(), labels, "own")
    assert (found.n, found.accuracy, found.kappa, found.falsely_supported, found.falsely_denied) == (4, 0.5, 0, 1, 1)
    assert found.wrong_by_kind == {"wrong year": "1 of 1", "paraphrase": "1 of 1"}


def test_the_labels_that_come_along_are_balanced_and_unique() -> None:
    labels = load_labels()
    assert (len(labels), sum(label.supported for label in labels)) == (96, 46)
    assert len({(label.claim, label.passage) for label in labels}) == 96
    assert {label.part for label in labels} == {"seen", "unseen"}


@pytest.mark.parametrize("line", ["{}", "nonsense", "", '{"claim": "a", "passage": "b", "supported": "yes"}'])
def test_unreadable_labels_are_explained(line: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(line, "utf-8")
    with pytest.raises(UsageError, match=r"labels\.jsonl"):
        load_labels(path)
