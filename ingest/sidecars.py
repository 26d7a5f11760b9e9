"""Metadata given beside a filing, in a file of its own or a row of a table: it outranks what the filing seems to say.

For `acme.pdf` it stands in `acme.pdf.json`, in the row of `metadata.csv` or `metadata.json` of the same folder whose
`file` is acme.pdf, or in that of a table named on the command line. A file of its own outranks a table that was named,
and that the folder's.
"""

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from app.errors import DocumentError

if TYPE_CHECKING:
    from ingest.sources import Source

Given: TypeAlias = dict[str, str | int]
"""By the names of DocumentMeta; `acl` is its groups joined by commas."""

_TABLES = ("metadata.csv", "metadata.json")
_FILE = "file"
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    """For messages: the table and the row."""
    fields: Mapping[str, Any]


def is_sidecar(path: str) -> bool:
    """Whether a file says something about others and is no filing itself."""
    name = os.path.basename(path).lower()
    return name in _TABLES or (name.endswith(".json") and os.path.exists(path[: -len(".json")]))


class Sidecars:
    """What is given about files. Tables are read once."""

    def __init__(self, table: Path | None = None) -> None:
        """Raises DocumentError where there is a table that cannot be understood."""
        self._named = _table(table) if table else {}
        self._root = table.absolute().parent if table else Path()
        self._folders: dict[Path, dict[str, _Row]] = {}

    def given(self, source: "Source") -> Given:
        """Raises DocumentError with reason metadata."""
        name = Path(unquote(urlsplit(source.uri).path)).name
        rows: list[_Row | None] = []
        keys = [name, source.uri, source.location]
        if not source.remote:
            path = Path(source.location).absolute()
            rows.append(self._of_folder(path.parent).get(name))
            keys.append(os.path.relpath(path, self._root))
        rows += [self._named[key] for key in keys if key in self._named]
        if not source.remote and (own := path.with_name(f"{path.name}.json")).is_file():
            rows.append(_Row(own.name, _object(own)))
        given: Given = {}
        for row in filter(None, rows):
            given |= _understood(row)
        return given

    def _of_folder(self, folder: Path) -> dict[str, _Row]:
        if folder not in self._folders:
            tables = [folder / name for name in _TABLES if (folder / name).is_file()]
            self._folders[folder] = {name: row for table in tables for name, row in _table(table).items()}
        return self._folders[folder]


def _table(path: Path) -> dict[str, _Row]:
    """Rows by what their `file` says. Raises DocumentError."""
    rows: dict[str, _Row] = {}
    for number, fields in enumerate(_rows(path), 1):
        where = f"{path.name} row {number}"
        name = fields.pop(_FILE, None)
        if not isinstance(name, str) or not name.strip():
            raise _wrong(where, f"no {_FILE} is named")
        rows[name.strip()] = _Row(where, fields)
    return rows


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix.lower() != ".csv":
        raw = _json(path)
        if isinstance(raw, dict):
            raw = [{**fields, _FILE: name} if isinstance(fields, dict) else None for name, fields in raw.items()]
        if not isinstance(raw, list) or not all(isinstance(row, dict) for row in raw):
            raise _wrong(path.name, f"a list of objects is wanted, each with {_FILE!r}, or an object of them by file")
        yield from raw
        return
    reader = csv.DictReader(_text(path).splitlines())
    columns = reader.fieldnames or ()
    if _FILE not in columns:
        raise _wrong(path.name, f"no column {_FILE!r}; the first line names the columns, parted by commas")
    _check(path.name, [column for column in columns if column != _FILE])
    for row in reader:
        if None in row or None in row.values():
            raise _wrong(f"{path.name} row {reader.line_num - 1}", f"{len(columns)} values are wanted")
        yield row


def _object(path: Path) -> Mapping[str, Any]:
    raw = _json(path)
    if not isinstance(raw, dict):
        raise _wrong(path.name, "an object is wanted")
    return raw


def _json(path: Path) -> Any:
    try:
        return orjson.loads(_text(path))
    except ValueError as error:
        raise _wrong(path.name, f"no JSON: {error}") from error


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _wrong(path.name, f"larger than {_MOST_BYTES} bytes")
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path.name, f"cannot be read: {error}") from error


def _understood(row: _Row) -> Given:
    """Blank values say nothing."""
    _check(row.where, list(row.fields))
    given: Given = {}
    for name, value in row.fields.items():
        if value is None or not str(value).strip():
            continue
        try:
            given[name] = _FIELDS[name](value)
        except (ValueError, TypeError) as error:
            raise _wrong(row.where, f"{name} is {value!r}: {error}") from None
    return given


def _check(where: str, names: list[str]) -> None:
    if unknown := [name for name in names if name not in _FIELDS]:
        raise _wrong(where, f"{unknown[0]!r} is unknown; there are {', '.join((_FILE, *_FIELDS))}")


def _wrong(where: str, what: str) -> DocumentError:
    return DocumentError(f"metadata in {where}: {what}", "metadata")


def _words(value: Any) -> str:
    text = " ".join(str(value).split())
    if not isinstance(value, str | int) or not text.isprintable() or len(text) > 500:
        raise ValueError("printable text is wanted, 500 characters at most")
    return text


def _cik(value: Any) -> str:
    if not re.fullmatch(r"\d{1,10}", str(value)):
        raise ValueError("up to ten digits are wanted")
    return str(value).zfill(10)


def _year(value: Any) -> int:
    if not re.fullmatch(r"(?:19|20)\d\d", str(value)):
        raise ValueError("a year of four digits is wanted")
    return int(value)


def _period(value: Any) -> str:
    if str(value).upper() not in ("FY", "Q1", "Q2", "Q3", "Q4"):
        raise ValueError("FY, Q1, Q2, Q3 or Q4 is wanted")
    return str(value).upper()


def _day(value: Any) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError("a date like 2023-12-31 is wanted") from None


def _groups(value: Any) -> str:
    names = value if isinstance(value, list) else str(value).split(",")
    return ",".join(sorted({_words(name) for name in names if str(name).strip()}))


_FIELDS: Mapping[str, Callable[[Any], str | int]] = {
    "title": _words,
    "company": _words,
    "cik": _cik,
    "ticker": lambda value: _words(value).upper(),
    "form": lambda value: _words(value).upper(),
    "fiscal_year": _year,
    "fiscal_period": _period,
    "period_end": _day,
    "filed": _day,
    "sector": _words,
    "acl": _groups,
}
"""What may be given, and how it is understood; a tenant may not."""
