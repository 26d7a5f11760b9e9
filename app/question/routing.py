"""Which kind of question is asked, told from its words and the filings there are, and which architectures suit it."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from app.agent.hops import points_beyond
from app.computing.formulas import asked_formula
from app.errors import Unavailable
from app.graph.asking import asked
from app.question.companies import named_companies, without_names
from app.question.decomposition import decompose
from app.types import Document, Measured

log = logging.getLogger("sextant.routing")
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
    "named": ("agentic", "crag"),
    "open": ("hybrid", "crag"),
}
"""Kind -> architectures to try, in this order, where nothing was measured.

Of a question that names somebody agentic is hybrid, with rules that compute and look up at no call.
"""
_FEWEST = 5
"""Questions of a kind below which a measurement is no reason."""
_SAME = 0.02
"""Quality that is not worth a higher price."""


Measurements: TypeAlias = Mapping[str, Sequence[Measured]]
"""By kind."""


def read_measurements(path: Path, generator: str) -> Measurements:
    """What `sextant-eval matrix --routes` wrote; empty where another generator answered then. Raises Unavailable."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["generator"] != generator:
            log.warning("measured routes are left", extra={"fields": {"file": str(path), "of": found["generator"]}})
            return {}
        kinds = found["kinds"]
        return {kind: tuple(Measured(**one) for one in kinds[kind]) for kind in get_args(Kind) if kind in kinds}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Unavailable(
            f"{path} holds no measurements of this version ({error!r}); write them with sextant-eval matrix --routes"
        ) from error


def order(kind: Kind, measured: Measurements, max_llm_calls: int | None) -> tuple[tuple[str, ...], str]:
    """Architectures to try and what chose them: measurements where two or more that the caller can pay were measured.

    First the cheapest, by LLM calls and then by ops, of those within _SAME of the best; then the others by quality.
    """
    known = [one for one in measured.get(kind, ()) if one.questions >= _FEWEST]
    if max_llm_calls is not None:
        known = [one for one in known if one.llm_calls <= max_llm_calls]
    if len(known) < 2:
        return ROUTES[kind], "rule"
    best = max(one.quality for one in known)
    first = min((one for one in known if one.quality >= best - _SAME), key=lambda one: (one.llm_calls, one.ops))
    others = sorted((one for one in known if one is not first), key=lambda one: (-one.quality, one.llm_calls, one.ops))
    return (first.arch, *(one.arch for one in others)), f"measured on {first.questions} questions of the kind"


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
