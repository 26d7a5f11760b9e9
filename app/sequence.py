"""RAG-Sequence: an answer from each passage alone, weighed by the passage and by how likely the answer is.

p(y|x) = Σ over passages z of p(z|x) · p(y|x,z), with p(z|x) the softmax of the retrieval scores and p(y|x,z) the
product of the answer's token probabilities (Lewis et al. 2020, section 2.1). This is the paper's fast decoding: an
answer counts for the passages that it was written from, since a chat endpoint tells no probability of a given text.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from app import prompts
from app.errors import InvalidOptions
from app.types import Generation, Hit

TEMPERATURE = 0.05
"""Of the softmax: the scale of cosines on which sentence-transformers' models are trained (scores times 20)."""
_MARKERS = re.compile(r"(\s*)((?:\[\d{1,3}\]\s?)*\[\d{1,3}\])")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer, and the passages that it was written from."""

    text: str
    ranks: tuple[int, ...]
    """Of the passages, first is 1."""
    probability: float
    """Its share of what the candidates have together."""

    @property
    def cited(self) -> str:
        """The answer with its own passages in the place of `[1]`, and without other markers."""
        own = "".join(f"[{rank}]" for rank in self.ranks)
        return _MARKERS.sub(lambda found: found[1] + own if "[1]" in found[2] else "", self.text)


def marginalised(hits: Sequence[Hit], written: Sequence[Generation]) -> list[Candidate]:
    """What was written from each hit, the same words joined, most probable first.

    A refusal is no candidate: that one passage lacks the answer says nothing of which other answer is right. Raises
    InvalidOptions where a generation tells no probability.
    """
    logits = [hit.score / TEMPERATURE for hit in hits]
    total = _log_sum(logits)
    texts: dict[str, str] = {}
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for rank, (logit, out) in enumerate(zip(logits, written, strict=True), start=1):
        if out.logprob is None:
            raise InvalidOptions("decoding: sequence needs log-probabilities, which this generator lacks")
        words = " ".join(_MARKERS.sub("", out.text).casefold().split())
        if words and prompts.REFUSAL not in out.text:
            texts.setdefault(words, out.text.strip())
            found[words].append((rank, logit - total + out.logprob))
    mass = {words: _log_sum([log for _, log in parts]) for words, parts in found.items()}
    whole = _log_sum(list(mass.values()))
    return [
        Candidate(texts[words], tuple(rank for rank, _ in found[words]), math.exp(mass[words] - whole))
        for words in sorted(mass, key=lambda words: (-mass[words], found[words][0][0]))
    ]


def _log_sum(logs: Sequence[float]) -> float:
    """Logarithm of the sum of the numbers that have these logarithms."""
    most = max(logs, default=0.0)
    return most + math.log(sum(math.exp(log - most) for log in logs)) if logs else -math.inf
