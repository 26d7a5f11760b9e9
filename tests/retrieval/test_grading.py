"""What is known of a passage at query time, by hand on small pools."""

from dataclasses import replace

import pytest

from app.question.companies import strangers
from app.question.reading import Reading, read
from app.retrieval.calibration import FEATURES
from app.retrieval.grading import features, missing
from app.types import Chunk, Document, DocumentMeta, Hit, LegRank

ACME = DocumentMeta("Acme 10-K 2023", "acme.pdf", company="Acme", form="10-K", fiscal_year=2023)
GLOBEX = DocumentMeta("Globex 10-K 2021", "globex.pdf", company="Globex", form="10-K", fiscal_year=2021)


def hit_of(text: str, meta: DocumentMeta, **legs: float) -> Hit:
    chunk = Chunk(text, meta.source, 0, 1, 0, len(text), text, "", "text", None, meta)
    return Hit(chunk, 1, 0.0, {name: LegRank(1, score) for name, score in legs.items()})


def test_features_of_a_pool() -> None:
    hits = [
        hit_of("Debt was $4 million.", ACME, rerank=3.0, dense=0.8, bm25=4.0),
        hit_of("The weather was fine all year.", GLOBEX, rerank=-1.0, bm25=1.0),
    ]
    first, second = (
        dict(zip(FEATURES, row, strict=True)) for row in features("Acme debt 2023", Reading((), ("Acme",)), hits)
    )
    assert (first["logit"], second["logit"]) == (3.0, -1.0)
    assert (first["cosine"], second["cosine"]) == (0.8, 0.8)
    assert (first["coverage"], second["coverage"]) == (1.0, 0.0)
    assert (first["period"], second["period"]) == (1.0, 0.0)
    assert (first["company"], second["company"]) == (1.0, 0.0)
    assert (first["agreed"], second["agreed"]) == (60 / 61, 0.0)
    assert (first["periods"], first["line"], first["unmatched"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("question", "title", "label", "line"),
    [
        ("What was Acme's net income in 2023?", "Consolidated Statements of Income", "Net income", 1.0),
        ("What was Acme's net income in 2023 and 2030?", "Consolidated Statements of Income", "Net income", 0.5),
        ("What was Acme's net income in 2023?", "Quarterly results", "Net income", 0.0),
        ("What was Acme's net income in 2023?", "Consolidated Statements of Income", "Gross profit", 0.0),
        ("Who leads Acme?", "Consolidated Statements of Income", "Net income", 0.0),
    ],
)
def test_a_line_asked_for_counts_by_the_periods_it_can_tell_of(
    question: str, title: str, label: str, line: float
) -> None:
    row = hit_of(f"{label} 1,577 1,373", ACME, rerank=0.0, dense=0.5, bm25=1.0)
    table = replace(row, chunk=replace(row.chunk, context=f"{ACME.title}\n{title}", kind="table"))
    [found] = features(question, Reading((), ("Acme",)), [table])
    assert dict(zip(FEATURES, found, strict=True))["line"] == line


def test_more_than_two_periods_say_no_more_than_two() -> None:
    hits = [hit_of("Debt was $4 million.", ACME, rerank=3.0, dense=0.8, bm25=4.0)]
    told = [
        dict(zip(FEATURES, features(question, Reading(()), hits)[0], strict=True))["periods"]
        for question in ("debt", "debt in 2023", "debt in 2022 and 2023", "debt in 2021, 2022 and 2023")
    ]
    assert told == [0, 1, 2, 2]


def test_a_passage_is_agreed_on_by_the_lower_of_its_ranks() -> None:
    hit = hit_of("Debt was $4 million.", ACME, rerank=3.0)
    legs = {"dense": LegRank(20, 0.4), "bm25": LegRank(3, 9.0)}
    [row] = features("debt", Reading(()), [replace(hit, legs={**hit.legs, **legs})])
    assert dict(zip(FEATURES, row, strict=True))["agreed"] == 60 / 80


def test_a_question_that_asks_for_filings_there_are_none_of() -> None:
    hits = [hit_of("Debt was $4 million.", ACME, rerank=3.0, dense=0.8, bm25=0.0)]
    [row] = features("Acme debt 2030", Reading((), ("Acme",), ("2030",), relaxed=("2030",)), hits)
    known = dict(zip(FEATURES, row, strict=True))
    assert (known["unmatched"], known["period"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What was Umbrella Corporation's revenue?", ("Umbrella Corporation",)),
        ("What is ABC's return on assets?", ("ABC",)),
        ("Which risks does Soylent Foods Inc. name?", ("Soylent Foods Inc",)),
        ("Does Wayne have debt?", ("Wayne",)),
        ("What's the company's revenue?", ()),
        ("How did net sales of Azure develop?", ()),
        ("what were soylent's total assets?", ("soylent",)),
        ("what are the drivers of a company's and the vendor's risks?", ()),
        ("WHAT WAS WAYNE'S DEBT?", ("WAYNE",)),
        ("Is Wayne's debt rising?", ("Wayne",)),
        ("Describe Wayne's role.", ("Wayne",)),
        ("Compare Q1's and FY2023's revenue.", ()),
        ("Let's see Today's backlog and the Audit Committee's charter.", ()),
        ("Has Revenue grown? Did Net Income rise? Does Management's outlook differ?", ()),
        ("What was Capital One's revenue?", ("Capital One",)),
    ],
)
def test_names_given_as_a_companys(question: str, names: tuple[str, ...]) -> None:
    assert strangers(question) == names


def filing(year: int, period: str, end: str) -> Document:
    meta = DocumentMeta("t", "s", company="Acme", form="10-Q", fiscal_year=year, fiscal_period=period, period_end=end)
    return Document(f"{year}{period}", "", meta, 1, 1)


@pytest.mark.parametrize(
    ("question", "beyond"),
    [
        ("Acme's revenue in 2026", ("2026",)),
        ("Acme's revenue in 2025", ()),
        ("Acme's revenue in Q3 2024", ()),
        ("Acme's revenue in Q1 2025", ()),
        ("Acme's revenue in Q2 2025", ("Q2 2025",)),
        ("Acme's revenue for the quarter ended December 31, 2024", ("2024-12-31",)),
        ("Acme's revenue in 2024 and 2026", ()),
        ("What capital spending does Acme expect for 2026?", ()),
        ("What did Acme buy in January 2026?", ()),
        ("Which emissions target has Acme set for 2030?", ()),
        ("How much of its fleet is to be electric by the end of 2030 at Acme?", ()),
        ("What lease payments does Acme have in 2027?", ()),
        ("Which agreements of Acme expire in 2031?", ()),
        ("Acme's revenue to 2030", ("2030",)),
    ],
)
def test_periods_after_the_last_filing(question: str, beyond: tuple[str, ...]) -> None:
    """Whose fiscal 2025 began in July 2024."""
    catalogue = [filing(2024, "Q4", "2024-06-30"), filing(2025, "Q1", "2024-09-30")]
    assert read(question, catalogue).beyond == beyond


def test_what_the_index_cannot_hold() -> None:
    passages = [hit_of("Debt was $4 million. Umbrella Corporation is a customer.", ACME)]
    assert missing("Acme's debt in 2023", Reading(()), passages) == ()
    assert missing("Acme's debt in 2019", Reading(()), passages) == ("2019",)
    assert missing("debt", Reading((), strangers=("Umbrella Corporation", "Soylent")), passages) == ("Soylent",)
    assert missing("Acme's debt", Reading((), beyond=("2030",)), passages) == ("2030",)
    assert missing("debt", Reading((), strangers=("umbrella", "soylent")), passages) == ("soylent",)
    assert missing("debt", Reading((), strangers=("ACME", "CUSTOM")), passages) == ("ACME", "CUSTOM")
    assert missing("DEBT", Reading((), strangers=("Acme",)), [hit_of("ACME owes $4 million.", ACME)]) == ()
