"""The service's promises, checked on its replies from outside: exact quotes, resolved markers, true bills."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from evals.asking import Asking, progress
from evals.errors import SubjectError
from evals.measures import Reply
from evals.questions import Question
from evals.reports.tables import markdown
from evals.subjects import Subject, System

_MARKER = re.compile(r"\[(\d+)\]")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WEAKEST_FIRST = ("bound", "reported", "counted")
"""How far an ops figure is to be believed, least first."""


PROMISES = {
    "exact_slice": "every quote is a slice of the stored page, at its span",
    "numbers_in_quote": "every number of a sentence is in its quote, or the citation is not verified",
    "markers": "every marker resolves to a citation of one of the passages, and every citation has its marker",
    "abstention": "an abstention has a reason and no citation, an answer has no reason",
    "passages": "passages are ranked from 1 without a gap or a double, scores falling, ranks in legs from 1",
    "cost_sum": "ops and calls are the sums over their kinds and purposes",
    "cost_trace": "ops, calls, tokens and their source are the sums over the trace",
    "cost_counted": "nothing is found for nothing",
    "filter": "no passage falls outside the filter",
    "error": "every question gets a reply",
}


@dataclass(frozen=True, slots=True)
class Violation:
    system: str
    question_id: str
    promise: str
    """One of PROMISES."""
    detail: str


def numbers(text: str) -> frozenset[Decimal]:
    """Every run of digits as a value; written apart from the service's own, so that one checks the other."""
    return frozenset(Decimal(m.group().replace(",", "")).normalize() for m in _NUMBER.finditer(text))


def check_reply(reply: Reply, pages: Mapping[tuple[str, int], str | None]) -> Iterator[tuple[str, str]]:
    """Broken promises as (promise, detail). `pages` holds the text of every page cited, None where there is none."""
    yield from _check_citations(reply, pages)
    yield from _check_passages(reply)
    yield from _check_cost(reply)


def _check_citations(reply: Reply, pages: Mapping[tuple[str, int], str | None]) -> Iterator[tuple[str, str]]:
    answer, citations = reply["answer"], reply["citations"]
    given = {(p["chunk_id"], p["document_id"], p["page"]) for p in reply["passages"]}
    for c in citations:
        where = f"[{c['marker']}] {c['document_id']} page {c['page']}"
        if not _is_exact(c, pages):
            yield "exact_slice", f"{where}: the quote is not the page's text at its span"
        sentence = _sentence(reply, c)
        if not sentence.strip():
            yield "markers", f"{where}: its answer_span holds no sentence"
        if c["verified"] and (absent := numbers(sentence) - numbers(c["quote"])):
            yield "numbers_in_quote", f"{where}: verified, but {', '.join(map(str, sorted(absent)))} not in the quote"
        if (c["chunk_id"], c["document_id"], c["page"]) not in given:
            yield "markers", f"{where}: cites what is no passage of the reply"
    said, resolved = {int(n) for n in _MARKER.findall(answer)}, {c["marker"] for c in citations}
    if said != resolved:
        yield "markers", f"the answer has {sorted(said)}, the citations {sorted(resolved)}"
    if reply["abstained"] != (reply["reason"] is not None) or (reply["abstained"] and citations):
        yield "abstention", f"abstained {reply['abstained']}, reason {reply['reason']}, {len(citations)} citations"


def quote_rates(reply: Reply, pages: Mapping[tuple[str, int], str | None]) -> dict[str, float]:
    """exact_slice_rate of the citations and, over those whose sentence holds a number, number_in_quote_rate."""
    citations = reply["citations"]
    if not citations:
        return {}
    numeric = [numbers(_sentence(reply, c)) <= numbers(c["quote"]) for c in citations if numbers(_sentence(reply, c))]
    out = {"exact_slice_rate": sum(_is_exact(c, pages) for c in citations) / len(citations)}
    return out | ({"number_in_quote_rate": sum(numeric) / len(numeric)} if numeric else {})


def _is_exact(citation: Mapping[str, Any], pages: Mapping[tuple[str, int], str | None]) -> bool:
    text, span = pages[citation["document_id"], citation["page"]], citation["span"]
    return bool(citation["quote"]) and text is not None and text[span["start"] : span["end"]] == citation["quote"]


def _sentence(reply: Reply, citation: Mapping[str, Any]) -> str:
    text: str = reply["answer"][citation["answer_span"]["start"] : citation["answer_span"]["end"]]
    return text


def _check_passages(reply: Reply) -> Iterator[tuple[str, str]]:
    passages = reply["passages"]
    if [p["rank"] for p in passages] != list(range(1, len(passages) + 1)):
        yield "passages", "ranks are not 1, 2, 3, ..."
    scores = [p["score"] for p in passages]
    if scores != sorted(scores, reverse=True):
        yield "passages", "scores rise along the ranks"
    if len({p["chunk_id"] for p in passages}) < len(passages):
        yield "passages", "a chunk occurs twice"
    if low := [p["chunk_id"] for p in passages if any(leg["rank"] < 1 for leg in p["legs"].values())]:
        yield "passages", f"{len(low)} of them have a rank below 1 in a leg"


