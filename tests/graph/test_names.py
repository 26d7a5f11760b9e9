"""Names: one key for one entity, two for two people of one name, and merges that no record remembers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.graph.names import (
    Merge,
    canonical,
    company_aliases,
    company_key,
    is_lei,
    merges,
    normalised,
    person_key,
    spans_of_words,
    stated_lei,
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


LEI = "5493001KJTIIGC8Y1R12"


@pytest.mark.parametrize(
    ("text", "lei"),
    [
        (f"Legal Entity Identifier (LEI): {LEI}", LEI),
        (f"{LEI} is our LEI", LEI),
        (f"LEI {LEI[:-1]}3", None),
        (f"Account {LEI}", None),
        (f"LEI of a fund 00000000000000000098, of ours:\nLEI {LEI}", "00000000000000000098"),
    ],
)
def test_an_lei_counts_where_it_is_called_one_and_its_check_digits_are_right(text: str, lei: str | None) -> None:
    assert stated_lei(text) == lei


@given(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=18, max_size=18), st.integers(1, 96))
def test_two_check_digits_fit_any_eighteen_characters_and_no_others_do(code: str, off: int) -> None:
    value = int("".join(str(int(c, 36)) for c in code)) * 100
    digits = 98 - value % 97
    assert is_lei(f"{code}{digits:02}")
    assert not is_lei(f"{code}{(digits - 2 + off) % 97 + 2:02}")


def test_a_registry_s_number_goes_before_a_name_and_edgar_s_before_an_lei() -> None:
    assert company_key("Acme SE", None, LEI) == "company:5493001kjtiigc8y1r12"
    assert company_key("Acme SE", "0000012345", LEI) == "company:0000012345"
    edgar = entity("company:0000012345", "acme", LEI.casefold())
    own = entity("company:5493001kjtiigc8y1r12", "acme", LEI.casefold())
    assert canonical([edgar, own, entity("company:acme", "acme")])["company:5493001kjtiigc8y1r12"] == edgar.key
    assert canonical([own, entity("company:acme", "acme")]) == {"company:acme": own.key}


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
