"""Other frameworks beside ours: the protocol, the corpus rule, what is kept, the report. No framework is installed."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from evals.bench.measures import Measure, Scale, memory_mib
from evals.cli import run
from evals.errors import SubjectError, UsageError
from evals.peers import command, environments, report
from evals.peers.corpus import Corpus, chosen
from evals.peers.measuring import OUR_SYSTEMS, Beside, Work, credited, joined, measure_ours, measure_peer
from evals.peers.runners.serving import Found, application
from evals.questions import Evidence, Question
from tests.evals.scripted_peer import DEBT, REVENUE
from tests.ingest.filings import prose, write_pdf

TINY = Scale(rounds=1, seconds=0.05, clients=(1, 2))
QUESTIONS = (
    Question("revenue", REVENUE, "numeric", evidence=(Evidence("acme", 1),)),
    Question("debt", DEBT, "numeric", evidence=(Evidence("acme", 2),)),
)
SCRIPTED = (sys.executable, "-m", "tests.evals.scripted_peer")


def beside(work: Work, folder: Path) -> Beside:
    """Another scripted peer in the place of ours."""
    other = folder / "other"
    other.mkdir()
    return Beside((*SCRIPTED, str(work.filings), "some-model", "10"), other, ("dense",))


def silent(line: str) -> None:
    assert line


@pytest.fixture
def work(tmp_path: Path) -> Work:
    file = write_pdf(tmp_path / "filings" / "acme.pdf", prose("Acme"), prose("Debt"))
    return Work(Corpus((file,), 2, QUESTIONS), file.parent, "some-model", TINY)


def test_a_peer_answers_in_the_form_of_our_passages() -> None:
    client = TestClient(
        application({"dense": lambda question: [Found("a.pdf", 3, question), Found("b.pdf", 1, "b", 2)]})
    )
    assert client.post("/query/dense", json={"question": "Q?", "k": 10, "options": {}}).json() == {
        "passages": [
            {"rank": 1, "score": 1.0, "source": "a.pdf", "page": 3, "last_page": None, "text": "Q?"},
            {"rank": 2, "score": 0.5, "source": "b.pdf", "page": 1, "last_page": 2, "text": "b"},
        ]
    }
    assert client.post("/query/sparse", json={"question": "Q?"}).status_code == 404


def test_a_passage_across_pages_is_credited_with_the_evidence_it_holds() -> None:
    def pages(first: int, last: int | None, source: str = "acme.pdf") -> list[int]:
        passage = {"source": source, "page": first, "last_page": last}
        return [p["page"] for p in credited({"passages": [passage]}, QUESTIONS[1])["passages"]]

    assert pages(1, 3) == [2]
    assert pages(1, None) == [1]
    assert pages(3, 4) == [3]
    assert pages(1, 3, source="other.pdf") == [1]


def test_a_peer_is_measured_from_its_start_to_its_last_client(work: Work, tmp_path: Path) -> None:
    folder = tmp_path / "scripted"
    folder.mkdir()
    found = measure_peer(SCRIPTED, folder, work, beside(work, tmp_path), silent)
    assert (found["files"], found["chunks"]) == (1, 3)
    assert 0 < found["seconds"] < found["first_answer_s"]
    dense, hybrid = found["systems"]["dense"], found["systems"]["hybrid"]
    assert dense["quality"]["revenue"]["page hit@1"] == 1
    assert dense["quality"]["debt"]["page hit@10"] == 0
    assert dense["quality"]["debt"]["document hit@1"] == 1
    assert hybrid["quality"]["debt"]["page hit@1"] == 0
    assert hybrid["quality"]["debt"]["page nDCG@10"] == pytest.approx(0.5)
    assert dense["characters"] == (15 + 7 + 7) / 2
    assert set(found["beside"]) == {"dense"}
    for system in (dense, hybrid, found["beside"]["dense"]):
        for clients in (1, 2):
            assert system["speed"][f"throughput/{clients} clients/answers"]["value"] > 0
            assert system["speed"][f"throughput/{clients} clients/failed"]["value"] == 0
    if memory_mib() is not None:
        assert system["speed"]["throughput/2 clients/cpu an answer"]["value"] >= 0
        assert found["memory"]["peak_mib"] >= found["memory"]["after_load_mib"] > 1


def test_a_peer_that_cannot_index_says_why(work: Work, tmp_path: Path) -> None:
    missing = Work(work.corpus, work.filings, "missing", TINY)
    with pytest.raises(SubjectError, match="no such model"):
        measure_peer(SCRIPTED, tmp_path, missing, beside(work, tmp_path), silent)


@pytest.mark.slow
def test_ours_is_measured_without_answers_and_with_them(work: Work, tmp_path: Path) -> None:
    found = measure_ours(tmp_path / "ours", work, silent)
    assert found["files"] == 1
    assert found["chunks"] >= 2
    assert 0 < found["seconds"] < found["first_answer_s"]
    systems = found["systems"]
    assert set(systems) == {*OUR_SYSTEMS, "naive, answering", "hybrid, answering"}
    for name in OUR_SYSTEMS:
        assert {values["document hit@1"] for values in systems[name]["quality"].values()} == {1}
    for name in ("naive", "hybrid", "naive, answering", "hybrid, answering"):
        assert systems[name]["speed"]["throughput/2 clients/answers"]["value"] > 0


def test_rounds_are_joined_by_measure() -> None:
    first = [Measure("answers", "1/s", (1.0,), "higher"), Measure("p50", "ms", (5.0,))]
    second = [Measure("answers", "1/s", (3.0,), "higher")]
    assert joined([first, second]) == [Measure("answers", "1/s", (1.0, 3.0), "higher"), Measure("p50", "ms", (5.0,))]
    assert joined([]) == []


def _three(folder: Path) -> list[Question]:
    for name, pages in (("long", 3), ("middle", 2), ("short", 1)):
        write_pdf(folder / f"{name}.pdf", *[prose(f"{name}{n}") for n in range(pages)])
    return [
        Question("1", "?", "numeric", evidence=(Evidence("short", 1),)),
        Question("2", "?", "bridge", evidence=(Evidence("short", 1), Evidence("middle", 2))),
        Question("3", "?", "numeric", evidence=(Evidence("long", 3),)),
        Question("4", "?", "numeric", evidence=(Evidence("elsewhere", 1),)),
        Question("weak", "?", "numeric", evidence=(Evidence("short"),)),
        Question("none", "?", "unanswerable", evidence=(Evidence("short", 1),)),
    ]


@pytest.mark.parametrize(
    ("cover", "files", "pages", "asked"),
    [
        (None, ["short", "middle", "long"], 6, ["1", "2", "3"]),
        (1, ["short"], 1, ["1"]),
        (2, ["short", "middle"], 3, ["1", "2"]),
        (3, ["short", "middle", "long"], 6, ["1", "2", "3"]),
    ],
)
def test_the_shortest_filings_that_cover_enough_questions_are_taken(
    tmp_path: Path, cover: int | None, files: list[str], pages: int, asked: list[str]
) -> None:
    found = chosen(tmp_path, _three(tmp_path), cover)
    assert [path.stem for path in found.files] == files
    assert found.pages == pages
    assert [question.id for question in found.questions] == asked


def test_too_few_questions_or_a_broken_pdf_are_a_usage_error(tmp_path: Path) -> None:
    questions = _three(tmp_path)
    with pytest.raises(UsageError, match="hold all evidence of 3 questions"):
        chosen(tmp_path, questions, 4)
    with pytest.raises(UsageError, match="its 0 PDFs hold all evidence of 0 questions"):
        chosen(tmp_path / "empty", questions, None)
    (tmp_path / "torn.pdf").write_bytes(b"%PDF-1.7 torn")
    with pytest.raises(UsageError, match=r"torn\.pdf"):
        chosen(tmp_path, questions, None)


def test_an_environment_is_made_once_and_sees_our_packages(tmp_path: Path) -> None:
    pinned = tmp_path / "nothing.txt"
    pinned.write_text("# nothing more is needed\n")
    said: list[str] = []
    python = environments.interpreter(tmp_path / "peer", pinned, said.append)
    assert environments.interpreter(tmp_path / "peer", pinned, said.append) == python
    assert len(said) == 1
    code = "import sys, uvicorn; print(sys.prefix)"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "peer" / "venv")


def test_packages_out_of_reach_are_named(tmp_path: Path) -> None:
    pinned = tmp_path / "faraway.txt"
    pinned.write_text("--no-index\nno-such-package-anywhere==1.0\n")
    with pytest.raises(
        SubjectError, match=r"faraway's packages cannot be installed: ERROR: .*no-such-package-anywhere"
    ):
        environments.interpreter(tmp_path / "peer", pinned, silent)
    assert not list((tmp_path / "peer" / "venv").glob("ready-*"))


@pytest.mark.parametrize("name", command.PEERS)
def test_every_peer_is_pinned_and_has_a_runner(name: str) -> None:
    lines = environments.requirements(name).read_text("utf-8").splitlines()
    assert all(line.count("==") == 1 for line in lines)
    assert command.PEERS[name] in {line.partition("==")[0] for line in lines}
    assert (environments.RUNNERS / f"{name}.py").exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--peers", "other"], "no peer other; there are llamaindex, langchain, haystack"),
        (["--clients", "0,8"], "--clients takes numbers from 1"),
        (["--cover", "1"], "its 0 PDFs hold all evidence of 0 questions"),
    ],
)
def test_wrong_usage_has_status_2_before_anything_is_installed(
    tmp_path: Path, given: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"id": "1", "question": "?", "evidence": [{"doc": "a.pdf", "page": 1}]}\n')
    arguments = ["peers", "--filings", str(tmp_path), "--questions", str(asked), "--out", str(tmp_path / "out")]
    assert run([*arguments, *given]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_was_measured_is_kept_until_the_work_changes(work: Work, tmp_path: Path) -> None:
    runs: list[Path] = []

    def measure(folder: Path, work: Work, say: Any) -> dict[str, Any]:
        runs.append(folder)
        return {"files": len(runs)}

    def measured(fingerprint: str, *, again: bool = False) -> int:
        found = command.kept(tmp_path, fingerprint, silent, lambda: measure(tmp_path, work, silent), again=again)
        return int(found["files"])

    assert measured("a") == 1
    assert measured("a") == 1
    assert measured("b") == 2
    assert measured("b", again=True) == 3
    assert len(runs) == 3


def test_the_fingerprint_follows_questions_filings_and_scale(work: Work) -> None:
    fewer = Work(Corpus(work.corpus.files, 2, QUESTIONS[:1]), work.filings, work.model, TINY)
    longer = Work(work.corpus, work.filings, work.model, Scale(rounds=2, clients=(1, 2)))
    first = command.fingerprint(work, "evals.peers.runners")
    assert command.fingerprint(work, "evals.peers.runners") == first
    assert len({first, *(command.fingerprint(each, "evals.peers.runners") for each in (fewer, longer))}) == 3
    write_pdf(work.corpus.files[0], prose("another"))
    assert command.fingerprint(work, "evals.peers.runners") != first


def _system(hits: Mapping[str, float], answers: float) -> dict[str, Any]:
    def figure(value: float) -> dict[str, float]:
        return {"value": value}

    at = "throughput/8 clients"
    quality = {id_: {"page hit@10": hit, "page nDCG@10": hit / 2} for id_, hit in hits.items()}
    speed = {
        f"{at}/answers": figure(answers),
        f"{at}/cpu an answer": figure(1000 / answers if answers else 0),
        f"{at}/p50": figure(10),
        f"{at}/p95": figure(20),
        f"{at}/failed": figure(0),
    }
    return {"quality": quality, "characters": 4000.0, "speed": speed}


def _contender(seconds: float, first: float, mib: float, **systems: Any) -> dict[str, Any]:
    return {
        "files": 1,
        "chunks": 1234,
        "seconds": seconds,
        "first_answer_s": first,
        "memory": {"after_load_mib": mib, "peak_mib": None},
        "load": {"before": 0.5, "after": 1.5},
        "systems": {name.replace("_", ":", 1): found for name, found in systems.items()},
    }


def _contenders() -> dict[str, Any]:
    best, worst = {"1": 1.0, "2": 1.0, "3": 0.0}, {"1": 1.0, "2": 0.0, "3": 0.0}
    ours = _contender(10, 30, 900, naive=_system(worst, 600), hybrid=_system(best, 500))
    unfiltered = _system(best, 0)
    del unfiltered["speed"]
    ours["systems"]["hybrid:query_filters=false"] = unfiltered
    theirs = _contender(20, 20, 600, dense=_system(best, 20), hybrid=_system(worst, 20))
    meanwhile = {"naive": _system({}, 60), "hybrid": _system({}, 50)}
    return {"sextant": ours, "haystack": {**theirs, "version": "3.0", "beside": meanwhile}}


def test_ours_is_held_against_theirs_system_by_system() -> None:
    naive, hybrid, unfiltered = report.ratios(_contenders())
    assert (naive["theirs"], naive["answers"], naive["met"]) == ("dense", {"8 clients": 3.0}, False)  # finds less
    assert naive["quality"]["page hit@10"]["damages"] == 1
    assert (hybrid["answers"], hybrid["met"]) == ({"8 clients": 2.5}, True)
    assert hybrid["cpu_an_answer"] == {"8 clients": 0.4}
    assert hybrid["quality"]["page hit@10"] == {"n": 3, "wins": 1, "damages": 0, "difference": 1 / 3, "p": 1.0}
    assert (hybrid["pages_per_second"], hybrid["first_answer"], hybrid["memory_after_load"]) == (2.0, 1.5, 1.5)
    assert (unfiltered["answers"], unfiltered["met"]) == ({}, None)


def test_the_aim_is_missed_where_ours_is_slower_at_any_number_of_clients() -> None:
    contenders = _contenders()
    contenders["haystack"]["systems"]["hybrid"]["speed"]["throughput/8 clients/answers"]["value"] = 26
    assert report.ratios(contenders)[1]["met"] is False


def test_the_report_has_every_contender_in_every_table() -> None:
    contenders = _contenders()
    record = {
        "date": "2026-11-30",
        "commit": None,
        "machine": {"cores": 2, "memory_gib": 16.0},
        "corpus": {"files": 1, "pages": 100, "questions": 3},
        "scale": {"rounds": 3, "seconds": 4.0, "clients": (8,)},
        "contenders": contenders,
        "ratios": report.ratios(contenders),
    }
    lines = [" ".join(line.replace("|", " ").split()) for line in report.to_markdown(record).splitlines()]
    assert "Sextant 0.5 to 1.5, Haystack 0.5 to 1.5" in lines[2]
    assert "Haystack dense 20.0 10 20 50.0 0" in lines
    assert "Sextant hybrid, beside Haystack 50.0 10 20 20.0 0" in lines
    assert "Sextant 1 1,234 10.0 30.0 – 900" in lines
    assert "Haystack 3.0 1 1,234 5.0 20.0 – 600" in lines
    assert (
        "hybrid over Haystack hybrid +.333 (1 / 0, p 1.000) +.167 (1 / 0, p 1.000) 2.50 0.40 2.00 1.50 1.50 met"
        in lines
    )
    assert any(line.startswith("Sextant hybrid:query_filters=false – – – – .667 [.21, .94] .333") for line in lines)
