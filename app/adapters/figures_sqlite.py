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
    unit                 USD (EUR, ...), shares, USD/share, percent
    concept              XBRL name (us-gaap:Revenues); of facts alone
    dimensions           XBRL members that qualify the fact; NULL is the whole company
    page                 from 1
    chunk_id             the passage that holds it
    span_start, span_end the number as printed is this slice of the page's text

What is not known is NULL, dates are ISO text, and comparisons of text ignore case.
"""

import math
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from app.errors import InvalidQuery, Timeout, Unavailable
from app.types import Access, Document, Figure, Rows

_OF_DOCUMENT = ("title", "company", "ticker", "cik", "form", "fiscal_year", "fiscal_period", "filed")
_OF_FIGURE = ("statement", "label", "column_header", "period_end", "period_months", "value", "scaled_value", "scale",
              "unit", "concept", "dimensions", "page", "chunk_id", "span_start", "span_end")  # fmt: skip
COLUMNS = ("document_id", *_OF_DOCUMENT, *_OF_FIGURE)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS document (
    id TEXT PRIMARY KEY COLLATE NOCASE, tenant TEXT NOT NULL, title TEXT COLLATE NOCASE, company TEXT COLLATE NOCASE,
    ticker TEXT COLLATE NOCASE, cik TEXT, form TEXT COLLATE NOCASE, fiscal_year INTEGER,
    fiscal_period TEXT COLLATE NOCASE, filed TEXT
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
