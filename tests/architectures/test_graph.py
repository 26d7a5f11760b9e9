"""Graph: counted exactly without a model, followed from filing to filing, and silent about what is not the caller's."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest

from app.architectures.graph import Graph
from app.errors import InvalidOptions
from app.tools import Ports, Tools
from app.types import (
    Access,
    Chunk,
    ChunkVectors,
    Document,
    DocumentMeta,
    Entity,
    Limits,
    Mention,
    Page,
    Question,
    Relation,
)
from tests.fakes import STAMP, FakeStore, LetterEmbedder, QuotingGenerator, ScriptedGenerator, WordEncoder

pytestmark = pytest.mark.anyio

PUBLIC = Access()
WEATHER, TRADE, AUDIT = "Storms may flood our mills.", "Tariffs may rise.", "/s/ Penny & Dime LLP"


class World:
    """Filings of one page each, and what the graph says of them."""

    def __init__(self) -> None:
        self.store = FakeStore(STAMP)
        self.ports = Ports(self.store, LetterEmbedder(), {"bm25": WordEncoder()}, QuotingGenerator())

    async def add(self, document_id: str, company: str, sentences: Sequence[str], **known: Any) -> None:
        """The first sentences' themes and auditor as risk factors, mentions and a relation."""
        meta = DocumentMeta(f"{company} {document_id}", f"{document_id}.pdf", company=company, **known)
        text = "\n\n".join(sentences)
        chunk = Chunk(
            str(uuid5(NAMESPACE_OID, document_id)), document_id, 0, 1, 0, len(text), text, company, "text", None, meta
        )
        [dense] = await LetterEmbedder().passages([text])
        [sparse] = WordEncoder().passages([text])
        await self.store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        document = Document(document_id, "0" * 64, meta, 1, 1, ingested_at="2024-05-01T00:00:00Z")
        await self.store.put_pages(document, [Page(1, text)])
        await self.store.put_records(document_id, list(self._records(chunk, company)))
        await self.store.put_document(document)

    def _records(self, chunk: Chunk, company: str) -> Any:
        own = f"company:{company.lower()}"
        yield entity(chunk, own, company)
        for said, theme, label in ((WEATHER, "weather", "severe weather"), (TRADE, "trade", "tariffs and trade")):
            if said in chunk.text:
                yield relation(chunk, said, own, company, "risk", f"theme:{theme}", label)
                yield replace(entity(chunk, f"theme:{theme}", label, said), count=chunk.text.count(said) + 1)
        if AUDIT in chunk.text:
            yield relation(chunk, AUDIT, own, company, "auditor", "company:penny dime", "Penny & Dime LLP")


def at(chunk: Chunk, said: str) -> Mention:
    start = max(chunk.text.find(said), 0)
    return Mention(chunk.id, 1, start, start + len(said))


def entity(chunk: Chunk, key: str, name: str, said: str = "") -> Entity:
    kind: Any = key.partition(":")[0]
    return Entity(chunk.document_id, key, kind, name, (name.lower(),), (at(chunk, said or name),), 1, chunk.meta)


def relation(chunk: Chunk, said: str, own: str, company: str, predicate: str, key: str, name: str) -> Relation:
    return Relation(chunk.document_id, own, predicate, key, company, name, said, at(chunk, said), chunk.meta)


@pytest.fixture
async def world() -> World:
    made = World()
    await made.add("a-2022", "Alder", [WEATHER, AUDIT], form="10-K", fiscal_year=2022, sector="Mills")
    newest: dict[str, Any] = {"form": "10-K", "fiscal_year": 2023, "period_end": "2023-12-31", "sector": "Mills"}
    await made.add("a-2023", "Alder", [TRADE, AUDIT], **newest)
    await made.add("b-2023", "Birch", [WEATHER], **newest)
    await made.add("c-2023", "Cedar", [WEATHER, TRADE], form="10-Q", fiscal_year=2023, sector="Farms")
    await made.add("d-2023", "Dogwood", [WEATHER], form="10-K", sector="Farms", acl=("board",))
    return made


async def ask(world: World, text: str, access: Access = PUBLIC, **options: Any) -> tuple[Any, Tools]:
    tools = Tools(world.ports, access=access)
    return await Graph(**options).answer(Question(text), tools), tools


