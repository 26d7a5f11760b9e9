"""Notes on passages that contradict an answer, and the many that only seem to."""

from dataclasses import replace

import pytest

from app.evidence.conflicts import contradictions
from app.types import Chunk, Citation, DocumentMeta, Hit

META = DocumentMeta("Plover 10-K 2023", "p.pdf", company="Plover", form="10-K", fiscal_year=2023, fiscal_period="FY")
TABLE = Chunk(
    "a",
    "d1",
    0,
    4,
    0,
    0,
    "Net sales 812 790\nNet income 96 103",
    "",
    "table",
    "Item 8",
    META,
    ("2023", "2022"),
    "millions",
)
PROSE = Chunk("p", "d1", 1, 5, 0, 0, "Our effective tax rate was 21.5% for the year.", "", "text", "Item 7", META)


def citation(chunk: Chunk, quote: str, answer: str) -> Citation:
    start = chunk.text.index(quote)
    return Citation(
        1, "d1", "t", "Plover", "10-K", 2023, 4, None, chunk.id, "s", quote, start, start + len(quote), (),
        (0, len(answer)), 1.0, True,
    )  # fmt: skip


def notes(answer: str, own: Chunk, quote: str, other: Chunk) -> list[str]:
    return contradictions(answer, [citation(own, quote, answer)], [Hit(own, 1, 1.0), Hit(other, 2, 0.5)])


AMENDED = replace(TABLE, id="b", document_id="d2", page=9, text="Net sales 912 790\nNet income 96 103")


def test_a_row_with_another_figure_is_told() -> None:
    assert notes("Net sales: 812", TABLE, "Net sales 812 790", AMENDED) == [
        "passages disagree: [1] gives 812, passage 2 gives 912 (Plover 10-K 2023, page 9)"
    ]


def test_a_sentence_with_another_figure_is_told() -> None:
    other = replace(PROSE, id="q", text="Our effective tax rate was 23.1% for the year.")
    assert notes("The rate was 21.5%.", PROSE, PROSE.text, other) == [
        "passages disagree: [1] gives 21.5, passage 2 gives 23.1 (Plover 10-K 2023, page 5)"
    ]


@pytest.mark.parametrize(
    "other",
    [
        replace(TABLE, id="b"),
        replace(AMENDED, columns=("2022", "2021")),
        replace(AMENDED, unit="thousands"),
        replace(AMENDED, section="Note 17. Segments"),
        replace(AMENDED, columns=()),
        replace(AMENDED, meta=replace(META, company="Curlew")),
        replace(AMENDED, meta=replace(META, form="10-Q")),
        replace(AMENDED, text="Net sales of services 912 790"),
        replace(AMENDED, text="Net sales 812 700"),
    ],
)
def test_what_only_seems_to_contradict_is_not_told(other: Chunk) -> None:
    assert notes("Net sales: 812", TABLE, "Net sales 812 790", other) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(
            PROSE, id="q", text="Our effective tax rate was 23.1% for the year.", meta=replace(META, fiscal_year=2022)
        ),
        replace(PROSE, id="q", text="In 2022, our effective tax rate was 23.1% for the year."),
        replace(PROSE, id="q", text="Our statutory tax rate was 23.1% for the year."),
        replace(PROSE, id="q", text="Our effective tax rate was 21.5% for the year."),
    ],
)
def test_the_same_words_of_another_year_contradict_nothing(other: Chunk) -> None:
    assert notes("The rate was 21.5%.", PROSE, PROSE.text, other) == []


def test_an_answer_that_gives_both_figures_needs_no_note() -> None:
    assert notes("Net sales: 812, elsewhere 912", TABLE, "Net sales 812 790", AMENDED) == []


def test_a_year_before_a_comma_is_a_year() -> None:
    own = replace(PROSE, text="Staff was 146 at the end of 2023, as planned.")
    other = replace(PROSE, id="q", text="Staff was 171 at the end of 2024, as planned.")
    assert notes("Staff was 146.", own, own.text, other) == []
