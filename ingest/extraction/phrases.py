"""Key phrases of one filing: what it keeps speaking of, in two or three words of its own."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from app.adapters.bm25 import STOPWORDS
from app.types import Chunk, Mention

_SECTIONS = re.compile(r"\bbusiness|risk factors|management[’']?s discussion|legal proceedings|properties", re.I)
_RUN = re.compile(r"(?<![\w’'-])[a-z]+(?:-[a-z]+)?(?: [a-z]+(?:-[a-z]+)?)*")
_EMPTY = frozenset(
    "ability able addition additional adverse adversely affect amount amounts annual another approximately assurance "
    "based become becoming better billion business cash certain change changes companies company compared conditions "
    "continue could current customer customers december decrease due effect effects end ended even events expected "
    "factors failure fair filed financial fiscal following forward future general generally harm harmed impact "
    "include included includes including incorporated increase increased information internal item january june key "
    "level likely looking loss make many march material materially might million months need negatively net new "
    "number offset operate operating operations order otherwise part partially particular parties party per percent "
    "period periods potential primarily principal product products provide quarter reasonable reduce reference "
    "registered related report required result resulting results risk risks section september service services "
    "several significant significantly similar statements subject substantial sufficient third time total type types "
    "use used using value various versus way ways well whether within without year years".split()
)
_LEAST = 4
_MOST = 40


def concepts(chunks: Sequence[Chunk]) -> Iterator[tuple[str, list[Mention]]]:
    """Phrases that stand four times or more in the filing's own telling, the commonest 40, with every mention."""
    found: dict[str, list[Mention]] = defaultdict(list)
    for chunk in chunks:
        if chunk.kind == "text" and _SECTIONS.search(chunk.section or ""):
            for start, end in _spans(chunk.text):
                phrase = " ".join(chunk.text[start:end].split())
                found[phrase].append(Mention(chunk.id, chunk.page, chunk.start + start, chunk.start + end))
    often = sorted((p for p in found if len(found[p]) >= _LEAST), key=lambda p: (-len(found[p]) * len(p.split()), p))
    kept: list[str] = []
    for phrase in often:
        if len(kept) < _MOST and not any(f" {phrase} " in f" {other} " for other in kept):
            kept.append(phrase)
    for phrase in kept:
        yield phrase, found[phrase]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Two or three words in small letters in a row, none of them empty of meaning."""
    for run in _RUN.finditer(text.replace("\n", " ")):
        parts = [
            (m.start() + run.start(), m.end() + run.start(), m.group()) for m in re.finditer(r"[a-z-]+", run.group())
        ]
        telling = [len(word) > 2 and word not in STOPWORDS and word not in _EMPTY for _, _, word in parts]
        for n in (2, 3):
            for i in range(len(parts) - n + 1):
                if all(telling[i : i + n]):
                    yield parts[i][0], parts[i + n - 1][1]
