"""The order in which a walk meets passages."""

from app.graph.neighbourhood import Neighbourhood, how_telling, ranked
from app.types import Chunk, DocumentMeta, Hit

META = DocumentMeta("T", "t.pdf")


def hits(*ids: str) -> list[Hit]:
    return [Hit(Chunk(i, i, 0, 1, 0, 1, "x", "", "text", None, META), n, 1.0) for n, i in enumerate(ids, start=1)]


def test_a_passage_that_names_it_more_often_comes_first() -> None:
    near = Neighbourhood({"mill": 1.0}, {"mill": {"a": 1, "b": 3}}, [])
    assert ranked(near, [], {}, 0.5) == ["b", "a"]


def test_what_is_related_is_met_after_what_is_named() -> None:
    near = Neighbourhood({"mill": 1.0}, {"mill": {"a": 1}, "dam": {"b": 1}, "weir": {"c": 1}}, [("mill", "dam")])
    assert ranked(near, [], {}, 0.5) == ["a", "b", "c"]


def test_without_names_it_begins_at_the_similar_and_the_least_similar_seeds_nothing() -> None:
    """From `a` to `dam` to `c`; `b`, the least similar, is no start, so its neighbour `d` is not met."""
    near = Neighbourhood({}, {"dam": {"a": 1, "c": 1}, "weir": {"b": 1, "d": 1}}, [])
    order = ranked(near, hits("a", "b"), {"a": 0.9, "b": 0.1}, 0.5)
    assert order[:2] == ["a", "c"]
    assert ranked(near, hits("b"), {"b": 0.4}, 0.5)[:2] == ["b", "d"], "one alone is the most similar"


def test_an_entity_that_is_everywhere_joins_nothing_unless_it_is_named() -> None:
    everywhere = {f"p{n}": 1 for n in range(61)}
    near = Neighbourhood({"mill": 1.0}, {"mill": {"p0": 1}, "state": everywhere}, [])
    assert ranked(near, [], {}, 0.5) == ["p0"]
    named = Neighbourhood({"mill": 1.0, "state": how_telling(61)}, near.passages, [])
    assert len(ranked(named, [], {}, 0.5)) == 61


def test_a_name_tells_the_less_the_more_passages_it_stands_in() -> None:
    assert [how_telling(n) for n in (1, 3, 7)] == [1, 1 / 2, 1 / 3]
