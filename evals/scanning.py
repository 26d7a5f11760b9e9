"""How deep a flat scan must read until it holds every member of a count, and what counting in the graph reads instead.

A perfect reader of the first k passages can count right as soon as each member's evidence page is among them, and never
before; so the depth at which the last one comes is the least that flat retrieval needs, whatever reads the passages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.architectures.graph import Graph
from app.retrieval.fusion import rrf
from app.tools import Ports, Tools
from app.types import Filter, Hit, Leg
from app.types import Question as Asked
from evals.questions import Question, stem
from evals.reports.tables import fraction, markdown

DEPTHS = (5, 10, 25, 50, 100, 200, 400, 800, 1600)


@dataclass(frozen=True, slots=True)
class Scanned:
    """One counting question."""

    id: str
    members: int
    """Evidence pages."""
    depths: Mapping[str, Sequence[int]]
    """By system, the rank (first is 1) at which each member's page is met, in order; those never met are left out."""
    cited: int
    """Members' filings that the graph's answer cites."""
    graph_ops: int
    graph_llm_calls: int

    def share(self, system: str, depth: int) -> float:
        """Of the members, those met by then."""
        return sum(rank <= depth for rank in self.depths[system]) / self.members


@dataclass(frozen=True, slots=True)
class Scan:
    chunks: int
    """In the index: what a scan to the end reads."""
    questions: Sequence[Scanned]


async def run(ports: Ports, questions: Sequence[Question]) -> Scan:
    """Of the questions with two evidence pages or more."""
    chunks = await ports.store.count(Filter())
    asked = [question for question in questions if len(question.pages) > 1]
    return Scan(chunks, [await _scanned(ports, question, chunks) for question in asked])


async def _scanned(ports: Ports, question: Question, chunks: int) -> Scanned:
    [query] = await ports.embedder.queries([question.text])
    legs = [Leg("dense", query, chunks), Leg("bm25", ports.sparse["bm25"].queries([question.text])[0], chunks)]
    found = dict(zip(("naive", "bm25"), (r.hits for r in await ports.store.search(legs, Filter())), strict=True))
    orders: dict[str, Sequence[Hit]] = {"naive": found["naive"], "hybrid": rrf(found)}
    tools = Tools(ports)
    answer = await Graph().answer(Asked(question.text, k=max(10, len(question.pages))), tools)
    cited = {stem(citation.source) for citation in answer.citations}
    return Scanned(
        id=question.id,
        members=len(question.pages),
        depths={name: met(hits, question.pages) for name, hits in orders.items()},
        cited=len({document for document, _ in question.pages if document in cited}),
        graph_ops=tools.cost.ops,
        graph_llm_calls=tools.cost.llm_calls,
    )


def met(hits: Sequence[Hit], pages: frozenset[tuple[str, int]]) -> list[int]:
    """Ranks at which a page is met for the first time."""
    first: dict[tuple[str, int], int] = {}
    for rank, hit in enumerate(hits, start=1):
        first.setdefault((stem(hit.chunk.meta.source), hit.chunk.page), rank)
    return sorted(first[page] for page in pages if page in first)


def table(scan: Scan) -> str:
    """A row per depth: of the members and of the questions, how much each system has met; then the graph's row."""
    asked, rows = scan.questions, []
    for depth in (*(d for d in DEPTHS if d < scan.chunks), scan.chunks):
        row = [f"{depth:,}"]
        for system in ("naive", "hybrid"):
            shares = [each.share(system, depth) for each in asked]
            row += [fraction(sum(shares) / len(shares)), f"{sum(share == 1 for share in shares)} of {len(asked)}"]
        rows.append(row)
    headings = ["passages read", "naive: members met", "questions complete", "hybrid: members met", "complete"]
    complete = sum(each.cited == each.members for each in asked)
    members = sum(each.cited / each.members for each in asked) / len(asked)
    ops = sum(each.graph_ops for each in asked) / len(asked)
    calls = sum(each.graph_llm_calls for each in asked)
    return markdown(headings, rows) + (
        f"\ngraph: members cited {fraction(members)}, {complete} of {len(asked)} questions complete, {ops:,.0f} ops a "
        f"question, {calls} LLM calls\n"
    )
