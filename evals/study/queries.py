"""Five classes of queries whose answer a passage carries, one for each mechanism, and the topics to count."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

import numpy as np

from app.types import FloatArray
from evals.study.corpus import KAPPA, Company, Global, Local
from evals.study.geometry import WINDOWS, Bag, bag, tilted, unit

EACH = 20
"""Queries of a class, unless fewer are asked for."""
CLASSES: Mapping[str, str] = {
    "on": "a distinctive company: the dense view names it outright, the other two name four more",
    "partial": "a conjunctive company: every view names rivals too, only the conjunction is one company",
    "off": "as `on`, but every view is tilted off the filings' manifold, along g",
    "noisy": "each view is dragged towards a different wrong company",
    "bridge": "as `on`, but the answer is the company that the described company's filing names",
}
GLOBAL = "global"
_VOICE = 0.2
"""Share of the axis g in a query that is worded as filings are: their mean."""
_TILT = float(np.sin(np.deg2rad(87)))
_DRAG = np.deg2rad(55)
"""Between a dragged view and the theme of the right company."""


@dataclass(frozen=True)
class Query:
    kind: str
    text: str
    gold: str
    """A company; of the global regime, a sector."""


def ask_local(local: Local, rng: np.random.Generator, each: int = EACH) -> tuple[list[Query], dict[str, Bag]]:
    """`each` of every class, and what the queries' texts mean."""
    distinctive = [i for i, company in enumerate(local.companies) if company.distinctive]
    conjunctive = [i for i, company in enumerate(local.companies) if not company.distinctive]
    pools: Mapping[str, Sequence[int]] = {
        "on": distinctive,
        "partial": conjunctive,
        "off": distinctive,
        "noisy": distinctive,
        "bridge": list(local.names),
    }
    queries: list[Query] = []
    bags: dict[str, Bag] = {}
    for kind in CLASSES:
        described = islice(cycle(rng.permutation(list(pools[kind])).tolist()), each)
        for n, i in enumerate(described):
            text = f"Who is described in {kind} {n}?"
            gold = local.companies[local.names[i] if kind == "bridge" else i].name
            queries.append(Query(kind, text, gold))
            bags[text] = _MAKE[kind](local, i, rng)
    return queries, bags


def _exact(company: Company, rng: np.random.Generator) -> Bag:
    return bag(company.themes, dict.fromkeys(WINDOWS, KAPPA), rng)


def _plain(local: Local, i: int, rng: np.random.Generator) -> Bag:
    return tilted(_exact(local.companies[i], rng), local.axis, _VOICE)


def _off(local: Local, i: int, rng: np.random.Generator) -> Bag:
    return tilted(_flattened(_exact(local.companies[i], rng), local), -local.axis, _TILT)


def _flattened(original: Bag, local: Local) -> Bag:
    """Without what its tokens have of the axis by chance, so that the tilt is the angle."""
    return Bag(unit(original.tokens - np.outer(original.tokens @ local.axis, local.axis).astype(np.float32)))


def _noisy(local: Local, i: int, rng: np.random.Generator) -> Bag:
    """Towards three companies that share no theme with the right one or each other.

    The dense view's is of either family, so that the right company is outranked by four passages or by twenty.
    """
    right, distinctive = local.companies[i], bool(rng.integers(2))
    wrong: list[Company] = []
    while len(wrong) < len(WINDOWS):
        drawn = local.companies[int(rng.integers(len(local.companies)))]
        fits = drawn.distinctive == (distinctive and not wrong)
        if fits and not any(_shared(drawn, other) for other in (right, *wrong)):
            wrong.append(drawn)
    cos, sin = np.float32(np.cos(_DRAG)), np.float32(np.sin(_DRAG))
    themes = {
        name: unit(cos * right.themes[name] + sin * other.themes[name])
        for name, other in zip(WINDOWS, wrong, strict=True)
    }
    return tilted(bag(themes, dict.fromkeys(WINDOWS, KAPPA), rng), local.axis, _VOICE)


def _shared(a: Company, b: Company) -> int:
    return sum(x == y for x, y in zip(a.slots, b.slots, strict=True))


_MAKE: Mapping[str, Callable[[Local, int, np.random.Generator], Bag]] = {
    "on": _plain,
    "partial": _plain,
    "off": _off,
    "noisy": _noisy,
    "bridge": _plain,
}


def ask_global(world: Global, rng: np.random.Generator) -> tuple[list[Query], dict[str, Bag]]:
    queries, bags = [], {}
    for topic in world.topics:
        text = f"Which sector discusses {topic.theme.label} the most?"
        queries.append(Query(GLOBAL, text, topic.gold))
        bags[text] = bag(dict.fromkeys(WINDOWS, topic.direction), dict.fromkeys(WINDOWS, KAPPA), rng)
    return queries, bags


@dataclass
class Drafts:
    """Writes what a passage of the company nearest to the query would be; never told the answer.

    It drops the query's part along g, as a writer of filings' prose would, and sometimes takes the company most easily
    confused with the nearest one for it. It sees the dense view alone, which is what its draft is searched by.
    """

    local: Local
    rival_rate: float
    """Bernoulli, for each draft: a rate, because a rival mixed in by degrees would win from one degree on."""
    seed: int
    _written: Counter[str] = field(default_factory=Counter)

    def __call__(self, question: str) -> str:
        """The text of the draft, whose bag is put into the collection."""
        self._written[question] += 1
        text = f"Draft {self._written[question]} for: {question}"
        rng = np.random.default_rng([self.seed, *text.encode()])
        collection, axis = self.local.collection, self.local.axis
        query = collection.bags[question].windows["dense"]
        centres = _centres(self.local)
        nearest = int((centres @ (query - float(query @ axis) * axis)).argmax())
        if rng.random() < self.rival_rate:
            likeness = centres @ centres[nearest]
            likeness[nearest] = -1
            nearest = int(likeness.argmax())
        company = self.local.companies[nearest]
        collection.bags[text] = tilted(_exact(company, rng), axis, company.voice)
        return text


def _centres(local: Local) -> FloatArray:
    """Mean dense window of each company's passages, without its part along g."""
    found = []
    for company in local.companies:
        own = [c for c in local.collection.chunks if c.meta.company == company.name]
        found.append(np.mean([local.collection.bags[c.text].windows["dense"] for c in own], axis=0))
    centres = np.stack(found).astype(np.float32)
    return unit(centres - np.outer(centres @ local.axis, local.axis).astype(np.float32))
