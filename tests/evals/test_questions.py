"""Question files as teams write them, and as they get them wrong."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import QuestionFileError
from evals.questions import Evidence, Question, load_beir, load_questions, sampled, stem

ROW: dict[str, Any] = {
    "id": "q1",
    "question": "What were net sales in USD millions?",
    "answer": "$869 million",
    "class": "numeric",
    "evidence": [{"doc": "ACME_2023_10K", "page": 12, "text": "net sales 869"}],
    "evidence_kind": "verified-string",
    "value": 869.0,
    "unit": "USD millions",
}


def write(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "qa.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_a_question_with_its_evidence(tmp_path: Path) -> None:
    [question] = load_questions(write(tmp_path, ROW))
    assert question.pages == {("ACME_2023_10K", 12)}
    assert question.documents == {"ACME_2023_10K"}
    assert (question.kind, question.answerable, question.figure) == ("numeric", True, "$869 million")


@pytest.mark.parametrize(
    ("value", "unit", "figure"),
    [(1.38, "USD per share", "$1.38"), (-6.5, "percent", "-6.5%"), (12, "", "12"), (2.0, "USD billions", "$2 billion")],
)
def test_figures(tmp_path: Path, value: float, unit: str, figure: str) -> None:
    [question] = load_questions(write(tmp_path, {**ROW, "value": value, "unit": unit}))
    assert question.figure == figure


@pytest.mark.parametrize("kind", ["derived-lexical", "derived-numeric-low", "derived-numeric-partial", "guessed"])
def test_weak_evidence_names_documents_but_no_pages(tmp_path: Path, kind: str) -> None:
    [question] = load_questions(write(tmp_path, {**ROW, "evidence_kind": kind}))
    assert question.documents == {"ACME_2023_10K"}
    assert not question.pages


def test_an_unanswerable_question_has_nothing_to_find(tmp_path: Path) -> None:
    [question] = load_questions(write(tmp_path, {**ROW, "class": "unanswerable"}))
    assert (question.answerable, len(question.documents), len(question.pages)) == (False, 0, 0)


def test_documents_without_pages(tmp_path: Path) -> None:
    row = {"id": 1, "question": "Who?", "docs": ["A", "B.pdf"]}
    [question] = load_questions(write(tmp_path, row, ""))
    assert question.evidence == (Evidence("A"), Evidence("B"))
    assert question.id == "1"
    assert question.documents == {"A", "B"}
    assert not question.pages


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW, "{not json"], "line 2: not JSON"),
        ([ROW, ROW], "'q1' occurs twice"),
        (["[1]"], "line 1: not a JSON object"),
        ([{"id": "q"}], "question 'q': KeyError"),
        ([{**ROW, "evidence": [{"page": 1}]}], "question 'q1': KeyError"),
        ([""], "no question"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(QuestionFileError, match=message.replace("[", r"\[")):
        load_questions(write(tmp_path, *rows))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(QuestionFileError, match="No such file"):
        load_questions(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("filings/ACME_2023_10K.pdf", "ACME_2023_10K"),
        ("file:///filings/ACME%202023.PDF", "ACME 2023"),
        ("s3://bucket/2023/ACME_2023-03-10_8K.pdf?version=2", "ACME_2023-03-10_8K"),
        ("ACME_2023_10K", "ACME_2023_10K"),
        ("C:\\filings\\acme.v2.pdf", "acme.v2"),
        ("https://host/a/ACME%202023.htm", "ACME 2023"),
        ("0000012345-23-000106.txt", "0000012345-23-000106"),
        ("acme.v2.HTML", "acme.v2"),
    ],
)
def test_stems(source: str, name: str) -> None:
    assert stem(source) == name


def test_a_beir_folder(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "A.pdf", "title": "T", "text": "x"}\n{"_id": "B", "text": "y"}\n', encoding="utf-8"
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "who"}\n{"_id": "2", "text": "unjudged"}\n', encoding="utf-8"
    )
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\tA.pdf\t2\n1\tB\t0\n", encoding="utf-8")
    collection = load_beir(tmp_path)
    assert collection.documents == {"A.pdf": "T\nx", "B": "y"}
    assert (collection.queries, collection.qrels) == ({"1": "who"}, {"1": {"A.pdf": 2}})
    [question] = load_questions(tmp_path)
    assert question.id == "1"
    assert question.documents == {"A"}


def of_kinds(**counts: int) -> list[Question]:
    return [Question(f"{kind}-{n}", "?", kind) for kind, count in counts.items() for n in range(count)]


def test_a_sample_has_each_class_by_its_share() -> None:
    drawn = sampled(of_kinds(numeric=50, bridge=5, unanswerable=45), 20, seed=0)
    assert Counter(q.kind for q in drawn) == {"numeric": 10, "bridge": 1, "unanswerable": 9}
    assert drawn == [q for q in of_kinds(numeric=50, bridge=5, unanswerable=45) if q in drawn]


def test_another_seed_draws_others_and_the_same_seed_the_same() -> None:
    questions = of_kinds(numeric=50, bridge=50)
    assert sampled(questions, 10, seed=1) == sampled(questions, 10, seed=1) != sampled(questions, 10, seed=2)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1), st.integers(1, 60), st.integers())
def test_a_sample_leaves_no_class_out_and_none_is_far_from_its_share(
    counts: dict[str, int], most: int, seed: int
) -> None:
    questions = of_kinds(**counts)
    drawn = Counter(q.kind for q in sampled(questions, most, seed))
    assert drawn.total() == min(most, len(questions))
    assert len(drawn) == min(most, len(counts))
    for kind, count in counts.items():
        assert abs(drawn[kind] - min(most, len(questions)) * count / len(questions)) <= len(counts)
