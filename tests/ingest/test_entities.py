"""What is found in a filing's text: names, relations, risks, each where it stands."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from app.types import Chunk, DocumentMeta, Entity, Page, Relation
from ingest.extraction.entities import extract, risk_factors
from ingest.extraction.phrases import concepts
from ingest.extraction.relations import stated, subsidiaries

META = DocumentMeta("Alder Mills 10-K", "alder.pdf", company="Alder Mills, Inc.", ticker="ALDR", cik="0000012345")
BUSINESS = (
    "Alder Mills grinds grain in Toledo. Our competitors include Birch Flour Corp, Cedar Foods, Inc. and Dogwood LLC. "
    "Birch Flour Corp accounted for 14% of our revenue. In May we acquired Elm Bakeries, Inc. (“Elm”) for $12 million. "
    "Elm bakes bread in Ohio. First Harbor Bank, N.A. acts as administrative agent of our loan."
)
RISKS = (
    "Hail could ruin the harvest.\nA storm or a drought would leave us without wheat for months, and we have no other "
    "source of it nearby.\n\nOur people are hard to replace.\nWe compete for skilled workers with larger firms in the "
    "city, and attrition was high last year.\n"
)
SIGNED = (
    "SIGNATURES\n\n/s/ Jane Q. Doe\nJane Q. Doe\nPresident and Chief Executive Officer\n\n"
    "/s/ Penny & Dime LLP\nToledo, Ohio\n"
)


def filing(meta: DocumentMeta, *parts: tuple[str, str]) -> tuple[list[Page], list[Chunk]]:
    """A page and a chunk for each (section, text)."""
    pages = [Page(n, text) for n, (_, text) in enumerate(parts, start=1)]
    chunks = [
        Chunk(f"c{n}", "alder-1", n, n + 1, 0, len(text), text, "", "text", section, meta)
        for n, (section, text) in enumerate(parts)
    ]
    return pages, chunks


@pytest.fixture(scope="module")
def records() -> Sequence[Entity | Relation]:
    pages, chunks = filing(META, ("Item 1. Business", BUSINESS), ("Item 1A. Risk Factors", RISKS), ("Item 15", SIGNED))
    return extract("alder-1", META, pages, chunks)


def related(records: Sequence[Entity | Relation], predicate: str) -> set[tuple[str, str, str | None]]:
    found = [r for r in records if isinstance(r, Relation) and r.predicate == predicate]
    return {(r.subject, r.object, r.detail) for r in found}


def test_relations_are_typed_where_the_text_types_them(records: Sequence[Entity | Relation]) -> None:
    own = "company:0000012345"
    assert related(records, "competitor") == {
        (own, "company:birch flour", None),
        (own, "company:cedar foods", None),
        (own, "company:dogwood", None),
    }
    assert related(records, "customer") == {(own, "company:birch flour", "14%")}
    assert related(records, "acquisition") == {(own, "company:elm bakeries", None)}
    assert related(records, "lender") == {(own, "company:first harbor bank", "administrative agent")}
    assert related(records, "officer") == {("person:0000012345/jane doe", own, "President and Chief Executive Officer")}
    assert related(records, "auditor") == {(own, "company:penny dime", None)}


def test_a_risk_factor_leads_to_its_themes_and_is_quoted_by_its_heading(records: Sequence[Entity | Relation]) -> None:
    risks = {(key, detail) for _, key, detail in related(records, "risk")}
    assert ("theme:weather", "Hail could ruin the harvest.") in risks
    assert ("theme:talent", "Our people are hard to replace.") in risks
    assert {detail for key, detail in risks if key == "theme:weather"} == {"Hail could ruin the harvest."}


def test_every_mention_is_a_slice_of_its_page_and_chunk(records: Sequence[Entity | Relation]) -> None:
    texts = [BUSINESS, RISKS, SIGNED]
    for record in records:
        for mention in record.mentions if isinstance(record, Entity) else (record.mention,):
            assert mention.chunk_id == f"c{mention.page - 1}"
            assert 0 <= mention.start < mention.end <= len(texts[mention.page - 1])
    elm = next(r for r in records if isinstance(r, Entity) and r.key == "company:elm bakeries")
    assert [BUSINESS[m.start : m.end] for m in elm.mentions] == ["Elm Bakeries, Inc."]


def test_the_registrant_goes_by_its_number_its_name_and_its_ticker(records: Sequence[Entity | Relation]) -> None:
    own = next(r for r in records if isinstance(r, Entity) and r.key == "company:0000012345")
    assert own.name == "Alder Mills, Inc."
    assert own.aliases == ("alder mills", "aldr", "alder")


def test_a_registrant_without_a_cik_goes_by_the_lei_that_its_filing_states() -> None:
    meta = DocumentMeta("Cedar AR", "cedar.pdf", company="Cedar Foods SE")
    cover = "Cedar Foods SE\nAnnual report\nLEI: 5493001KJTIIGC8Y1R12"
    pages, chunks = filing(meta, ("Cover", cover), ("Item 15", SIGNED))
    found = extract("cedar-1", meta, pages, chunks)
    own = next(r for r in found if isinstance(r, Entity) and r.type == "company")
    assert (own.key, own.aliases[-1]) == ("company:5493001kjtiigc8y1r12", "5493001kjtiigc8y1r12")
    assert ("person:5493001kjtiigc8y1r12/jane doe", own.key) in {(s, o) for s, o, _ in related(found, "officer")}


def test_both_ends_of_every_relation_are_entities_even_where_the_registrant_is_nowhere_named() -> None:
    meta = DocumentMeta("Unsaid 10-K", "unsaid.pdf", company="Unsaid Holdings plc")
    pages, chunks = filing(meta, ("Item 1. Business", BUSINESS), ("Item 1A. Risk Factors", RISKS), ("Item 15", SIGNED))
    found = extract("unsaid-1", meta, pages, chunks)
    ends = {end for r in found if isinstance(r, Relation) for end in (r.subject, r.object)}
    assert "company:unsaid" in ends or "company:unsaid holdings" in ends
    assert ends <= {r.key for r in found if isinstance(r, Entity)}


def test_two_people_of_one_name_in_two_companies_are_two(records: Sequence[Entity | Relation]) -> None:
    other = DocumentMeta("Birch 10-K", "birch.pdf", company="Birch Flour Corp")
    pages, chunks = filing(other, ("Item 15", SIGNED))
    theirs = extract("birch-1", other, pages, chunks)
    keys = {r.subject for r in (*records, *theirs) if isinstance(r, Relation) and r.predicate == "officer"}
    assert keys == {"person:0000012345/jane doe", "person:birch flour/jane doe"}


def test_the_same_text_gives_the_same_records(records: Sequence[Entity | Relation]) -> None:
    pages, chunks = filing(META, ("Item 1. Business", BUSINESS), ("Item 1A. Risk Factors", RISKS), ("Item 15", SIGNED))
    assert extract("alder-1", META, pages, chunks) == records


def test_neither_does_their_order_hang_on_the_process() -> None:
    """Sets of strings are ordered by a seed that each process draws."""
    said = "Hail, courts, tariffs, hackers, taxes."
    code = f"from app.graph.themes import themes_of_factor; print(list(themes_of_factor('', {said!r})))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1


def test_boilerplate_is_no_company() -> None:
    text = (
        "The Company files with the Securities and Exchange Commission under the Exchange Act. Reports of the Board of "
        "Directors and the Registrant are on the Internet at no charge, and the company may change them."
    )
    pages, chunks = filing(META, ("Item 1. Business", text))
    assert [r for r in extract("alder-1", META, pages, chunks) if isinstance(r, Entity) and r.type == "company"] == []


@pytest.mark.parametrize(
    ("text", "predicate", "name", "detail"),
    [
        ("Elm Oils Ltd, a wholly owned subsidiary of ours, grew.", "subsidiary", "Elm Oils Ltd", None),
        ("The report of Penny & Dime LLP is on page 3.", "auditor", "Penny & Dime LLP", None),
        ("Flour is supplied by Fir Milling LLC.", "supplier", "Fir Milling LLC", None),
        ("Fir Milling LLC filed a complaint against us.", "litigant", "Fir Milling LLC", None),
        ("Our reportable segments are Bread and Cakes.", "segment", "Cakes", None),
        ("We signed an agreement with Gorse Farms Inc.", "partner", "Gorse Farms Inc.", None),
        ("John A. Roe, 52, Chief Financial Officer", "officer", "John A. Roe", "Chief Financial Officer"),
    ],
)
def test_rules(text: str, predicate: str, name: str, detail: str | None) -> None:
    found = [(s.predicate, s.name, s.detail) for s in stated(text)]
    assert (predicate, name, detail) in found


def test_an_exhibit_lists_subsidiaries_line_by_line_and_prose_does_not() -> None:
    exhibit = "EXHIBIT 21\nSUBSIDIARIES OF THE REGISTRANT\nElm Bakeries, Inc. Ohio\nFir Milling LLC Delaware\n"
    assert [s.name for s in subsidiaries(exhibit)] == ["Elm Bakeries, Inc", "Fir Milling LLC"]
    assert list(subsidiaries("Elm Bakeries, Inc. Ohio\n")) == []


def test_risk_factors_begin_after_a_blank_line_or_with_a_heading_in_title_case() -> None:
    titled = "We Face Many Competitors\nThey are larger than we are, have more money, and have been here for longer.\n"
    both = f"{RISKS}\n{titled}"
    found = [both[start:heading] for start, heading, _ in risk_factors(both, 0, len(both))]
    assert found == ["Hail could ruin the harvest.", "Our people are hard to replace.", "We Face Many Competitors"]


def test_key_phrases_are_those_that_come_again_and_mean_something() -> None:
    text = (
        "The wheat harvest was late. A wheat harvest is work. No wheat harvest, no bread. In the wheat harvest we sing."
    )
    _, chunks = filing(META, ("Item 1. Business", text))
    [(phrase, mentions)] = concepts(chunks)
    assert phrase == "wheat harvest"
    assert [text[m.start : m.end] for m in mentions] == ["wheat harvest"] * 4
