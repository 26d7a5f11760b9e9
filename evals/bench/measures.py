"""A figure of the bench with the rounds it was measured in, and how much of everything is measured."""

import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

Say: TypeAlias = Callable[[str], None]
"""Shows a line of progress."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure; its value is the median of its rounds, their range is the noise."""

    name: str
    """`section/subject/what`, as in `service/hybrid/over parts`."""
    unit: str
    rounds: tuple[float, ...]
    better: Literal["lower", "higher"] = "lower"
    aim: float | None = None

    @property
    def value(self) -> float:
        return statistics.median(self.rounds)

    @property
    def met(self) -> bool | None:
        """Whether the aim is reached; None where there is none."""
        if self.aim is None:
            return None
        return self.value <= self.aim if self.better == "lower" else self.value >= self.aim


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured; the defaults take some ten minutes on two cores."""

    rounds: int = 3
    questions: int = 12
    seconds: float = 4.0
    """Per round and number of clients, and of idling."""
    clients: tuple[int, ...] = (1, 2, 8, 32, 64)
    starts: int = 3
    chunks: tuple[int, ...] = (1_000, 10_000, 100_000)
    searches: int = 30
    """Per round and size."""
    files: int = 4
    """Specimen filings in the small corpus."""
    copies: tuple[int, ...] = (1, 2, 4)
    workers: tuple[int, ...] = (1, 2)
    ingestions: int = 2


DEFAULT = Scale()
FULL = replace(DEFAULT, chunks=(1_000, 10_000, 100_000, 500_000))
QUICK = Scale(
    questions=4,
    seconds=1.0,
    starts=1,
    chunks=(1_000, 10_000),
    searches=10,
    files=2,
    copies=(1, 2),
    workers=(1,),
    ingestions=1,
)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed: nearest rank. Raises ValueError of none."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def cpu_s(pid: int) -> float | None:
    """Processor seconds that a process has used, its own and the kernel's for it; None off Linux."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return None
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int | None = None, *, peak: bool = False) -> float | None:
    """Resident memory of a process (default: this one), or the most it has had so far; None off Linux.

    Mapped files that were touched are included.
    """
    status, field = Path(f"/proc/{pid or 'self'}/status"), "VmHWM" if peak else "VmRSS"
    if not status.exists():
        return None
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith(field))
