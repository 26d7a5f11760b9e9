"""What is written about a run: Markdown, a page that needs nothing but itself, and two runs side by side."""

import json
import re
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evals import matrix, routes
from evals.budget import Forecast, exceeded, pilot
from evals.reports import compare, html, record
from evals.reports import markdown as report
from evals.reports.record import Record
from evals.subjects import parse_system
from tests.evals import world

pytestmark = pytest.mark.anyio
EVERY = world.QUESTIONS + world.UNANSWERABLE
NAMES = ("naive", "hybrid", "hybrid:query_filters=false")


async def recorded(tmp_path: Path, tamper: world.Tamper | None = None) -> Record:
    path = tmp_path / "qa.jsonl"
    path.write_text("{}", encoding="utf-8")
    systems = [parse_system(name) for name in NAMES]
    async with world.asking(tamper=tamper) as asking:
        await asking.ask(asking.missing(systems, EVERY))
        scores = [await matrix.score(asking, system, EVERY) for system in systems]
        run = await record.of_run(asking, path, EVERY)
        filings = routes.catalogue(await asking.subject.documents())
    found = record.build(run, matrix.build(scores, EVERY, "naive", "answer"), scores, EVERY)
    chosen = routes.choices(scores, EVERY, routes.kinds_of(EVERY, filings), "answer")
    found["routing"] = [asdict(each) for each in chosen]
    again: Record = json.loads(json.dumps(found))
    return again


async def test_a_record_says_what_ran(tmp_path: Path) -> None:
    run = (await recorded(tmp_path))["run"]
    assert (run["k"], run["seed"], run["questions"]["n"]) == (10, 0, 28)
    assert (run["index"]["documents"], run["index"]["pages"], run["index"]["chunks"]) == (4, 24, 24)
    assert run["index"]["models"]["embedder"] == "letters"
    assert run["architectures"]["hybrid"]["c"] == 60
    assert len(run["index"]["fingerprint"]) == 12
    assert "cores" in run["machine"]


async def test_markdown_has_every_system_in_every_table(tmp_path: Path) -> None:
    text = report.to_markdown(await recorded(tmp_path))
    assert "| naive                      | 1.000 [.88, 1.00] |" in text
    assert "## Wins and damages against naive" in text
    assert "## Auto against each fixed architecture and the oracle" in text
    assert "Beware" not in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {line.count("|") for line in table.splitlines()}
        assert len(widths) == 1


async def test_what_is_to_beware_of_stands_above_the_tables(tmp_path: Path) -> None:
    text = report.to_markdown(await recorded(tmp_path, world.cost_not_counted))
    assert 0 < text.index("**Beware:** naive breaks a promise 28 times") < text.index("## answer")


class Page(HTMLParser):
    """Collects what a page would load, and whether its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.charts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "action", "data-src")]
        self.charts += tag == "svg"
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    text = html.to_html(await recorded(tmp_path))
    page = Page()
    page.feed(text)
    assert page.loads == []
    assert page.open == []
    assert "@import" not in text
    assert "url(" not in text
    assert not re.search(r"<!--\w+-->", text)
    assert page.charts == 2 + 1 + 1 + 3


async def test_text_from_filings_cannot_leave_its_place(tmp_path: Path) -> None:
    found = await recorded(tmp_path)
    hostile = "</script><script>alert(1)</script>"
    found["questions"][0]["question"] = found["questions"][0]["results"]["naive"]["answer"] = hostile
    found["matrix"]["warnings"] = [hostile]
    text = html.to_html(found)
    assert hostile not in text
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert json.loads(data)["questions"][0]["question"] == hostile


async def test_two_runs_side_by_side(tmp_path: Path) -> None:
    sound, broken = await recorded(tmp_path), await recorded(tmp_path, world.cited_a_page_off)
    same = compare.compare(sound, sound)
    assert not any(change.questions for change in same)
    assert "No measure of any question differs." in compare.to_markdown(sound, sound, same)
    changes = {(c.system, c.measure): c for c in compare.compare(sound, broken)}
    worse = changes["naive", "cited_precision"]
    assert (worse.paired.n, worse.paired.wins, worse.paired.damages, worse.paired.difference) == (24, 0, 24, -1)
    assert worse.p_adjusted < 0.001
    assert worse.questions["Acme-goodwill"] == (1.0, 0.0)
    text = compare.to_markdown(sound, broken, list(changes.values()))
    beside = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "| naive " in line][:2]
    assert [(row[:2], row[4]) for row in beside] == [(["naive", "A"], "1.000"), (["naive", "B"], ".000")]
    assert [row[7:10] for row in beside] == [["24", "0.00", "0"]] * 2


async def test_a_forecast_is_what_the_pilot_cost_times_the_rest() -> None:
    async with world.asking() as asking:
        [forecast] = await pilot(asking, [parse_system("naive")], EVERY)
        assert len(asking.log.found) == 2
    assert (forecast.questions, forecast.calls, forecast.usd) == (26, 0, 0)


def test_what_exceeds_the_budget_is_said() -> None:
    known, unknown = Forecast("a", 10, 30.0, 900.0, 0.5, 1.0), Forecast("b", 10, 30.0, 900.0, None, 1.0)
    assert exceeded([known, known], 60, 1.0) is None
    assert exceeded([known, known], 59, None) == "about 60 LLM calls to come, more than --max-calls 59"
    assert exceeded([known, known], None, 0.9) == "about US$ 1.00 to come, more than --max-usd 0.9"
    assert "prices are unknown" in (exceeded([known, unknown], None, 9.0) or "")
