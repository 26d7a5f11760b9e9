"""One thing changed at a time: an option of an architecture, or the index it reads."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.asking import Asking
from evals.errors import UsageError
from evals.questions import Question
from evals.reports.tables import fraction, markdown
from evals.retrieval import values_of
from evals.statistics import Estimate, Paired, bootstrap, holm, paired
from evals.subjects import System

MEASURES = ("document hit@5", "page hit@1", "page hit@10", "page nDCG@10")


@dataclass(frozen=True, slots=True)
class Effect:
    """A variant against the base on one measure, by the questions both have."""

    variant: str
    measure: str
    base: float
    changed: float
    difference: Estimate
    """Of the paired differences."""
    paired: Paired
    p_adjusted: float
    """Holm, over all variants and measures."""


def variants(base: System, defaults: Mapping[str, Any], switches: str) -> list[System]:
    """`query_filters,c=20,c=5` -> one system each. A name alone turns a true or false option over.

    `defaults` are the architecture's options. Raises UsageError.
    """
    now = {**defaults, **base.options}
    found = []
    for switch in filter(None, (part.strip() for part in switches.split(","))):
        name, equals, text = switch.partition("=")
        if name not in now:
            raise UsageError(f"{base.arch} has no option {name!r}; it has {', '.join(now)}")
        if not equals and not isinstance(now[name], bool):
            raise UsageError(f"{name} is {now[name]!r}, not true or false; write {name}=value")
        value = _value(text) if equals else not now[name]
        found.append(System(f"{name}={json.dumps(value)}", base.arch, {**base.options, name: value}))
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def run(
    base: tuple[Asking, System], others: Sequence[tuple[str, Asking, System]], questions: Sequence[Question]
) -> list[Effect]:
    """The base and each named other system, over its own index, on the same questions."""
    found: list[tuple[str, str, Mapping[str, float], Mapping[str, float]]] = []
    for measure in MEASURES:
        before = await values_of(*base, questions, measure)
        found += [(n, measure, before, await values_of(asking, s, questions, measure)) for n, asking, s in others]
    return effects(found)


def effects(found: Sequence[tuple[str, str, Mapping[str, float], Mapping[str, float]]]) -> list[Effect]:
    """Of (variant, measure, the base's values and the variant's, by question id)."""
    pairs = [paired(after, before) for _, _, before, after in found]
    adjusted = holm([pair.p for pair in pairs])
    return [
        _effect(name, measure, before, after, pair, p)
        for (name, measure, before, after), pair, p in zip(found, pairs, adjusted, strict=True)
    ]


def _effect(
    name: str, measure: str, before: Mapping[str, float], after: Mapping[str, float], pair: Paired, p: float
) -> Effect:
    both = [key for key in after if key in before]
    base, changed = (sum(values[key] for key in both) / max(len(both), 1) for values in (before, after))
    return Effect(name, measure, base, changed, bootstrap([after[key] - before[key] for key in both]), pair, p)


def table(base: str, effects: Sequence[Effect]) -> str:
    headings = [f"change to {base}", "measure", "n", "before", "after", "difference", "95 %", "better", "worse"]
    rows = [
        [
            effect.variant,
            effect.measure,
            str(effect.paired.n),
            fraction(effect.base),
            fraction(effect.changed),
            f"{effect.paired.difference:+.3f}",
            f"{effect.difference.low or 0:+.3f} to {effect.difference.high or 0:+.3f}",
            str(effect.paired.wins),
            str(effect.paired.damages),
            f"{effect.p_adjusted:.3f}",
        ]
        for effect in sorted(effects, key=lambda e: [o.variant for o in effects].index(e.variant))
    ]
    return markdown([*headings, "p (Holm)"], rows)
