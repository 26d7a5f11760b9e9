"""The figures' store: what is put is found, nobody sees what is not his, and no query reaches past the view."""

import asyncio
import contextlib
import sqlite3
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.adapters.figures_sqlite import COLUMNS, SqliteFigures
from app.errors import InvalidQuery, Timeout, Unavailable
from app.types import Access, Document, DocumentMeta, Figure

pytestmark = pytest.mark.anyio


def filing(name: str, **meta: Any) -> Document:
    return Document(name, "0" * 64, DocumentMeta(f"{name} 10-K", f"{name}.pdf", **meta), 1, 1)


def figure(document: str, label: str, value: str, **more: Any) -> Figure:
    known: dict[str, Any] = {"statement": "Income", "scale": 6, "unit": "USD", "period_end": "2022-12-31"}
    return Figure(document, 1, "c1", 0, 5, label, value=Decimal(value), **(known | more))


ACME = filing("acme", company="Acme Corp", ticker="ACM", form="10-K", fiscal_year=2022, fiscal_period="FY")
BOARD = filing("board", company="Acme Corp", acl=("board", "audit"))
OTHER = filing("other", company="Globex", tenant="other")


@pytest.fixture
async def store(tmp_path: Path) -> SqliteFigures:
    """Two figures for everyone, one for the board, one of another tenant."""
    figures = SqliteFigures(tmp_path / "figures" / "filings.sqlite")
    await figures.put(ACME, [figure("acme", "Net sales", "32765"), figure("acme", "Loss: Basic", "-0.07", scale=0)])
    await figures.put(BOARD, [figure("board", "Secret", "7")])
    await figures.put(OTHER, [figure("other", "Theirs", "9")])
    return figures


async def labels(store: SqliteFigures, access: Access) -> list[str]:
    return [row[0] for row in (await store.query("SELECT label FROM figures ORDER BY label", access)).rows]


async def test_a_row_says_all_of_its_figure(store: SqliteFigures) -> None:
    full = figure("acme", "Sales", "1.5", column="2022", period_months=12, concept="us-gaap:Revenues", dimensions="a=b")
    await store.put(ACME, [full])
    rows = await store.query("SELECT * FROM figures", Access())
    assert rows.columns == COLUMNS
    assert dict(zip(rows.columns, rows.rows[0], strict=True)) == {
        "document_id": "acme", "title": "acme 10-K", "company": "Acme Corp", "ticker": "ACM", "cik": None,
        "form": "10-K", "fiscal_year": 2022, "fiscal_period": "FY", "filed": None, "statement": "Income",
        "label": "Sales", "column_header": "2022", "period_end": "2022-12-31", "period_months": 12, "value": 1.5,
        "scaled_value": 1_500_000.0, "scale": 6, "unit": "USD", "concept": "us-gaap:Revenues", "dimensions": "a=b",
        "page": 1, "chunk_id": "c1", "span_start": 0, "span_end": 5,
    }  # fmt: skip
    assert await store.of_document("acme") == [full]


async def test_a_new_version_is_seen_from_the_moment_the_old_one_is_not(store: SqliteFigures) -> None:
    new = filing("newer", company="Acme Corp")
    await store.put(replace(new, state="ingesting"), [figure("newer", "Restated", "1")])
    assert await labels(store, Access()) == ["Loss: Basic", "Net sales"]
    await store.show("newer", ["acme"])
    assert await labels(store, Access()) == ["Restated"]
    assert await store.counts() == {"newer": 1, "board": 1, "other": 1}


async def test_a_file_of_an_older_version_is_read_as_it_is_and_then_written(tmp_path: Path) -> None:
    file = tmp_path / "filings.sqlite"
    store = SqliteFigures(file)
    await store.put(ACME, [figure("acme", "Net sales", "1")])
    with contextlib.closing(sqlite3.connect(file)) as older:
        older.execute("ALTER TABLE document DROP COLUMN shown")
    assert await labels(store, Access()) == ["Net sales"]
    await store.put(replace(filing("newer"), state="ingesting"), [figure("newer", "Unseen", "1")])
    assert await labels(store, Access()) == ["Net sales"]