async def test_companies_are_counted_by_sector_for_as_many_ops_as_records_and_no_model(world: World) -> None:
    answer, tools = await ask(world, "Which sector has the most companies with a risk factor on severe weather?")
    assert answer.text.splitlines() == [
        "Mills comes first, with 2 companies with risk factors on severe weather; Farms 1.",
        "",
        "Mills:",
        f"- Alder: {WEATHER} [1]",
        f"- Birch: {WEATHER} [2]",
        "",
        "Farms:",
        f"- Cedar: {WEATHER} [3]",
    ]
    assert [(c.document_id, c.quote, c.verified) for c in answer.citations] == [
        ("a-2022", WEATHER, True),
        ("b-2023", WEATHER, True),
        ("c-2023", WEATHER, True),
    ]
    assert tools.cost.ops_by_kind == {"graph": 3}
    assert tools.cost.llm_calls == 0
    assert tools.trace[0].detail == {"mode": "count", "why": "asks which of many"}


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("How many companies have a risk factor on storms?", "3 companies with risk factors on severe weather."),
        ("How many filings discuss tariffs?", "2 filings of 2 companies with mentions of tariffs and trade: "),
        ("How many companies have a risk factor on weather in their latest 10-K?", "1 company with risk factors"),
        ("How many filings mention Cedar?", "1 filing of 1 company with mentions of Cedar: Cedar c-2023."),
        ("Group the companies by audit firm.", "Penny & Dime LLP: Alder."),
        ("Which form has the most companies with a risk factor on weather?", "10-K comes first, with 2 companies"),
    ],
)
async def test_counts(world: World, text: str, headline: str) -> None:
    answer, tools = await ask(world, text)
    assert answer.text.startswith(headline)
    assert tools.cost.llm_calls == 0
    assert [hit.score for hit in answer.passages] == [1 / rank for rank in range(1, len(answer.passages) + 1)]


async def test_a_count_holds_only_what_the_caller_may_see(world: World) -> None:
    text = "How many companies have a risk factor on severe weather?"
    for groups, count in ((("public",), 3), (("public", "board"), 4), (("board",), 1)):
        answer, tools = await ask(world, text, Access(groups=groups))
        assert answer.text.startswith(f"{count} compan")
        assert ("Dogwood" in answer.text) is ("board" in groups)
        assert tools.cost.ops_by_kind == {"graph": count}


async def test_a_deleted_filing_no_longer_counts_and_the_others_do_as_before(world: World) -> None:
    text = "Which sector has the most companies with a risk factor on severe weather?"
    await world.store.delete_records("b-2023")
    await world.store.delete_document("b-2023")
    answer, _ = await ask(world, text)
    assert answer.text.startswith("Farms and Mills come first, with 1 company with risk factors on severe weather.")
    assert "Birch" not in answer.text


async def test_members_beyond_k_are_named_but_not_quoted(world: World) -> None:
    tools = Tools(world.ports)
    answer = await Graph().answer(Question("How many companies have a risk factor on weather?", k=2), tools)
    assert [c.document_id for c in answer.citations] == ["a-2022", "b-2023"]
    assert answer.text.endswith("Also: Cedar.")


async def test_without_a_graph_auto_answers_from_passages_and_count_says_what_to_do(world: World) -> None:
    for document in ("a-2022", "a-2023", "b-2023", "c-2023"):
        await world.store.delete_records(document)
    answer, tools = await ask(world, "How many companies have a risk factor on severe weather?")
    assert answer.passages
    assert [step.detail["why"] for step in tools.trace if step.name == "mode"] == [
        "asks how many",
        "the graph knows nothing of what is to be counted",
    ]
    assert tools.trace[-1].name == "pages"
    with pytest.raises(InvalidOptions, match="sextant-ingest graph"):
        await ask(world, "How many companies have a risk factor on severe weather?", mode="count")


async def test_a_relation_leads_to_a_filing_that_the_question_does_not_name(world: World) -> None:
    """Elm's own filing is unlike the question; that it supplies Alder is said in Alder's."""
    await world.add("e-2023", "Elm", ["Zzz zzz zzz."])
    [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, "a-2023"))], Question("").where)
    supplied = relation(chunk, TRADE, "company:alder", "Alder", "supplier", "company:elm", "Elm")
    await world.store.put_records("a-2023", [entity(chunk, "company:alder", "Alder"), supplied])
    by_hops = {}
    for hops in (1, 2):
        answer, _ = await ask(world, "What do Alder's suppliers fear?", hops=hops, seeds=1, weight=100.0)
        by_hops[hops] = [hit.chunk.document_id for hit in answer.passages if "graph" in hit.legs]
    assert "e-2023" not in by_hops[1]
    assert "e-2023" in by_hops[2]


