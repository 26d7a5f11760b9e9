"""Payloads round trip; filters take the engine's REST form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.adapters.payload import instant, pack_words, page_id, record_id, rest_filter, settled, unpack_words
from app.errors import InvalidFilter
from app.filters import parse_filters
from app.types import Access, Filter, Word

COORDINATE = st.floats(-100, 5000, width=32)
WORDS = st.builds(
    Word,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.tuples(COORDINATE, COORDINATE, COORDINATE, COORDINATE),
)


@given(st.lists(WORDS).map(tuple))
def test_words_come_back_from_their_packing(words: tuple[Word, ...]) -> None:
    assert unpack_words(pack_words(words)) == words


def test_a_page_of_words_packs_to_a_fraction_of_its_json() -> None:
    words = [Word(6 * i, 6 * i + 5, (72.0 + i % 12 * 40, 700.0 - i // 12 * 14, 105.0, 712.0)) for i in range(500)]
    assert len(pack_words(words)) < 5_000


def test_identifiers_are_the_same_in_every_process() -> None:
    assert page_id("acme-1", 1) == "8cd60593-0016-5786-8547-4a3b386dba02"
    assert len({page_id("acme-1", 1), page_id("acme-1", 11), page_id("acme-11", 1), record_id("acme-1")}) == 4


def test_a_filter_in_rest_form() -> None:
    conditions = parse_filters({"form": {"$nin": ["8-K"]}, "fiscal_year": {"$gte": 2020}, "filed": "2020-02-01"})
    first_of_february = {"gte": "2020-02-01T00:00:00.000000+00:00", "lte": "2020-02-01T00:00:00.000000+00:00"}
    assert rest_filter(Filter(conditions, Access("t1", ("a", "b")))) == {
        "must": [
            {"key": "tenant", "match": {"value": "t1"}},
            {"key": "acl", "match": {"any": ["a", "b"]}},
            {"key": "fiscal_year", "range": {"gte": 2020}},
            {"should": [{"key": "filed", "range": first_of_february}]},
        ],
        "must_not": [{"key": "form", "match": {"any": ["8-K"]}}],
    }


def test_instants_are_compared_in_utc() -> None:
    assert instant("filed", "2023-06-30") == instant("filed", "2023-06-30T02:00:00+02:00")
    with pytest.raises(InvalidFilter, match="2023-06-31"):
        instant("filed", "2023-06-31")


@pytest.mark.parametrize(
    ("scores", "limit", "asked", "certain"),
    [
        ([3.0, 2.0, 1.0], 2, 4, True),  # the engine had no more
        ([3.0, 2.0, 1.0], 2, 3, True),  # what lies beyond is worse than the second
        ([3.0, 2.0, 2.0], 2, 3, False),  # a third may tie with the second
        ([], 2, 3, True),
    ],
)
def test_results_are_settled_when_no_tie_reaches_beyond_them(
    scores: list[float], limit: int, asked: int, certain: bool
) -> None:
    assert settled(scores, limit, asked) is certain
