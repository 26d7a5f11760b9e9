"""What a request has cost so far, told from its trace, and whether its limits allow more."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from app.errors import LimitExceeded
from app.types import Cost, Limits, OpKind, OpsSource, Prompt, Stage, TraceStep

_WEAKEST: tuple[OpsSource, ...] = ("bound", "reported", "counted")
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; None is unknown."""

    input: Decimal | None = None
    output: Decimal | None = None

    def of(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        """None where a price is unknown."""
        if self.input is None or self.output is None:
            return None
        return (self.input * tokens_in + self.output * tokens_out) / _MILLION


UNKNOWN = Prices()


def weakest(sources: Iterable[OpsSource]) -> OpsSource:
    """What may be said of a sum of numbers that come from these."""
    return min(sources, key=_WEAKEST.index, default="counted")


def cost_of(trace: Sequence[TraceStep], prices: Prices, seconds: float) -> Cost:
    """The sum over the steps, `seconds` after the request began; without a call it costs no money."""
    ops: Counter[OpKind] = Counter()
    calls: Counter[str] = Counter()
    stages: dict[str, float] = {}
    cached: Counter[str] = Counter()
    for step in trace:
        ops.update(step.ops)
        cached[step.name] += step.detail.get("cached", 0)
        stages[step.name] = stages.get(step.name, 0.0) + step.ms
        if step.purpose and step.llm_calls:
            calls[step.purpose] += step.llm_calls
    tokens_in, tokens_out = sum(step.input_tokens for step in trace), sum(step.output_tokens for step in trace)
    return Cost(
        ops_by_kind=dict(ops),
        ops_source=weakest(step.ops_source for step in trace),
        llm_calls_by_purpose=dict(calls),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        usd=prices.of(tokens_in, tokens_out) if calls else Decimal(0),
        latency_ms=seconds * 1000,
        stages=tuple(Stage(name, ms) for name, ms in stages.items()),
        cached=dict(+cached),
    )


def beyond(
    calls: int, trace: Sequence[TraceStep], limits: Limits, seconds: float
) -> Literal["calls_or_tokens", "time"] | None:
    """Which limit so many LLM calls more would meet, each as long as the longest so far; None where none."""
    made = [step for step in trace if step.llm_calls]
    spent = [step.input_tokens + step.output_tokens for step in made]
    if limits.max_llm_calls is not None and sum(step.llm_calls for step in made) + calls > limits.max_llm_calls:
        return "calls_or_tokens"
    taken = sum(spent) + sum(step.reserved_tokens for step in made)
    if limits.max_tokens is not None and taken + calls * max(spent, default=0) > limits.max_tokens:
        return "calls_or_tokens"
    longest = max((step.ms for step in made), default=0.0) / 1000
    return "time" if calls * longest > limits.timeout_s - seconds else None


def within_limits(prompt: Prompt, trace: Sequence[TraceStep], limits: Limits) -> Prompt:
    """The prompt, its answer cut to the tokens that are left. Raises LimitExceeded."""
    made = sum(step.llm_calls for step in trace)
    if limits.max_llm_calls is not None and made >= limits.max_llm_calls:
        raise LimitExceeded(f"the request's limit of {limits.max_llm_calls} LLM calls is reached")
    if limits.max_tokens is None:
        return prompt
    spent = sum(step.input_tokens + step.output_tokens + step.reserved_tokens for step in trace)
    need = prompt.characters // 4
    left = limits.max_tokens - spent - need
    if left < 1:
        raise LimitExceeded(
            f"the request's limit of {limits.max_tokens} tokens is reached: {spent} spent or in use, "
            f"about {need} more needed"
        )
    return prompt if left >= prompt.max_tokens else replace(prompt, max_tokens=left)
