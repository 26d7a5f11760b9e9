"""From which residual on a hop is worth it, by the evidence it finds."""

import json
from itertools import pairwise

import pytest

from evals.errors import UsageError
from evals.questions import Evidence, Question
from evals.residuals import THRESHOLDS, Fitted, fitted, table, to_json
from tests.architectures.two_companies import ports

pytestmark = pytest.mark.anyio

HOP = "How many people in all are employed by the company that sells steel to Acme under a contract?"


def question(text: str, *pages: tuple[str, int]) -> Question:
    return Question(text[:9], text, "bridge", evidence=tuple(Evidence(name, page) for name, page in pages))


async def test_evidence_is_found_up_to_the_residual_of_the_passage_that_leads_to_it() -> None:
    two = question(HOP, ("Acme 10-K 2022", 1), ("Globex 10-K 2022", 1))
    plain = question("Where does the steel of Acme come from?", ("Acme 10-K 2022", 1))
    names, direction = await fitted(await ports(), [two, plain], k=4)
    assert (names.follow, names.questions, direction.follow) == ("names", 1, "direction")
    assert list(names.recall) == list(THRESHOLDS)
    assert (names.recall[0.0], names.recall[1.0]) == (1.0, 0.5)
    falls = [t for t, after in pairwise(THRESHOLDS) if names.recall[t] > names.recall[after]]
    assert len(falls) == 1
    assert names.threshold == pytest.approx(falls[0] / 2)


@pytest.mark.parametrize(
    ("recall", "taken"),
    [
        ({0.0: 0.5, 0.5: 0.5, 1.0: 0.5}, 0.5),
        ({0.0: 0.9, 0.5: 0.9, 1.0: 0.5}, 0.25),
        ({0.0: 0.1, 0.5: 0.2, 1.0: 0.5}, 1.0),
    ],
)
def test_the_middle_of_the_best_is_taken(recall: dict[float, float], taken: float) -> None:
    assert Fitted("names", 3, recall).threshold == taken


async def test_without_a_question_that_leads_on_there_is_nothing_to_fit_to() -> None:
    plain = question("Where does the steel of Acme come from?", ("Acme 10-K 2022", 1))
    with pytest.raises(UsageError, match="nothing to fit"):
        await fitted(await ports(), [plain, question(HOP)], k=4)


def test_it_is_told_with_its_number_of_questions() -> None:
    every = dict.fromkeys(THRESHOLDS, 0.25)
    found = [Fitted("names", 7, every), Fitted("direction", 0, {0.5: 0.0})]
    text = table(found)
    assert "names (n = 7)" in text
    assert text.endswith("taken: names 0.5, direction 0.5\n")
    assert json.loads(to_json(found))["least_residual"] == {"names": 0.5, "direction": 0.5}
