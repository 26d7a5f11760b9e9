"""Eight statements about architectures, each with what would refute it and what the seeds say.

The margins are round numbers, set before the statements were first checked. A seed is one sample: intervals are 95 %
percentile bootstraps over seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from evals.reports.tables import cell
from evals.statistics import Estimate, bootstrap, wilson
from evals.study.arms import ARMS, LEGS
from evals.study.controls import SETTINGS
from evals.study.measure import DEPTHS, NOISE, Seed, overall
from evals.study.queries import GLOBAL

_WIDE = 0.25
"""A margin of accuracy that is wide."""
_NOTHING = 0.05
"""Of accuracy: one query of a class."""
_ALIKE = 0.02
"""Of a mean grade."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure, and whether it is as the statement says."""

    what: str
    found: Estimate
    wanted: str
    holds: bool
    reported: str = ""
    """What the study that the statements come from found on its corpus."""


@dataclass(frozen=True, slots=True)
class Statement:
    number: int
    text: str
    checks: Sequence[Check]
    remark: str = ""

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


def statements(seeds: Sequence[Seed]) -> list[Statement]:
    return [make(seeds) for make in _ALL]


def of(seeds: Sequence[Seed], value: Callable[[Seed], float]) -> Estimate:
    return bootstrap([value(seed) for seed in seeds])


def share(arm: str, kind: str) -> Callable[[Seed], float]:
    """Of right answers: of an arm, a leg, or an arm under noise."""
    return lambda seed: seed.right[arm][kind]


def scanned(depth: int) -> Callable[[Seed], float]:
    return lambda seed: seed.depth[depth]


def _gained(arm: str, kind: str, other: str = "naive") -> Callable[[Seed], float]:
    return lambda seed: seed.right[arm][kind] - seed.right[other][kind]


def _gained_in_all(arm: str) -> Callable[[Seed], float]:
    return lambda seed: overall(seed.right[arm]) - overall(seed.right["naive"])


def _grade(kind: str) -> Callable[[Seed], float]:
    return lambda seed: mean(seed.grades[kind])


def _above(what: str, found: Estimate, limit: float, reported: str = "") -> Check:
    return Check(what, found, f"> {limit:g}", found.low is not None and found.low > limit, reported)


def _below(what: str, found: Estimate, limit: float, reported: str = "") -> Check:
    return Check(what, found, f"< {limit:g}", found.high is not None and found.high < limit, reported)


def _within(what: str, found: Estimate, margin: float, reported: str = "") -> Check:
    inside = found.low is not None and found.high is not None and -margin <= found.low and found.high <= margin
    return Check(what, found, f"within ±{margin:g}", inside, reported)


def _exactly(what: str, found: int, wanted: int, total: int, reported: str = "") -> Check:
    estimate = Estimate(total, found / total, *wilson(found, total)) if total else Estimate(0)
    return Check(f"{what}: {found} of {total}", estimate, f"{wanted}", found == wanted, reported)


def _best_leg(seeds: Sequence[Seed], kind: str) -> str:
    """By its mean over the seeds: one leg for all of them, so that no seed picks its luckiest."""
    return max(LEGS, key=lambda leg: mean(seed.right[leg][kind] for seed in seeds))


def _fusion(seeds: Sequence[Seed]) -> Statement:
    best = _best_leg(seeds, "partial")
    partial, on = of(seeds, _gained("hybrid", "partial", best)), of(seeds, _gained("hybrid", "on", "dense"))
    return Statement(
        1,
        "Fusion is set intersection: it wins where only the conjunction tells, and loses to a leg that knows",
        [
            _above(f"`partial`: hybrid less its best leg ({best})", partial, _WIDE, "+0.65"),
            _below("`on`: hybrid less the informed leg", on, 0.0, "-0.20"),
        ],
    )


def _controls(seeds: Sequence[Seed]) -> Statement:
    same, asked = sum(s.controls.same for s in seeds), sum(s.controls.asked for s in seeds)
    one = _gain([s.controls.one_prototype for s in seeds])
    gains = [_gain([s.controls.blurred[i] for s in seeds]) for i in range(len(SETTINGS))]
    better, worse = (sum((g.low or 0) > 0 for g in gains), sum((g.high or 0) < 0 for g in gains))
    means = [gain.mean or 0.0 for gain in gains]
    return Statement(
        2,
        "Fusing identical rankings returns that ranking: views gain by different content, not by different noise",
        [
            _exactly("three identical legs fuse to their ranking", same, asked, asked),
            _below("one prototype for all windows: fused less the best leg", one, _NOTHING, "-0.05"),
            _exactly("settings of blur in which fusion surely beats its best leg", better, 0, len(gains), "0 of 23"),
        ],
        f"Over the {len(gains)} settings of independent blur fusion gains {mean(means):+.3f} on average, from "
        f"{min(means):+.2f} to {max(means):+.2f}: it surely beats its best leg in {better} and surely loses to it in "
        f"{worse}. Independent errors of about one size average out in a sum of reciprocal ranks as in any other mean; "
        "where one leg is much the sharpest, the blunter two outvote it. What is structural is the first control: legs "
        "that agree gain nothing.",
    )


def _gain(rows: Sequence[Mapping[str, float]]) -> Estimate:
    """Of fusion over the leg that is best over all rows; a row is a seed's."""
    best = max((leg for leg in rows[0] if leg != "fused"), key=lambda leg: mean(row[leg] for row in rows))
    return bootstrap([row["fused"] - row[best] for row in rows])


