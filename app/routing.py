"""Which kind of question is asked, told from its words and the filings there are, and which architectures suit it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.decomposition import decompose
from app.formulas import asked_formula
from app.graph.asking import asked
from app.hops import points_beyond
from app.reading import named_companies, without_names
from app.types import Document

Kind: TypeAlias = Literal["calculation", "count", "whole", "comparison", "bridge", "named", "open"]


@dataclass(frozen=True, slots=True)
class Route:
    kind: Kind
    why: str


ROUTES: Mapping[Kind, tuple[str, ...]] = {
    "calculation": ("agentic", "hybrid"),
    "count": ("graph", "hybrid"),
    "whole": ("graph", "hybrid"),
    "comparison": ("agentic", "hybrid"),
    "bridge": ("agentic", "hybrid"),
    "named": ("hybrid", "crag"),
    "open": ("hybrid", "crag"),
}
"""Kind -> architectures to try, in this order."""


def route(question: str, catalogue: Sequence[Document]) -> Route:
    """The first that holds: something to compute, to count, to compare, to follow; else by whether it names anybody."""
    companies = sorted(named_companies(question, catalogue))
    if companies and (formula := asked_formula(without_names(question, companies))) is not None:
        return Route("calculation", f"asks for {formula.name.lower()}")
    taken = asked(question)
    if taken.mode == "count" and not companies:
        return Route("count", taken.why)
    if parts := decompose(question, catalogue, most=20):
        return Route("comparison", f"is about {len(parts)} filings or companies")
    if points_beyond(question):
        return Route("bridge", "describes somebody instead of naming them")
    if taken.mode == "global" and not companies:
        return Route("whole", taken.why)
    if companies:
        return Route("named", f"names {', '.join(companies)}")
    return Route("open", "names no company of the index")
