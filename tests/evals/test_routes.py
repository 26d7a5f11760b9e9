"""What a matrix run teaches the router, and how far a router is from the best it could do."""

from app.types import Measured
from evals.asking import Outcome
from evals.matrix import Scores
from evals.questions import Question
from evals.routes import catalogue, kinds_of, measured, regret
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


FIXED = [scores("naive", {"a": 1.0, "b": 0.0, "c": 0.0}, 10), scores("hybrid", {"a": 0.5, "b": 1.0, "c": 0.0}, 30)]


def test_quality_and_price_by_kind() -> None:
    kinds = kinds_of(QUESTIONS, catalogue([RECORD]))
    assert kinds == {"a": "named", "b": "named", "c": "calculation"}
    others = [scores("auto", {"a": 1.0, "b": 1.0, "c": 0.0}, 5), scores("hyde", {"a": 1.0}, 5, {"n": 2})]
    assert measured([*FIXED, *others], QUESTIONS, kinds, "answer") == {
        "calculation": [Measured("naive", 1, 0.0, 10.0, 1.0), Measured("hybrid", 1, 0.0, 30.0, 1.0)],
        "named": [Measured("naive", 2, 0.5, 10.0, 1.0), Measured("hybrid", 2, 0.75, 30.0, 1.0)],
    }


def test_the_distance_to_the_best_fixed_architecture_and_to_the_oracle() -> None:
    rows = regret([*FIXED, scores("auto", {"a": 1.0, "b": 1.0, "c": 0.0}, 5)], QUESTIONS, "answer").splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells[0][0] == "answer, n = 3"
    assert cells[2:] == [
        ["naive", "0.333", "-0.167", "-0.333"],
        ["hybrid", "0.500", "+0.000", "-0.167"],
        ["auto", "0.667", "+0.167", "+0.000"],
        ["oracle", "0.667", "+0.167", "+0.000"],
    ]
