"""The depth at which a flat scan holds every member of a count, against the count itself."""

from typing import Any

import pytest

from evals.questions import Evidence, Question
from evals.scanning import Scan, Scanned, met, run, table
from tests.architectures.test_graph import WEATHER, World
from tests.graph.test_neighbourhood import hits

pytestmark = pytest.mark.anyio

COUNT = "How many companies have a risk factor on severe weather in their latest 10-K?"


def test_a_page_is_met_at_the_rank_of_its_first_passage() -> None:
    assert met(hits("c1", "c2", "c3"), frozenset({("t", 1), ("t", 2)})) == [1], "all stand on page 1 of t.pdf"


async def test_a_count_cites_what_a_scan_must_read_to_the_end_for() -> None:
    world = World()
    newest: dict[str, Any] = {"form": "10-K", "fiscal_year": 2023, "period_end": "2023-12-31", "sector": "Mills"}
    members = ("a", "b", "c")
    for name in members:
        await world.add(name, f"Company {name}", [WEATHER, "zz " * 40], **newest)
    for n in range(9):
        await world.add(f"x{n}", f"Other {n}", [COUNT], **newest)
    evidence = tuple(Evidence(name, 1, WEATHER) for name in members)
    scan = await run(
        world.ports, [Question("q", COUNT, "global", "3", evidence=evidence), Question("r", "?", "global")]
    )
    assert scan.chunks == 12
    [scanned] = scan.questions
    assert (scanned.members, scanned.cited, scanned.graph_llm_calls) == (3, 3, 0)
    assert scanned.share("naive", 9) == 0
    assert scanned.share("naive", 12) == 1
    assert scanned.depths["naive"] == [10, 11, 12]


def test_the_table_has_a_row_for_each_depth_and_one_for_all() -> None:
    scanned = Scanned("q", 2, {"naive": [4, 30], "hybrid": [1, 2]}, 2, 7, 0)
    rows = [row for row in table(Scan(40, [scanned])).splitlines() if row.startswith("|")]
    assert [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]] == [
        ["5", ".500", "0 of 1", "1.000", "1 of 1"],
        ["10", ".500", "0 of 1", "1.000", "1 of 1"],
        ["25", ".500", "0 of 1", "1.000", "1 of 1"],
        ["40", "1.000", "1 of 1", "1.000", "1 of 1"],
    ]
    assert table(Scan(40, [scanned])).endswith("1 of 1 questions complete, 7 ops a question, 0 LLM calls\n")
