"""The filings matrix: architectures by classes of questions, what each wins, damages and costs against one of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals import conformance, measures
from evals.asking import Asking, Outcome
from evals.judging import ragas
from evals.measures import Reply
from evals.questions import Question
from evals.statistics import Estimate, Paired, estimate, holm, paired, pareto, quantile
from evals.subjects import System

ALL = "all"
"""The column that holds every class."""

MEASURES: Mapping[str, str] = {
    "answer": "share of the gold answer's numbers, else word overlap; a right refusal where there is none",
    "page hit@1": "an evidence page is the first passage's",
    "page hit@10": "an evidence page is among ten passages",
    "page all@10": "every evidence page is among ten passages",
    "page recall@10": "share of the evidence pages among ten passages",
    "page nDCG@10": "evidence pages early among ten passages",
    "page RR": "1 / rank of the first evidence page",
    "document hit@5": "a filing with evidence is among five passages",
    "number_recall": "share of the gold answer's numbers that are in the answer, unit, scale and rounding considered",
    "number_match": "every one of them is",
    "token_f1": "word overlap with the gold answer",
    "refusal": "abstains where the filings have no answer",
    "false_refusal": "abstains where they have one (lower is better)",
    "cited_precision": "share of cited pages that hold evidence",
    "cited_recall": "share of evidence pages that are cited",
    "verified_rate": "share of citations marked verified",
    "exact_slice_rate": "share of quotes that are exact slices of the stored page",
    "number_in_quote_rate": "share of cited sentences with numbers whose quote holds all of them",
    **ragas.MEASURES,
}
"""Measure -> what it says; 0 to 1, higher is better unless said."""

NO_REPLY: Reply = {"answer": "", "abstained": False, "passages": [], "citations": []}
"""What a question without a reply is scored as: nothing found, nothing said, and no refusal either."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One system on every question asked of it."""

    system: System
    outcomes: Mapping[str, Outcome]
    """By question id, as all that follow."""
    values: Mapping[str, Mapping[str, float]]
    """Each measure that applies to the question."""
    broken: Mapping[str, Sequence[tuple[str, str]]]
    """(promise, detail) of each promise the reply breaks."""

    def column(self, measure: str, questions: Sequence[Question]) -> dict[str, float]:
        known = ((q.id, self.values.get(q.id, {})) for q in questions)
        return {id_: found[measure] for id_, found in known if measure in found}


async def score(asking: Asking, system: System, questions: Sequence[Question]) -> Scores:
    """What was asked of the system, measured; reads the cited pages from the subject."""
    outcomes = asking.outcomes(system, questions)
    asked = [q for q in questions if q.id in outcomes]
    replies: dict[str, Reply] = {id_: o.reply or NO_REPLY for id_, o in outcomes.items()}
    given = {id_: o.reply for id_, o in outcomes.items() if o.reply is not None}
    pages = await conformance.cited_pages(asking.subject, list(given.values()), asking.parallel)
    values = measures.retrieval(asked, replies, asking.k)
    for question in asked:
        reply = replies[question.id]
        values[question.id] |= measures.answer_measures(question, reply)
        values[question.id] |= measures.citation_measures(question, reply)
        values[question.id] |= conformance.quote_rates(reply, pages)
    broken = {id_: list(conformance.check_reply(reply, pages)) for id_, reply in given.items()}
    return Scores(system, outcomes, values, broken)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one system on one class of questions."""

    estimate: Estimate
    against: Paired | None = None
    """None for the baseline itself."""
    p_adjusted: float | None = None
    """Holm, over the measure's cells of every system and class."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a system's replies cost, error replies included; the two currencies side by side, never added."""

    n: int
    ops: Sequence[int]
    """Per question, in the questions' order, as calls and latency_ms."""
    calls: Sequence[int]
    latency_ms: Sequence[float]
    ops_by_kind: Mapping[str, int]
    """Totals."""
    calls_by_purpose: Mapping[str, int]
    ops_source: str
    """The weakest of any reply."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """None where any reply's price is unknown."""

    @property
    def mean_ops(self) -> float:
        return sum(self.ops) / max(self.n, 1)

    @property
    def mean_calls(self) -> float:
        return sum(self.calls) / max(self.n, 1)

    def latency(self, q: float) -> float | None:
        return quantile(self.latency_ms, q)