async def test_global_takes_a_passage_of_each_helpful_community_and_says_how_helpful(world: World) -> None:
    for document in ("a-2022", "a-2023", "b-2023", "c-2023"):
        [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, document))], Question("").where)
        pair = [entity(chunk, f"company:{document} {name}", name) for name in ("mill", "dam")]
        await world.store.put_records(document, pair)
    answer, tools = await ask(world, "What are the main themes of the filings?", communities=3)
    [mapped] = [step.detail["communities"] for step in tools.trace if step.name == "map"]
    assert [each["label"] for each in mapped] == ["dam, mill"] * 3
    assert mapped[0]["helpfulness"] == 100
    assert all(0 < each["helpfulness"] <= 100 for each in mapped)
    assert answer.citations
    assert tools.cost.ops_by_kind["graph"] == 8
    _, again = await ask(world, "What are the main themes of the filings?", communities=3)
    assert again.cost.ops_by_kind["graph"] == 4, "one op for each community that was kept"


async def test_drift_walks_from_what_the_most_helpful_communities_name(world: World) -> None:
    [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, "b-2023"))], Question("").where)
    await world.store.put_records(
        "b-2023", [entity(chunk, "company:mill", "mill"), entity(chunk, "company:dam", "dam")]
    )
    _, tools = await ask(world, "storms flood mills", mode="drift")
    [walk] = [step.detail for step in tools.trace if step.name == "walk"]
    assert {"company:dam", "company:mill"} <= set(walk["named"])


@pytest.mark.parametrize("mode", ["global", "drift"])
async def test_without_a_graph_the_modes_that_need_one_say_what_to_do(world: World, mode: str) -> None:
    for document in ("a-2022", "a-2023", "b-2023", "c-2023"):
        await world.store.delete_records(document)
    with pytest.raises(InvalidOptions, match="sextant-ingest graph"):
        await ask(world, "What do the filings say?", mode=mode)


async def test_filings_are_named_first_and_their_quotes_are_verified(world: World) -> None:
    answer, _ = await ask(world, "Which filings discuss tariffs?")
    assert answer.text.splitlines() == [
        "2 filings of 2 companies with mentions of tariffs and trade: Alder a-2023 and Cedar c-2023.",
        f"- Alder: {TRADE} [1]",
        f"- Cedar: {TRADE} [2]",
    ]
    assert [c.verified for c in answer.citations] == [True, True]


async def speaks_of(world: World, document: str, phrase: str) -> None:
    [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, document))], Question("").where)
    await world.store.put_records(document, [replace(entity(chunk, f"concept:{phrase}", phrase, WEATHER), count=4)])


async def test_a_theme_in_other_words_is_counted_by_meaning_and_the_trace_says_so(world: World) -> None:
    """The fake embedder takes words of the same letters for the same: `jazz` is `zajz`, and not `zoo`."""
    await speaks_of(world, "a-2022", "zajz")
    await speaks_of(world, "b-2023", "zoo")
    answer, tools = await ask(world, "How many companies discuss jazz?")
    first, *_, member = answer.text.splitlines()
    assert first == "1 company with mentions of what is near to 'jazz' in meaning (zajz)."
    assert member == f"- Alder: {WEATHER} [1]"
    [meaning] = [step for step in tools.trace if step.name == "meaning"]
    assert meaning.detail["taken"] == ["zajz"]
    assert meaning.detail["nearest"][0] == {"phrase": "zajz", "cosine": 1.0}
    assert tools.cost.ops_by_kind["dense"] == 4, "two phrases and the two themes of the third filing"
    assert tools.cost.llm_calls == 0


@pytest.mark.parametrize("asked", ["zoo", "what nobody of all these companies ever wrote", "jazz 2023"])
async def test_what_nothing_means_is_not_counted(world: World, asked: str) -> None:
    await speaks_of(world, "a-2022", "zajz")
    text = f"How many companies discuss {asked}?"
    answer, tools = await ask(world, text)
    assert [step.detail["mode"] for step in tools.trace if step.name == "mode"] == ["count", "local"]
    assert "near to" not in answer.text
    strict, _ = await ask(world, text, mode="count")
    assert (strict.abstained, strict.reason) == (True, "off_corpus")


