"""The sentences of management's discussion: they cite the statements, so every figure and percentage is worked out."""

from collections.abc import Mapping

from evals.specimens.reports import Report, change, percent, verb
from evals.specimens.statement_tables import title

Wording = Mapping[str, list[str]]
"""Variants of one kind of sentence by name."""


def revenue_and_profit(report: Report, wording: Wording, variant: int) -> list[str]:
    """Paragraphs on revenue, margins, expenses and net income."""
    facts = _words(report)

    def say(name: str, **more: str) -> str:
        return wording[name][variant % len(wording[name])].format_map({**facts, **more})

    texts = [say("revenue")]
    if report.company["kind"] == "bank":
        texts += [say("net_interest"), say("provision"), say("fees")]
    else:
        if report.company.get("gross_profit", True):
            texts.append(say("gross", cost_label=report.company["expenses"][0]["label"]))
        texts.append(" ".join(_expenses(report, wording, variant, facts)))
        texts.append(say("operating"))
    return [*texts, say("net")]


def _expenses(report: Report, wording: Wording, variant: int, facts: Mapping[str, str]) -> list[str]:
    """One sentence for each expense that is not zero, the first (cost) left out."""
    now, before = report.income[0].flows, report.income[1].flows
    said = []
    for number, expense in enumerate(report.company["expenses"][1:]):
        key, label = expense["key"], expense["label"]
        if not now.get(key, 0):
            continue
        figures = {
            "label": label,
            "label_lower": label[0].lower() + label[1:],
            "now": f"{now[key]:,}",
            "before": f"{before[key]:,}",
            "verb": verb(now[key], before[key]),
            "share": percent(now[key], now["revenue"]),
            "share_prior": percent(before[key], before["revenue"]),
        }
        sentences = wording["expense" if before[key] else "new_expense"]
        said.append(sentences[(variant + number) % len(sentences)].format_map({**facts, **figures}))
    return said


def segment_results(report: Report, wording: Wording, variant: int) -> list[tuple[str, str]]:
    """(segment, paragraph) with the company's own account of what moved it."""
    facts = _words(report)
    now, before = report.income[0].flows, report.income[1].flows
    told = []
    for number, segment in enumerate(report.company["segments"]):
        name = segment["name"]
        a, b, p, q = (flows[f"{kind}:{name}"] for kind in ("segment", "profit") for flows in (now, before))
        drivers = report.company["quarter"]["drivers"] if report.quarter else []
        figures = {
            "segment": name,
            "now": f"{a:,}",
            "before": f"{b:,}",
            "change": f"{abs(a - b):,}",
            "pct": change(a, b),
            "verb": verb(a, b),
            "profit": f"{p:,}",
            "profit_prior": f"{q:,}",
            "margin": percent(p, a),
            "margin_prior": percent(q, b),
            "driver": (drivers[number] if report.quarter else segment[str(report.year)]).format_map(facts),
        }
        chosen = (wording[kind][(variant + number) % len(wording[kind])] for kind in ("segment", "profit"))
        told.append((name, " ".join(text.format_map({**facts, **figures}) for text in chosen)))
    return told


def cash_and_debt(report: Report, wording: Wording, variant: int) -> list[str]:
    facts = {**_words(report), **report.cash_facts}
    flows = report.cash[0].flows
    returns = "no_dividends" if not flows["dividends"] else "returns" if flows["buybacks"] else "no_buybacks"
    return [wording[name][variant % len(wording[name])].format_map(facts) for name in ("cash", returns)]


def _words(report: Report) -> dict[str, str]:
    word = title(report, "revenue")
    return {**report.facts, "Revenue": word, "revenue_word": word[0].lower() + word[1:]}
