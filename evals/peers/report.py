"""The contenders side by side: what they find, how fast, and ours over each of theirs."""

from collections.abc import Mapping, Sequence
from typing import Any

from evals.peers.measuring import OURS, Contender
from evals.reports.tables import cell, fraction, markdown
from evals.statistics import estimate, holm, paired

AIM = 2.0
"""Answers a second of ours over theirs, where ours finds no less."""
QUALITY = ("document hit@1", "document hit@5", "page hit@1", "page hit@5", "page hit@10", "page nDCG@10")
_WEIGHED = ("page hit@10", "page nDCG@10")
_PAIRS = (("naive", "dense"), ("hybrid", "hybrid"), ("hybrid:query_filters=false", "hybrid"))
_LABELS = {OURS: "Sextant", "llamaindex": "LlamaIndex", "langchain": "LangChain", "haystack": "Haystack"}
Row = dict[str, Any]


def ratios(contenders: Mapping[str, Contender]) -> list[Row]:
    """Ours against each peer's system of the same kind: questions won and damaged, and ours over theirs.

    A ratio is None where it cannot be had. p is adjusted for the number of rows and measures (Holm).
    """
    ours = contenders[OURS]
    rows = [
        _against(ours, mine, theirs, peer, system)
        for peer, theirs in contenders.items()
        if peer != OURS
        for mine, system in _PAIRS
    ]
    tests = [row["quality"][measure] for row in rows for measure in _WEIGHED]
    for test, adjusted in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p"] = adjusted
    return rows


def _against(ours: Contender, mine: str, theirs: Contender, peer: str, system: str) -> Row:
    our, their = ours["systems"][mine], theirs["systems"][system]
    quality = {measure: _paired(our, their, measure) for measure in _WEIGHED}
    answers = _speeds(theirs["beside"].get(mine, {}), their, "answers")
    least = min(answers.values(), default=None)
    no_worse = all(test["difference"] >= 0 for test in quality.values())
    return {
        "peer": peer,
        "ours": mine,
        "theirs": system,
        "quality": quality,
        "answers": answers,
        "cpu_an_answer": _speeds(theirs["beside"].get(mine, {}), their, "cpu an answer"),
        "pages_per_second": theirs["seconds"] / ours["seconds"],
        "first_answer": ours["first_answer_s"] / theirs["first_answer_s"],
        "memory_after_load": _ratio(ours["memory"]["after_load_mib"], theirs["memory"]["after_load_mib"]),
        "met": None if least is None else least >= AIM and no_worse,
    }


def _paired(our: Mapping[str, Any], their: Mapping[str, Any], measure: str) -> Row:
    found = paired(_column(our, measure), _column(their, measure))
    return {"n": found.n, "wins": found.wins, "damages": found.damages, "difference": found.difference, "p": found.p}


def _column(system: Mapping[str, Any], measure: str) -> dict[str, float]:
    return {id_: values[measure] for id_, values in system["quality"].items() if measure in values}


def _speeds(our: Mapping[str, Any], their: Mapping[str, Any], what: str) -> dict[str, float]:
    """One measure of rounds taken in turn, by number of clients; empty of a system that was not timed."""
    both = [name for name in our.get("speed", {}) if name.endswith(f"/{what}") and name in their.get("speed", {})]
    found = {name.split("/")[1]: _ratio(our["speed"][name]["value"], their["speed"][name]["value"]) for name in both}
    return {clients: ratio for clients, ratio in found.items() if ratio is not None}


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def to_markdown(record: Mapping[str, Any]) -> str:
    corpus, at, scale = record["corpus"], record["machine"], record["scale"]
    contenders: Mapping[str, Contender] = record["contenders"]
    busy = [
        f"{_LABELS[name]} {found['load']['before']:.1f} to {found['load']['after']:.1f}"
        for name, found in contenders.items()
    ]
    head = (
        f"{record['date']}, commit {record['commit'] or 'unknown'}: {corpus['files']} filings, "
        f"{corpus['pages']} pages, {corpus['questions']} questions; {at['cores']} cores, {at['memory_gib']:g} GiB. "
        f"Load average before and after each: {', '.join(busy)}. "
        f"Median of {scale['rounds']} rounds of {scale['seconds']:g} s."
    )
    return "\n".join(
        (
            f"# Peers\n\n{head}\n",
            "## Ten passages\n",
            _quality_table(contenders),
            "## Answers over HTTP\n",
            _speed_table(contenders, scale["clients"]),
            "## From nothing\n",
            _start_table(contenders, corpus["pages"]),
            f"## Ours over theirs\n\nThe aim: at least {AIM:g} times the answers a second at every number of clients, "
            "and no smaller page hit@10 or nDCG@10. Answers of both are of rounds taken in turn.\n",
            _ratio_table(record["ratios"]),
        )
    )


