"""The specimen filings: the same bytes every time, statements that add up, and evidence on the page it names."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("reportlab", reason="the specimens extra is not installed")

from evals.specimens.__main__ import main, write_specimens
from evals.specimens.layout import MARK, Table
from evals.specimens.questions import QuestionError, build, theme_counts
from evals.specimens.reports import Report, companies, reports
from evals.specimens.tables import tables
from ingest.formats.pdf import read_pdf

REPORTS = [report for company in companies() for report in reports(company)]
CLASSES = {"on", "partial", "off", "noisy", "bridge", "numeric", "comparison", "global", "unanswerable"}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specimens")
    write_specimens(folder)
    return folder


@pytest.fixture(scope="module")
def pages(out: Path) -> dict[str, list[str]]:
    """Page texts by stem as ingestion reads them, not as the writer did; runs of white space made one space."""
    return {
        path.stem: [" ".join(page.text.split()) for page in read_pdf(path).pages]
        for path in sorted((out / "filings").glob("*.pdf"))
    }


@pytest.fixture(scope="module")
def questions(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def figures(table: Table, label: str) -> list[int]:
    """The printed amounts of the first line with this label; parentheses are negative, a dash is zero."""
    row = next(row for row in table.rows if row.label == label and row.cells)
    return [amount(cell) for cell in row.cells]


def amount(cell: str) -> int:
    return 0 if cell == "—" else int(re.sub(r"[(),]", "", cell)) * (-1 if cell.startswith("(") else 1)


def test_a_second_run_in_another_process_writes_the_same_bytes(out: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "evals.specimens", str(tmp_path), "--json"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, second = ({p.relative_to(d): p.read_bytes() for p in d.rglob("*.*")} for d in (out, tmp_path))
    assert first == second
    assert json.loads(done.stdout)["filings"] == 21


def test_there_are_eight_companies_in_four_sectors_over_two_years(pages: dict[str, list[str]]) -> None:
    assert Counter(report.company["sector"] for report in REPORTS if report.form == "10-K") == {
        "Industrials": 4,
        "Energy": 4,
        "Banks": 4,
        "Software": 4,
    }
    assert {(report.form, report.year) for report in REPORTS} == {("10-K", 2023), ("10-K", 2024), ("10-Q", 2024)}
    assert sorted(pages) == sorted(report.stem for report in REPORTS)


def test_every_filing_has_8_to_25_pages_and_the_mark_on_each(pages: dict[str, list[str]]) -> None:
    assert {stem: len(texts) for stem, texts in pages.items() if not 8 <= len(texts) <= 25} == {}
    assert [stem for stem, texts in pages.items() if not all(MARK in text for text in texts)] == []


def test_printed_page_numbers_run_apart_from_the_position_in_the_file(pages: dict[str, list[str]]) -> None:
    assert pages["HARROWGATE_2024_10K"][2].endswith(" 1")
    assert pages["PELLWORTH_2024_10K"][2].endswith(" 2")
    assert pages["VENTRISS_2024_10K"][2].endswith(" 3")


def test_contents_page_names_the_printed_page_of_each_item(pages: dict[str, list[str]]) -> None:
    for stem, unnumbered in (("HARROWGATE_2024_10K", 2), ("PELLWORTH_2023_10K", 1), ("LARKMOOR_2024_10K", 0)):
        named = re.search(r"Item 7A\. Quantitative and Qualitative Disclosures About Market Risk (\d+)", pages[stem][1])
        assert named is not None
        assert "Item 7A. Quantitative" in pages[stem][int(named[1]) + unnumbered - 1]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.stem)
def test_printed_statements_add_up(report: Report) -> None:
    made = tables(report)
    income, balance, cash = made["income"], made["balance"], made["cash_flows"]
    assert figures(balance, "Total assets") == figures(balance, "Total liabilities and shareholders' equity")
    liabilities, equity = figures(balance, "Total liabilities"), figures(balance, "Total shareholders' equity")
    assert figures(balance, "Total assets") == [a + b for a, b in zip(liabilities, equity, strict=True)]
    pretax, tax = figures(income, "Income before income taxes"), figures(income, "Provision for income taxes")
    net = next(row for row in income.rows if row.kind == "total")
    assert [amount(cell) for cell in net.cells] == [a - b for a, b in zip(pretax, tax, strict=True)]
    opening, end = figures(cash, "Cash at beginning of period"), figures(cash, "Cash at end of period")
    moved = figures(cash, "Net increase (decrease) in cash")
    assert end == [a + b for a, b in zip(opening, moved, strict=True)]
    assert end[0] == amount(balance.rows[1].cells[0]) > 0
    activities = [row for row in cash.rows if row.label.startswith("Net cash")]
    assert moved == [sum(map(amount, column)) for column in zip(*(row.cells for row in activities), strict=True)]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.stem)
def test_lines_of_each_table_sum_to_its_total(report: Report) -> None:
    made = tables(report)
    count = len(report.company["segments"])
    revenue = made["segments"].rows[1 : count + 2]
    profit = made["segments"].rows[count + 3 :]
    summed = [revenue, profit, made["debt"].rows, *(made[name].rows for name in ("loans", "deposits") if name in made)]
    for *lines, total in summed:
        for column, cell in enumerate(total.cells):
            assert sum(amount(line.cells[column]) for line in lines) == amount(cell), total.label
    if "goodwill" in made:
        last = [amount(cell) for cell in made["goodwill"].rows[-1].cells]
        assert sum(last[:-1]) == last[-1] == figures(made["balance"], "Goodwill")[0]


@pytest.mark.parametrize("company", companies(), ids=lambda company: company["slug"])
def test_a_years_closing_figures_open_the_next(company: dict[str, Any]) -> None:
    before, after = reports(company)[:2]
    assert before.balances[0] == after.balances[1]
    assert before.income[0].flows == after.income[1].flows
    for name in ("goodwill", "equity"):
        assert tables(before)[name].rows[-1].cells == tables(after)[name].rows[0].cells
    closing, opening = (figures(tables(report)["debt"], "Total debt") for report in (before, after))
    assert closing[0] == opening[1]


def test_percentages_in_the_discussion_are_those_of_the_amounts_beside_them(pages: dict[str, list[str]]) -> None:
    amounts_after = re.compile(
        r"(?P<verb>increased|decreased) (?:by \$[\d,]+ million, or )?(?P<percent>[\d.]+)%,? (?:or \$[\d,]+ million, )?"
        r"to \$(?P<now>[\d,]+) million (?:in [^.$]* )?from \$(?P<before>[\d,]+) million"
    )
    amount_before = re.compile(
        r"of \$(?P<now>[\d,]+) million (?P<verb>increased|decreased) (?:by \$[\d,]+ million, or )?"
        r"(?P<percent>[\d.]+)%,? from \$(?P<before>[\d,]+) million"
    )
    texts = [text for stem in pages for text in pages[stem]]
    found = [match for text in texts for pattern in (amounts_after, amount_before) for match in pattern.finditer(text)]
    assert len(found) > 50
    for match in found:
        now, before = amount(match["now"]), amount(match["before"])
        assert match["verb"] == ("increased" if now > before else "decreased")
        assert match["percent"] == f"{100 * abs(now - before) / before:.1f}"


def test_no_sentence_moves_by_nothing(pages: dict[str, list[str]]) -> None:
    odd = re.compile(r"unchanged by|\$0 million|[{}]|\bn/m\b|Total total")
    assert [(stem, found[0]) for stem, texts in pages.items() for text in texts if (found := odd.search(text))] == []


def test_the_discussion_cites_the_statements(pages: dict[str, list[str]]) -> None:
    text = " ".join(pages["HARROWGATE_2024_10K"])
    assert "Net sales increased 2.4%, or $29 million, to $1,225 million in 2024 from $1,196 million in 2023." in text
    assert "Net sales $ 1,225 $ 1,196 $ 1,132" in text


def test_evidence_stands_on_the_page_it_names(pages: dict[str, list[str]], questions: list[dict[str, Any]]) -> None:
    cited = [(q["id"], e["doc"], e["page"], e["text"]) for q in questions for e in q["evidence"]]
    assert len(cited) > 100
    assert [where for where in cited if where[3] not in pages[where[1]][where[2] - 1]] == []


def test_questions_cover_every_class(questions: list[dict[str, Any]]) -> None:
    counts = Counter(question["class"] for question in questions)
    assert set(counts) == CLASSES
    assert min(counts.values()) >= 5
    assert 60 <= len(questions) == len({question["id"] for question in questions})
    assert {q["id"] for q in questions if not q["evidence"]} == {
        q["id"] for q in questions if q["class"] == "unanswerable"
    }
    assert all({"value", "unit"} <= question.keys() for question in questions if question["class"] == "numeric")


def test_a_bridge_question_needs_two_companies_and_does_not_name_the_second(questions: list[dict[str, Any]]) -> None:
    for question in (question for question in questions if question["class"] == "bridge"):
        stems = [evidence["doc"].split("_")[0] for evidence in question["evidence"]]
        assert len(set(stems)) == 2
        assert stems[-1].lower() not in question["question"].lower()


def test_the_absent_company_is_named_nowhere(pages: dict[str, list[str]]) -> None:
    assert not any("Corvane" in text for texts in pages.values() for text in texts)


@pytest.mark.parametrize(
    ("theme", "counts"),
    [
        ("commodity_prices", {"Industrials": 2, "Energy": 1, "Banks": 1, "Software": 0}),
        ("weather", {"Industrials": 0, "Energy": 1, "Banks": 2, "Software": 0}),
        ("cyber", {"Industrials": 0, "Energy": 1, "Banks": 2, "Software": 1}),
        ("talent", {"Industrials": 2, "Energy": 0, "Banks": 0, "Software": 1}),
        ("litigation", {"Industrials": 1, "Energy": 0, "Banks": 0, "Software": 2}),
        ("regulation", {"Industrials": 0, "Energy": 2, "Banks": 1, "Software": 0}),
    ],
)
def test_a_theme_has_one_leading_sector(theme: str, counts: dict[str, int]) -> None:
    assert theme_counts(REPORTS, theme) == counts


def test_evidence_on_no_page_is_an_error() -> None:
    with pytest.raises(QuestionError, match="specimen_on_01: no page holds"):
        build(REPORTS, {report.stem: ["an empty page"] for report in REPORTS})


def test_filings_are_not_near_copies_of_each_other(pages: dict[str, list[str]]) -> None:
    """Shares of five-word runs that two companies' annual reports have in common (Jaccard)."""
    runs = {stem: five_word_runs(texts) for stem, texts in pages.items() if stem.endswith("2024_10K")}
    stems = sorted(runs)
    common = {
        (a, b): len(runs[a] & runs[b]) / len(runs[a] | runs[b]) for n, a in enumerate(stems) for b in stems[n + 1 :]
    }
    assert max(common.values()) < 0.25


def five_word_runs(texts: list[str]) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z]+", " ".join(texts).lower())
    return set(zip(*(words[n:] for n in range(5)), strict=False))


def test_an_unwritable_folder_is_said_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main([str(blocked)]) == 1
    assert "cannot write to" in capsys.readouterr().err
