"""The arms: classes that serve requests, each with its options, over the ports of a collection."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.architectures import Architecture
from app.architectures.agentic import Agentic
from app.architectures.crag import Crag
from app.architectures.graph import Graph
from app.architectures.hybrid import Hybrid
from app.architectures.hyde import Hyde
from app.architectures.naive import Naive
from app.tools import Tools
from app.types import Answer, Hit, Question
from evals.study.ports import Collection, Drafter, Grader, Writer, ports_over
from evals.study.queries import GLOBAL, Query

ALL_PASSAGES = 100
K = 10
"""Passages an arm answers from; what votes on a sector."""
ARMS: Mapping[str, Architecture] = {
    "naive": Naive(),
    "hybrid": Hybrid(splade_weight=1),
    "hyde": Hyde(n=4),
    "crag": Crag(pool=20, upper=0.5, lower=0.0, strips=0, rewrite=False),
    "graph": Graph(),
    "agentic": Agentic(follow="direction", max_hops=3, question_signal=False, least_residual=0.42),
}
LEGS: Mapping[str, Architecture] = {
    "dense": Naive(),
    "sparse": Hybrid(dense_weight=0, splade_weight=0),
    "late": Hybrid(dense_weight=0, bm25_weight=0, splade_weight=1),
}
"""Each leg by itself."""
FULL_MAXSIM = Crag(pool=ALL_PASSAGES, upper=1.0, lower=0.0, strips=0, rewrite=False)
"""MaxSim over every passage there is."""
TOLD = Agentic(follow="direction", max_hops=3, least_residual=0.42)
"""Hops only where the question says that it is about somebody whom it does not name."""
EAGER = Crag(pool=20, upper=1.0, lower=0.0, strips=0, rewrite=False)
"""The grader fires on every query."""


@dataclass(frozen=True, slots=True)
class Reply:
    passages: tuple[Hit, ...]
    answered: str | None
    """A company, or a sector; None of a refusal."""
    ops: int
    calls: int
    searches: int
    graded: frozenset[str]
    """Ids of the chunks that the reranker read."""


class Bench:
    """One collection, as every arm sees it."""

    def __init__(self, collection: Collection, draft: Drafter | None, *, noise: float = 0.0, seed: int = 0) -> None:
        self.ports = ports_over(collection, Grader(collection.bags, noise, seed), Writer(draft))

    async def ask(self, arm: Architecture, query: Query) -> Reply:
        tools = Tools(self.ports)
        answer = await arm.answer(Question(query.text, k=K), tools)
        said = None if answer.abstained else _sector(arm, answer) if query.kind == GLOBAL else _company(answer)
        cost = tools.cost
        graded = {g["chunk"] for step in tools.trace if "verdict" in step.name for g in step.detail["grades"]}
        searches = sum(step.name == "search" for step in tools.trace)
        return Reply(answer.passages, said, cost.ops, cost.llm_calls, searches, frozenset(graded))


def _company(answer: Answer) -> str | None:
    """Who owns the passage that is ranked first."""
    return answer.passages[0].chunk.meta.company


def _sector(arm: Architecture, answer: Answer) -> str | None:
    """Of graph, the first sector of its count; of the others, the one of most passages, the better ranked of equals."""
    if isinstance(arm, Graph):
        return answer.passages[0].chunk.meta.sector
    return voted(answer.passages)


def voted(hits: Sequence[Hit]) -> str | None:
    counts = Counter(hit.chunk.meta.sector for hit in hits)
    return counts.most_common(1)[0][0] if counts else None
