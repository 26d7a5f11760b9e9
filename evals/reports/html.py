"""A run's record as one HTML page that opens from disk: no server, no network, nothing beside it."""

import json
from html import escape
from typing import Any

from evals.judging.matrix import told
from evals.reports import svg
from evals.reports.markdown import ROUTING, ROUTING_SAYS, headline
from evals.reports.page import page
from evals.reports.record import Record
from evals.reports.tables import fraction
from evals.statistics import Estimate, quantile

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_COLOURS = 7
_LOWER_IS_BETTER = frozenset({"false_refusal"})


def to_html(record: Record) -> str:
    matrix = record["matrix"]
    parts = {
        "headline": escape(headline(record["run"])),
        "warnings": "".join(f"<li>{escape(warning)}</li>" for warning in matrix["warnings"]),
        "judge": "".join(f'<p class="note">{escape(line)}</p>' for line in told(record["judge"]))
        if record.get("judge")
        else "",
        "measures": "".join(
            f'<option value="{i}"{" selected" if name == matrix["quality"] else ""}>{escape(name)}</option>'
            for i, name in enumerate(_measured(matrix))
        ),
        "heat": "".join(_heat(matrix, name, i) for i, name in enumerate(_measured(matrix))),
        "baseline": escape(matrix["baseline"]),
        "quality": escape(matrix["quality"]),
        "damage": "".join(_damage(matrix, name) for name in _systems(record) if name != matrix["baseline"]),
        "pareto": _pareto(record),
        "routing": _routing(record),
        "costs": _costs(record),
        "run": escape(json.dumps(record["run"], indent=2, ensure_ascii=False)),
        "data": json.dumps(_drill_down(record), ensure_ascii=False).replace("<", "\\u003c"),
    }
    return page("report", parts)


def _systems(record: Record) -> list[str]:
    return [system["name"] for system in record["systems"]]


def _colour(record: Record, name: str) -> str:
    return f"system-{_systems(record).index(name) % _COLOURS}"


def _measured(matrix: dict[str, Any]) -> list[str]:
    """Measures that apply to any question."""
    return [m for m in matrix["measures"] if any(row["all"]["estimate"]["n"] for row in matrix["cells"][m].values())]


def _heat(matrix: dict[str, Any], measure: str, index: int) -> str:
    by_system = matrix["cells"][measure]
    kinds = [k for k in matrix["kinds"] if any(row[k]["estimate"]["n"] for row in by_system.values())]
    counts = next(iter(by_system.values()))
    head = "".join(f"<th>{escape(k)}<small>n = {counts[k]['estimate']['n']}</small></th>" for k in kinds)
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(_heat_cell(row[k], measure) for k in kinds)}</tr>"
        for name, row in by_system.items()
    )
    hidden = "" if measure == matrix["quality"] else " hidden"
    return (
        f'<div class="heat" data-measure="{index}"{hidden}><p>{escape(matrix["measures"][measure])}</p>'
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )


def _heat_cell(cell: dict[str, Any], measure: str) -> str:
    found = Estimate(**cell["estimate"])
    if found.mean is None or found.low is None or found.high is None:
        return "<td>–</td>"
    good = 1 - found.mean if measure in _LOWER_IS_BETTER else found.mean
    return (
        f'<td style="--share:{good:.2f}"><b>{fraction(found.mean, 2)}</b>'
        f"<small>{fraction(found.low, 2)}–{fraction(found.high, 2)}</small>{_against(cell)}</td>"
    )


def _against(cell: dict[str, Any]) -> str:
    against = cell["against"]
    if not against or not (against["wins"] or against["damages"]):
        return ""
    sure = " *" if cell["p_adjusted"] < 0.05 else ""
    title = f"p = {against['p']:.3f}, adjusted {cell['p_adjusted']:.3f}"
    return f'<small title="{title}">+{against["wins"]} −{against["damages"]}{sure}</small>'


def _damage(matrix: dict[str, Any], name: str) -> str:
    by_kind = matrix["cells"][matrix["quality"]][name]
    rows = [
        (kind, cell["against"]["wins"], cell["against"]["damages"], cell["p_adjusted"])
        for kind, cell in by_kind.items()
        if cell["against"] and cell["against"]["n"]
    ]
    if not rows:
        return ""
    chart = svg.damage_bars(rows, f"wins and damages of {name} against {matrix['baseline']}")
    return f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>"


def _pareto(record: Record) -> str:
    matrix = record["matrix"]
    charts = []
    for price, label in (("mean_ops", "similarity ops a question"), ("mean_calls", "LLM calls a question")):
        points = []
        for system in record["systems"]:
            found = matrix["cells"][matrix["quality"]][system["name"]]["all"]["estimate"]
            place = (system["bill"][price]["mean"], found["mean"], found["low"], found["high"])
            if None not in place:
                points.append(svg.Point(system["name"], *place, system["pareto"], _colour(record, system["name"])))
        if any(point.x for point in points):
            charts.append(f"<figure>{svg.scatter(points, label, matrix['quality'])}</figure>")
    return "".join(charts)


def _routing(record: Record) -> str:
    """Routers and the oracle full, fixed architectures hollow."""
    choices = record.get("routing") or []
    charts = []
    for price, label in (("ops", "similarity ops a question"), ("llm_calls", "LLM calls a question")):
        points = [
            svg.Point(
                each["name"],
                each[price],
                each["quality"]["mean"],
                each["quality"]["low"],
                each["quality"]["high"],
                each["role"] != "fixed",
                _colour(record, each["name"]) if each["name"] in _systems(record) else each["role"],
            )
            for each in choices
        ]
        if any(point.x for point in points):
            charts.append(f"<figure>{svg.scatter(points, label, record['matrix']['quality'], front=False)}</figure>")
    says = escape(ROUTING_SAYS).replace("`", "")
    return f'<h2>{ROUTING}</h2><p class="note">{says}</p><div class="charts">{"".join(charts)}</div>' if charts else ""


def _costs(record: Record) -> str:
    bills = [(s["name"], _colour(record, s["name"]), s["bill"]) for s in record["systems"]]
    charts = [
        ("Latency", svg.boxes([(n, c, _spread(b["latency_ms"])) for n, c, b in bills], "ms, as the service saw it")),
        ("Similarity ops", svg.boxes([(n, c, _spread(b["ops"])) for n, c, b in bills], "ops a question")),
        ("Ops by kind, mean", _by_part(bills, "ops_by_kind", "ops a question")),
        ("LLM calls by purpose, mean", _by_part(bills, "calls_by_purpose", "calls a question")),
    ]
    return "".join(f"<figure><figcaption>{title}</figcaption>{chart}</figure>" for title, chart in charts if chart)


def _by_part(bills: list[tuple[str, str, dict[str, Any]]], parts: str, unit: str) -> str:
    rows = [(name, {k: total / max(bill["n"], 1) for k, total in bill[parts].items()}) for name, _, bill in bills]
    return svg.stacked(rows, unit) if any(parts for _, parts in rows) else ""


def _spread(values: list[float]) -> list[float]:
    found = [quantile(values, q) for q in _QUANTILES]
    return [value for value in found if value is not None]


def _drill_down(record: Record) -> dict[str, Any]:
    """What the page's script reads."""
    return {
        "systems": _systems(record),
        "baseline": record["matrix"]["baseline"],
        "quality": record["matrix"]["quality"],
        "questions": record["questions"],
    }
