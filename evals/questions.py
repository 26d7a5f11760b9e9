"""Questions with gold answers and the pages that hold the evidence, from a JSONL file or a BEIR folder."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from evals.errors import QuestionFileError

RELIABLE = frozenset({"annotated", "annotated-page", "verified-string", "derived-numeric-all"})
"""Kinds of evidence good enough to score pages by. Every other kind is scored at document level only."""

UNANSWERABLE = "unanswerable"
"""The class whose questions the collection cannot answer: abstaining is right."""


@dataclass(frozen=True, slots=True)
class Evidence:
    document: str
    """Stem of the filing's file name."""
    page: int | None = None
    """Position in the PDF, first is 1; None where only the document is known."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    kind: str
    """Its class: numeric, comparison, bridge, global, unanswerable, ..."""
    answer: str = ""
    figure: str = ""
    """The one number asked for, such as `$869 million`, where the file names it; else the answer's numbers count."""
    evidence: tuple[Evidence, ...] = ()
    evidence_kind: str = "annotated"
    filters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        return self.kind != UNANSWERABLE

    @property
    def reliable(self) -> bool:
        return self.evidence_kind in RELIABLE

    @property
    def documents(self) -> frozenset[str]:
        """Stems of the filings that hold evidence; empty where there is nothing to find."""
        return frozenset(e.document for e in self.evidence) if self.answerable else frozenset()

    @property
    def pages(self) -> frozenset[tuple[str, int]]:
        """Evidence pages; empty where their kind is too weak to score by."""
        if not (self.answerable and self.reliable):
            return frozenset()
        return frozenset((e.document, e.page) for e in self.evidence if e.page is not None)


def stem(source: str) -> str:
    """`file:///filings/ACME_2023_10K.pdf`, a path or a bare name -> `ACME_2023_10K`."""
    path = unquote(urlsplit(source).path) if "://" in source else source
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return re.sub(r"\.(?:pdf|x?html?|txt)$", "", name, flags=re.IGNORECASE)


def load_questions(path: Path) -> list[Question]:
    """A JSONL file of {id, question, class, answer, evidence: [{doc, page, text}], evidence_kind}, or a BEIR folder.

    Raises QuestionFileError.
    """
    try:
        questions = _from_beir(path) if path.is_dir() else [_question(row) for row in _rows(path)]
    except OSError as error:
        raise QuestionFileError(f"{path}: {error.strerror}") from error
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise QuestionFileError(f"{path}: the id {question.id!r} occurs twice")
        seen.add(question.id)
    if not questions:
        raise QuestionFileError(f"{path} holds no question")
    return questions


def sampled(questions: Sequence[Question], most: int, seed: int) -> list[Question]:
    """`most` of them drawn at random, each class by its share and none left out while `most` allows, in their order."""
    draw = random.Random(seed)
    of_kind: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        of_kind.setdefault(question.kind, []).append(place)
    for places in of_kind.values():
        draw.shuffle(places)
    firsts = sorted(of_kind.values(), key=len, reverse=True)
    shares = [(rank / len(places), places[rank]) for places in firsts for rank in range(len(places))]
    chosen = [place for _, place in sorted(shares, key=lambda share: share[0])[:most]]
    return [questions[place] for place in sorted(chosen)]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise QuestionFileError(f"{path}, line {number}: not JSON ({error})") from error
            if not isinstance(row, dict):
                raise QuestionFileError(f"{path}, line {number}: not a JSON object")
            yield row


def _question(row: dict[str, Any]) -> Question:
    try:
        items = row.get("evidence") or []
        evidence = tuple(Evidence(stem(e["doc"]), e.get("page"), e.get("text") or "") for e in items)
        if not evidence:
            evidence = tuple(Evidence(stem(name)) for name in row.get("docs") or ())
        return Question(
            id=str(row["id"]),
            text=row["question"],
            kind=row.get("class") or "all",
            answer=str(row.get("answer") or ""),
            figure=_figure(row["value"], row.get("unit") or "") if "value" in row else "",
            evidence=evidence,
            evidence_kind=row.get("evidence_kind") or "annotated",
            filters=row.get("filters") or {},
        )
    except (KeyError, TypeError, AttributeError) as error:
        needed = "id, question and evidence[].doc are needed"
        raise QuestionFileError(f"question {row.get('id')!r}: {error!r}; {needed}") from error


def _figure(value: float, unit: str) -> str:
    """869.0 and `USD millions` -> `$869 million`."""
    words = unit.lower().split()
    money = "$" if "usd" in words else ""
    scale = next((f" {w.removesuffix('s')}" for w in words if w.endswith(("thousands", "millions", "billions"))), "")
    return f"{money}{value:.12g}{'%' if 'percent' in words else scale}"


@dataclass(frozen=True, slots=True)
class Collection:
    """A BEIR folder: the retrieval set's documents, queries and judgements by id."""

    documents: Mapping[str, str]
    """Title, newline, text."""
    queries: Mapping[str, str]
    """The judged ones alone."""
    qrels: Mapping[str, Mapping[str, int]]
    titles: Mapping[str, str]
    """Of the documents that have one."""


def load_beir(folder: Path, qrels: str = "qrels.tsv") -> Collection:
    """`corpus.jsonl`, `queries.jsonl` and tab-separated judgements with a heading line. Raises QuestionFileError."""
    try:
        rows = list(_rows(folder / "corpus.jsonl"))
        judged = _qrels(folder, qrels)
        asked = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl") if row["_id"] in judged}
        documents = {row["_id"]: f"{row['title']}\n{row['text']}" if row.get("title") else row["text"] for row in rows}
    except (OSError, KeyError, ValueError) as error:
        raise QuestionFileError(f"{folder} is no BEIR folder: {error}") from error
    titles = {row["_id"]: row["title"] for row in rows if row.get("title")}
    return Collection(documents, asked, {query: judged[query] for query in asked}, titles)


def _qrels(folder: Path, name: str) -> dict[str, dict[str, int]]:
    """Relevant documents by query; a query without any is left out."""
    path = next((p for p in (folder / name, folder / "qrels" / "test.tsv") if p.exists()), folder / name)
    judged: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            query, *_, document, grade = line.rstrip("\n").split("\t")
            if grade.lstrip("-").isdigit() and int(grade) > 0:
                judged.setdefault(query, {})[document] = int(grade)
    return judged


def _from_beir(folder: Path) -> list[Question]:
    """Queries over filings whose documents are named by their file stems; no answers, no pages."""
    judged = _qrels(folder, "qrels.tsv")
    return [
        Question(row["_id"], row["text"], "all", evidence=tuple(Evidence(stem(d)) for d in judged[row["_id"]]))
        for row in _rows(folder / "queries.jsonl")
        if row["_id"] in judged
    ]