def _correction(seeds: Sequence[Seed]) -> Statement:
    unreached, lucky = sum(s.unreached for s in seeds), sum(s.unreached_right for s in seeds)
    return Statement(
        3,
        "Correction moves rank, it cannot create reach",
        [
            _exactly("crag's right answers whose company was not among what it graded", lucky, 0, unreached),
            _above("`noisy`: crag less naive", of(seeds, _gained("crag", "noisy")), _NOTHING, "+0.40"),
            _below("`bridge`: crag", of(seeds, share("crag", "bridge")), _NOTHING, "0.000"),
            _below("`bridge`: MaxSim over every passage", of(seeds, share("full MaxSim", "bridge")), _NOTHING, "0.000"),
        ],
    )


def _grader(seeds: Sequence[Seed]) -> Statement:
    bridge, on = _grade("bridge"), _grade("on")
    blind = of(seeds, lambda seed: bridge(seed) - on(seed))
    right = [mean(map(share("naive", kind), seeds)) for kind in ("bridge", "on")]
    return Statement(
        4,
        "The grader cannot warn on bridge: relevance is not correctness",
        [
            _above("AUC of the grade against naive's being right", of(seeds, lambda seed: seed.auc), 0.5, "0.829"),
            _within("mean grade on `bridge` less that on `on`", blind, _ALIKE, "+0.004"),
        ],
        f"Mean MaxSim of naive's first passage: {mean(map(bridge, seeds)):.3f} on `bridge`, where {right[0]:.3f} of "
        f"naive's answers are right, and {mean(map(on, seeds)):.3f} on `on`, where {right[1]:.3f} are.",
    )


def _hyde(seeds: Sequence[Seed]) -> Statement:
    same, asked = sum(s.identical for s in seeds), sum(s.asked for s in seeds)
    return Statement(
        5,
        "HyDE with α = 0 is naive, byte for byte; it repairs off and leaves noisy as it was",
        [
            _exactly("replies that are byte for byte naive's", same, asked, asked, "all"),
            _above("`off`: hyde less naive", of(seeds, _gained("hyde", "off")), _WIDE, "+0.70"),
            _within("`noisy`: hyde less naive", of(seeds, _gained("hyde", "noisy")), _NOTHING, "0.000"),
        ],
    )


def _second_hop(seeds: Sequence[Seed]) -> Statement:
    others = {name: of(seeds, share(name, "bridge")) for name in ARMS if name != "agentic"}
    best = max(others, key=lambda name: others[name].mean or 0.0)
    hops = of(seeds, lambda seed: seed.hops["on"])
    told = [cell(of(seeds, share("told", kind))) for kind in ("on", "bridge")]
    return Statement(
        6,
        "Only the second hop reaches bridge, and it damages on",
        [
            _above("`bridge`: agentic", of(seeds, share("agentic", "bridge")), 0.5, "0.850"),
            _below(f"`bridge`: the best other arm ({best})", others[best], _NOTHING, "0.000"),
            _below("`on`: agentic less naive", of(seeds, _gained("agentic", "on")), -_WIDE, "-0.85"),
        ],
        f"On `on` it hops {hops.mean:.2f} times [{hops.low:.2f}, {hops.high:.2f}]; reported 2.7. Nothing in what was "
        "found says that a hop is wanted, but the question may: where bridge queries say `the counterparty that` and "
        f"the arm hops only then, it is right in {told[0]} on `on` and {told[1]} on `bridge`.",
    )


def _aggregation(seeds: Sequence[Seed]) -> Statement:
    flat = {name: of(seeds, share(name, GLOBAL)) for name in ARMS if name != "graph"}
    best = max(flat, key=lambda name: flat[name].mean or 0.0)
    lead = of(seeds, _gained("graph", GLOBAL, best))
    return Statement(
        7,
        "Aggregation is precomputed or paid for: graph counts, a flat scan must read everything",
        [
            _above("global: graph", of(seeds, share("graph", GLOBAL)), 0.95, "1.000"),
            _above(f"global: graph less the best other arm ({best})", lead, _WIDE, "+0.31 (corrective)"),
            *(
                _below(f"flat scan counted by hand, depth {depth}", of(seeds, scanned(depth)), 0.95, reported)
                for depth, reported in zip(DEPTHS[:-1], _REPORTED_DEPTHS, strict=True)
            ),
            _above(f"flat scan, depth {DEPTHS[-1]} of 25", of(seeds, scanned(DEPTHS[-1])), 0.95, "1.000"),
        ],
        f"The best other arm is right in {cell(flat[best])}. A first version of this check wanted every other arm "
        "below 0.2, a guess among five; the original's own 0.688 contradicts that, and an arm that wanders off from "
        "the nearest sector guesses among the other four.",
    )


_REPORTED_DEPTHS = ("0.000", "0.000", "0.188", "0.188", "0.312", "0.688")


def _average(seeds: Sequence[Seed]) -> Statement:
    """At the worst noise at which the whole is still surely above naive; at none, if there is no such noise."""
    levels = [f"noise {noise:g}" for noise in NOISE]
    total = [of(seeds, _gained_in_all(level)) for level in levels]
    at = max((i for i, found in enumerate(total) if (found.low or 0) > 0), default=0)
    steps = [of(seeds, _gained(after, "on", before)) for before, after in pairwise(levels)]
    rise = max(range(len(steps)), key=lambda i: steps[i].mean or 0.0)
    return Statement(
        8,
        "The average hides damage: as the corrective scorer worsens, on falls while the whole stays above naive",
        [
            _below(f"`on`: crag at {levels[at]} less naive", of(seeds, _gained(levels[at], "on")), -_NOTHING, "-0.20"),
            _above(f"all classes: crag at {levels[at]} less naive", total[at], 0.0, "+0.11"),
            _below(f"`on`: the largest step up (to {levels[rise + 1]})", steps[rise], _NOTHING, "none"),
        ],
    )


_ALL = (_fusion, _controls, _correction, _grader, _hyde, _second_hop, _aggregation, _average)