@dataclass(frozen=True, slots=True)
class Matrix:
    baseline: str
    quality: str
    """The measure that the Pareto set weighs against the price."""
    kinds: Sequence[str]
    """Classes, `all` first."""
    cells: Mapping[str, Mapping[str, Mapping[str, Cell]]]
    """measure -> system -> class."""
    bills: Mapping[str, Bill]
    pareto: frozenset[str]
    """Systems that no other beats in quality, mean ops and mean LLM calls at once."""
    warnings: Sequence[str]


def build(scores: Sequence[Scores], questions: Sequence[Question], baseline: str, quality: str) -> Matrix:
    groups = {ALL: list(questions)}
    for question in questions:
        groups.setdefault(question.kind, []).append(question)
    cells = {name: _cells(name, scores, groups, baseline) for name in MEASURES}
    bills = {s.system.name: bill(list(s.outcomes.values())) for s in scores}
    points = {
        name: (mean, bills[name].mean_ops, bills[name].mean_calls)
        for name, by_kind in cells[quality].items()
        if (mean := by_kind[ALL].estimate.mean) is not None
    }
    return Matrix(baseline, quality, list(groups), cells, bills, pareto(points), warnings(scores, questions))


def _cells(
    measure: str, scores: Sequence[Scores], groups: Mapping[str, Sequence[Question]], baseline: str
) -> dict[str, dict[str, Cell]]:
    columns = {(s.system.name, kind): s.column(measure, group) for s in scores for kind, group in groups.items()}
    against = {
        key: paired(column, columns[baseline, key[1]])
        for key, column in columns.items()
        if key[0] != baseline and (baseline, key[1]) in columns
    }
    adjusted = dict(zip(against, holm([found.p for found in against.values()]), strict=True))
    cells: dict[str, dict[str, Cell]] = {s.system.name: {} for s in scores}
    for (name, kind), column in columns.items():
        key = (name, kind)
        cells[name][kind] = Cell(estimate(list(column.values())), against.get(key), adjusted.get(key))
    return cells


def bill(outcomes: Sequence[Outcome]) -> Bill:
    costs = [outcome.cost for outcome in outcomes if outcome.cost]
    kinds: Counter[str] = Counter()
    purposes: Counter[str] = Counter()
    for cost in costs:
        kinds.update(cost["ops_by_kind"])
        purposes.update(cost["llm_calls_by_purpose"])
    prices = [cost["usd"] for cost in costs]
    return Bill(
        n=len(costs),
        ops=[cost["ops"] for cost in costs],
        calls=[cost["llm_calls"] for cost in costs],
        latency_ms=[cost["latency_ms"] for cost in costs],
        ops_by_kind=dict(kinds),
        calls_by_purpose=dict(purposes),
        ops_source=min((c["ops_source"] for c in costs), key=conformance.WEAKEST_FIRST.index, default="counted"),
        input_tokens=sum(cost["tokens"]["input"] for cost in costs),
        output_tokens=sum(cost["tokens"]["output"] for cost in costs),
        usd=None if None in prices else sum(prices),
    )


def warnings(scores: Sequence[Scores], questions: Sequence[Question]) -> list[str]:
    """What a reader must know before believing a system's figures."""
    found: list[str] = []
    answerable = [q.id for q in questions if q.answerable]
    unanswerable = [q.id for q in questions if not q.answerable]
    for s in scores:
        name = s.system.name
        refused = {id_: bool(o.reply and o.reply["abstained"]) for id_, o in s.outcomes.items()}
        if answerable and all(refused.get(id_, False) for id_ in answerable):
            found.append(f"{name} abstains from every question that has an answer")
        if unanswerable and not any(refused.get(id_, False) for id_ in unanswerable):
            found.append(f"{name} never abstains: it answers all {len(unanswerable)} questions that have no answer")
        if errors := sum(o.reply is None for o in s.outcomes.values()):
            found.append(f"{name} gave no reply to {errors} of {len(s.outcomes)} questions; they score 0")
        if missing := len(questions) - len(s.outcomes):
            found.append(f"{name} was not asked {missing} of {len(questions)} questions")
        for promise, count in Counter(p for several in s.broken.values() for p, _ in several).items():
            found.append(f"{name} breaks a promise {count} times: {conformance.PROMISES[promise]}")
    return found
