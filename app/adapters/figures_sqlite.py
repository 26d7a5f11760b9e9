"""The figures of a collection's filings in an SQLite file, queried as one view that holds what the caller may see.

The view `figures` has a row for each number in a table's cell or an inline XBRL fact:

    document_id          id of the filing
    title, company       of the filing
    ticker, cik          of the company
    form                 10-K, 10-Q, 8-K, 20-F, AR (annual report), ER (earnings release)
    fiscal_year          of the filing (not of the column), an integer
    fiscal_period        of the filing: FY, Q1, Q2, Q3, Q4
    filed                date of filing
    statement            title of the statement, note or section it stands in, as printed
    label                label of its row, behind the heading it stands under: 'Earnings per share: Basic'
    column_header        header of its column, as printed: 'Three Months Ended March 31, 2023'
    period_end           date on which its own period ends, such as '2023-03-31'
    period_months        length of its period in months; 0 is an instant, as in a balance sheet
    value                the number as printed, negative where it stands in parentheses
    scaled_value         value times ten to the power of scale: 1577 "in millions" is 1577000000.0
    scale                6 for "in millions", 3 for "in thousands", 0 where none applies
    unit                 USD (EUR, ...), shares, USD/share, percent (of which value is 12.5 for 12.5 %), year, ...
    concept              XBRL name (us-gaap:Revenues); of facts alone
    dimensions           XBRL members that qualify the fact; NULL is the whole company
    page                 from 1
    chunk_id             the passage that holds it
    span_start, span_end the number as printed is this slice of the page's text

What is not known is NULL, dates are ISO text, and comparisons of text ignore case.
"""

import math
import re
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from app.errors import InvalidQuery, StoreUnavailable, Timeout, Unavailable
from app.types import Access, Document, Figure, Rows

_OF_DOCUMENT = ("title", "company", "ticker", "cik", "form", "fiscal_year", "fiscal_period", "filed")
_OF_FIGURE = ("statement", "label", "column_header", "period_end", "period_months", "value", "scaled_value", "scale",
              "unit", "concept", "dimensions", "page", "chunk_id", "span_start", "span_end")  # fmt: skip