async def test_comparisons_ignore_case(store: SqliteFigures) -> None:
    rows = await store.query("SELECT value FROM figures WHERE company = 'ACME CORP' AND label = 'net SALES'", Access())
    assert rows.rows == ((32765.0,),)


async def test_putting_again_replaces_and_deleting_leaves_nothing(store: SqliteFigures) -> None:
    await store.put(ACME, [figure("acme", "Restated", "1")])
    assert await labels(store, Access()) == ["Restated"]
    assert await store.counts() == {"acme": 1, "board": 1, "other": 1}
    await store.put(ACME, [])
    assert (await store.counts())["acme"] == 0
    assert [await store.delete(name) for name in ("board", "board", "acme", "other")] == [1, 0, 0, 1]
    assert await store.counts() == {}


async def test_nobody_sees_what_is_not_his(store: SqliteFigures) -> None:
    assert await labels(store, Access()) == ["Loss: Basic", "Net sales"]
    assert await labels(store, Access(groups=("board", "audit", "none"))) == ["Secret"]
    assert await labels(store, Access("other")) == ["Theirs"]
    assert await labels(store, Access("other", ("board",))) == []
    assert await labels(store, Access(groups=())) == []
    assert await labels(store, Access("x' OR '1'='1", ("y' OR '1'='1",))) == []


async def test_limits_are_told(store: SqliteFigures) -> None:
    assert (await store.query("SELECT label FROM figures", Access(), limit=1)).truncated
    assert not (await store.query("SELECT label FROM figures", Access(), limit=2)).truncated
    long = await store.query(f"SELECT '{'x' * 5_000}' AS x", Access())
    assert long.rows == (("x" * 2000 + "…",),)
    assert (await store.query("SELECT 9e999, x'00ff', CAST(x'ff' AS TEXT)", Access())).rows == (
        (None, "00ff", "\ufffd"),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM document",
        "SELECT count(*) FROM figure",
        "SELECT count(*) FROM main.figure",
        "SELECT name FROM reader",
        "SELECT name FROM caller",
        "SELECT name FROM temp.caller",
        "SELECT * FROM sqlite_master",
        "SELECT count(*) FROM sqlite_temp_master",
        "SELECT name FROM pragma_table_list",
        "SELECT * FROM json_each('[1]')",
        "SELECT * FROM (SELECT tenant FROM document) AS figures",
        "WITH figures AS (SELECT label FROM figure) SELECT * FROM figures",
        "WITH figures AS (SELECT tenant FROM document) SELECT tenant FROM figures",
        "WITH document AS (SELECT 1) SELECT count(*) FROM main.document",
        "WITH figure AS (SELECT 1) SELECT (SELECT count(*) FROM main.figure)",
        "SELECT value FROM figures UNION SELECT value FROM figure",
        "SELECT (SELECT max(label) FROM figure) FROM figures",
        "SELECT value FROM figures WHERE value IN (SELECT value FROM figure)",
        "SELECT value FROM figures ORDER BY (SELECT count(*) FROM figure)",
        "ATTACH DATABASE ':memory:' AS other",
        "DETACH DATABASE main",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(figure)",
        "DELETE FROM figures",
        "DELETE FROM figure",
        "UPDATE figure SET value = 0",
        "INSERT INTO figure (label) VALUES ('x')",
        "DROP TABLE figure",
        "CREATE TABLE x (y)",
        "CREATE TEMP VIEW y AS SELECT 1",
        "CREATE TEMP TRIGGER t BEFORE INSERT ON caller BEGIN SELECT 1; END",
        "BEGIN",
        "SAVEPOINT s",
        "VACUUM INTO '/tmp/stolen.sqlite'",
        "REINDEX",
        "ANALYZE",
        "SELECT load_extension('x')",
        "SELECT randomblob(1000000000)",
        "SELECT zeroblob(1000000000)",
        "SELECT readfile('/etc/passwd')",
        "SELECT printf('%.2000000000c', 'x')",
        "SELECT format('%.*c', 2000000000, 'x')",
        f"SELECT replace('{'x' * 900}', 'x', '{'y' * 900}')",
        f"SELECT group_concat(a.label || replace('{'x' * 300}', 'x', '{'y' * 300}')) FROM figures a, figures b",
        f"SELECT 'a' LIKE '{'x' * 300}'",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE figure",
        "SELECT ?",
        "SELECT \0",
        "SELECT '\ud800'",
        "",
        "-- nothing",
        "SELEC value FROM figures",
        "SELECT valu FROM figures",
        f"SELECT {'(' * 200}1{')' * 200}",
        f"SELECT '{'x' * 20_000}'",
    ],
)  # fmt: skip
async def test_a_query_that_is_refused_leaves_all_as_it_was(store: SqliteFigures, sql: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidQuery, match="document_id, title, company"):
        await store.query(sql, Access())
    assert time.monotonic() - began < 1.5
    assert await store.counts() == {"acme": 2, "board": 1, "other": 1}
    assert await labels(store, Access()) == ["Loss: Basic", "Net sales"]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c ORDER BY n",
        f"WITH RECURSIVE c(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, '{'x' * 9_000}' || n FROM c)"
        " SELECT max(s) FROM c",
    ],
)
async def test_what_runs_on_is_stopped(store: SqliteFigures, sql: str) -> None:
    began = time.monotonic()
    with pytest.raises(Timeout):
        await store.query(sql, Access(), timeout_s=0.2)
    assert time.monotonic() - began < 2


