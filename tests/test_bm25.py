"""BM25 vectors against rank_bm25, and the tokenizer's rules one by one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from app.adapters.bm25 import Bm25Encoder, query_tokens, tokens
from app.types import SparseVector

CORPUS = [
    "Net sales rose 8 percent to $1,577 million in fiscal 2018.",
    "Capital expenditures were $1,577 million; capital spending is reviewed quarterly.",
    "The board declared a dividend of $0.52 per share.",
    "Interest rate risk: a rise in interest rates would raise interest expense.",
    "Sales of long-lived assets and naïve hedging strategies are discussed in Note 5.",
    "The Company files its 10-K for FY2018 with the Commission.",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,577", ["1577"]),
        ("$1,577.00", ["1577"]),
        ("(8.70)%", ["8.7"]),
        ("10-K 10-k", ["10k", "10k"]),
        ("FY2018", ["fiscal", "2018"]),
        ("FY18", ["fiscal", "2018"]),
        ("fiscal 2018", ["fiscal", "2018"]),
        ("PP&E", ["ppe"]),
        ("Q3", ["q3"]),
        ("naïve Café", ["naiv", "cafe"]),
        ("the Company's hedges", ["compani", "hedg"]),
        ("long-term", ["long", "term"]),
        ("Income³ 78² 9ᵃ", ["incom", "78", "9"]),
        ("of the and", []),
        ("", []),
        ("\x00\ud800", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_question_loses_only_the_words_that_address_the_answerer() -> None:
    assert query_tokens("Please calculate the net sales, rounding your answer") == ["net", "sale"]
    assert query_tokens("Please explain") == ["pleas", "explain"], "a question of such words alone keeps them"


def _dot(a: SparseVector, b: SparseVector, idf: dict[int, float]) -> float:
    right = dict(zip(b.indices, b.values, strict=True))
    return sum(w * right.get(i, 0.0) * idf.get(i, 0.0) for i, w in zip(a.indices, a.values, strict=True))


@pytest.mark.parametrize(
    "question", ["capital expenditures 1,577", "interest rate", "FY2018 10-K", "a dividend per share"]
)
def test_parity_with_rank_bm25(question: str) -> None:
    """With its mean length and the engine's IDF put in, BM25Okapi gives the same scores to 1e-9."""
    terms = [tokens(text) for text in CORPUS]
    okapi = BM25Okapi(terms, k1=1.2, b=0.75)
    seen = {term: sum(term in doc for doc in terms) for doc in terms for term in doc}
    okapi.idf = {t: math.log((len(CORPUS) - n + 0.5) / (n + 0.5) + 1) for t, n in seen.items()}
    encoder = Bm25Encoder(k1=1.2, b=0.75, average_length=okapi.avgdl)
    idf = {encoder.passages([t])[0].indices[0]: weight for t, weight in okapi.idf.items() if tokens(t) == [t]}
    idf |= {i: okapi.idf[t] for t in okapi.idf for i in encoder.queries([t])[0].indices}
    [query] = encoder.queries([question])
    ours = [_dot(query, passage, idf) for passage in encoder.passages(CORPUS)]
    assert ours == pytest.approx(okapi.get_scores(query_tokens(question)).tolist(), abs=1e-9)
    assert max(ours) > 0


def test_the_name_tells_the_parameters() -> None:
    assert Bm25Encoder(k1=0.9, b=0.4).name != Bm25Encoder().name


@given(st.text())
def test_vectors_are_valid_for_any_text(text: str) -> None:
    for vector in (*Bm25Encoder().passages([text]), *Bm25Encoder().queries([text])):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= i < 2**32 for i in vector.indices)
        assert all(math.isfinite(v) and v > 0 for v in vector.values)
