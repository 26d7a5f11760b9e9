"""A run that stops and goes on, and the keys by which it knows what it has."""

from dataclasses import replace
from pathlib import Path

import pytest

from evals.asking import Outcome, ReplyLog
from evals.subjects import parse_system
from tests.evals import world

pytestmark = pytest.mark.anyio
NAIVE, HYBRID = parse_system("naive"), parse_system("hybrid")
TWO = world.QUESTIONS[:2]


async def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    async with world.asking(log=ReplyLog.open(path)) as asking:
        await asking.ask(asking.missing([NAIVE], TWO[:1]))
        first = asking.outcomes(NAIVE, TWO)
    with path.open("a", encoding="utf-8") as lines:
        lines.write('{"key": "cut sho')
    async with world.asking(log=ReplyLog.open(path)) as asking:
        assert asking.outcomes(NAIVE, TWO) == first
        assert [(s.name, q.id) for s, q in asking.missing([NAIVE, HYBRID], TWO)] == [
            ("hybrid", TWO[0].id),
            ("naive", TWO[1].id),
            ("hybrid", TWO[1].id),
        ]
        await asking.ask(asking.missing([NAIVE], TWO))
    assert len(path.read_text("utf-8").splitlines()) == 2


async def test_whatever_changes_the_reply_changes_the_key() -> None:
    async with world.asking() as asking:
        keys = {
            asking.key(NAIVE, TWO[0]),
            asking.key(HYBRID, TWO[0]),
            asking.key(parse_system("hybrid:c=20"), TWO[0]),
            asking.key(NAIVE, TWO[1]),
            asking.key(NAIVE, replace(TWO[0], filters={"form": "10-K"})),
            replace(asking, k=5).key(NAIVE, TWO[0]),
            replace(asking, version="other").key(NAIVE, TWO[0]),
        }
        assert len(keys) == 7
        assert asking.key(NAIVE, replace(TWO[0], answer="other")) in keys


@pytest.mark.parametrize(("status", "lines"), [(0, 0), (429, 0), (503, 0), (504, 0), (422, 1), (404, 1)])
def test_a_passing_problem_is_scored_but_not_kept(status: int, lines: int, tmp_path: Path) -> None:
    log = ReplyLog.open(tmp_path / "replies.jsonl")
    log.put("key", Outcome("naive", "q", None, {"status": status, "error_code": "x"}, 1.0))
    assert list(log.found) == ["key"]
    assert len(ReplyLog.open(tmp_path / "replies.jsonl").found) == lines


async def test_a_problem_is_kept_with_its_code() -> None:
    async with world.asking() as asking:
        nowhere = parse_system("naive:nonsense=1")
        await asking.ask(asking.missing([nowhere], TWO[:1]))
        [outcome] = asking.outcomes(nowhere, TWO).values()
    assert outcome.problem is not None
    assert (outcome.reply, outcome.problem["error_code"]) == (None, "invalid_options")
    assert outcome.cost["ops"] == 0