COLUMNS = ("document_id", *_OF_DOCUMENT, *_OF_FIGURE)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS document (
    id TEXT PRIMARY KEY COLLATE NOCASE, tenant TEXT NOT NULL, title TEXT COLLATE NOCASE, company TEXT COLLATE NOCASE,
    ticker TEXT COLLATE NOCASE, cik TEXT, form TEXT COLLATE NOCASE, fiscal_year INTEGER,
    fiscal_period TEXT COLLATE NOCASE, filed TEXT, shown INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS document_company ON document (company);
CREATE TABLE IF NOT EXISTS reader (
    document_id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (document_id, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figure (
    document_id TEXT NOT NULL COLLATE NOCASE, statement TEXT COLLATE NOCASE, label TEXT NOT NULL COLLATE NOCASE,
    column_header TEXT COLLATE NOCASE, period_end TEXT, period_months INTEGER, value REAL NOT NULL,
    scaled_value REAL NOT NULL, scale INTEGER NOT NULL, unit TEXT COLLATE NOCASE, concept TEXT COLLATE NOCASE,
    dimensions TEXT COLLATE NOCASE, page INTEGER NOT NULL, chunk_id TEXT, span_start INTEGER NOT NULL,
    span_end INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS figure_document ON figure (document_id);
"""

_FUNCTIONS = frozenset(
    "abs avg ceil ceiling coalesce concat count cume_dist date dense_rank exp first_value floor glob"
    " group_concat ifnull iif instr julianday lag last_value lead length like ln log lower ltrim max min mod nth_value"
    " ntile nullif percent_rank pow power rank replace round row_number rtrim sign sqrt strftime string_agg"
    " substr substring sum total trim upper".split()
)
"""Of those a query may call: none reaches outside the row or the group it is given, and none runs on without looking at
the clock, as `printf('%.2000000000c', 'x')` does."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_LONGEST_CELL = 2_000
"""Characters of a cell; what is longer is cut and ends in an ellipsis."""
_STEPS = 1_000
"""Of SQLite's virtual machine between two looks at the clock."""
_EXPANSIONS = 500
"""How often a query's named subqueries may stand in for their names altogether."""
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`|--[^\n]*|/\*.*?(?:\*/|\Z)|\w+|\S""", re.S
)
_UNQUOTED = str.maketrans("", "", '"[]`')
_TABLES = frozenset({"document", "reader", "figure", "caller"})
_BUSY_S = 30.0
"""How long a writer waits for another."""


class SqliteFigures:
    """A WritableFigures over one file; each call opens it anew, so that processes may share it.

    Where another process may switch to a file of a new build, `file` says which one it is at each call.
    """

    def __init__(self, file: Path | Callable[[], Path]) -> None:
        self._given = file

    @property
    def _file(self) -> Path:
        """Raises StoreUnavailable where that cannot be told."""
        return self._given if isinstance(self._given, Path) else self._given()

    async def put(self, document: Document, figures: Sequence[Figure]) -> None:
        await to_thread.run_sync(self._put, document, figures)

    async def show(self, document_id: str, instead_of: Sequence[str] = ()) -> None:
        await to_thread.run_sync(self._show, document_id, instead_of)

    async def delete(self, document_id: str) -> int:
        return await to_thread.run_sync(self._delete, document_id)

    async def counts(self) -> Mapping[str, int]:
        return await to_thread.run_sync(self._counts)

    async def of_document(self, document_id: str) -> list[Figure]:
        return await to_thread.run_sync(self._of_document, document_id)

    async def query(self, sql: str, access: Access, *, limit: int = 100, timeout_s: float = 2.0) -> Rows:
        """One SELECT over the view `figures`; a second statement, a write or a look past the view is refused.

        Raises InvalidQuery with the view's columns, Timeout, and Unavailable where there is no such file.
        """
        return await to_thread.run_sync(
            partial(self._query, sql, access, limit, time.monotonic() + timeout_s), abandon_on_cancel=True
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on the disk at its end. Raises Unavailable."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None)) as connection:
                connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_SCHEMA}")
                if not _hides(connection):  # a file of an older version
                    connection.execute("ALTER TABLE document ADD COLUMN shown INTEGER NOT NULL DEFAULT 1")
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"the figures in {self._file} cannot be written: {error}") from error

    def _put(self, document: Document, figures: Sequence[Figure]) -> None:
        with self._writing() as connection:
            _remove(connection, document.id)
            meta = document.meta
            known = [getattr(meta, name) for name in _OF_DOCUMENT]
            row = (document.id, meta.tenant, document.state == "ready", *known)
            _insert(connection, "document", ("id", "tenant", "shown", *_OF_DOCUMENT), [row])
            _insert(connection, "reader", ("document_id", "name"), [(document.id, name) for name in set(meta.acl)])
            _insert(connection, "figure", ("document_id", *_OF_FIGURE), map(_row, figures))

    def _show(self, document_id: str, instead_of: Sequence[str]) -> None:
        with self._writing() as connection:
            connection.execute("UPDATE document SET shown = 1 WHERE id = ?", [document_id])
            for each in instead_of:
                _remove(connection, each)

    def _delete(self, document_id: str) -> int:
        if not self._file.exists():
            return 0
        with self._writing() as connection:
            return _remove(connection, document_id)

    def _counts(self) -> dict[str, int]:
        if not self._file.exists():
            return {}
        with self._reading() as connection:
            return dict(
                connection.execute(
                    "SELECT id, count(figure.page) FROM document LEFT JOIN figure ON document_id = id GROUP BY id"
                )
            )

    def _of_document(self, document_id: str) -> list[Figure]:
        if not self._file.exists():
            return []
        names = [field for field in _OF_FIGURE if field != "scaled_value"]
        with self._reading() as connection:
            found = connection.execute(
                f"SELECT {', '.join(names)} FROM figure WHERE document_id = ? ORDER BY rowid", [document_id]
            )
            return [_figure(document_id, dict(zip(names, row, strict=True))) for row in found]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Raises Unavailable."""
        if not self._file.exists():
            raise Unavailable(f"there are no figures in {self._file}; `sextant-ingest figures` derives them")
        uri = f"{self._file.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
        with closing(connection):
            try:
                connection.execute("SELECT 1 FROM document LIMIT 1")
            except sqlite3.Error as error:
                raise StoreUnavailable(f"the figures in {self._file} cannot be read: {error}") from error
            yield connection

    def _query(self, sql: str, access: Access, limit: int, deadline: float) -> Rows:
        with self._reading() as connection:
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            inner = _restrict(connection, access)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            try:
                connection.set_authorizer(partial(_authorize, inner, _named_subqueries(sql)))
                cursor = connection.execute(sql)
                found = cursor.fetchmany(limit + 1)
                if cursor.description is None:
                    raise sqlite3.ProgrammingError("not a SELECT")
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                if time.monotonic() > deadline and isinstance(error, sqlite3.OperationalError):
                    raise Timeout("the query took too long; narrow it by company, fiscal_year or label") from None
                raise InvalidQuery(f"{_reason(error)}; one SELECT over figures({', '.join(COLUMNS)})") from None
            rows = tuple(tuple(map(_cell, row)) for row in found[:limit])
            return Rows(tuple(column[0] for column in cursor.description), rows, len(found) > limit)


def _insert(connection: sqlite3.Connection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    places = ", ".join("?" * len(names))
    connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows)


def _remove(connection: sqlite3.Connection, document_id: str) -> int:
    """Returns how many figures there were."""
    connection.execute("DELETE FROM reader WHERE document_id = ?", [document_id])
    connection.execute("DELETE FROM document WHERE id = ?", [document_id])
    return connection.execute("DELETE FROM figure WHERE document_id = ?", [document_id]).rowcount


def _hides(connection: sqlite3.Connection) -> bool:
    """Whether the file knows of figures that are not seen yet."""
    return any(column[1] == "shown" for column in connection.execute("PRAGMA table_info(document)"))


def _row(figure: Figure) -> tuple[Any, ...]:
    """A figure's document and columns."""
    numbers = {"value": float(figure.value), "scaled_value": float(figure.value.scaleb(figure.scale))}
    others = {"column_header": figure.column, "span_start": figure.start, "span_end": figure.end}
    given = numbers | others
    return figure.document_id, *(given[n] if n in given else getattr(figure, n) for n in _OF_FIGURE)


def _figure(document_id: str, row: dict[str, Any]) -> Figure:
    row["value"] = Decimal(repr(row["value"]))
    row["column"], row["start"], row["end"] = row.pop("column_header"), row.pop("span_start"), row.pop("span_end")
    return Figure(document_id=document_id, **row)


def _restrict(connection: sqlite3.Connection, access: Access) -> str:
    """Make the view `figures` for a caller. Returns the name of the view beneath it.

    SQLite tells an authorizer through which view a table is read, and a named subquery could pass for a view whose name
    its writer knows: so the one that reads the tables is named by chance.
    """
    inner = f"visible_{secrets.token_hex(16)}"
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("CREATE TEMP TABLE caller (tenant TEXT, name TEXT)")
    connection.executemany("INSERT INTO caller VALUES (?, ?)", [(access.tenant, name) for name in access.groups])
    shown = "shown AND " if _hides(connection) else ""
    columns = ", ".join(("document_id", *(f"document.{n}" for n in _OF_DOCUMENT), *(f"figure.{n}" for n in _OF_FIGURE)))
    connection.execute(
        f"CREATE TEMP VIEW {inner} AS SELECT {columns} FROM main.document JOIN main.figure ON document_id = id"
        f" WHERE {shown}EXISTS (SELECT 1 FROM main.reader JOIN temp.caller USING (name)"
        " WHERE reader.document_id = document.id AND caller.tenant = document.tenant)"
    )
    connection.execute(f"CREATE TEMP VIEW figures AS SELECT * FROM {inner}")
    connection.execute("PRAGMA query_only = ON")
    for category, most in _LIMITS.items():
        connection.setlimit(category, most)
    return inner


def _authorize(
    inner: str,
    named: Set[str],
    action: int,
    first: str | None,
    second: str | None,
    database: str | None,
    source: str | None,
) -> int:
    """The callback of sqlite3.set_authorizer: SELECT, the view and pure functions alone."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    within = first == "figures" or source == inner or (first == inner and source == "figures")
    within |= second == "" and first is not None and first.lower() in named - _TABLES
    return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_READ and within else sqlite3.SQLITE_DENY


def _named_subqueries(sql: str) -> Set[str]:
    """Names that WITH defines.

    Raises ValueError where they multiply: SQLite copies each wherever it is named, and that before it looks at the
    clock.
    """
    tokens = [t.translate(_UNQUOTED).lower() for t in _TOKEN.findall(sql) if not t.startswith(("--", "/*", "'"))]
    named = Counter(tokens)
    names: set[str] = set()
    copies = 1
    for index, token in enumerate(tokens[:-1]):
        if token != "as":
            continue
        after = [t for t in tokens[index + 1 : index + 4] if t not in ("not", "materialized")]
        if after[:1] == ["("]:
            names.add(name := tokens[_name_before(tokens, index)])
            copies *= max(named[name] - 1, 1)
    if copies > _EXPANSIONS:
        raise ValueError("too many references to subqueries named by WITH")
    return names


def _name_before(tokens: Sequence[str], index: int) -> int:
    """Position of the name that `as` at `index` defines: before it, or before a list of columns."""
    if index and tokens[index - 1] == ")":
        while index and tokens[index] != "(":
            index -= 1
    return max(index - 1, 0)


def _reason(error: Exception) -> str:
    said = str(error).rstrip(".")
    if "prohibited" in said or "not authorized" in said:
        return f"{said}: nothing but the view figures and plain functions can be read"
    return said


def _cell(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return f"{value[:_LONGEST_CELL]}…" if isinstance(value, str) and len(value) > _LONGEST_CELL else value
