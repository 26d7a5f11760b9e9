"""Questions made from the table rows of an index's own filings, with the rows' look-alikes as negatives."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.adapters.bm25 import Bm25Encoder, tokens
from app.evidence.rows import read_row
from app.ports import Embedder, Store
from app.retrieval.fusion import rrf
from app.types import Chunk, Condition, Document, Filter, Leg
from evals.training.groups import Group, held_out

_POOL = 40
_YEAR = re.compile(r"(?<![\d,.$])(?:19|20)\d\d(?!\d|[,.]\d)")
_LABEL = re.compile(r"[A-Z][A-Za-z ,&’'()/-]{5,70}")
_SUFFIX = re.compile(r",? (?:Inc|Incorporated|Corporation|Corp|Company|Co|plc|Ltd|Limited|N\.V|S\.A)\b\.?", re.I)
_SPOKEN = (
    (re.compile(r"^(?:purchases? of|additions to|payments for) property.*", re.I), ("capital expenditure", "capex")),
    (re.compile(r"^property(?:,? plant)?,? and equipment.*net.*", re.I), ("net PP&E", "net PPNE")),
    (
        re.compile(r"^(?:total )?(?:net sales|net revenues?|revenues?)$", re.I),
        ("revenue", "total revenues"),
    ),
    (re.compile(r"^cost of (?:sales|revenues?|goods sold)$", re.I), ("COGS", "cost of goods sold")),
    (re.compile(r"^net (?:income|earnings)\b.*", re.I), ("net income", "net profit")),
    (re.compile(r"^(?:accounts receivable|receivables).*", re.I), ("accounts receivable", "receivables")),
    (re.compile(r"^depreciation and amortization.*", re.I), ("depreciation and amortization", "D&A")),
    (re.compile(r"^(?:operating income|income from operations)$", re.I), ("operating income", "operating profit")),
    (re.compile(r"^selling, general,? and administrative.*", re.I), ("SG&A", "SG&A expenses")),
    (re.compile(r"^research(?:,| and) development.*", re.I), ("R&D expense", "research and development spending")),
    (re.compile(r"^(?:dividends paid|cash dividends).*", re.I), ("dividends paid", "cash paid as dividends")),
    (re.compile(r"^net cash provided by.*operating.*", re.I), ("operating cash flow", "cash from operations")),
)
"""Row labels as filings print them, and what an analyst calls them."""
_ASKED = (
    "What was {company}'s {label} in {period}?",
    "What is the {period} {label} for {company}?",
    "What is the {period} {label} (in USD millions) for {company}? Use the details shown in the filing.",
    "How much {label} did {company} report for {period}?",
    "Did {company}'s {label} increase in {period} compared with the year before?",
    "By how much did {label} change at {company} in {period}?",
    "We need {company}'s {label} for {period}. Rely on the financial statements.",
    "{company} {label} {period}",
)


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    chunk: Chunk


async def row_groups(
    store: Store, embedder: Embedder, encoder: Bm25Encoder, rng: random.Random, per_filing: int
) -> list[Group]:
    """Up to `per_filing` questions about each filing of the companies that are not held out."""
    catalogue = [d for d in await store.documents() if d.meta.company and d.meta.fiscal_year]
    trained = [d for d in catalogue if not held_out(d.meta.company or "")]
    chunks = {d.id: await _chunks(store, d, embedder.dimensions) for d in trained}
    by_label: dict[str, list[_Row]] = defaultdict(list)
    for found in chunks.values():
        for row in _rows(found):
            by_label[row.label.lower()].append(row)
    asked: list[tuple[Document, _Row, str]] = []
    for document in trained:
        own = [row for row in _rows(chunks[document.id]) if _asked_about(row, by_label)]
        rows = rng.sample(own, min(per_filing, len(own)))
        asked += [(document, row, _question(document, row.label, rng)) for row in rows]
    vectors = await embedder.queries([query for _, _, query in asked])
    groups: list[Group] = []
    for (document, row, query), vector in zip(asked, vectors, strict=True):
        legs = [Leg("dense", vector, _POOL), Leg("bm25", encoder.queries([query])[0], _POOL)]
        dense, bm25 = await store.search(legs, _within(document))
        pool = [hit.chunk for hit in rrf({"dense": dense.hits, "bm25": bm25.hits})]
        negatives = _negatives(row, query, pool, by_label, trained, rng)
        groups.append(_moved(Group("rows", query, row.chunk.searchable, negatives), rng))
    return groups


async def _chunks(store: Store, document: Document, dimensions: int) -> list[Chunk]:
    """All of a filing's: an exact search for nothing in particular finds every one."""
    vector = np.full(dimensions, dimensions**-0.5, np.float32)
    [found] = await store.search([Leg("dense", vector, max(document.chunks, 1))], _within(document))
    return sorted((hit.chunk for hit in found.hits), key=lambda chunk: chunk.ordinal)


