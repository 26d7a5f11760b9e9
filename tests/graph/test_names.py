"""Names: one key for one entity, two for two people of one name, and merges that no record remembers."""

import pytest

from app.graph.names import (
    Merge,
    canonical,
    company_aliases,
    company_key,
    merges,
    normalised,
    person_key,
    spans_of_words,
)
from app.types import DocumentMeta, Entity, Mention


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Acme Corporation", "acme"),
        ("ACME CORP.", "acme"),
        ("The Acme Company, Inc.", "acme"),
        ("Ünion Größe GmbH", "union grosse"),
        ("Alder & Birch Co. LLP", "alder birch"),
        ("Alder and Birch LLP", "alder birch"),
        ("Société Générale S.A.", "societe generale"),
        ("AT&T Inc.", "at&t"),
        ("Acme’s", "acme"),
        ("Inc.", "inc"),
    ],
)
def test_legal_forms_case_and_accents_do_not_part_a_name(name: str, plain: str) -> None:
    assert normalised(name) == plain


def test_a_registry_number_is_the_key_where_it_is_known() -> None:
    assert company_key("Acme Corp", "0000012345") == "company:0000012345"
    assert company_key("Acme Corp") == company_key("ACME, Inc.") == "company:acme"


def test_two_people_of_one_name_in_two_companies_stay_two() -> None:
    alder, birch = company_key("Alder Inc"), company_key("Birch Inc")
    assert person_key("Jane Q. Doe", alder) == person_key("Jane Doe, Jr.", alder) == "person:alder/jane doe"
    assert person_key("Jane Doe", alder) != person_key("Jane Doe", birch)


def test_a_company_is_found_by_its_telling_first_word_its_ticker_and_a_defined_short_name() -> None:
    found = company_aliases("Larchwood Paper Holdings, Inc.", "LRCH", ["Larch Paper"])
    assert found == ("larchwood paper holdings", "larch paper", "lrch", "larchwood")
    assert company_aliases("General Paper Corp") == ("general paper",)


def test_the_runs_of_a_question_hold_the_names_in_it() -> None:
    runs = spans_of_words("Does Alder & Birch LLP audit AT&T?")
    assert {"alder birch llp", "at&t", "audit at&t", "does"} <= set(runs)


def entity(key: str, *aliases: str, document: str = "d") -> Entity:
    meta = DocumentMeta("T", "s.pdf")
    return Entity(document, key, "company", key, aliases, (Mention("c", 1, 0, 1),), 1, meta)


def test_a_name_is_merged_into_the_one_company_that_has_it_as_an_alias() -> None:
    known, spoken = entity("company:0000012345", "acme paper", "acme"), entity("company:acme", "acme")
    assert merges([known, spoken]) == (Merge("company:0000012345", "company:acme", "acme"),)
    assert canonical([known, spoken]) == {"company:acme": "company:0000012345"}


def test_a_merge_is_undone_by_leaving_out_the_record_that_supports_it() -> None:
    spoken = entity("company:acme", "acme")
    assert merges([spoken]) == ()


def test_a_name_of_two_companies_is_merged_into_neither() -> None:
    two = [entity("company:acme paper", "acme paper", "acme"), entity("company:acme steel", "acme steel", "acme")]
    assert merges([*two, entity("company:acme", "acme")]) == ()
