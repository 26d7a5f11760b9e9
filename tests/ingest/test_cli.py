import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.adapters.bm25 import Bm25Encoder
from app.adapters.qdrant_edge import EdgeStore
from app.errors import StoreUnavailable
from app.settings import Settings
from ingest.cli import OK, SOME_FAILED, UNAVAILABLE, USAGE, parse_arguments, run
from ingest.indexing import Index
from tests.conftest import DEV_DATA
from tests.fakes import FakeStore
from tests.ingest.edgar import ORRIN, TYPED, document, submission
from tests.ingest.filings import HashEmbedder, open_embedded, prose, stamp, statement, write_pdf

WEIRD = DEV_DATA / "weird-pdfs"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the embedded index below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class Memory:
    """An index that outlives the command, without a disk."""

    def __init__(self) -> None:
        self.store = FakeStore(stamp())

    @asynccontextmanager
    async def __call__(self, settings: Settings, create: bool) -> AsyncIterator[Index]:
        yield Index(self.store, HashEmbedder(), {"bm25": Bm25Encoder()})


@pytest.fixture
def memory() -> Memory:
    return Memory()


def batch(*arguments: str) -> int:
    return run(arguments, open_embedded)


def test_each_file_has_a_line_and_the_batch_a_summary(
    place: Path, memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pdf(place / "in" / "good.pdf", prose("good"), "")
    (place / "in" / "bad.pdf").write_text("no PDF at all")
    assert run(["in", "--no-progress"], memory) == SOME_FAILED
    out = capsys.readouterr().out
    assert f"Index: {place}/data/index/filings" in out
    assert "created   in/good.pdf  2 pages, " in out
    assert "no text on page 2" in out
    assert "failed    in/bad.pdf  not_pdf: " in out
    assert "1 failed:\n  in/bad.pdf: not_pdf: " in out
    assert "1 created, 1 failed; 2 pages, " in out


def test_a_folder_of_all_kinds(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "in" / "a.pdf", prose("a"))
    (place / "in" / "b.htm").write_text(ORRIN)
    (place / "in" / "c.txt").write_text(submission("10-K405", document("10-K405", TYPED)))
    (place / "in" / "notes.txt").write_text("Call the auditor.")
    (place / "in" / "error.html").write_text("<html><script>location = '/login'</script></html>")
    assert batch("in", "--json") == SOME_FAILED
    *files, _ = lines(capsys)
    by_name = {Path(line["source"]).name: line for line in files}
    assert {name: line.get("reason", line["outcome"]) for name, line in by_name.items()} == {
        "a.pdf": "created",
        "b.htm": "created",
        "c.txt": "created",
        "error.html": "no_text",
    }
    assert [by_name[name]["pages"] for name in ("b.htm", "c.txt")] == [4, 2]
    assert batch("verify") == OK
    capsys.readouterr()
    assert batch("in/b.htm", "in/c.txt", "--json") == OK
    assert [line["outcome"] for line in lines(capsys)[:-1]] == ["unchanged"] * 2
    (place / "in" / "b.htm").write_text(ORRIN.replace("four piers", "five piers"))
    assert batch("in/b.htm", "--json") == OK
    assert lines(capsys)[0]["outcome"] == "replaced"
    assert batch("list", "--json") == OK
    listed = {Path(line["source"]).name: (line["company"], line["form"], line["fiscal_year"]) for line in lines(capsys)}
    assert listed["b.htm"] == ("Orrin Harbour, Inc.", "10-K", 2023)
    assert listed["c.txt"] == ("Quill & Ledger Company", "10-K", 1995)


def test_json_lines(place: Path, memory: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "in" / "a.pdf", prose("a"))
    (place / "in" / "b.pdf").touch()
    assert run(["ingest", "in", "--json"], memory) == SOME_FAILED
    *files, summary = lines(capsys)
    by_name = {Path(line["source"]).name: line for line in files}
    assert by_name["a.pdf"] == {
        "type": "file",
        "source": f"file://{place}/in/a.pdf",
        "outcome": "created",
        "document_id": by_name["a.pdf"]["document_id"],
        "pages": 1,
        "chunks": summary["chunks"],
        "empty_pages": [],
        "ocr_pages": [],
        "repaired": False,
    }
    assert (by_name["b.pdf"]["outcome"], by_name["b.pdf"]["reason"]) == ("failed", "empty")
    assert {key: summary[key] for key in ("type", "created", "unchanged", "replaced", "failed", "pages")} == {
        "type": "summary",
        "created": 1,
        "unchanged": 0,
        "replaced": 0,
        "failed": 1,
        "pages": 1,
    }
    assert {"seconds", "pages_per_second", "embedding_seconds", "embedding_share"} < summary.keys()
    assert run(["in/a.pdf", "--json"], memory) == OK
    assert [line.get("outcome") for line in lines(capsys)] == ["unchanged", None]


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.pdf",),
        (".",),
        ("*.docx",),
        ("x.pdf", "--workers", "0"),
        ("x.pdf", "--timeout-s", "-1"),
        ("x.pdf", "--acl", " , "),
        ("x.pdf", "--tenant", ""),
        ("x.pdf", "--collection", "Not A Name"),
        ("--unknown",),
        ("delete",),
        ("delete", ""),
        ("delete", "--source", ""),
    ],
)
def test_wrong_usage_and_nothing_found(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = batch(*arguments)
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status == USAGE
    assert capsys.readouterr().err


def test_a_table_of_metadata_is_put_over_what_is_read(
    place: Path, memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    pdf, table = write_pdf(place / "a.pdf", prose("Ombrell")), place / "known.csv"
    table.write_text("file,company,sector\na.pdf,Ombrell Corp,Mining\n")
    assert run([str(pdf), "--metadata", str(table)], memory) == OK
    [filing] = memory.store._documents.values()
    assert (filing.meta.company, filing.meta.sector) == ("Ombrell Corp", "Mining")
    table.write_text("file,compny\na.pdf,Ombrell Corp\n")
    with pytest.raises(SystemExit) as wrong:
        run([str(pdf), "--metadata", str(table)], memory)
    assert wrong.value.code == USAGE
    assert "metadata in known.csv: 'compny' is unknown; there are file, title" in capsys.readouterr().err


def test_names_that_are_hard_to_write(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "in" / "folder.pdf").mkdir(parents=True)
    names = ["Ärger & [bold]50%[/bold] – 年報.pdf", "new\nline.pdf", "folder.pdf/inner.pdf"]
    for name in names:
        write_pdf(place / "in" / name, prose(name.split(".")[0].encode("ascii", "ignore").decode() or "x"))
    write_pdf(place / "in" / "latin.pdf", prose("latin"))
    os.rename(place / "in" / "latin.pdf", os.fsencode(place / "in") + b"/caf\xe9.pdf")
    assert batch("in") == OK
    assert "[bold]50%[/bold] – 年報.pdf" in capsys.readouterr().out
    assert batch("in", "--json") == OK
    assert [line["outcome"] for line in lines(capsys)[:-1]] == ["unchanged"] * 4
    assert batch("verify") == OK


def test_a_dry_run_needs_no_index_and_leaves_none(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "a.pdf", prose("a"))
    assert batch("a.pdf", "--dry-run") == OK
    assert "created   a.pdf" in capsys.readouterr().out
    assert not (place / "data").exists()


def test_list_and_delete(place: Path, memory: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c"):
        write_pdf(place / f"{name}.pdf", prose(name))
    run(["a.pdf", "b.pdf", "c.pdf", "--json"], memory)
    run(["a.pdf", "--tenant", "other", "--json"], memory)
    capsys.readouterr()
    assert run(["list", "--json", "--tenant", "default"], memory) == OK
    listed = lines(capsys)
    a, b, c = (line["document_id"] for line in listed)
    assert [line["source"] for line in listed] == [f"file://{place}/{name}.pdf" for name in "abc"]
    assert run(["list"], memory) == OK
    out = capsys.readouterr().out
    assert re.search(rf"^ ?{a} +a +1 +{listed[0]['chunks']} +default +file://{place}/a.pdf", out, re.MULTILINE)
    assert "4 documents" in out
    assert run(["delete", b, "--json"], memory) == OK
    assert lines(capsys) == [
        {"type": "deleted", "document_id": b, "chunks": listed[1]["chunks"], "pages": 1, "figures": 0, "records": 0}
    ]
    assert run(["delete", "--source", "a.pdf"], memory) == OK
    assert f"deleted {a}: " in capsys.readouterr().out
    assert run(["delete", b], memory) == SOME_FAILED
    assert b in capsys.readouterr().err
    assert run(["delete", "--source", "never.pdf"], memory) == SOME_FAILED
    capsys.readouterr()
    run(["list", "--json"], memory)
    assert [(line["document_id"], line["tenant"]) for line in lines(capsys)][1:] == [(c, "default")]
    assert run(["verify"], memory) == OK


def test_verify_finds_what_is_broken(place: Path, memory: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("gone", "changed", "missing", "orphan", "sound")
    for name in names:
        write_pdf(place / f"{name}.pdf", prose(name))
    run([*(f"{name}.pdf" for name in names), "--json"], memory)
    store = memory.store
    ids = {document_id.partition("-")[0]: document_id for document_id in store._documents}
    assert run(["verify"], memory) == OK
    del store._pages[ids["gone"], 1]
    page, meta = store._pages[ids["changed"], 1]
    store._pages[ids["changed"], 1] = replace(page, text="\0" + page.text), meta
    for chunk_id in [key for key, (chunk, _) in store._chunks.items() if chunk.document_id == ids["missing"]]:
        del store._chunks[chunk_id]
    del store._documents[ids["orphan"]]
    capsys.readouterr()
    assert run(["verify", "--json"], memory) == SOME_FAILED
    *found, end = lines(capsys)
    about = {(line["document_id"].partition("-")[0], line["detail"]) for line in found}
    assert ("gone", "page 1 is missing") in about
    assert ("changed", "a page's text holds NUL") in about
    assert {name for name, _ in about} == {"gone", "changed", "missing", "tenant default"}
    assert end["problems"] == len(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fetch", "--ticker", "ORR", "--since", "last year"), "'last year' is no day; write it as 2024-01-31"),
        (("fetch", "--ticker", "ORR", "--last", "two"), "'two' is not a whole number above 0"),
        (("x.pdf", "--timeout-s", "soon"), "'soon' is not a number of seconds above 0"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_wanted(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        batch(*arguments)
    assert said in capsys.readouterr().err


def test_figures_are_queried_verified_and_derived(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "a.pdf", statement("acme"))
    write_pdf(place / "b.pdf", statement("board"))
    assert batch("a.pdf", "--json") == OK
    assert batch("b.pdf", "--json", "--acl", "board") == OK
    assert batch("verify") == OK
    capsys.readouterr()
    select = "SELECT label, value, scale, page FROM figures WHERE column_header = '2023' ORDER BY value"
    assert batch("sql", "--json", "--limit", "2", select) == OK
    assert lines(capsys) == [
        {"type": "row", "label": "Sales of acme", "value": 11100.0, "scale": 6, "page": 1},
        {"type": "row", "label": "Cost of acme", "value": 12200.0, "scale": 6, "page": 1},
        {"type": "error", "detail": "more rows than 2; --limit takes more"},
    ]
    assert batch("sql", "--groups", "board", select) == OK
    assert re.search(r"^ ?Tax of board +13300.0 +6 +1 *$", capsys.readouterr().out, re.MULTILINE)
    assert batch("sql", "DROP TABLE figure") == USAGE
    assert "one SELECT over figures(document_id" in capsys.readouterr().err
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n, figures"
    assert batch("sql", "--timeout-s", "0.05", endless) == SOME_FAILED
    assert "or give it more than 0.05 s (--timeout-s)" in capsys.readouterr().err
    shutil.rmtree(place / "data" / "figures")
    assert batch("verify") == SOME_FAILED
    assert capsys.readouterr().err.count("its figures are missing; `sextant-ingest figures` derives them") == 2
    assert batch("sql", select) == UNAVAILABLE
    assert batch("figures") == OK
    assert re.search(r"^a-\w+: 6 figures$", capsys.readouterr().out, re.MULTILINE)
    assert batch("verify") == OK


def test_verify_finds_figures_that_are_not_on_their_page(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "a.pdf", statement("acme"))
    assert batch("a.pdf", "--json") == OK
    document_id = lines(capsys)[0]["document_id"]
    with sqlite3.connect(place / "data" / "figures" / "filings.sqlite") as connection:
        connection.execute("UPDATE figure SET span_end = span_start + 2 WHERE value = 11100")
        connection.execute("UPDATE figure SET chunk_id = 'nowhere' WHERE value = 12200")
        connection.execute("INSERT INTO document (id, tenant) VALUES ('orphan-1', 'default')")
    connection.close()
    assert batch("verify", "--json") == SOME_FAILED
    *found, _ = lines(capsys)
    assert {(line["document_id"], line["detail"]) for line in found} == {
        (document_id, "figure 'Sales of acme': page 1 has '11' where it should have 11100.0"),
        (document_id, "figure 'Cost of acme': its passage nowhere does not exist"),
        ("orphan-1", "0 figures of no document; `sextant-ingest figures` removes them"),
    }
    assert batch("figures", "--json") == OK
    assert batch("verify") == OK


def test_a_locked_index_is_said_and_left_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "a.pdf", prose("a"))
    owner = EdgeStore.open(place / "data" / "index" / "filings", stamp())
    try:
        assert batch("a.pdf") == UNAVAILABLE
    finally:
        owner.close()
    assert f"is open in process {os.getpid()}" in capsys.readouterr().err
    assert batch("a.pdf") == OK


def test_no_index_to_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert batch("list") == UNAVAILABLE
    assert "ingest some filings first" in capsys.readouterr().err


@asynccontextmanager
async def full_disk(settings: Settings, create: bool) -> AsyncIterator[Index]:
    store = EdgeStore.open(settings.index_dir, stamp(), create=create, min_free_bytes=2**60)
    try:
        async with open_embedded(Settings(data_dir=settings.data_dir / "other"), True) as index:
            yield Index(store, index.embedder, index.sparse)
    finally:
        store.close()


def test_a_full_disk_stops_the_batch_and_keeps_the_index(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write_pdf(place / f"{name}.pdf", prose(name))
    assert batch("a.pdf") == OK
    assert run(["a.pdf", "b.pdf"], full_disk) == UNAVAILABLE
    err = capsys.readouterr().err
    assert "MiB left" in err
    assert "stopped before 1 of 2 files were done; the same command does the rest" in err
    assert batch("verify") == OK
    assert batch("a.pdf", "b.pdf") == OK
    assert "1 created, 1 unchanged" in capsys.readouterr().out


def test_a_store_that_is_down(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Down(AbstractAsyncContextManager[Index]):
        async def __aenter__(self) -> Index:
            raise StoreUnavailable("no answer from http://qdrant:6333")

        async def __aexit__(self, *_: object) -> None: ...

    write_pdf(place / "a.pdf", prose("a"))
    assert run(["a.pdf"], lambda *_: Down()) == UNAVAILABLE
    assert capsys.readouterr().err == "sextant-ingest: no answer from http://qdrant:6333\n"


def test_counters_for_prometheus(place: Path, memory: Memory) -> None:
    write_pdf(place / "in" / "a.pdf", prose("a"), prose("b"))
    (place / "in" / "b.pdf").touch()
    run(["in", "--json", "--metrics-file", "ingest.prom"], memory)
    text = (place / "ingest.prom").read_text()
    for line in (
        'rag_ingest_documents_total{outcome="created"} 1.0',
        'rag_ingest_documents_total{outcome="replaced"} 0.0',
        'rag_ingest_failures_total{reason="empty"} 1.0',
        "rag_ingest_pages_total 2.0",
        'rag_ingest_stage_seconds_total{stage="embed"}',
    ):
        assert line in text


def test_paths_need_no_command() -> None:
    assert parse_arguments(["a.pdf", "--json"]).command == "ingest"
    assert parse_arguments(["--json", "a.pdf"]).paths == ["a.pdf"]
    assert parse_arguments(["list"]).command == "list"


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "--help"]])
def test_help_loads_no_model(arguments: list[str]) -> None:
    code = (
        "import atexit, sys\n"
        "from ingest.cli import run\n"
        "atexit.register(lambda: print(sorted({'torch', 'numpy', 'pydantic', 'rich'} & sys.modules.keys())))\n"
        f"run({arguments})"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: sextant-ingest")
    assert "examples:" in done.stdout
    assert done.stdout.endswith("[]\n")


@pytest.mark.slow
@pytest.mark.skipif(not WEIRD.is_dir(), reason="the collection of odd PDFs is not here")
def test_odd_pdfs_end_as_created_or_failed_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert batch(str(WEIRD), "--json", "--timeout-s", "60") == SOME_FAILED
    *files, summary = lines(capsys)
    assert len(files) == len(list(WEIRD.glob("*.pdf")))
    assert {line["outcome"] for line in files} == {"created", "failed"}
    reasons = {Path(line["source"]).name: line["reason"] for line in files if line["outcome"] == "failed"}
    assert set(reasons.values()) <= {"empty", "not_pdf", "damaged", "password", "no_pages", "no_text", "too_large"}
    scans = {Path(line["source"]).stem: line.get("ocr_pages") for line in files}
    assert scans["linn"] == scans["rotated_skew"] == scans["hugemono"] == [1]
    assert scans["cardinal"] == scans["nemotron_multipage"] == [1, 2, 3, 4]
    assert summary["created"] + summary["failed"] == len(files)
    assert batch("verify") == OK


def test_a_collection_keeps_its_chunker(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pdf(place / "a.pdf", prose("a"))
    assert batch("--chunker", "words", "a.pdf") == USAGE
    assert "no chunker 'words'; there are structure, fixed," in capsys.readouterr().err
    assert batch("--chunker", "fixed:overlap=20", "a.pdf", "--no-progress") == OK
    assert batch("--chunker", "structure", "a.pdf") == UNAVAILABLE
    error = " ".join(capsys.readouterr().err.split())
    assert "chunker is 'fixed-1(max_tokens=180,count=estimate_tokens,overlap=20)' there" in error
    assert "Set the models and CHUNKER back, or ingest into another collection" in error
    assert batch("list") == OK
