"""BM25 as sparse vectors: one tokenizer for documents and queries, saturation here, IDF in the engine."""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import Stemmer
import xxhash

from app.raised import unmarked
from app.types import SparseVector

STOPWORDS = frozenset(
    "a about above after again all also am an and any are as at be because been before being below between both "
    "but by can could did do does doing during each few for from had has have having he her here him his how i if "
    "in into is it its itself just may me might more most must my no nor not of off on once only or other our out "
    "over own same shall she should so some such than that the their them then there these they this those "
    "through to too under until up upon us very was we were what when where whether which while who whom why will "
    "with within without would you your".split()
)
INSTRUCTIONS = frozenset(
    "according answer assume based calculate compute describe discuss explain follow following give identify list "
    "outline please primarily provide question rely relying respond response round show shown state summarize "
    "tell use using utilize utilizing".split()
)
"""Words by which a question addresses the answerer: rare in filings, so their IDF would drown the subject's."""

_TOKEN = re.compile(
    r"""
    (?P<form>\d{1,2}-[a-z]\b)                 # 10-K
  | (?P<fy>fy\s?'?(?P<year>\d{4}|\d{2})\b)    # FY2018, FY18
  | (?P<mixed>[a-z]+\d[a-z\d]*|\d+[a-z][a-z\d]*)  # q3, 5g, covid19
  | (?P<number>\d[\d,]*(?:\.\d+)?)            # 1,577.00
  | (?P<amp>[a-z]+(?:&[a-z]+)+)               # pp&e
  | (?P<word>[a-z]+)
    """,
    re.VERBOSE,
)
_POSSESSIVE = re.compile(r"['’]s\b")
_local = threading.local()
"""A stemmer may not be shared between threads."""


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    return str(_local.stemmer.stemWord(word))


def tokens(text: str) -> list[str]:
    """Terms in order, without case, accents, raised marks, stopwords and endings.

    1,577.00 is 1577, 10-K 10k, FY18 fiscal 2018.
    """
    return list(_terms(text))


@lru_cache(maxsize=8_192)
def _terms(text: str) -> tuple[str, ...]:
    """Kept, for an answer asks for the terms of the same row or sentence several times over."""
    folded = unicodedata.normalize("NFKD", unmarked(text)).casefold()
    if not folded.isascii():
        folded = "".join(ch for ch in folded if not unicodedata.combining(ch))
    out: list[str] = []
    for match in _TOKEN.finditer(_POSSESSIVE.sub("", folded)):
        kind, value = match.lastgroup, match.group()
        if kind == "word":
            if value not in STOPWORDS:
                out.append(_stem(value))
        elif kind == "number":
            out.append(normal_number(value))
        elif kind == "fy":
            year = match["year"]
            out += ["fiscal", year if len(year) == 4 else f"20{year}"]
        else:
            out.append(value.replace("-", "").replace("&", ""))
    return tuple(out)


def query_tokens(text: str) -> list[str]:
    """A question's terms: `tokens` without the words that merely address the answerer."""
    words = tokens(text)
    return [w for w in words if w not in _INSTRUCTION_STEMS] or words


_INSTRUCTION_STEMS = frozenset(_stem(word) for word in INSTRUCTIONS)


def normal_number(text: str) -> str:
    """`1,577.00` -> `1577`, `8.70` -> `8.7`: equal numbers become one term."""
    digits = text.replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


@dataclass(frozen=True, slots=True)
class Bm25Encoder:
    """Document side: tf·(k1+1)/(tf + k1·(1 − b + b·|d|/avgdl)). Query side: term counts. The engine multiplies by
    IDF = ln((N − n + ½)/(n + ½) + 1), so that the dot product is BM25 (Robertson and Zaragoza, 2009).

    `average_length` is a constant, not the corpus mean: a chunk's vector must not depend on what else is indexed.
    """

    k1: float = 1.2
    b: float = 0.72
    average_length: float = 80.0
    """Terms per chunk: the default chunker's mean over 26 real filings is 77."""

    @property
    def name(self) -> str:
        return f"bm25-v1(k1={self.k1:g},b={self.b:g},avgdl={self.average_length:g})"

    def passages(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._passage(tokens(text)) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return [_vector(Counter(query_tokens(text))) for text in texts]

    def _passage(self, terms: Sequence[str]) -> SparseVector:
        norm = self.k1 * (1 - self.b + self.b * len(terms) / self.average_length)
        return _vector({t: tf * (self.k1 + 1) / (tf + norm) for t, tf in Counter(terms).items()})


def _vector(weights: dict[str, float] | Counter[str]) -> SparseVector:
    by_index: dict[int, float] = {}
    for term, weight in weights.items():
        index = xxhash.xxh32_intdigest(term.encode())
        by_index[index] = by_index.get(index, 0.0) + weight
    indices = sorted(by_index)
    return SparseVector(tuple(indices), tuple(float(by_index[i]) for i in indices))