def _rows(contenders: Mapping[str, Contender], what: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (f"{_LABELS[name]} {system}", found)
        for name, contender in contenders.items()
        for system, found in contender["systems"].items()
        if what in found
    ]


def _quality_table(contenders: Mapping[str, Contender]) -> str:
    rows = []
    for name, found in _rows(contenders, "quality"):
        columns = [list(_column(found, measure).values()) for measure in QUALITY]
        rows.append([name, *(cell(estimate(values)) for values in columns), f"{found['characters']:,.0f}"])
    return markdown(["system", *QUALITY, "characters read"], rows)


def _speed_table(contenders: Mapping[str, Contender], clients: Sequence[int]) -> str:
    rows = []
    beside = [
        (f"Sextant {system}, beside {_LABELS[name]}", found)
        for name, contender in contenders.items()
        for system, found in contender.get("beside", {}).items()
    ]
    for name, found in [*_rows(contenders, "speed"), *beside]:
        row = [name]
        for number in clients:
            at = f"throughput/{number} clients"
            row += [
                _shown(found["speed"], f"{at}/answers", 1),
                _shown(found["speed"], f"{at}/p50"),
                _shown(found["speed"], f"{at}/p95"),
                _shown(found["speed"], f"{at}/cpu an answer", 1),
            ]
        failed = sum(found["speed"][f"throughput/{number} clients/failed"]["value"] for number in clients)
        rows.append([*row, f"{failed:.0f}"])
    headings = [f"{what}, {number}" for number in clients for what in ("answers/s", "p50 ms", "p95 ms", "CPU ms")]
    return markdown(["system", *headings, "failed"], rows)


def _shown(speed: Mapping[str, Any], name: str, places: int = 0) -> str:
    return f"{speed[name]['value']:,.{places}f}" if name in speed else "–"


def _start_table(contenders: Mapping[str, Contender], pages: int) -> str:
    rows = [
        [
            f"{_LABELS[name]} {found.get('version', '')}".strip(),
            str(found["files"]),
            f"{found['chunks']:,}",
            f"{pages / found['seconds']:.1f}",
            f"{found['first_answer_s']:.1f}",
            _mib(found["memory"]["peak_mib"]),
            _mib(found["memory"]["after_load_mib"]),
        ]
        for name, found in contenders.items()
    ]
    headings = ["contender", "files", "chunks", "pages/s", "first answer s", "peak MiB", "MiB after the load"]
    return markdown(headings, rows)


def _mib(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _ratio_table(rows: Sequence[Row]) -> str:
    shown = []
    for row in rows:
        tests = [row["quality"][measure] for measure in _WEIGHED]
        shown.append(
            [
                f"{row['ours']} over {_LABELS[row['peer']]} {row['theirs']}",
                *(f"{_signed(t['difference'])} ({t['wins']} / {t['damages']}, p {t['p']:.3f})" for t in tests),
                *(" / ".join(f"{r:.2f}" for r in row[what].values()) or "–" for what in ("answers", "cpu_an_answer")),
                f"{row['pages_per_second']:.2f}",
                f"{row['first_answer']:.2f}",
                "–" if row["memory_after_load"] is None else f"{row['memory_after_load']:.2f}",
                {None: "–", True: "met", False: "missed"}[row["met"]],
            ]
        )
    weighed = [f"{measure} (won / damaged)" for measure in _WEIGHED]
    headings = ["ours over theirs", *weighed, "answers/s", "CPU", "pages/s", "first answer", "memory", "aim"]
    return markdown(headings, shown)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "") + fraction(abs(value))
