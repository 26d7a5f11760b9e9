"""One option changed at a time, and what is no option."""

from typing import Any

import pytest

from evals import ablation
from evals.errors import UsageError
from evals.subjects import System, parse_system
from tests.evals import world

pytestmark = pytest.mark.anyio
DEFAULTS: dict[str, Any] = {"c": 60.0, "query_filters": True, "bm25_weight": 1.0}
BASE = parse_system("hybrid:c=30")


def test_each_switch_changes_one_option_of_the_base() -> None:
    assert ablation.variants(BASE, DEFAULTS, "query_filters, bm25_weight=0.5,c=5") == [
        System("query_filters=false", "hybrid", {"c": 30, "query_filters": False}),
        System("bm25_weight=0.5", "hybrid", {"c": 30, "bm25_weight": 0.5}),
        System("c=5", "hybrid", {"c": 5}),
    ]
    assert ablation.variants(BASE, DEFAULTS, "") == []


@pytest.mark.parametrize(("switch", "message"), [("rerank", "no option 'rerank'"), ("c", "write c=value")])
def test_what_cannot_be_switched_is_said(switch: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ablation.variants(BASE, DEFAULTS, switch)


async def test_a_change_for_the_worse_shows() -> None:
    base = parse_system("hybrid:query_filters=false")
    questions = world.QUESTIONS
    async with world.asking(k=24) as sound, world.asking(tamper=world.shuffled, k=24) as broken:
        others = [("same", sound, base), ("shuffled", broken, base)]
        effects = {(e.variant, e.measure): e for e in await ablation.run((sound, base), others, questions)}
    same, worse = effects["same", "page nDCG@10"], effects["shuffled", "page nDCG@10"]
    assert (same.paired.n, same.difference.mean, same.p_adjusted) == (24, 0, 1)
    assert worse.changed < worse.base
    assert worse.difference.high is not None
    assert worse.difference.high < 0
    assert worse.p_adjusted < 0.05
    text = ablation.table("hybrid", list(effects.values()))
    assert text.count("| shuffled") == 4
