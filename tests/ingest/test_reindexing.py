"""A new build beside the old one: switched to when whole, gone back from, taken up where it was killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.adapters.qdrant_edge import EdgeStore
from app.settings import Settings
from app.versions import Versions, builds, read_versions
from ingest.cli import OK, SOME_FAILED, UNAVAILABLE, USAGE, run
from tests.ingest.filings import open_embedded, prose, stamp, statement, write_pdf
from tests.ingest.test_crash import contents

CHUNKER = "structure:max_tokens=40"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of two filings, made in a folder."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    for name in ("a", "b"):
        write_pdf(tmp_path / "filings" / f"{name}.pdf", f"{statement(name)}\n\n{prose(name, 20)}")
    assert run([str(tmp_path / "filings"), "--no-progress"], open_embedded) == OK
    return tmp_path / "data"


def held(chunker: str = "") -> dict[str, Any]:
    """By document id, the number of chunks in the build in use."""
    store = EdgeStore.open(Settings().index_dir, stamp("filings", chunker), create=False)
    try:
        return {p.payload["id"]: p.payload["chunks"] for p in store._scroll("documents", None) if p.payload}
    finally:
        store.close()


def versions() -> Versions:
    return read_versions(Settings().data_dir, "filings")


def test_a_new_build_is_switched_to_and_back(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = held()
    assert run(["rollback"], open_embedded) == USAGE, "there is nothing to go back to"
    assert run(["reindex", "--chunker", CHUNKER, "--no-progress"], open_embedded) == OK
    assert versions() == Versions(2, 1)
    assert held().keys() == before.keys()
    assert sum(held().values()) > sum(before.values())
    assert run(["verify"], open_embedded) == OK
    assert Settings().figures_file.name == "filings@2.sqlite"
    capsys.readouterr()
    assert run(["sql", "SELECT count(*) AS n FROM figures", "--json"], open_embedded) == OK
    assert json.loads(capsys.readouterr().out)["n"] == 12
    assert run(["rollback"], open_embedded) == OK
    assert (versions(), held()) == (Versions(1, 2), before)
    assert run(["prune"], open_embedded) == OK
    assert (builds(data, "filings"), held()) == ([1], before)
    assert [path.name for path in (data / "figures").glob("*@2*")] == []


def test_what_cannot_be_read_again_keeps_it_from_switching(data: Path, tmp_path: Path) -> None:
    before = held()
    write_pdf(tmp_path / "filings" / "a.pdf", prose("changed"))
    assert run(["reindex", "--chunker", CHUNKER, "--dry-run"], open_embedded) == SOME_FAILED
    assert run(["reindex", "--chunker", CHUNKER, "--no-progress"], open_embedded) == SOME_FAILED
    assert (versions(), builds(data, "filings"), held()) == (Versions(), [1], before)
    command = ["reindex", "--chunker", CHUNKER, "--allow-missing", "--drop-old", "--no-progress"]
    assert run(command, open_embedded) == OK
    assert (versions(), builds(data, "filings")) == (Versions(2), [2])
    assert [each.partition("-")[0] for each in held()] == ["b"]


def test_what_a_killed_run_built_is_taken_up_unless_by_other_settings(data: Path, tmp_path: Path) -> None:
    half = data / "index" / "filings@2"
    EdgeStore.open(half, stamp("filings", "some other chunker")).close()
    assert run(["reindex", "--chunker", CHUNKER, "--no-progress"], open_embedded) == OK
    assert versions() == Versions(2, 1)
    assert len(held()) == 2


def test_while_a_service_has_the_index_it_says_so(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = EdgeStore.open(Settings().index_dir, stamp(), create=False)
    try:
        assert run(["reindex", "--no-progress"], open_embedded) == UNAVAILABLE
    finally:
        service.close()
    assert "Stop that process" in capsys.readouterr().err
    assert contents(data)
