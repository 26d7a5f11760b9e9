"""The command as people run it: help at once, wrong usage explained, a whole run over the real service."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.question.routing import read_measurements
from app.settings import Settings
from evals import subjects
from evals.cli import run
from evals.commands import OK, OVER_BUDGET, UNAVAILABLE, USAGE, VIOLATED
from evals.judging import matrix as judging
from evals.subjects import HttpSubject, over
from tests.conftest import started
from tests.evals import world
from tests.fakes import LetterEmbedder


@pytest.fixture
def qa(tmp_path: Path) -> Path:
    """The small world's questions as a file."""
    rows = [
        {
            "id": q.id,
            "question": q.text,
            "class": q.kind,
            "answer": q.answer,
            "evidence": [{"doc": e.document, "page": e.page} for e in q.evidence],
        }
        for q in world.QUESTIONS + world.UNANSWERABLE
    ]
    path = tmp_path / "qa.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service in this process is the small world's."""

    @asynccontextmanager
    async def local(data_dir: Path | None, *, mute: bool = False) -> AsyncIterator[HttpSubject]:
        async with started(await world.ports()) as app, over(app) as subject:
            yield subject

    class Closable(LetterEmbedder):
        def close(self) -> None:
            """Nothing to close."""

    async def letters(settings: Settings) -> LetterEmbedder:
        return Closable()

    monkeypatch.setattr(subjects, "local", local)
    monkeypatch.setattr(judging, "open_embedder", letters)


def test_help_is_quick_and_has_examples() -> None:
    code = "import sys; from evals.cli import run\ntry: run(['--help'])\nexcept SystemExit: pass\n"
    code += "slow = {'torch', 'numpy', 'httpx', 'ir_measures'} & set(sys.modules); sys.exit(bool(slow))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, "examples:" in found.stdout) == (0, True)


def test_retrieval_prints_a_table(qa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["retrieval", "--questions", str(qa), "--arch", "naive,bm25"]) == OK
    out = capsys.readouterr().out
    assert "| all: bm25" in out
    assert "| bm25 against naive" in out


def test_retrieval_for_programs(qa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["retrieval", "--questions", str(qa), "--arch", "bm25", "--class", "about g", "--json"]) == OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["systems"]["bm25"]["about g"]["page hit@1"]["n"] == 4


def test_citations_pass_on_a_sound_service(qa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["citations", "--questions", str(qa), "--arch", "naive", "--limit", "3"]) == OK
    assert "| naive  |       3 |" in capsys.readouterr().out


def test_a_sample_is_asked_in_the_place_of_all(qa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["citations", "--questions", str(qa), "--arch", "naive", "--sample", "4", "--seed", "1"]) == OK
    assert "| naive  |       4 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(["citations", "--questions", str(qa), "--sample", "4", "--limit", "4"])


def test_a_question_without_a_reply_fails_the_run(qa: Path) -> None:
    assert run(["citations", "--questions", str(qa), "--arch", "naive:nonsense=1", "--limit", "1"]) == VIOLATED


def test_a_matrix_is_written_kept_and_compared(qa: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a"
    command = ["matrix", "--questions", str(qa), "--run", str(folder), "--arch", "naive,hybrid"]
    assert run([*command, "--estimate"]) == OK
    assert "| naive        |        26 |" in capsys.readouterr().err
    assert run(command) == OK
    told = capsys.readouterr()
    assert "# Filings matrix" in told.out
    assert "## faithfulness" in told.out
    assert told.err.index("Judge rules against 64 labels of the product seen") < told.err.index("written:")
    assert {path.name for path in folder.iterdir()} == {"replies.jsonl", "report.html", "report.json", "report.md"}
    kept = (folder / "replies.jsonl").read_bytes()
    assert run([*command, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["run"]["questions"]["n"] == 28
    assert (folder / "replies.jsonl").read_bytes() == kept
    assert run(["compare", str(folder), str(folder)]) == OK
    assert "No measure of any question differs." in capsys.readouterr().out


def test_what_auto_chooses_by_is_written_beside_the_index(
    qa: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = tmp_path / "data" / "index" / "filings"
    beside.mkdir(parents=True)
    command = ["matrix", "--questions", str(qa), "--run", str(tmp_path / "a"), "--arch", "naive,hybrid", "--routes"]
    assert run([*command, "--data-dir", str(tmp_path / "data")]) == OK
    written = capsys.readouterr()
    assert "## Auto against each fixed architecture and the oracle" in written.out
    assert "| auto by this matrix |" in written.out
    measured = read_measurements(beside / "routes.json", world.HonestGenerator.name)
    assert [one.arch for one in measured["named"]] == ["naive", "hybrid"]
    assert run([*command, "--url", "http://127.0.0.1:1"]) == USAGE
    assert "--routes needs a file" in capsys.readouterr().err


def test_a_run_over_budget_stops_before_it_spends(qa: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["matrix", "--questions", str(qa), "--run", str(tmp_path / "a"), "--arch", "naive", "--max-calls", "-1"]
    assert run(command) == OVER_BUDGET
    assert "more than --max-calls" in capsys.readouterr().err
    assert len((tmp_path / "a" / "replies.jsonl").read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["retrieval", "--questions", "/nowhere.jsonl"], "No such file"),
        (["matrix", "--questions", "QA", "--arch", "hybrid"], "baseline 'naive' is not among the systems"),
        (["matrix", "--questions", "QA", "--quality", "beauty"], "no measure 'beauty'"),
        (["citations", "--questions", "QA", "--class", "odd"], "no question of class odd"),
        (["compare", "/nowhere", "/nowhere"], "cannot be read"),
        (["rerank"], "give folders of retrieval sets"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str], message: str, qa: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(qa) if argument == "QA" else argument for argument in arguments]) == USAGE
    assert message in capsys.readouterr().err


def test_no_service_is_said(qa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["retrieval", "--questions", str(qa), "--url", "http://127.0.0.1:9"]) == UNAVAILABLE
    assert "ConnectError" in capsys.readouterr().err
