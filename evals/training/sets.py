"""Groups from public question sets: pairs of a query and its document, and labelled passages."""

import json
import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evals.passages import Bm25Index, passages_of
from evals.training.groups import Group

_POOL = 30
_NEGATIVES = 8


def document_groups(folder: Path, pairs: str, rng: random.Random, limit: int) -> list[Group]:
    """Of a set in BEIR's form with `pairs`, a JSONL file of {query, pos: document id}.

    A document is stood for by its passage with the highest BM25. Documents that answer a judged query of the set are
    neither positive nor negative, and a query that the set asks is left out: both belong to the evaluation.
    """
    judged, asked = _judged(folder), {_plain(row["text"]) for row in _rows(folder / "queries.jsonl")}
    texts: list[str] = []
    owners: list[str] = []
    for row in _rows(folder / "corpus.jsonl"):
        if row["_id"] not in judged:
            found = passages_of(row["text"])
            texts += found
            owners += [row["_id"]] * len(found)
    owner = np.array(owners)
    index = Bm25Index(texts)
    usable = [p for p in _rows(folder / pairs) if p["pos"] not in judged and _plain(p["query"]) not in asked]
    groups: list[Group] = []
    for pair in rng.sample(usable, min(limit, len(usable))):
        scores = index.scores(pair["query"])
        own = np.flatnonzero(owner == pair["pos"])
        others = [int(i) for i in np.argsort(-scores, kind="stable")[: _POOL + len(own)] if owner[i] != pair["pos"]]
        negatives = sorted(rng.sample(others, min(_NEGATIVES, len(others))), key=lambda i: -scores[i])
        positive = texts[own[np.argmax(scores[own])]]
        groups.append(Group(folder.name, pair["query"], positive, tuple(texts[i] for i in negatives)))
    return groups


def labelled_groups(path: Path, rng: random.Random, limits: Mapping[str, int]) -> list[Group]:
    """Of a JSONL file of {source, qid, query, passage, label}: so many queries of each source named in `limits`."""
    passages: dict[tuple[str, str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for row in _rows(path):
        if row["source"] in limits:
            passages[row["source"], row["qid"], row["query"]][row["label"]].append(row["passage"])
    groups: list[Group] = []
    for source, limit in sorted(limits.items()):
        usable = [(key[2], found) for key, found in passages.items() if key[0] == source and all(found)]
        for query, (wrong, right) in rng.sample(usable, min(limit, len(usable))):
            groups.append(Group(source, query, rng.choice(right), tuple(wrong[:_NEGATIVES])))
    return groups


def _judged(folder: Path) -> set[str]:
    """Documents that answer a judged query, under any of the set's files of judgements."""
    lines = [line for path in folder.glob("qrels*.tsv") for line in path.read_text("utf-8").splitlines()[1:]]
    return {line.split("\t")[-2] for line in lines}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
