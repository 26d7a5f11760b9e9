"""Fetching from a server that behaves as EDGAR does, over real connections."""

import asyncio
import gzip
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from app.errors import InvalidInput, NotFound, Unavailable
from app.settings import Settings
from ingest.cli import OK, SOME_FAILED, USAGE, run
from ingest.edgar.client import Edgar, Pace, retry_after
from tests.ingest.edgar import ORRIN
from tests.ingest.edgar_server import CIK, FILES, EdgarServer, edgar_server
from tests.ingest.filings import open_embedded

AGENT = "Jane Doe jane@example.com"
ANNUAL = f"{FILES}/000012345623000106/orr-20230930.htm"
NAME = "ORR-10-K-2023-09-30-0000123456-23-000106.htm"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EdgarServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    with edgar_server() as edgar:
        for name, value in {"USER_AGENT": AGENT, "URL": edgar.url, "DATA_URL": edgar.url}.items():
            monkeypatch.setenv(f"EDGAR_{name}", value)
        yield edgar


@pytest.fixture
async def client(server: EdgarServer, tmp_path: Path) -> AsyncIterator[Edgar]:
    edgar = Edgar(AGENT, tmp_path / "cache", per_second=10, backoff_s=0.01)
    yield edgar
    await edgar.aclose()