async def test_subqueries_that_multiply_are_refused_before_they_are_copied(store: SqliteFigures) -> None:
    chain = "WITH a0 AS (SELECT 1 AS x)"
    for n in range(1, 25):
        chain += f', "a{n}"(x) AS NOT MATERIALIZED (SELECT p.x FROM [a{n - 1}] p, `a{n - 1}` q)'
    began = time.monotonic()
    with pytest.raises(InvalidQuery, match="too many references"):
        await store.query(f"{chain} SELECT count(*) FROM a24", Access())
    assert time.monotonic() - began < 1


async def test_a_recursive_query_and_window_functions_are_queries(store: SqliteFigures) -> None:
    sql = (
        "WITH RECURSIVE years(y) AS (SELECT 2020 UNION ALL SELECT y + 1 FROM years WHERE y < 2023) SELECT y FROM years"
    )
    assert (await store.query(sql, Access())).rows == ((2020,), (2021,), (2022,), (2023,))
    ranked = "SELECT label, rank() OVER (ORDER BY scaled_value DESC) FROM figures"
    assert (await store.query(ranked, Access())).rows == (("Net sales", 1), ("Loss: Basic", 2))
    grouped = "WITH f AS (SELECT * FROM figures WHERE scale = 6) SELECT company, sum(scaled_value), count(*) FROM f"
    assert (await store.query(grouped, Access())).rows == (("Acme Corp", 32_765_000_000.0, 1),)


async def test_a_reader_sees_whole_states_while_another_writes(store: SqliteFigures) -> None:
    many = [figure("acme", f"Row {n}", str(n)) for n in range(500)]

    async def write() -> None:
        for count in (100, 500, 300, 0, 400):
            await store.put(ACME, many[:count])

    async def read() -> set[Any]:
        return {(await store.query("SELECT count(*) FROM figures", Access())).rows[0][0] for _ in range(20)}

    _, seen = await asyncio.gather(write(), read())
    assert seen <= {2, 100, 500, 300, 0, 400}


async def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    store = SqliteFigures(tmp_path / "none.sqlite")
    assert (await store.delete("x"), await store.counts(), await store.of_document("x")) == (0, {}, [])
    with pytest.raises(Unavailable, match="sextant-ingest figures"):
        await store.query("SELECT 1", Access())
    (tmp_path / "bad.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(Unavailable):
        await SqliteFigures(tmp_path / "bad.sqlite").query("SELECT 1", Access())


async def test_a_crash_in_the_middle_of_a_put_leaves_the_old(
    store: SqliteFigures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        yield figure("acme", "New", "1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._put(replace(ACME), broken())
    assert await labels(store, Access()) == ["Loss: Basic", "Net sales"]
    with sqlite3.connect(store._file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
