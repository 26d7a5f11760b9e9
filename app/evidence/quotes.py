"""The quotable units of a chunk (sentences, table rows) and how far a quote carries a sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import nupunkt

from app.adapters.bm25 import normal_number, tokens
from app.evidence.quantities import Quantity, located, quantities, same
from app.types import Chunk

NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?|(?<=[A-Za-z])\d+")
"""Numbers as written; also the digits in FY2018 or Q3. A sign is not part of it: (1,577) and -1,577 are 1577."""
_LONG = 400
"""Characters above which a sentence of short lines is taken to be a list or an unrecognised table and cut at them."""
_LONGEST = 1_200
"""The same where its lines are as long as those of prose."""
_PROSE_LINE = 50
"""Characters that a line of running prose has at least, the last one apart."""
_LINE = re.compile(r"[^\n]+")
_PARAGRAPH = re.compile(r"\S(?:[^\n]|\n(?!\s*\n))*")
_HEADING = re.compile(r"\s*([A-Z][^\n.;:,]{2,70})\n(?=\s*[A-Z“\"])")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence or a table row: `chunk.text[start:end]`, without surrounding white space."""

    start: int
    end: int
    text: str


@lru_cache(maxsize=4096)
def _units(text: str, by_lines: bool) -> tuple[Unit, ...]:
    found: list[Unit] = []
    for start, end in [m.span() for m in _LINE.finditer(text)] if by_lines else _sentences(text):
        if not by_lines and end - start > (_LONGEST if _runs_on(text[start:end]) else _LONG):
            found += [unit for m in _LINE.finditer(text, start, end) for unit in _trimmed(text, *m.span())]
        else:
            found += _trimmed(text, start, end)
    return tuple(found)


def _runs_on(sentence: str) -> bool:
    """Whether its lines are broken by the page's width alone."""
    lines = sentence.strip().splitlines()
    return all(len(line.strip()) >= _PROSE_LINE for line in lines[:-1])


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Sentences; none crosses a blank line, and a heading on the line before is one of its own."""
    for paragraph in _PARAGRAPH.finditer(text):
        for a, b in nupunkt.sent_spans(paragraph.group()):
            start, end = paragraph.start() + a, paragraph.start() + b
            if heading := _HEADING.match(text, start, end):
                yield start, heading.end(1)
                start = heading.end(1)
            yield start, end


def _trimmed(text: str, start: int, end: int) -> Iterator[Unit]:
    body = text[start:end].strip()
    if body:
        begin = text.index(body, start)
        yield Unit(begin, begin + len(body), body)


def units(chunk: Chunk) -> tuple[Unit, ...]:
    """Rows of a table, sentences of prose, in order."""
    return _units(chunk.text, chunk.kind == "table")


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text, normalised: `$1,577.00` and `(1577)` both give `1577`."""
    return frozenset(normal_number(m.group().rstrip(",")) for m in NUMBER.finditer(text))


def support(sentence: str, quote: str, context: str) -> float:
    """0 to 1: the share of the sentence's terms that the quote holds; a term only in its context counts half."""
    terms = set(tokens(sentence))
    if not terms:
        return 0.0
    in_quote = terms & set(tokens(quote))
    in_context = (terms - in_quote) & set(tokens(context))
    return (len(in_quote) + 0.5 * len(in_context)) / len(terms)


def carries(quote: str, sentence: str, unit: str | None = None) -> bool:
    """Whether each number of the sentence is in the quote, with its unit and scale.

    `$1.58 billion` is in `1,577` under a table's `unit` "in millions", and `1,577 billion` is not. Digits must be the
    same where either side leaves its scale unsaid, and of years and dates.
    """
    meant = dict(located(sentence))
    if not meant:
        return numbers(sentence) <= numbers(quote)
    said, there = numbers(quote), quantities(quote, f"in {unit}" if unit else "")
    for match in NUMBER.finditer(sentence):
        quantity = meant.get(match.start())
        if quantity is None or not there:
            if normal_number(match.group().rstrip(",")) not in said:
                return False
        elif not any(_agree(quantity, other) for other in there):
            return False
    return True


def _agree(a: Quantity, b: Quantity) -> bool:
    if a.unit and b.unit and a.unit != b.unit:
        return False
    comparable = (a.scale is not None and b.scale is not None) or a.unit == b.unit == "%"
    return same(a, b) if comparable else a.value == b.value