def fetch(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and lines of JSON."""
    status = run(["fetch", "--json", *arguments], open_embedded)
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def names(lines: list[dict[str, Any]]) -> list[str]:
    return sorted(Path(line["path"]).name for line in lines if line["type"] == "filing")


def test_a_filing_is_fetched_with_what_edgar_says_of_it(
    server: EdgarServer, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = fetch(capsys, "--ticker", "orr")
    assert status == OK
    assert lines[-1] == {"type": "fetched", "fetched": 1, "kept": 0, "found": 0, "failed": 0} | {
        "next": "sextant-ingest filings"
    }
    assert Path("filings", NAME).read_bytes() == b"<html>0000123456-23-000106</html>" * 999
    assert json.loads(Path("filings", f"{NAME}.json").read_text()) == {
        "company": "Orrin Harbour, Inc.",
        "cik": CIK,
        "ticker": "ORR",
        "form": "10-K",
        "period_end": "2023-09-30",
        "filed": "2023-11-03",
        "sector": "Transportation and Utilities",
    }
    assert sorted(os.listdir("filings")) == [NAME, f"{NAME}.json"]
    assert server.agents == {AGENT}


def test_older_index_files_are_opened_only_as_far_as_needed(
    server: EdgarServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = fetch(capsys, "--ticker", "ORR", "--last", "2")
    assert names(lines) == ["ORR-10-K-2022-09-24-0000123456-22-000108.htm", NAME]
    assert [path for path in server.paths() if "submissions-0" in path] == []
    _, lines = fetch(capsys, "--cik", "123456", "--last", "3", "--dry-run")
    assert names(lines)[0] == "ORR-10-K-2010-09-25-0000123456-10-000011.htm"
    assert [path for path in server.paths() if "submissions-0" in path] == [
        f"/submissions/CIK{CIK}-submissions-001.json"
    ]


def test_a_filing_of_the_nineties_is_its_full_submission(
    server: EdgarServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.bodies[f"{FILES}/0000123456-96-000023.txt"] = b"<SEC-DOCUMENT>"
    _, lines = fetch(capsys, "--ticker", "ORR", "--last", "9")
    assert [line["outcome"] for line in lines[:-1]] == ["fetched"] * 4
    assert Path("filings/ORR-10-K-1996-12-19-0000123456-96-000023.txt").read_bytes() == b"<SEC-DOCUMENT>"


def test_amendments_forms_and_dates(server: EdgarServer, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = fetch(
        capsys, "--ticker", "ORR", "--amendments", "--since", "2023-01-01", "--form", "10-K,8-K", "--dry-run"
    )
    assert names(lines) == [
        "ORR-10-K-2023-09-30-0000123456-23-000106.htm",
        "ORR-10-K-A-2023-09-30-0000123456-23-000107.htm",
        "ORR-8-K-2024-01-31-0000123456-24-000009.htm",
    ]
    assert not Path("filings").exists()
    _, lines = fetch(capsys, "--ticker", "ORR", "--since", "2023-01-01", "--txt")
    assert names(lines) == ["ORR-10-K-2023-09-30-0000123456-23-000106.txt"]


def test_what_is_here_is_kept_and_a_corrected_sidecar_too(
    server: EdgarServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(capsys, "--ticker", "ORR")
    sidecar = Path("filings", f"{NAME}.json")
    sidecar.write_text('{"fiscal_year": 2023}')
    Path("filings", f".{NAME}.part").write_bytes(b"what a killed run left")
    before = len(server.asked)
    status, lines = fetch(capsys, "--ticker", "ORR", "--last", "2")
    assert status == OK
    assert sorted(line["outcome"] for line in lines[:-1]) == ["fetched", "kept"]
    assert sidecar.read_text() == '{"fiscal_year": 2023}'
    assert len(server.asked) == before + 1  # both indexes are fresh


@pytest.mark.parametrize("how", ["cut", "429", "403", "500"])
def test_a_failed_attempt_is_repeated(server: EdgarServer, capsys: pytest.CaptureFixture[str], how: str) -> None:
    server.fail(ANNUAL, how)
    began = time.monotonic()
    status, lines = fetch(capsys, "--ticker", "ORR")
    assert status == OK
    assert lines[0]["bytes"] == 33 * 999
    assert Path("filings", NAME).stat().st_size == 33 * 999
    assert [path for _, path, _ in server.asked].count(ANNUAL) == 2
    assert time.monotonic() - began >= (1.0 if how == "429" else 0.0)


def test_one_failure_leaves_the_others_alone(server: EdgarServer, capsys: pytest.CaptureFixture[str]) -> None:
    del server.bodies[f"{FILES}/000012345622000108/orr-20220924.htm"]
    status, lines = fetch(capsys, "--ticker", "NONE,ORR", "--last", "2")
    assert status == SOME_FAILED
    assert lines[0] == {
        "type": "error",
        "detail": "EDGAR knows no company with the ticker NONE; --cik takes its number instead",
    }
    assert {line["outcome"]: line["detail"] for line in lines[1:-1]} == {
        "fetched": None,
        "failed": f"EDGAR has nothing at {server.url}{FILES}/000012345622000108/orr-20220924.htm",
    }
    assert (lines[-1]["fetched"], lines[-1]["failed"]) == (1, 2)
    assert sorted(os.listdir("filings")) == [NAME, f"{NAME}.json"]


@pytest.mark.parametrize("agent", ["", "jane@example.com", "Jane Doe"])
def test_who_does_not_say_who_it_is_may_not_ask(
    server: EdgarServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.setenv("EDGAR_USER_AGENT", agent)
    status, lines = fetch(capsys, "--ticker", "ORR")
    assert status == USAGE
    assert "set EDGAR_USER_AGENT to a name and an e-mail address" in lines[0]["detail"]
    assert server.asked == []


def test_arguments_that_name_no_company_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--cik", "12x"], ["--ticker", "a/b"]):
        with pytest.raises(SystemExit) as stopped:
            run(["fetch", *arguments])
        assert stopped.value.code == USAGE
    said = capsys.readouterr().err
    assert all(why in said for why in ("fetch needs --ticker or --cik", "12X is not a number", "A/B is no ticker"))


def test_it_can_be_ingested_at_once(server: EdgarServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.bodies[ANNUAL] = ORRIN.encode()
    status, lines = fetch(capsys, "--ticker", "ORR", "--ingest")
    assert status == OK
    assert [line["outcome"] for line in lines if line["type"] == "file"] == ["created"]


def test_people_are_told_the_next_command(server: EdgarServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fetch", "--ticker", "ORR", "--to", "new filings"], open_embedded) == OK
    assert capsys.readouterr().out == (
        f"fetched   new filings/{NAME}  filed 2023-11-03, 32,967 bytes\n\nnext: sextant-ingest 'new filings'\n"
    )


def test_the_public_hosts_are_the_default() -> None:
    defaults = [Settings.model_fields[name].default for name in ("edgar_url", "edgar_data_url")]
    assert defaults == ["https://www.sec.gov", "https://data.sec.gov"]


@pytest.mark.anyio
async def test_an_index_is_asked_for_again_only_where_it_changed(server: EdgarServer, tmp_path: Path) -> None:
    url = f"{server.url}/files/company_tickers.json"
    edgar = Edgar(AGENT, tmp_path / "cache", fresh_s=0.0)
    first = await edgar.index(url)
    assert await edgar.index(url) == first
    assert server.statuses() == {200: 1, 304: 1}
    server.hold("/files/company_tickers.json", {})
    assert await edgar.index(url) == {}
    assert server.statuses() == {200: 2, 304: 1}
    await edgar.aclose()
    fresh = Edgar(AGENT, tmp_path / "cache")
    assert await fresh.index(url) == {}
    assert len(server.asked) == 3
    await fresh.aclose()


@pytest.mark.anyio
async def test_all_tasks_together_keep_the_pace(server: EdgarServer, client: Edgar, tmp_path: Path) -> None:
    server.per_second = 25  # over loopback, some may arrive early
    began = time.monotonic()
    await asyncio.gather(*(client.download(server.url + ANNUAL, tmp_path / f"{n}") for n in range(25)))
    assert time.monotonic() - began >= 2.4
    assert server.statuses() == {200: 25}
    assert server.peak() <= 15


@pytest.mark.anyio
async def test_a_server_that_stays_down_is_left(server: EdgarServer, client: Edgar, tmp_path: Path) -> None:
    server.fail(ANNUAL, *["500"] * 9)
    with pytest.raises(Unavailable, match="HTTP 500, 6 times"):
        await client.download(server.url + ANNUAL, tmp_path / "a")
    server.fail(ANNUAL, *["cut"] * 9)
    with pytest.raises(Unavailable, match="the connection broke"):
        await client.download(server.url + ANNUAL, tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [".a.part", ".a.part.json"], "for the next run to go on with"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("ranges", "changed", "statuses"),
    [
        (True, False, {200: 1, 206: 2}),
        (False, False, {200: 3}),
        (True, True, {200: 2, 206: 1}),
    ],
    ids=["ranges", "no ranges", "another version"],
)
async def test_what_was_cut_is_gone_on_with_if_it_is_still_the_same(
    server: EdgarServer, client: Edgar, tmp_path: Path, ranges: bool, changed: bool, statuses: dict[int, int]
) -> None:
    server.ranges = ranges
    whole = len(gzip.compress(server.bodies[ANNUAL], mtime=0))
    server.fail(ANNUAL, "cut", *["stop"] * 9)
    with pytest.raises(Unavailable, match="EDGAR answered HTTP 410"):
        await client.download(server.url + ANNUAL, tmp_path / "a")
    assert (tmp_path / ".a.part").stat().st_size == whole // 2
    if changed:
        server.bodies[ANNUAL] = bytes(range(256)) * 99
    server.fail(ANNUAL, "cut")
    assert await client.download(server.url + ANNUAL, tmp_path / "a") == len(server.bodies[ANNUAL])
    assert (tmp_path / "a").read_bytes() == server.bodies[ANNUAL]
    assert os.listdir(tmp_path) == ["a"]
    assert {status: count for status, count in server.statuses().items() if status != 410} == statuses
    if ranges and not changed:
        assert server.sent == whole, "no byte was sent twice"


@pytest.mark.anyio
async def test_what_is_longer_than_the_file_is_begun_anew(server: EdgarServer, client: Edgar, tmp_path: Path) -> None:
    server.fail(ANNUAL, "cut", "stop")
    with pytest.raises(Unavailable):
        await client.download(server.url + ANNUAL, tmp_path / "a")
    with (tmp_path / ".a.part").open("ab") as file:
        file.write(bytes(100_000))
    await client.download(server.url + ANNUAL, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == server.bodies[ANNUAL]
    assert server.statuses() == {200: 2, 410: 1, 416: 1}


@pytest.mark.anyio
async def test_refusals(server: EdgarServer, client: Edgar, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing at"):
        await client.index(f"{server.url}/submissions/CIK0000000001.json")
    server.fail(ANNUAL, "undeclared")
    with pytest.raises(Unavailable, match="check EDGAR_USER_AGENT"):
        await client.download(server.url + ANNUAL, tmp_path / "a")
    server.bodies["/nonsense"] = b"<html>"
    with pytest.raises(Unavailable, match="not JSON"):
        await client.index(f"{server.url}/nonsense")
    with pytest.raises(InvalidInput):
        Edgar(None, tmp_path)


@pytest.mark.anyio
async def test_no_second_has_more_moments_than_allowed() -> None:
    pace, moments = Pace(10.0), []

    async def take() -> None:
        await pace()
        moments.append(time.monotonic())

    await asyncio.gather(*(take() for _ in range(15)))
    assert max(sum(at <= other < at + 1 for other in moments) for at in moments) <= 10
    assert 1.4 <= moments[-1] - moments[0]


@pytest.mark.anyio
async def test_a_pause_holds_for_everyone() -> None:
    pace = Pace(100.0)
    pace.pause(0.2)
    began = time.monotonic()
    await asyncio.gather(pace(), pace())
    assert time.monotonic() - began >= 0.21


def test_retry_after_in_both_forms() -> None:
    assert retry_after("7") == 7.0
    assert retry_after(None) == retry_after("soon") == 0.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert 55 < retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)) <= 60
