"""What a run is going to cost, foretold from the questions already asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from evals.asking import Asking
from evals.matrix import Bill, bill
from evals.questions import Question
from evals.reports.tables import markdown
from evals.subjects import System

_PILOT = 2
"""Questions that every system is asked first; their replies count like any other."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of the questions still to be asked of one system."""

    system: str
    questions: int
    calls: float
    tokens: float
    usd: float | None
    """None where prices are unknown."""
    seconds: float


async def pilot(asking: Asking, systems: Sequence[System], questions: Sequence[Question]) -> list[Forecast]:
    """Asks the first questions, unless they are known, and foretells the rest from all that is known."""
    await asking.ask(asking.missing(systems, questions[:_PILOT]), "pilot")
    return [_forecast(asking, system, questions) for system in systems]


def _forecast(asking: Asking, system: System, questions: Sequence[Question]) -> Forecast:
    known = asking.outcomes(system, questions)
    left = len(questions) - len(known)
    spent: Bill = bill(list(known.values()))
    share = left / max(spent.n, 1)
    return Forecast(
        system=system.name,
        questions=left,
        calls=sum(spent.calls) * share,
        tokens=(spent.input_tokens + spent.output_tokens) * share,
        usd=None if spent.usd is None else spent.usd * share,
        seconds=sum(o.wall_ms for o in known.values()) / 1000 * share / asking.parallel,
    )


def table(forecasts: Sequence[Forecast]) -> str:
    rows = [
        [f.system, str(f.questions), f"{f.calls:.0f}", f"{f.tokens:.0f}", _usd(f.usd), f"{f.seconds:.0f}"]
        for f in forecasts
    ]
    return markdown(["still to ask", "questions", "LLM calls", "tokens", "US$", "seconds"], rows)


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def exceeded(forecasts: Sequence[Forecast], max_calls: int | None, max_usd: float | None) -> str | None:
    """Why the rest may not be asked, or None."""
    calls = sum(f.calls for f in forecasts)
    if max_calls is not None and calls > max_calls:
        return f"about {calls:.0f} LLM calls to come, more than --max-calls {max_calls}"
    if max_usd is None:
        return None
    prices = [f.usd for f in forecasts]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return "--max-usd is set but prices are unknown (USD_PER_MILLION_INPUT_TOKENS, USD_PER_MILLION_OUTPUT_TOKENS)"
    return f"about US$ {sum(known):.2f} to come, more than --max-usd {max_usd:g}" if sum(known) > max_usd else None
