"""What a matrix run teaches the router, and how far a router is from the best it could do."""

from app.types import Measured
from evals.asking import Outcome
from evals.matrix import Scores
from evals.questions import Question
from evals.routes import catalogue, choices, kinds_of, measured
from evals.subjects import System

RECORD = {
    "document_id": "acme-1", "title": "Acme 10-K", "source": "acme.pdf", "company": "Acme", "cik": None, "ticker": None,
    "form": "10-K", "fiscal_year": 2022, "fiscal_period": "FY", "period_end": "2022-12-31", "filed": None,
    "pages": 3, "chunks": 9,
}  # fmt: skip
QUESTIONS = [
    Question("a", "What was Acme's revenue in 2022?", "x"),
    Question("b", "What was Acme's debt in 2022?", "x"),
    Question("c", "What was Acme's current ratio in 2022?", "x"),
]


def scores(name: str, values: dict[str, float], ops: int, options: dict[str, int] | None = None) -> Scores:
    cost = {"ops": ops, "llm_calls": 1}
    outcomes = {id_: Outcome(name, id_, {"cost": cost}, None, 0.0) for id_ in values}
    return Scores(System(name, name, options or {}), outcomes, {id_: {"answer": v} for id_, v in values.items()}, {})


FIXED = [scores("naive", {"a": 1.0, "b": 0.0, "c": 0.0}, 10), scores("agentic", {"a": 0.5, "b": 1.0, "c": 0.0}, 30)]


def test_quality_and_price_by_kind() -> None:
    kinds = kinds_of(QUESTIONS, catalogue([RECORD]))
    assert kinds == {"a": "named", "b": "named", "c": "calculation"}
    others = [scores("auto", {"a": 1.0, "b": 1.0, "c": 0.0}, 5), scores("hyde", {"a": 1.0}, 5, {"n": 2})]
    assert measured([*FIXED, *others], QUESTIONS, kinds, "answer") == {
        "calculation": [Measured("naive", 1, 0.0, 10.0, 1.0), Measured("agentic", 1, 0.0, 30.0, 1.0)],
        "named": [Measured("naive", 2, 0.5, 10.0, 1.0), Measured("agentic", 2, 0.75, 30.0, 1.0)],
    }


def test_auto_against_each_fixed_architecture_and_the_oracle() -> None:
    auto = scores("auto", {"a": 1.0, "b": 1.0, "c": 0.0}, 5)
    kinds = kinds_of(QUESTIONS, catalogue([RECORD]))
    found = choices([*FIXED, auto], QUESTIONS, kinds, "answer")
    told = [(each.name, each.role, round(each.quality.mean or 0, 3), round(each.ops, 1)) for each in found]
    assert told == [
        ("naive", "fixed", 0.333, 10.0),
        ("agentic", "fixed", 0.5, 30.0),
        ("auto", "router", 0.667, 5.0),
        ("auto by this matrix", "router", 0.5, 30.0),
        ("oracle", "oracle", 0.667, 16.7),
    ]
    assert {each.llm_calls for each in found} == {1}


def test_the_oracle_pays_for_the_cheapest_of_the_best() -> None:
    dear = scores("hybrid", {"a": 1.0, "b": 1.0, "c": 1.0}, 30)
    cheap = scores("naive", {"a": 1.0, "b": 1.0, "c": 0.0}, 10)
    oracle = choices([dear, cheap], QUESTIONS, kinds_of(QUESTIONS, catalogue([RECORD])), "answer")[-1]
    assert (oracle.quality.mean, round(oracle.ops, 1)) == (1.0, 16.7)


def test_no_question_is_routed_by_its_own_result() -> None:
    """Of twelve questions of a kind naive answers the first six and hybrid the others: by the others, always wrong."""
    questions = [Question(f"{n}", "What was Acme's revenue in 2022?", "x") for n in range(12)]
    fixed = [
        scores("naive", {f"{n}": float(n < 6) for n in range(12)}, 10),
        scores("hybrid", {f"{n}": float(n >= 6) for n in range(12)}, 10),
    ]
    found = choices(fixed, questions, kinds_of(questions, catalogue([RECORD])), "answer")
    assert {each.name: each.quality.mean for each in found} == {
        "naive": 0.5,
        "hybrid": 0.5,
        "auto by this matrix": 0.0,
        "oracle": 1.0,
    }


def test_one_architecture_alone_leaves_nothing_to_choose() -> None:
    assert choices(FIXED[:1], QUESTIONS, kinds_of(QUESTIONS, catalogue([RECORD])), "answer") == []
