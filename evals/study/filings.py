"""Which of the eight statements a matrix run over filings bears out, class by class, as far as its questions tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evals.reports.record import Record
from evals.reports.tables import fraction

Sign: TypeAlias = Literal["better", "worse", "alike"]
_LEVEL = 0.05
_POINTS = "points that way"
"""Without being sure."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a statement says of one system against naive on one class of questions."""

    number: int
    text: str
    system: str
    kind: str
    sign: Sign
    measure: str
    otherwise: str
    """Why filings may not show it."""


_NARROWED = "hybrid searches the filings that a question names, where no view is uninformed and rivals are few"
CLAIMS: Sequence[Claim] = (
    Claim(1, "fusion wins where only the conjunction tells", "hybrid", "partial", "better", "page hit@1", _NARROWED),
    Claim(1, "fusion loses where one view knows", "hybrid", "on", "worse", "page hit@1", _NARROWED),
    Claim(
        3,
        "correction promotes what was found",
        "crag",
        "noisy",
        "better",
        "page hit@1",
        "it grades the fused list, whose first passages leave it less to promote",
    ),
    Claim(
        3,
        "correction does not reach what is only named",
        "crag",
        "bridge",
        "alike",
        "answer",
        "a filing may say of whom it names what is asked",
    ),
    Claim(
        5,
        "hypothetical passages repair a question's voice",
        "hyde",
        "off",
        "better",
        "page hit@1",
        "an embedding model is trained on questions, so that their voice tilts little",
    ),
    Claim(
        5,
        "hypothetical passages do nothing for a wrong direction",
        "hyde",
        "noisy",
        "alike",
        "page hit@1",
        "a model knows more than a direction",
    ),
    Claim(
        6,
        "the second hop reaches what is only named",
        "agentic",
        "bridge",
        "better",
        "answer",
        "the company named must have filings here",
    ),
    Claim(
        6,
        "the second hop damages what needs none",
        "agentic",
        "on",
        "worse",
        "answer",
        "it hops only where the question describes somebody whom it does not name",
    ),
    Claim(
        7,
        "counting wins where the answer is a count",
        "graph",
        "global",
        "better",
        "answer",
        "it counts what its vocabulary of themes and relations knows, and only questions worded as counts",
    ),
)


def judged(record: Record) -> dict[str, Any]:
    """`headline`, and `rows` of text, verdict and figures. `record` is a matrix run's report.json."""
    run, matrix = record["run"], record["matrix"]
    headline = (
        f"{run['questions']['n']} questions on {run['index']['documents']} filings ({run['questions']['file']}), "
        f"against {matrix['baseline']}. A claim holds or is contradicted where an exact sign test over its class's "
        "questions says so at 5 %, which takes at least six that differ, all one way; else they point "
        "that way, or do not decide it."
    )
    rows = [_judged(claim, matrix) for claim in CLAIMS]
    rows.insert(2, _row("2. identical rankings fuse to that ranking", "holds", "the function that fuses is the same"))
    rows.insert(5, _blindness(record))
    rows.append(_hidden(matrix))
    return {"headline": headline, "rows": rows}


def _row(text: str, verdict: str, figures: str) -> dict[str, str]:
    return {"text": text, "verdict": verdict, "figures": figures}


def _judged(claim: Claim, matrix: Mapping[str, Any]) -> dict[str, str]:
    text = f"{claim.number}. {claim.text} ({claim.system}, {claim.kind}, {claim.measure})"
    cell = matrix["cells"].get(claim.measure, {}).get(claim.system, {}).get(claim.kind)
    if matrix["baseline"] != "naive" or not cell or not cell["against"] or not cell["against"]["n"]:
        return _row(text, "not measured", f"the run has no {claim.system} against naive on {claim.kind}")
    against, found = cell["against"], cell["estimate"]
    figures = (
        f"{fraction(found['mean'])} [{fraction(found['low'], 2)}, {fraction(found['high'], 2)}], "
        f"{against['difference']:+.3f}: {against['wins']} won, {against['damages']} damaged of {against['n']}, "
        f"p = {fraction(against['p'])}"
    )
    verdict = verdict_of(claim.sign, against)
    return _row(text, verdict, figures if verdict in ("holds", _POINTS) else f"{figures}; {claim.otherwise}")


def verdict_of(sign: Sign, against: Mapping[str, Any]) -> str:
    sure, better = against["p"] < _LEVEL, against["wins"] > against["damages"]
    if sign == "alike":
        return "contradicted" if sure else "holds" if not against["wins"] else "not decided"
    if not sure:
        return _POINTS if against["wins"] != against["damages"] and better == (sign == "better") else "not decided"
    return "holds" if better == (sign == "better") else "contradicted"


def _blindness(record: Record) -> dict[str, str]:
    """A grader that could warn would refuse more on bridge, where naive's evidence is not enough, than on on."""
    text, refused = "4. the grader does not warn on bridge (crag's refusals)", {}
    for kind in ("bridge", "on"):
        replies = [q["results"]["crag"] for q in record["questions"] if q["class"] == kind and "crag" in q["results"]]
        refused[kind] = (sum(bool(reply.get("reason")) for reply in replies), len(replies))
    if not all(n for _, n in refused.values()):
        return _row(text, "not measured", "the run has no crag on bridge and on")
    figures = ", ".join(f"{count} of {n} on {kind}" for kind, (count, n) in refused.items())
    (bridge, n), (on, m) = refused["bridge"], refused["on"]
    return _row(text, "holds" if bridge / n <= on / m else "not decided", figures)


def _hidden(matrix: Mapping[str, Any]) -> dict[str, str]:
    """Systems that are no worse than naive on the whole and lose questions of some class."""
    text, hidden = "8. the average hides damage", []
    for system, row in matrix["cells"]["answer"].items():
        against = row["all"]["against"]
        if against and against["difference"] >= 0:
            damaged = [f"{k} {c['against']['damages']}" for k, c in row.items() if k != "all" and _loses(c)]
            hidden += [f"{system} {against['difference']:+.3f}, yet worse on {', '.join(damaged)}"] if damaged else []
    return _row(text, "holds" if hidden else "not seen", "; ".join(hidden) or "no class is worse under a better whole")


def _loses(cell: Mapping[str, Any]) -> bool:
    return bool(cell["against"] and cell["against"]["damages"] > cell["against"]["wins"])