def _check_cost(reply: Reply) -> Iterator[tuple[str, str]]:
    cost, trace = reply["cost"], reply["trace"]
    if cost["ops"] != sum(cost["ops_by_kind"].values()):
        yield "cost_sum", f"ops {cost['ops']} against {cost['ops_by_kind']}"
    if cost["llm_calls"] != sum(cost["llm_calls_by_purpose"].values()):
        yield "cost_sum", f"llm_calls {cost['llm_calls']} against {cost['llm_calls_by_purpose']}"
    ops: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for step in trace:
        ops.update(step["ops"])
        calls.update({step["purpose"]: step["llm_calls"]} if step["llm_calls"] else {})
    tokens = {side: sum(step["tokens"][side] for step in trace) for side in ("input", "output")}
    source = min((step["ops_source"] for step in trace), key=WEAKEST_FIRST.index, default="counted")
    billed = (+Counter(cost["ops_by_kind"]), +Counter(cost["llm_calls_by_purpose"]), cost["tokens"], cost["ops_source"])
    if billed != (+ops, +calls, tokens, source):
        yield "cost_trace", f"billed {billed}, the trace adds up to {(+ops, +calls, tokens, source)}"
    if reply["passages"] and not cost["ops"]:
        yield "cost_counted", "passages were found without a single similarity op"


@dataclass(frozen=True, slots=True)
class Conformance:
    """One system over the questions."""

    system: str
    replies: int
    abstained: int
    citations: int
    exact: int
    verified: int
    with_numbers: int
    """Citations whose sentence holds a number."""
    in_quote: int
    """Of them, those whose quote holds every one, verified or not."""


async def run(
    asking: Asking, systems: Sequence[System], questions: Sequence[Question], probes: int = 10
) -> tuple[list[Conformance], list[Violation]]:
    """Asks what is not asked yet, reads every cited page, and asks `probes` questions again with a filter."""
    await asking.ask(asking.missing(systems, questions))
    rows: list[Conformance] = []
    violations: list[Violation] = []
    for system in systems:
        outcomes = asking.outcomes(system, questions)
        replies = {id_: o.reply for id_, o in outcomes.items() if o.reply is not None}
        for question in questions:
            if question.id not in replies:
                problem = outcomes[question.id].problem if question.id in outcomes else None
                violations.append(Violation(system.name, question.id, "error", str(problem or "no reply")))
        pages = await cited_pages(asking.subject, list(replies.values()), asking.parallel)
        broken = {id_: list(check_reply(reply, pages)) for id_, reply in replies.items()}
        violations += [Violation(system.name, id_, *found) for id_, several in broken.items() for found in several]
        violations += await _probe_filters(asking, system, questions, replies, probes)
        rows.append(_summary(system.name, list(replies.values()), broken))
    return rows, violations


async def cited_pages(subject: Subject, replies: Sequence[Reply], parallel: int) -> dict[tuple[str, int], str | None]:
    """Text of every page cited, by document id and number; None where the subject has no such page."""

    keys = {(c["document_id"], c["page"]) for reply in replies for c in reply["citations"]}
    found: dict[tuple[str, int], str | None] = {}
    slots = asyncio.Semaphore(parallel)
    with progress() as bar:
        task = bar.add_task("reading cited pages", total=len(keys))

        async def read(key: tuple[str, int]) -> None:
            async with slots:
                try:
                    found[key] = await subject.page(*key)
                except SubjectError:
                    found[key] = None
            bar.advance(task)

        async with asyncio.TaskGroup() as group:
            for key in sorted(keys):
                group.create_task(read(key))
    return found


async def _probe_filters(
    asking: Asking, system: System, questions: Sequence[Question], replies: Mapping[str, Reply], probes: int
) -> list[Violation]:
    """Ask again for the second document found alone: a leg that ignores filters brings others in."""
    found: list[Violation] = []
    able = [q for q in questions if len(_documents(replies.get(q.id))) > 1][:probes]
    for question in able:
        wanted = _documents(replies[question.id])[1]
        filters = {"document_id": wanted}
        try:
            reply = await asking.subject.ask(
                system.arch, question.text, k=asking.k, filters=filters, options=system.options
            )
        except SubjectError as error:
            found.append(Violation(system.name, question.id, "error", f"with a filter: {error}"))
            continue
        if strangers := [d for d in _documents(reply) if d != wanted]:
            found.append(
                Violation(system.name, question.id, "filter", f"{wanted} alone was asked for; got {strangers[0]}")
            )
    return found


def _documents(reply: Reply | None) -> list[str]:
    return list(dict.fromkeys(p["document_id"] for p in reply["passages"])) if reply else []


def _summary(name: str, replies: Sequence[Reply], broken: Mapping[str, list[tuple[str, str]]]) -> Conformance:
    cited = [(_sentence(r, c), c) for r in replies for c in r["citations"]]
    numeric = [(numbers(sentence), c) for sentence, c in cited if numbers(sentence)]
    inexact = sum(promise == "exact_slice" for several in broken.values() for promise, _ in several)
    return Conformance(
        system=name,
        replies=len(replies),
        abstained=sum(r["abstained"] for r in replies),
        citations=len(cited),
        exact=len(cited) - inexact,
        verified=sum(c["verified"] for _, c in cited),
        with_numbers=len(numeric),
        in_quote=sum(wanted <= numbers(c["quote"]) for wanted, c in numeric),
    )


def table(rows: Sequence[Conformance], violations: Sequence[Violation]) -> str:
    """Counts per system, then every violation, a line each."""
    headings = "system, replies, abstained, citations, exact slice, numbers in quote, verified, violations".split(", ")
    broken = Counter(v.system for v in violations)
    cells = [
        [
            row.system,
            str(row.replies),
            str(row.abstained),
            str(row.citations),
            f"{row.exact}/{row.citations}",
            f"{row.in_quote}/{row.with_numbers}",
            f"{row.verified}/{row.citations}",
            str(broken[row.system]),
        ]
        for row in rows
    ]
    lines = [f"{v.system}, {v.question_id}: {v.promise}: {v.detail}\n" for v in violations]
    return markdown(headings, cells) + "".join(lines)


def as_json(rows: Sequence[Conformance], violations: Sequence[Violation]) -> dict[str, Any]:
    return {"systems": [asdict(row) for row in rows], "violations": [asdict(v) for v in violations]}
