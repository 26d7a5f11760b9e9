"""From `[n]` markers to verified citations: exact slices of stored pages, numbers checked."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import nupunkt

from app.adapters.bm25 import tokens
from app.evidence.quotes import carries, numbers, support, units
from app.tools import Tools
from app.types import Box, Citation, Hit, Page

MARKERS = re.compile(r"\[\s*\d+(?:\s*[,;]\s*\d+)*\s*\](?:\s*\[\s*\d+(?:\s*[,;]\s*\d+)*\s*\])*")
_LINE = re.compile(r"[^\s\n][^\n]*")
_HEADER_LINES = 4
_INTEGER = re.compile(r"\d+")
_MAX_QUOTE = 1200
"""Characters of the longest window of units that is quoted to cover a sentence's numbers."""
VERIFIED_SUPPORT = 0.5
"""Of a sentence's terms, the share that its quote must hold."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer's text with canonical markers, and what they resolve to."""

    text: str
    citations: tuple[Citation, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Claim:
    start: int
    end: int
    """The sentence without its markers, as a slice of the canonical text."""
    markers: tuple[int, ...]


async def cite(text: str, hits: Sequence[Hit], tools: Tools) -> Cited:
    """Resolve each `[n]` to a quote of hits[n-1]. A marker that refers to no hit is removed, and a note says so."""
    text, unknown = _canonical(text, len(hits))
    claims = _claims(text)
    pairs = [(claim, marker) for claim in claims for marker in claim.markers]
    keys = list(dict.fromkeys((hits[n - 1].chunk.document_id, hits[n - 1].chunk.page) for _, n in pairs))
    pages = dict(zip(keys, await tools.pages(keys), strict=True)) if keys else {}
    citations = await asyncio.to_thread(_citations, text, pairs, hits, pages) if pairs else ()
    notes = [f"a marker for passage {n}, which does not exist, was removed" for n in unknown]
    return Cited(text, citations, tuple(notes))


def _canonical(text: str, known: int) -> tuple[str, list[int]]:
    """`[1, 9][2]` over 3 passages -> `[1][2]` and [9]."""
    unknown: list[int] = []

    def rewrite(match: re.Match[str]) -> str:
        cited = list(dict.fromkeys(int(n) for n in _INTEGER.findall(match.group())))
        unknown.extend(n for n in cited if not 1 <= n <= known)
        return "".join(f"[{n}]" for n in cited if 1 <= n <= known)

    rewritten = MARKERS.sub(rewrite, text)
    return (re.sub(r"[ \t]+([.,;:])", r"\1", rewritten).strip() if unknown else rewritten.strip()), unknown


def _claims(text: str) -> list[_Claim]:
    """The sentence before each cluster of markers."""
    claims: list[_Claim] = []
    begin = 0
    for match in MARKERS.finditer(text):
        before = text[begin : match.start()]
        sentences = [(a, b) for a, b in nupunkt.sent_spans(before) if before[a:b].strip(" \n\t.,;:")]
        if sentences:
            start, end = begin + sentences[-1][0], begin + sentences[-1][1]
            start += len(text[start:end]) - len(text[start:end].lstrip(" \n\t.,;:"))
            end -= len(text[start:end]) - len(text[start:end].rstrip())
            claims.append(_Claim(start, end, tuple(int(n) for n in _INTEGER.findall(match.group()))))
        elif claims:
            more = tuple(int(n) for n in _INTEGER.findall(match.group()))
            claims[-1] = _Claim(claims[-1].start, claims[-1].end, claims[-1].markers + more)
        begin = match.end()
    return claims


def _citations(
    text: str,
    pairs: Sequence[tuple[_Claim, int]],
    hits: Sequence[Hit],
    pages: Mapping[tuple[str, int], Page | None],
) -> tuple[Citation, ...]:
    """One per claim and marker; long passages take long to look through, so it is not for the loop."""
    of = [(claim, marker, hits[marker - 1]) for claim, marker in pairs]
    return tuple(_citation(text, *each, pages[each[2].chunk.document_id, each[2].chunk.page]) for each in of)


def _citation(text: str, claim: _Claim, marker: int, hit: Hit, page: Page | None) -> Citation:
    chunk = hit.chunk
    sentence = text[claim.start : claim.end]
    stored = page is not None and page.text[chunk.start : chunk.end] == chunk.text
    start, end = best_window(sentence, hit)
    span, quote = (chunk.start + start, chunk.start + end), chunk.text[start:end]
    if page is not None and stored and not carries(quote, sentence, chunk.unit):
        span = _window_above(sentence, page.text, chunk.start) or span
        quote = page.text[slice(*span)]
    carried = support(sentence, quote, f"{chunk.context} {_heading(hit, start)}")
    return Citation(
        marker=marker,
        document_id=chunk.document_id,
        title=chunk.meta.title,
        company=chunk.meta.company,
        form=chunk.meta.form,
        fiscal_year=chunk.meta.fiscal_year,
        page=chunk.page,
        section=chunk.section,
        chunk_id=chunk.id,
        source=chunk.meta.source,
        quote=quote,
        span_start=span[0],
        span_end=span[1],
        boxes=boxes_of(page, *span) if page is not None and stored else (),
        answer_span=(claim.start, claim.end),
        support=round(carried, 4),
        verified=stored and carried >= VERIFIED_SUPPORT and carries(quote, sentence, chunk.unit),
        ocr=page is not None and page.ocr,
        kind=chunk.kind,
    )


def _heading(hit: Hit, start: int) -> str:
    """Of a table's row, its scale and the nearest line above it that has no figure: `In millions Net sales:`."""
    if hit.chunk.kind != "table":
        return ""
    above = (line for line in reversed(hit.chunk.text[:start].splitlines()) if line.strip() and not numbers(line))
    return f"{hit.chunk.unit or ''} {next(above, '')}"


def best_window(sentence: str, hit: Hit) -> tuple[int, int]:
    """The shortest run of units that holds all the sentence's numbers; else the single unit that carries most of it."""
    found = units(hit.chunk)
    if not found:
        return 0, len(hit.chunk.text)
    wanted = numbers(sentence)
    carried = [support(sentence, unit.text, "") + len(wanted & numbers(unit.text)) for unit in found]
    best = max(range(len(found)), key=lambda i: (carried[i], -i))
    windows = [(found[best].start, found[best].end)]
    if wanted and not carries(found[best].text, sentence, hit.chunk.unit):
        windows += _covering(sentence, wanted, hit.chunk.text, [(u.start, u.end) for u in found], best)
    return windows[-1]


def _covering(
    sentence: str, wanted: frozenset[str], text: str, spans: Sequence[tuple[int, int]], best: int
) -> list[tuple[int, int]]:
    """The best window around unit `best` within _MAX_QUOTE that holds all wanted numbers; empty if none does.

    What a unit holds of the sentence is looked up once: of a long table there are thousands of windows.
    """
    terms = set(tokens(sentence))
    near = [i for i, (a, b) in enumerate(spans) if max(b, spans[best][1]) - min(a, spans[best][0]) <= _MAX_QUOTE]
    units_of = {i: text[slice(*spans[i])] for i in near}
    held = {i: (terms & set(tokens(unit)), wanted & numbers(unit)) for i, unit in units_of.items()}
    covering: list[tuple[float, tuple[int, int]]] = []
    for first in reversed([i for i in near if i <= best]):
        said, known = set[str](), set[str]()
        for last in (i for i in near if i >= first):
            said, known = said | held[last][0], known | held[last][1]
            start, end = spans[first][0], spans[last][1]
            if last >= best and end - start <= _MAX_QUOTE and wanted <= known:
                covering.append((len(said) / (len(terms) or 1) - _cost(end - start), (start, end)))
    return [max(covering, key=lambda window: window[0])[1]] if covering else []


def _cost(length: int) -> float:
    return length / (4 * _MAX_QUOTE)


def _worth(sentence: str, quote: str) -> float:
    """Support, less a little for length: of two windows that say as much, the shorter."""
    return support(sentence, quote, "") - _cost(len(quote))


def _window_above(sentence: str, text: str, end: int) -> tuple[int, int] | None:
    """Of a table cut in two: the lines above on its page, nearest first, that hold the sentence's numbers."""
    lines = [match.span() for match in _LINE.finditer(text, 0, end)]
    wanted = numbers(sentence)
    for last in range(len(lines) - 1, -1, -1):
        windows = [(lines[first][0], lines[last][1]) for first in range(last, max(last - _HEADER_LINES, -1), -1)]
        if covering := [window for window in windows if wanted <= numbers(text[slice(*window)])]:
            return max(covering, key=lambda window: _worth(sentence, text[slice(*window)]))
    return None


def boxes_of(page: Page, start: int, end: int) -> tuple[Box, ...]:
    """One box per line of page.text[start:end]; words share a line when their heights overlap by half."""
    lines: list[Box] = []
    for word in page.words:
        if word.end <= start or word.start >= end:
            continue
        x0, y0, x1, y1 = word.box
        if lines and x0 >= lines[-1][0] and min(y1, lines[-1][3]) - max(y0, lines[-1][1]) > 0.5 * (y1 - y0):
            last = lines[-1]
            lines[-1] = (min(last[0], x0), min(last[1], y0), max(last[2], x1), max(last[3], y1))
        else:
            lines.append(word.box)
    return tuple(lines)
