"""Communities: what is mentioned together, the same for the same records, and nothing of what is not seen."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.graph.communities import communities, helpfulness
from app.graph.overview import Overviews
from app.types import Access, Document, DocumentMeta, Entity, Filter, Mention
from tests.fakes import STAMP, FakeStore

pytestmark = pytest.mark.anyio


def entity(name: str, document: str, passages: Sequence[int], **meta: object) -> Entity:
    mentions = tuple(Mention(f"{document}/{n}", n, 0, 1) for n in passages)
    known = DocumentMeta(document, f"{document}.pdf", company=document.upper(), **meta)  # type: ignore[arg-type]
    return Entity(document, f"company:{name}", "company", name, (name,), mentions, len(mentions), known)


RIVER = [entity("mill", "a", [1, 2]), entity("dam", "a", [1, 2]), entity("weir", "a", [2])]
TOWN = [entity("bank", "b", [7, 8]), entity("shop", "b", [7]), entity("inn", "b", [8])]


def test_entities_of_the_same_passages_belong_together() -> None:
    town, river = communities([*RIVER, *TOWN], [])
    assert set(river.keys) == {"company:mill", "company:dam", "company:weir"}
    assert set(town.keys) == {"company:bank", "company:shop", "company:inn"}
    assert river.label == "dam, mill, weir"
    assert river.companies == ("A",)
    assert river.passages == {"a/1": 2, "a/2": 3}


def test_helpfulness_is_what_a_search_found_of_it() -> None:
    town, river = communities([*RIVER, *TOWN], [])
    assert helpfulness(river, {"a/1": 0.5, "b/7": 9.0}) == pytest.approx(0.5 / 2**0.5)
    assert helpfulness(town, {"a/1": 0.5}) == 0


def test_without_anything_in_common_there_are_none() -> None:
    assert communities([entity("mill", "a", [1]), entity("dam", "a", [2])], []) == ()
    assert communities([], []) == ()


placed = st.lists(st.tuples(st.sampled_from("pqrstuvw"), st.sampled_from("abc"), st.integers(1, 5)), max_size=40)


def records(places: Sequence[tuple[str, str, int]]) -> list[Entity]:
    by_key: dict[tuple[str, str], list[int]] = {}
    for name, document, page in places:
        by_key.setdefault((name, document), []).append(page)
    return [entity(name, document, sorted(set(pages))) for (name, document), pages in sorted(by_key.items())]


@settings(max_examples=60, deadline=None)
@given(placed, st.randoms())
async def test_after_a_deletion_they_are_those_of_an_index_that_never_held_the_filing(
    places: Sequence[tuple[str, str, int]], random: Random
) -> None:
    held, without = FakeStore(STAMP), FakeStore(STAMP)
    for store, documents in ((held, "abc"), (without, "ab")):
        for document in random.sample(documents, len(documents)):
            await store.put_records(document, [r for r in records(places) if r.document_id == document])
    await held.delete_records("c")
    left = await Overviews(held).of(Filter(), ())
    never = await Overviews(without).of(Filter(), ())
    assert left == never


async def test_a_filing_that_the_caller_may_not_see_changes_nothing() -> None:
    store = FakeStore(STAMP)
    await store.put_records("a", RIVER)
    secret = [entity("mill", "s", [1], acl=("board",)), entity("plot", "s", [1], acl=("board",))]
    await store.put_records("s", secret)
    overviews = Overviews(store)
    seen = await overviews.of(Filter(), ())
    assert seen.communities == communities(RIVER, [])
    board = await overviews.of(Filter(access=Access(groups=("board", "public"))), ())
    assert "company:plot" in {key for community in board.communities for key in community.keys}
    assert (await overviews.of(Filter(), ())).communities == seen.communities


async def test_they_are_kept_until_the_filings_change() -> None:
    store, one = FakeStore(STAMP), Document("a", "0" * 64, DocumentMeta("A", "a.pdf"), 1, 1, ingested_at="2024-01-01")
    await store.put_records("a", RIVER)
    overviews = Overviews(store)
    first = await overviews.of(Filter(), [one])
    assert (first.fresh, first.read) == (True, 3)
    again = await overviews.of(Filter(), [one])
    assert (again.fresh, again.read, again.communities) == (False, 1, first.communities)
    await store.put_records("b", TOWN)
    assert (await overviews.of(Filter(), [])).read == 6
