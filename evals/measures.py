"""What a reply is worth: rankings against evidence, answers against gold answers, citations against both."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from app.evidence.quantities import matched, quantities
from evals.questions import Question, stem

Reply: TypeAlias = Mapping[str, Any]
"""A reply of /query, as parsed JSON."""
Place: TypeAlias = tuple[str, int]
"""A filing's stem and a page, first is 1."""

HITS = (1, 5, 10)
"""Cutoffs of hit@k, in passages."""

_MARKER = re.compile(r"\[\d+\]")
_WORD = re.compile(r"[a-z0-9]+(?:[.,][0-9]+)*")
_ARTICLES = frozenset({"a", "an", "the"})


def places(reply: Reply) -> list[Place]:
    """Where the reply's passages stand, best first; one that scored 0 was found by a silenced leg alone: left out."""
    passages = sorted(reply["passages"], key=lambda p: p["rank"])
    return [(stem(p["source"]), p["page"]) for p in passages if p["score"] != 0]


def rank_measures(
    gold: Mapping[str, Mapping[str, int]], ranked: Mapping[str, Sequence[str]], depth: int = 100
) -> dict[str, dict[str, float]]:
    """hit@1/5/10, recall@5, @10 and @depth, RR, nDCG@10 and all@10 per query id, by ir-measures (pytrec_eval).

    `gold` holds the relevant items of each query and their grades, `ranked` its passages' items, best first. Ranks
    count passages: an item stands where its first passage does, and a further passage of it takes up a rank and gains
    nothing. So a page cannot be counted twice, and k is what a generator reads. all@10 is 1 where no relevant item is
    missing from the first ten.
    """
    from ir_measures import RR, R, Success, iter_calc, nDCG

    names = {Success @ k: f"hit@{k}" for k in HITS}
    names |= {R @ 5: "recall@5", R @ 10: "recall@10", R @ depth: f"recall@{depth}", RR: "RR", nDCG @ 10: "nDCG@10"}
    run = {query: _scores(ranked.get(query, ())) for query in gold}
    found: dict[str, dict[str, float]] = {query: dict.fromkeys(names.values(), 0.0) for query in gold}
    qrels = {query: dict(items) for query, items in gold.items()}
    for metric in iter_calc(list(names), qrels, run):
        found[metric.query_id][names[metric.measure]] = float(metric.value)
    for values in found.values():
        values["all@10"] = float(values["recall@10"] >= 1 - 1e-9)
    return found


def _scores(items: Sequence[str]) -> dict[str, float]:
    seen: set[str] = set()
    scores: dict[str, float] = {}
    for position, item in enumerate(items):
        scores[f"{item} again at {position}" if item in seen else item] = float(-position)
        seen.add(item)
    return scores


def retrieval(questions: Sequence[Question], replies: Mapping[str, Reply], depth: int) -> dict[str, dict[str, float]]:
    """`document hit@1`, `page nDCG@10`, ... per question id; page measures where the evidence is reliable."""
    ranked = {q.id: places(replies[q.id]) for q in questions if q.id in replies}
    out: dict[str, dict[str, float]] = {key: {} for key in ranked}
    documents = {q.id: dict.fromkeys(q.documents, 1) for q in questions if q.id in ranked and q.documents}
    pages = {q.id: {_key(p): 1 for p in q.pages} for q in questions if q.id in ranked and q.pages}
    by_document = {key: [document for document, _ in found] for key, found in ranked.items()}
    by_page = {key: [_key(place) for place in found] for key, found in ranked.items()}
    for level, gold, run in (("document", documents, by_document), ("page", pages, by_page)):
        for key, values in (rank_measures(gold, run, depth) if gold else {}).items():
            out[key] |= {f"{level} {name}": value for name, value in values.items()}
    return out


def _key(place: Place) -> str:
    return f"{place[0]} page {place[1]}"


def answer_measures(question: Question, reply: Reply) -> dict[str, float]:
    """Where each applies: refusal, false_refusal, number_match, number_recall, token_f1, and `answer`, their summary.

    refusal is right where the collection has no answer; so is citing the page that denies a false premise. `answer` is
    refusal there; elsewhere 0 for an abstention, else number_recall where the gold answer has numbers, else token_f1.
    """
    abstained = float(reply["abstained"])
    if not question.answerable:
        denied = {(e.document, e.page) for e in question.evidence} & _cited(reply)
        refusal = max(abstained, float(bool(denied)))
        return {"refusal": refusal, "answer": refusal}
    out = {"false_refusal": abstained}
    if not question.answer:
        return out
    text = "" if abstained else _MARKER.sub("", reply["answer"])
    wanted = quantities(question.figure or question.answer, hint=question.text)
    if wanted:
        found = quantities(text)
        out["number_recall"] = sum(matched(want, found) for want in wanted) / len(wanted)
        out["number_match"] = float(out["number_recall"] == 1)
    out["token_f1"] = token_f1(text, question.answer)
    out["answer"] = out.get("number_recall", out["token_f1"])
    return out


def token_f1(text: str, gold: str) -> float:
    """Harmonic mean of the precision and recall of words, case and articles aside (SQuAD; Rajpurkar et al., 2016)."""
    ours, theirs = _bag(text), _bag(gold)
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def _bag(text: str) -> Counter[str]:
    return Counter(word.replace(",", "") for word in _WORD.findall(text.lower()) if word not in _ARTICLES)


def citation_measures(question: Question, reply: Reply) -> dict[str, float]:
    """verified_rate of the citations; cited_precision and cited_recall of their pages, where evidence allows."""
    citations = reply["citations"]
    out = {"verified_rate": sum(c["verified"] for c in citations) / len(citations)} if citations else {}
    if question.pages:
        cited = _cited(reply)
        right = len(cited & question.pages)
        out["cited_recall"] = right / len(question.pages)
        if cited:
            out["cited_precision"] = right / len(cited)
    return out


def _cited(reply: Reply) -> set[Place]:
    return {(stem(c["source"]), c["page"]) for c in reply["citations"]}
