"""The study as one JSON document, and that as Markdown and as one HTML page that opens from disk."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from statistics import mean, median
from typing import Any, TypeAlias

from evals.reports import svg
from evals.reports.page import page
from evals.reports.tables import cell, fraction, markdown
from evals.statistics import Estimate, pareto
from evals.study.arms import ARMS
from evals.study.measure import DEPTHS, NOISE, Seed, overall
from evals.study.queries import CLASSES, GLOBAL
from evals.study.statements import of, scanned, share, statements

Study: TypeAlias = dict[str, Any]
"""`run`, `classes`, `arms`, `looks`, `curves`, `statements`, `differences`; `filings` where a run of them is given."""

REPORTED: Mapping[str, Sequence[float]] = {
    "naive": (0.290, 1.000, 0.350, 0.100, 0.000, 0.000, 0.062, 100, 0),
    "hybrid": (0.500, 0.800, 1.000, 0.400, 0.300, 0.000, 0.062, 300, 0),
    "hyde": (0.380, 0.900, 0.200, 0.800, 0.000, 0.000, 0.000, 100, 4),
    "crag": (0.550, 1.000, 1.000, 0.350, 0.400, 0.000, 0.688, 1040, 1),
    "graph": (0.290, 0.800, 0.450, 0.200, 0.000, 0.000, 1.000, 10, 0),
    "agentic": (0.280, 0.150, 0.150, 0.100, 0.150, 0.850, 0.062, 288, 2.9),
}
"""By arm: all local classes, each of them, global, ops, calls, as the original found them on one corpus."""
COLUMNS = ("local", *CLASSES, GLOBAL)
DIFFERENCES = (
    "crag's cheap search is the service's own, two legs fused (200 evaluations), not one dense search; its grader "
    "reads 20 passages at once and may read 20 more, so it costs less than 1,040 evaluations and no call. An "
    "evaluation of MaxSim counts once, whatever the number of its tokens.",
    "crag votes on a sector with its ten best passages like every flat arm. The original's 0.688 is what its flat scan "
    "reaches at depth 20, which is the depth of its over-fetch.",
    "graph searches with two legs and walks from their passages, so that on local classes it is a fused arm and costs "
    "a search; its count costs the records that it reads.",
    "agentic follows at most three directions and decides by arithmetic, so it makes no call. On `on` it is damaged in "
    "nearly every reply, more than reported: every distinctive company here either names another or is named by one.",
    "naive is right in about one of five on `partial`, because five companies share each dense theme of that class.",
    "The right company stands deeper in the dense leg on `noisy` and `bridge` than the 12 and 23 reported.",
    "The control of content blurred in three ways is not reproduced where the legs' errors are alike: see statement 2.",
)


def build(seeds: Sequence[Seed], run: Mapping[str, Any]) -> Study:
    points = {name: _point(seeds, name) for name in ARMS}
    best = pareto(points)
    return {
        "run": {"seeds": len(seeds), "classes": len(CLASSES), **run},
        "classes": dict(CLASSES) | {GLOBAL: "which sector has the most companies that discuss a topic: a count"},
        "arms": {name: _arm(seeds, name) | {"pareto": name in best} for name in ARMS},
        "looks": _looks(seeds),
        "curves": _curves(seeds),
        "statements": [asdict(made) | {"holds": made.holds} for made in statements(seeds)],
        "differences": list(DIFFERENCES),
    }


def _point(seeds: Sequence[Seed], name: str) -> tuple[float, float, float]:
    local = [overall(seed.right[name]) for seed in seeds]
    return mean(local), mean(s.ops[name] for s in seeds), mean(s.calls[name] for s in seeds)


def _arm(seeds: Sequence[Seed], name: str) -> dict[str, Any]:
    right = {"local": of(seeds, lambda s: overall(s.right[name]))}
    right |= {kind: of(seeds, share(name, kind)) for kind in (*CLASSES, GLOBAL)}
    return {
        "options": asdict(ARMS[name]),
        "right": {kind: asdict(found) for kind, found in right.items()},
        "ops": mean(s.ops[name] for s in seeds),
        "calls": mean(s.calls[name] for s in seeds),
        "global_ops": mean(s.global_ops[name] for s in seeds),
    }


def _looks(seeds: Sequence[Seed]) -> dict[str, Any]:
    """What the classes are like, whoever answers."""
    return {
        "median rank of the right company in the dense leg": {
            kind: median(rank for s in seeds for rank in s.ranks[kind]) for kind in CLASSES
        },
        "mean MaxSim of naive's first passage": {
            kind: round(mean(grade for s in seeds for grade in s.grades[kind]), 3) for kind in CLASSES
        },
        "AUC of that grade against naive's being right": asdict(of(seeds, lambda s: s.auc)),
        "mean residual of the described company's passages": {
            kind: round(mean(norm for s in seeds for norm in s.residuals[kind]), 3) for kind in ("own", "naming")
        },
        "mean hops of agentic": {kind: round(mean(s.hops[kind] for s in seeds), 2) for kind in CLASSES},
    }


def _curves(seeds: Sequence[Seed]) -> dict[str, Any]:
    noise = {
        kind: [(level, mean(s.right[f"noise {level:g}"][kind] for s in seeds)) for level in NOISE] for kind in CLASSES
    }
    noise["all"] = [(level, mean(overall(s.right[f"noise {level:g}"]) for s in seeds)) for level in NOISE]
    depth = [(d, asdict(of(seeds, scanned(d)))) for d in DEPTHS]
    return {"depth": depth, "noise": noise, "naive": mean(overall(s.right["naive"]) for s in seeds)}


def headline(study: Study) -> str:
    run = study["run"]
    return (
        f"{run['seeds']} seeds, each a corpus of 100 passages of 25 companies with {run['queries']} queries in each of "
        f"{run['classes']} classes, and 16 topics over 25 companies in 5 sectors; {run['command']}, {run['date']}, "
        f"commit {run['commit']}."
    )


def last_line(study: Study) -> str:
    failing = [str(s["number"]) for s in study["statements"] if not s["holds"]]
    total = len(study["statements"])
    said = f"{total - len(failing)} of {total} statements hold"
    return f"{said}; {', '.join(failing)} {'does' if len(failing) == 1 else 'do'} not" if failing else said


def matrix_table(study: Study) -> str:
    rows = []
    for name, arm in study["arms"].items():
        shares = [cell(Estimate(**arm["right"][kind])) for kind in COLUMNS]
        rows.append([name, *shares, f"{arm['ops']:,.0f}", f"{arm['calls']:.1f}"])
        *reported, ops, calls = REPORTED[name]
        rows.append(["  (reported)", *(fraction(value) for value in reported), f"{ops:,.0f}", f"{calls:.1f}"])
    return markdown(["arm", *COLUMNS, "ops", "calls"], rows)


def to_markdown(study: Study) -> str:
    parts = [f"# Mechanism study\n\n{headline(study)}\n", matrix_table(study)]
    parts.append("".join(f"- {kind}: {text}\n" for kind, text in study["classes"].items()))
    parts.append("".join(f"- {what}: {_short(value)}\n" for what, value in study["looks"].items()))
    parts.append(_depth_table(study))
    parts.append(_noise_table(study))
    parts += [_statement(made) for made in study["statements"]]
    parts.append("## Differences\n\n" + "".join(f"- {text}\n" for text in study["differences"]))
    if "filings" in study:
        parts.append(filings_markdown(study["filings"]))
    return "\n".join([*parts, last_line(study)]) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "low" in value:
        return cell(Estimate(**value))
    return ", ".join(f"{kind} {number:g}" for kind, number in value.items())


def _depth_table(study: Study) -> str:
    depth = study["curves"]["depth"]
    rows = [["right", *(cell(Estimate(**found)) for _, found in depth)]]
    return markdown(["companies scanned", *(str(d) for d, _ in depth)], rows)


def _noise_table(study: Study) -> str:
    noise = study["curves"]["noise"]
    rows = [[kind, *(fraction(value) for _, value in line)] for kind, line in noise.items()]
    return markdown(["crag, grader firing always, noise", *(f"{level:g}" for level in NOISE)], rows)


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _statement(made: Mapping[str, Any]) -> str:
    rows = [
        [c["what"], cell(Estimate(**c["found"])), c["wanted"], c["reported"], "yes" if c["holds"] else "NO"]
        for c in made["checks"]
    ]
    table = markdown(["", "found", "wanted", "reported", ""], rows)
    remark = f"\n{made['remark']}\n" if made["remark"] else ""
    return f"## {made['number']}. {made['text']}: {_verdict(made['holds'])}\n\n{table}{remark}"


def filings_markdown(found: Mapping[str, Any]) -> str:
    table = markdown(
        ["statement", "on filings", "figures"], [[row["text"], row["verdict"], row["figures"]] for row in found["rows"]]
    )
    return f"## On filings\n\n{found['headline']}\n\n{table}"


def to_html(study: Study) -> str:
    parts = {
        "headline": escape(f"{headline(study)} {last_line(study)}."),
        "headings": "".join(f"<th>{column}</th>" for column in (*COLUMNS, "ops", "calls")),
        "rows": "".join(_html_row(name, arm) for name, arm in study["arms"].items()),
        "classes": "".join(f"<li><b>{kind}</b>: {escape(text)}</li>" for kind, text in study["classes"].items()),
        "charts": "".join(f"<figure><figcaption>{escape(t)}</figcaption>{c}</figure>" for t, c in _charts(study)),
        "statements": "".join(_html_statement(made) for made in study["statements"]),
        "differences": "".join(f"<li>{escape(text)}</li>" for text in study["differences"]),
        "filings": _html_filings(study["filings"]) if "filings" in study else "",
    }
    return page("study", parts)


def _html_row(name: str, arm: Mapping[str, Any]) -> str:
    cells = []
    for kind, reported in zip(COLUMNS, REPORTED[name], strict=False):
        found = arm["right"][kind]
        cells.append(
            f'<td class="heat" style="--share:{found["mean"]:.2f}"><b>{fraction(found["mean"], 2)}</b><small>'
            f"{fraction(found['low'], 2)}–{fraction(found['high'], 2)}</small>"
            f"<small>reported {fraction(reported)}</small></td>"
        )
    *_, ops, calls = REPORTED[name]
    prices = ((f"{arm['ops']:,.0f}", f"{ops:,.0f}"), (f"{arm['calls']:.1f}", f"{calls:.1f}"))
    cells += [f"<td><b>{own}</b><small>reported {reported}</small></td>" for own, reported in prices]
    return f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>"


def _charts(study: Study) -> list[tuple[str, str]]:
    charts = []
    for price, label in (("ops", "similarity evaluations a query"), ("calls", "generator calls a query")):
        points = []
        for i, (name, arm) in enumerate(study["arms"].items()):
            local = arm["right"]["local"]
            spread = (local["mean"], local["low"], local["high"])
            points.append(svg.Point(name, arm[price], *spread, arm["pareto"], f"system-{i % 7}"))
        charts.append((f"Local classes against {label}", svg.scatter(points, label, "right")))
    depth = {"flat scan, counted by hand": [(d, found["mean"]) for d, found in study["curves"]["depth"]]}
    noise = study["curves"]["noise"]
    shown = {kind: noise[kind] for kind in ("on", "noisy", "all")}
    shown["naive, all"] = [(level, study["curves"]["naive"]) for level in NOISE]
    charts.append(("Global: how deep a flat scan must go", svg.curves(depth, "companies scanned of 25", "right")))
    charts.append(("crag as its scorer worsens", svg.curves(shown, "noise added to MaxSim", "right")))
    return charts


def _html_statement(made: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(c['what'])}</td><td>{cell(Estimate(**c['found']))}</td><td>{escape(c['wanted'])}</td>"
        f"<td>{escape(c['reported'])}</td><td class={'holds' if c['holds'] else 'fails'}>"
        f"{'yes' if c['holds'] else 'no'}</td></tr>"
        for c in made["checks"]
    )
    verdict = f"<span class={'holds' if made['holds'] else 'fails'}>{_verdict(made['holds'])}</span>"
    return (
        f"<h3>{made['number']}. {escape(made['text'])}: {verdict}</h3><div class=wide><table class=checks><tr><th></th>"
        f"<th>found</th><th>wanted</th><th>reported</th><th></th></tr>{rows}</table></div><p>{escape(made['remark'])}</p>"
    )


def _html_filings(found: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(row['text'])}</td><td>{escape(row['verdict'])}</td><td>{escape(row['figures'])}</td></tr>"
        for row in found["rows"]
    )
    return (
        f"<h2>On filings</h2><p class=note>{escape(found['headline'])}</p><div class=wide><table class=checks><tr>"
        f"<th>statement</th><th>on filings</th><th>figures</th></tr>{rows}</table></div>"
    )