async def test_a_phrase_of_a_filing_that_the_caller_may_not_see_is_near_to_nothing(world: World) -> None:
    access = Access(groups=("board",))
    [chunk] = await world.store.chunks(
        [str(uuid5(NAMESPACE_OID, "d-2023"))], replace(Question("").where, access=access)
    )
    await world.store.put_records("d-2023", [replace(entity(chunk, "concept:zajz", "zajz", WEATHER), count=4)])
    text = "How many companies discuss jazz?"
    answer, _ = await ask(world, text, access, mode="count")
    assert "Dogwood" in answer.text
    answer, tools = await ask(world, text, mode="count")
    assert answer.reason == "off_corpus"
    assert "zajz" not in str(tools.trace)


async def paired_off(world: World) -> None:
    """Two entities that stand together, and a third far from them, in each filing."""
    for document in ("a-2022", "a-2023", "b-2023", "c-2023", "d-2023"):
        where = replace(Question("").where, access=Access(groups=("public", "board")))
        [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, document))], where)
        known = [entity(chunk, f"company:{document} {name}", name) for name in ("mills", "Storms")]
        await world.store.put_records(document, known)


async def test_a_community_is_summed_up_in_sentences_of_pages_that_the_caller_sees(world: World) -> None:
    await paired_off(world)
    _, tools = await ask(world, "What are the main themes of the filings?")
    [mapped] = [step.detail["communities"] for step in tools.trace if step.name == "map"]
    told = [sentence for each in mapped for sentence in each["summary"]]
    assert {(s["document_id"], s["text"]) for s in told} == {(d, WEATHER) for d in ("a-2022", "b-2023", "c-2023")}
    assert all((s["start"], s["end"]) == (0, len(WEATHER)) for s in told)
    assert not any(each["by_model"] for each in mapped)
    _, board = await ask(world, "What are the main themes of the filings?", Access(groups=("board",)))
    [mapped] = [step.detail["communities"] for step in board.trace if step.name == "map"]
    assert {s["document_id"] for each in mapped for s in each["summary"]} == {"d-2023"}


def graded_by_model(helpfulness: int, quote: str) -> str:
    return json.dumps({"helpfulness": helpfulness, "points": [{"passage": 1, "quote": quote}]})


async def test_a_model_grades_communities_and_what_it_calls_useless_is_dropped(world: World) -> None:
    await paired_off(world)
    first = [graded_by_model(0, WEATHER), graded_by_model(20, "Nobody said so."), graded_by_model(90, TRADE)]
    generator = ScriptedGenerator([*first, graded_by_model(40, WEATHER), "Storms may come [1]."])
    world.ports = replace(world.ports, generator=generator)
    answer, tools = await ask(world, "What are the main themes of the filings?", summaries="llm")
    [mapped] = [step.detail["communities"] for step in tools.trace if step.name == "map"]
    assert [each["helpfulness"] for each in mapped] == [90, 40, 20]
    assert all(each["by_model"] for each in mapped)
    assert mapped[2]["summary"] == [], "what no page says is no sentence of it"
    assert tools.cost.llm_calls_by_purpose == {"map": 4, "answer": 1}
    assert answer.citations


@pytest.mark.parametrize(("most", "maps"), [(1, 0), (3, 2)])
async def test_the_request_s_limit_leaves_a_call_to_answer(world: World, most: int, maps: int) -> None:
    await paired_off(world)
    generator = ScriptedGenerator([*[graded_by_model(50, WEATHER)] * maps, "Storms may come [1]."])
    world.ports = replace(world.ports, generator=generator)
    tools = Tools(world.ports, limits=Limits(max_llm_calls=most))
    answer = await Graph(summaries="llm").answer(Question("What are the main themes of the filings?"), tools)
    assert tools.cost.llm_calls_by_purpose == ({"map": maps} if maps else {}) | {"answer": 1}
    [mapped] = [step.detail["communities"] for step in tools.trace if step.name == "map"]
    assert [each["by_model"] for each in mapped] == [True] * maps + [False] * (4 - maps)
    assert answer.passages


async def test_a_merge_is_told_and_gone_with_the_record_that_supports_it(world: World) -> None:
    [chunk] = await world.store.chunks([str(uuid5(NAMESPACE_OID, "a-2022"))], Question("").where)
    numbered = replace(entity(chunk, "company:0000012345", "Alder"), aliases=("alder", "alder mills"))
    await world.store.put_records("a-2022", [numbered])
    _, tools = await ask(world, "What does Alder fear?")
    [told] = [step.detail["merges"] for step in tools.trace if step.name == "merged"]
    assert told == [{"kept": "company:0000012345", "merged": "company:alder", "alias": "alder"}]
    await world.store.delete_records("a-2022")
    _, without = await ask(world, "What does Alder fear?")
    assert not any(step.name == "merged" for step in without.trace)
