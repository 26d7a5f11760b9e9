"""The demo keeps clear of the caller's index, stops what it started, and shows what a reply says."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console, RenderableType

from app.errors import GeneratorUnavailable
from evals import demo

CITATION = {"marker": 1, "title": "Harrowgate 10-K 2024", "source": "/f/H_2024.pdf", "page": 7, "verified": True}
COST = {"ops": 1234, "llm_calls": 2, "latency_ms": 56.7}
ANSWERED = {"answer": "Two microns [1].", "abstained": False, "citations": [CITATION], "cost": COST}
ABSTAINED = {"answer": "", "abstained": True, "reason": "not_supported", "citations": [], "cost": COST}
PROBLEM = {"title": "Timed out", "detail": "after 60 s", "cost": {"ops": 5, "llm_calls": 0, "latency_ms": 60000.0}}
SLEEPER = "import sys, time; print('Sextant answers on http://127.0.0.1:4711', flush=True); time.sleep(60)"


def shown(what: RenderableType, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(what)
    return out.getvalue()


def test_environment_keeps_models_and_drops_what_names_an_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://production:6333")
    monkeypatch.setenv("API_KEYS", '{"k": {}}')
    monkeypatch.setenv("DATA_DIR", "/srv/index")
    monkeypatch.setenv("OPENAI_MODEL", "some-model")
    found = demo.environment(tmp_path)
    assert found.keys().isdisjoint({"QDRANT_URL", "API_KEYS"})
    assert (found["DATA_DIR"], found["OPENAI_MODEL"]) == (str(tmp_path), "some-model")
    assert found["PATH"] == os.environ["PATH"]


def test_the_first_question_of_each_class_is_asked(tmp_path: Path) -> None:
    lines = [{"class": "on", "id": "a"}, {"class": "off", "id": "b"}, {"class": "on", "id": "c"}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [question["id"] for question in demo.one_of_each_class(tmp_path / "questions.jsonl")] == ["a", "b"]


def test_service_gives_its_url_and_is_gone_afterwards(tmp_path: Path) -> None:
    script = f"import os; open('pid', 'w').write(str(os.getpid())); {SLEEPER}"
    with demo.service([sys.executable, "-c", script], tmp_path) as url:
        assert url == "http://127.0.0.1:4711"
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_service_that_does_not_start_says_why(tmp_path: Path) -> None:
    script = "import sys; sys.exit('index was built with another model')"
    with (
        pytest.raises(demo.DemoFailed, match="did not start: index was built with another model"),
        demo.service([sys.executable, "-c", script], tmp_path),
    ):
        pass


def test_a_terminated_demo_takes_its_service_along(tmp_path: Path) -> None:
    script = (
        "import pathlib, signal, sys, time\n"
        "from evals import demo\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        f'sleeper = \'import os; open("pid", "w").write(str(os.getpid())); \' + {SLEEPER!r}\n'
        "with demo.service([sys.executable, '-c', sleeper], folder):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=demo.ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_table_shows_answers_evidence_and_both_currencies() -> None:
    question = {"class": "on", "question": "How accurate is it?", "answer": "Two microns."}
    table = demo.replies_table(question, {"naive": ANSWERED, "hybrid": ABSTAINED, "crag": PROBLEM})
    lines = shown(table, width=100).splitlines()
    assert lines[0].strip() == "on  How accurate is it?"
    assert next(line for line in lines if "naive" in line).split() == "naive Two microns [1]. 1,234 2 57".split()
    assert any("[1] Harrowgate 10-K 2024, page 7 verified" in line for line in lines)
    assert any("no answer (not_supported)" in line for line in lines)
    assert any("Timed out: after 60 s" in line for line in lines)
    assert lines[-1].strip() == "expected: Two microns."


def test_a_page_cited_twice_is_listed_once() -> None:
    cell = demo.answer_cell({**ANSWERED, "citations": [CITATION, CITATION, {**CITATION, "page": 8, "verified": False}]})
    assert cell.plain.splitlines()[1:] == [
        "[1] Harrowgate 10-K 2024, page 7 verified",
        "[1] Harrowgate 10-K 2024, page 8 not verified",
    ]


def test_summary_adds_up_each_currency_by_itself() -> None:
    asked: list[dict[str, Any]] = [{"naive": ANSWERED}, {"naive": ABSTAINED}, {"naive": PROBLEM}]
    on = {"class": "on", "evidence": [{"doc": "H_2024", "page": 7}]}
    questions: list[dict[str, Any]] = [on, {"class": "unanswerable", "evidence": []}, on]
    _, headings, _, row = shown(demo.summary_table(questions, asked)).splitlines()[:4]
    assert headings.split() == "arch answered abstained failed right verified ops calls ms".split()
    assert row.split() == "naive 1 1 1 2/3 1/1 2,473 4 57".split()


@pytest.mark.parametrize(
    ("kind", "reply", "expected"),
    [
        ("on", ANSWERED, True),
        ("on", {**ANSWERED, "citations": [{**CITATION, "page": 8}]}, False),
        ("on", ABSTAINED, False),
        ("on", PROBLEM, False),
        ("unanswerable", ABSTAINED, True),
        ("unanswerable", ANSWERED, False),
    ],
)
def test_right_is_the_evidence_page_or_a_refusal(kind: str, reply: dict[str, Any], expected: bool) -> None:
    assert demo.as_expected({"class": kind, "evidence": [{"doc": "H_2024", "page": 7}]}, reply) is expected


def test_urls_stay_and_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert demo.absolute("https://host/10k.pdf") == "https://host/10k.pdf"
    assert demo.absolute("filings") == str(tmp_path / "filings")
    assert demo.absolute("~/filings") == "/home/someone/filings"


def test_a_folder_that_is_not_there_stops_the_demo_at_once(tmp_path: Path) -> None:
    with pytest.raises(demo.DemoFailed, match="no such file"):
        demo.demonstrate([str(tmp_path / "nope")], tmp_path, Console(file=io.StringIO()))


@pytest.mark.parametrize("variables", [{"LLM": "none"}, {"GENERATOR": "openai"}])
def test_the_local_model_can_be_left_out(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    assert not demo.local_model_is_there(Console(file=out))
    assert out.getvalue() == ""


def test_without_the_local_model_the_demo_goes_on_and_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise GeneratorUnavailable("no network")

    monkeypatch.setenv("GENERATOR", "")
    monkeypatch.setenv("MODELS_DIR", str(tmp_path))
    monkeypatch.delenv("LLM", raising=False)
    monkeypatch.setattr(demo, "fetch_with_progress", refuse)
    out = io.StringIO()
    assert not demo.local_model_is_there(Console(file=out))
    assert "Going on without it: no network" in out.getvalue()


@pytest.mark.parametrize(("limit_s", "asked"), [(60.0, [["naive", "hyde"], ["naive", "hyde"]]), (0.0, [["naive"]])])
def test_a_slow_round_stops_in_time(monkeypatch: pytest.MonkeyPatch, limit_s: float, asked: list[list[str]]) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/query":
            return httpx.Response(200, json=ANSWERED)
        described = [{"name": name, "can_run": True, "why_not": None} for name in ("naive", "hyde")]
        return httpx.Response(200, json={"architectures": described})

    client = httpx.Client(base_url="http://demo", transport=httpx.MockTransport(respond))
    monkeypatch.setattr(httpx, "Client", lambda **_: client)
    out = io.StringIO()
    question = {"class": "on", "question": "How accurate is it?", "answer": "Two microns."}
    replies = demo.ask_all("http://demo", [question, question], Console(file=out), limit_s)
    assert [list(each) for each in replies] == asked
    assert ("Stopping after 0 seconds" in out.getvalue()) == (limit_s == 0)
