"""Parts of an answer joined, their markers and spans still true."""

from uuid import NAMESPACE_OID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from app.agent.findings import Finding, joined, merged
from app.answering import abstain
from app.types import Answer, Chunk, Citation, Hit
from tests.fakes import META


def hits(*names: str) -> tuple[Hit, ...]:
    return tuple(
        Hit(Chunk(str(uuid5(NAMESPACE_OID, name)), "a", 0, 1, 0, 1, name, "", "text", None, META), rank, 1.0)
        for rank, name in enumerate(names, start=1)
    )


def finding(about: str, text: str, passages: tuple[Hit, ...], marker: int) -> Finding:
    sentence = text.partition(" [")[0]
    hit = passages[marker - 1]
    cited = Citation(
        marker, "a", "A", None, None, None, 1, None, hit.chunk.id, "a.pdf", "q", 0, 1, (), (0, len(sentence)), 1.0, True
    )
    return Finding(about, Answer(text, (cited,), passages))


def test_two_parts() -> None:
    both = [finding("A", "One is so [2].", hits("x", "y"), 2), finding("B", "Two is so [1].", hits("z", "x"), 1)]
    answer = joined(both, k=3)
    assert answer.text == "A:\nOne is so [3].\nB:\nTwo is so [2]."
    assert [hit.chunk.text for hit in answer.passages] == ["x", "z", "y"]
    assert [hit.rank for hit in answer.passages] == [1, 2, 3]
    assert [(c.marker, answer.text[slice(*c.answer_span)]) for c in answer.citations] == [
        (3, "One is so"),
        (2, "Two is so"),
    ]


def test_a_part_without_an_answer_is_named() -> None:
    answer = joined([finding("A", "One [1].", hits("x"), 1), Finding("B", abstain("not_supported", hits("y")))], k=2)
    assert answer.text == "A:\nOne [1]."
    assert [note.partition(":")[0] for note in answer.notes] == ["not answered for B"]


def test_no_part_with_an_answer() -> None:
    answer = joined([Finding("A", abstain("limit", hits("x"))), Finding("B", abstain("no_passages", ()))], k=2)
    assert answer.reason == "limit"
    assert len(answer.passages) == 1


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True), max_size=4), st.integers(1, 12))
def test_merging_keeps_each_passage_once_in_turn_and_the_cited_always(several: list[list[str]], k: int) -> None:
    lists = [hits(*names) for names in several]
    everything = {hit.chunk.id for found in lists for hit in found}
    cited = {found[-1].chunk.id for found in lists if found}
    kept = merged(lists, k, cited)
    ids = [hit.chunk.id for hit in kept]
    assert len(ids) == len(set(ids)) == min(max(k, len(cited)), len(everything))
    assert cited <= set(ids)
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))
    assert [hit.score for hit in kept] == [1 / rank for rank in range(1, len(kept) + 1)], "lists' scores do not compare"