def _within(document: Document) -> Filter:
    return Filter((Condition("document_id", "$eq", document.id),))


def _rows(chunks: Sequence[Chunk]) -> list[_Row]:
    read = ((chunk, read_row(line)) for chunk in chunks if chunk.kind == "table" for line in chunk.text.splitlines())
    return [
        _Row(row.label, chunk)
        for chunk, row in read
        if row and row.figures > 1 and _LABEL.fullmatch(row.label) and 2 <= len(row.label.split()) <= 9
    ]


def _asked_about(row: _Row, by_label: Mapping[str, Sequence[_Row]]) -> bool:
    """Whether the label says enough: it stands in few chunks of its own filing."""
    same = {r.chunk.id for r in by_label[row.label.lower()] if r.chunk.document_id == row.chunk.document_id}
    return len(same) <= 2


def _question(document: Document, label: str, rng: random.Random) -> str:
    spoken = next((names for pattern, names in _SPOKEN if pattern.match(label)), (label, label.lower()))
    company = _SUFFIX.sub("", document.meta.company or "").strip()
    year, period = document.meta.fiscal_year, document.meta.fiscal_period
    if period in (None, "FY"):
        said = rng.choice([f"FY{year}", f"fiscal {year}", f"fiscal year {year}", f"{year}"])
    else:
        said = rng.choice([f"{period} {year}", f"{period} FY{year}", f"{period} of fiscal {year}"])
    return rng.choice(_ASKED).format(company=company, label=rng.choice(spoken), period=said)


def _negatives(
    row: _Row,
    query: str,
    pool: Sequence[Chunk],
    by_label: Mapping[str, Sequence[_Row]],
    documents: Sequence[Document],
    rng: random.Random,
) -> tuple[str, ...]:
    """Of the same filing, of another year and company, and the positive itself under a wrong year and a wrong name."""
    label = set(tokens(row.label))
    years = set(_YEAR.findall(query))
    near = [c.searchable for c in pool if c.id != row.chunk.id and not label <= set(tokens(c.searchable))]
    others = [r.chunk for r in by_label[row.label.lower()] if r.chunk.document_id != row.chunk.document_id]
    company = row.chunk.meta.company
    siblings = [c.searchable for c in others if c.meta.company == company and not years & set(_YEAR.findall(c.text))]
    strangers = [c.searchable for c in others if c.meta.company != company]
    chosen = [
        *rng.sample(near[:6], min(2, len(near))),
        *rng.sample(siblings, min(1, len(siblings))),
        *rng.sample(strangers, min(1, len(strangers))),
        _shifted(row.chunk.searchable, rng.choice([-3, -2, 2, 3])),
        _renamed(row.chunk, rng.choice([d for d in documents if d.meta.company != company])),
        *near[6:8],
    ]
    return tuple(dict.fromkeys(chosen))


def _shifted(text: str, years: int) -> str:
    """Every year in it moved: the same passage of another year's filing, which names none of the years asked for."""
    return _YEAR.sub(lambda match: str(int(match[0]) + years), text)


def _renamed(chunk: Chunk, other: Document) -> str:
    """The same passage under another company's name."""
    old, new = chunk.meta.company or "", other.meta.company or ""
    tickers = (f" ({chunk.meta.ticker})", f" ({other.meta.ticker})" if other.meta.ticker else "")
    return chunk.searchable.replace(old, new).replace(*tickers)


def _moved(group: Group, rng: random.Random) -> Group:
    """Half of the groups to other years as a whole, so that no year is learnt by heart."""
    years = rng.choice([0, 0, 0, 0, -7, -4, 2, 5])
    negatives = tuple(_shifted(text, years) for text in group.negatives)
    return Group(group.source, _shifted(group.query, years), _shifted(group.positive, years), negatives)
