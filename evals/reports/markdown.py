"""A run's record as Markdown."""

from typing import Any

from evals.judging import ragas
from evals.judging.matrix import told
from evals.reports.record import Record
from evals.reports.tables import cell, fraction, markdown
from evals.statistics import Estimate

ROUTING = "Auto against each fixed architecture and the oracle"
ROUTING_SAYS = (
    "The oracle takes the best architecture of each question with hindsight, the cheapest of several; no router does "
    "better. `auto by this matrix` takes for each question what all others measured for its kind."
)
_TABLES = ("answer", "page hit@10", "page nDCG@10", "refusal", "false_refusal", "cited_precision", "cited_recall")


def to_markdown(record: Record) -> str:
    """The matrix with each cell's interval, wins and damages, the price, and what to beware of."""
    run, matrix = record["run"], record["matrix"]
    names = list(dict.fromkeys([matrix["quality"], *_TABLES, *ragas.MEASURES]))
    parts = [
        f"# Filings matrix\n\n{headline(run)}\n",
        "".join(f"\n> **Beware:** {warning}\n" for warning in matrix["warnings"]),
        _judge(record),
        *(_matrix(record, name) for name in names if _applies(matrix, name)),
        _damage(record, matrix["quality"]),
        _bills(record),
        _routing(record),
    ]
    return "\n".join(part for part in parts if part)


def headline(run: dict[str, Any]) -> str:
    index, models = run["index"], run["index"]["models"]
    return (
        f"{run['questions']['n']} questions of {run['questions']['file']} over {index['documents']} filings "
        f"({index['pages']:,} pages, {index['chunks']:,} chunks), k = {run['k']}; {run['date']}, "
        f"commit {run['commit'] or 'unknown'}, index {index['fingerprint']}, embedder {models['embedder']}, "
        f"generator {models['generator']}; {run['machine']}."
    )


def _judge(record: Record) -> str:
    judge = record.get("judge")
    if not judge:
        return ""
    measures = ", ".join(ragas.MEASURES)
    return f"## The judge\n\nOf {measures}.\n\n" + "".join(f"- {line}\n" for line in told(judge))


def _applies(matrix: dict[str, Any], measure: str) -> bool:
    return any(by_kind["all"]["estimate"]["n"] for by_kind in matrix["cells"][measure].values())


def _matrix(record: Record, measure: str) -> str:
    matrix = record["matrix"]
    by_system = matrix["cells"][measure]
    kinds = [k for k in matrix["kinds"] if any(by_system[name][k]["estimate"]["n"] for name in by_system)]
    first = next(iter(by_system.values()))
    headings = ["system", *(f"{kind} (n = {first[kind]['estimate']['n']})" for kind in kinds)]
    rows = [[name, *(cell(Estimate(**row[kind]["estimate"])) for kind in kinds)] for name, row in by_system.items()]
    return f"## {measure}\n\n{matrix['measures'][measure]}; mean and 95 % interval.\n\n{markdown(headings, rows)}"


def _damage(record: Record, measure: str) -> str:
    matrix = record["matrix"]
    rows = [
        [
            name,
            kind,
            *(str(against[count]) for count in ("n", "wins", "damages")),
            f"{against['difference']:+.3f}",
            *(f"{p:.3f}" for p in (against["p"], found["p_adjusted"])),
        ]
        for name, by_kind in matrix["cells"][measure].items()
        for kind, found in by_kind.items()
        if (against := found["against"]) and against["n"]
    ]
    if not rows:
        return ""
    headings = ["system", "class", "n", "wins", "damages", "mean difference", "p", "p (Holm)"]
    return (
        f"## Wins and damages against {matrix['baseline']}\n\nQuestions on which {measure} is better and worse; "
        f"exact sign test, adjusted for all cells of this table (Holm).\n\n{markdown(headings, rows)}"
    )


def _bills(record: Record) -> str:
    rows = []
    for system in record["systems"]:
        bill = system["bill"]
        quality = record["matrix"]["cells"][record["matrix"]["quality"]][system["name"]]["all"]["estimate"]["mean"]
        kinds = ", ".join(f"{kind} {total / max(bill['n'], 1):,.0f}" for kind, total in bill["ops_by_kind"].items())
        purposes = ", ".join(f"{k} {total / max(bill['n'], 1):.2f}" for k, total in bill["calls_by_purpose"].items())
        rows.append(
            [
                system["name"],
                "–" if quality is None else fraction(quality),
                f"{bill['mean_ops']['mean'] or 0:,.0f} ({kinds or 'none'}; {bill['ops_source']})",
                f"{bill['mean_calls']['mean'] or 0:.2f}" + (f" ({purposes})" if purposes else ""),
                f"{(bill['input_tokens'] + bill['output_tokens']) / max(bill['n'], 1):,.0f}",
                "unknown" if bill["usd"] is None else f"{bill['usd']:.2f}",
                f"{bill['p50_ms'] or 0:,.0f} / {bill['p95_ms'] or 0:,.0f}",
                "yes" if system["pareto"] else "",
            ]
        )
    quality = record["matrix"]["quality"]
    headings = ["system", quality, "ops a question", "LLM calls a question", "tokens a question", "US$ in all"]
    headings += ["p50 / p95 ms", "Pareto"]
    text = f"Pareto: no other system is at least as good in {quality}, ops and LLM calls, and better in one."
    return f"## Price\n\n{text}\n\n{markdown(headings, rows)}"


def _routing(record: Record) -> str:
    choices = record.get("routing")
    if not choices:
        return ""
    best = max(each["quality"]["mean"] for each in choices if each["role"] == "fixed")
    oracle = next(each["quality"]["mean"] for each in choices if each["role"] == "oracle")
    rows = [
        [
            each["name"],
            cell(Estimate(**each["quality"])),
            f"{each['quality']['mean'] - best:+.3f}",
            f"{each['quality']['mean'] - oracle:+.3f}",
            f"{each['ops']:,.0f}",
            f"{each['llm_calls']:.2f}",
        ]
        for each in choices
    ]
    headings = [f"n = {choices[0]['quality']['n']}", record["matrix"]["quality"], "against the best fixed"]
    headings += ["against the oracle", "ops a question", "LLM calls a question"]
    return f"## {ROUTING}\n\n{ROUTING_SAYS}\n\n{markdown(headings, rows)}"
