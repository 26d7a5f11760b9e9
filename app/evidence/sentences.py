"""Every sentence of a written answer against the passages: markers that were forgotten, claims that nothing carries."""

import re
from collections.abc import Sequence
from dataclasses import replace

from nupunkt import sent_spans

from app.adapters.bm25 import tokens
from app.evidence.citations import MARKERS, VERIFIED_SUPPORT, Cited, best_window
from app.evidence.quotes import carries, support
from app.evidence.statements import tells_of
from app.question.companies import named_companies
from app.question.periods import named_periods
from app.types import Citation, Document, Hit, Unsupported

FLAG = " (not supported)"
_INTEGER = re.compile(r"\d+")
_SET_SUPPORT = 0.7
"""Support from which a marker is set that the model did not."""
_LEAST_TERMS = 3
"""Of a sentence that may be given a marker: fewer say too little to be found in one place alone."""
_SHOWN = 120
"""Characters of a sentence in a note."""


def spans(text: str) -> list[tuple[int, int]]:
    """Sentences with their markers, which may stand before or after the full stop; none crosses a line."""
    found: list[tuple[int, int]] = []
    for line in re.finditer(r"[^\n]+", text):
        first = len(found)
        for a, b in sent_spans(line.group()):
            start, end = line.start() + a, line.start() + b
            led = MARKERS.match(text, start, end)
            if led and len(found) > first:
                found[-1] = (found[-1][0], led.end())
                start = led.end()
            if MARKERS.sub("", text[start:end]).strip(" \t.,;:"):
                found.append((start, end))
    return found


def carried(sentence: str, hit: Hit, least: float = VERIFIED_SUPPORT) -> bool:
    """Whether the passage carries the sentence; the filing's own year, dates and name count as said in it."""
    chunk, meta = hit.chunk, hit.chunk.meta
    quote = chunk.text[slice(*best_window(sentence, hit))]
    facts = f"{meta.title} {meta.company or ''} {meta.fiscal_year or ''} {meta.period_end or ''} {meta.filed or ''}"
    context = f"{chunk.context} {facts} {' '.join(chunk.columns)}"
    if support(sentence, quote, context) < least:
        return False
    return carries(f"{quote}\n{facts}\n{' '.join(chunk.columns)}", sentence, chunk.unit)


def attributed(text: str, hits: Sequence[Hit]) -> tuple[str, tuple[str, ...]]:
    """The text with a marker where a sentence has none that fits and exactly one passage carries it; a note for each.

    Passages that carry it with the same words, as filings of successive years do, count as one: the best ranked.
    """
    out, at, notes = "", 0, []
    for start, end in spans(text):
        whole = text[start:end].rstrip()
        sentence = _unmarked(whole)
        markers = [int(n) for cluster in MARKERS.findall(whole) for n in _INTEGER.findall(cluster)]
        if len(tokens(sentence)) < _LEAST_TERMS or any(_carries(sentence, n, hits) for n in markers):
            continue
        found = [n for n in range(1, len(hits) + 1) if _carries(sentence, n, hits, _SET_SUPPORT)]
        if found and len({_quoted(sentence, hits[n - 1]) for n in found}) == 1:
            out += text[at:start] + f"{_unmarked(whole)} [{found[0]}]"
            at = start + len(whole)
            notes.append(f"passage [{found[0]}] was found by the service to carry: {sentence[:_SHOWN]}")
    return out + text[at:], tuple(notes)


def _carries(sentence: str, marker: int, hits: Sequence[Hit], least: float = VERIFIED_SUPPORT) -> bool:
    if not 1 <= marker <= len(hits):
        return False
    hit = hits[marker - 1]
    return carried(sentence, hit, least) and not _of_another(sentence, hit, hits)


def _of_another(sentence: str, hit: Hit, hits: Sequence[Hit]) -> bool:
    """Whether the sentence names companies, or periods, and the passage is of none of them and mentions none."""
    periods = named_periods(sentence)
    if periods and not any(tells_of(hit.chunk, period) for period in periods):
        return True
    filings = [Document(each.chunk.document_id, "", each.chunk.meta, 0, 0) for each in hits]
    named = named_companies(sentence, filings)
    return bool(named) and not named & {hit.chunk.meta.company, *named_companies(hit.chunk.searchable, filings)}


def _quoted(sentence: str, hit: Hit) -> str:
    return " ".join(hit.chunk.text[slice(*best_window(sentence, hit))].split())


def _unmarked(sentence: str) -> str:
    return re.sub(r"\s+([.,;:!?])", r"\1", MARKERS.sub("", sentence)).rstrip()


def judged(cited: Cited, hits: Sequence[Hit], policy: Unsupported) -> Cited:
    """The answer without the sentences that nothing they cite carries, or with these flagged; a note for each."""
    if policy == "keep":
        return cited
    out, at, notes, shifts, gone = "", 0, list(cited.notes), list[tuple[int, int]](), list[tuple[int, int]]()
    for start, end in spans(cited.text):
        whole = cited.text[start:end].rstrip()
        own = [c for c in cited.citations if start <= c.answer_span[0] < end]
        if _stands(cited.text, (start, end), own, hits):
            continue
        sentence = _unmarked(whole)
        out += cited.text[at:start]
        if policy == "flag":
            out += whole + FLAG
        else:
            gone.append((start, end))
        at = start + len(whole)
        shifts.append((at, len(out) - at))
        verb = "removed" if policy == "drop" else "flagged"
        notes.append(f"a sentence that no cited passage supports was {verb}: {sentence[:_SHOWN]}")
    text = out + cited.text[at:]
    kept = [c for c in cited.citations if not any(a <= c.answer_span[0] < b for a, b in gone)]
    lead = len(text) - len(text.lstrip())
    moved = [replace(c, answer_span=_moved(c.answer_span, shifts, lead)) for c in kept]
    return Cited(text.strip(), tuple(moved), tuple(notes))


def _stands(text: str, span: tuple[int, int], own: Sequence[Citation], hits: Sequence[Hit]) -> bool:
    """Whether a cited passage carries the whole sentence, or each of its claims up to the last marker has one."""
    whole = text[slice(*span)]
    sentence = _unmarked(whole)
    own = [c for c in own if not _of_another(sentence, hits[c.marker - 1], hits)]
    if any(carried(sentence, hits[c.marker - 1]) for c in own):
        return True
    claims: dict[tuple[int, int], bool] = {}
    for c in own:
        stands = c.verified or carried(text[slice(*c.answer_span)], hits[c.marker - 1])
        claims[c.answer_span] = claims.get(c.answer_span, False) or stands
    after = whole[max((found.end() for found in MARKERS.finditer(whole)), default=0) :]
    return bool(claims) and all(claims.values()) and len(tokens(after)) < _LEAST_TERMS


def _moved(span: tuple[int, int], shifts: Sequence[tuple[int, int]], lead: int) -> tuple[int, int]:
    by = next((by for place, by in reversed(shifts) if place <= span[0]), 0) - lead
    return span[0] + by, span[1] + by
