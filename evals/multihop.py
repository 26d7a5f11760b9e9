"""A graph over a retrieval set, walked as the service walks its own: entities are the names that its documents print.

A document and the names in it are joined, names of one person or thing too (HippoRAG 2: phrase and passage nodes,
synonyms; Gutiérrez et al., 2025); a walk begins at the names in the question and at the documents nearest to it. No
model writes triples: names come from the tagger that ingestion uses, from the documents' titles and from nothing else.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from app.graph.names import normalised, words
from app.graph.neighbourhood import Neighbourhood, how_telling, ranked
from app.types import Hit
from ingest.extraction.ner import model

_UNNAMED = frozenset("CARDINAL ORDINAL QUANTITY PERCENT MONEY TIME DATE LANGUAGE".split())
_WORD = re.compile(r"[^\W_]+(?:[&.'’-][^\W_]+)*")
_QUALIFIED = re.compile(r"\s*\([^)]*\)\s*$")
"""`Mercury (planet)`: what tells apart titles that are spelled alike."""
_LONGEST = 8
"""Words of a name."""
_ALIKE = 8
"""Names with the same first and last word, beyond which these words tell nothing."""
_BATCH = 64


@dataclass(frozen=True, slots=True)
class PhraseGraph:
    """The names of a set's documents and questions."""

    passages: Mapping[str, Mapping[str, int]]
    """Mentions by chunk id, by name."""
    alike: Sequence[tuple[str, str]]
    """Names that may be one's."""
    asked: Mapping[str, Sequence[str]]
    """Names by question id."""

    def order(self, question: str, near: Sequence[Hit], damping: float) -> list[str]:
        """Ids of all documents' chunks, the likeliest first; `near` are the question's nearest by the dense leg."""
        named = {name: how_telling(len(self.passages[name])) for name in self.asked[question]}
        similarity = {hit.chunk.id: hit.score for hit in near}
        return ranked(Neighbourhood(named, self.passages, self.alike), near, similarity, damping)


def phrase_graph(texts: Mapping[str, str], titles: Mapping[str, str], queries: Mapping[str, str]) -> PhraseGraph:
    """Of chunk texts and titles by chunk id, and of questions by id."""
    keys = {chunk: key for chunk, title in titles.items() if (key := normalised(_QUALIFIED.sub("", title)))}
    known = frozenset(keys.values())
    passages: dict[str, Counter[str]] = defaultdict(Counter)
    for (chunk, text), found in zip(texts.items(), _tagged(list(texts.values())), strict=True):
        for name in found:
            passages[name][chunk] += 1
        for name in {keys[chunk]} if chunk in keys else ():
            passages[name][chunk] += 1
        for name in set(_printed(text, known)):
            passages[name][chunk] = passages[name][chunk] or 1
    asked = {}
    for (question, text), found in zip(queries.items(), _tagged(list(queries.values())), strict=True):
        there = {name for name in (*found, *_printed(text, passages)) if name in passages}
        asked[question] = sorted(n for n in there if not any(n != m and f" {n} " in f" {m} " for m in there))
    return PhraseGraph(passages, list(_alike(passages)), asked)


def _tagged(texts: Sequence[str]) -> Iterator[list[str]]:
    """Normalised names by the tagger, repeated as often as they stand in the text; a title is a sentence of its own."""
    for doc in model().pipe((text.replace("\n", " . ", 1) for text in texts), batch_size=_BATCH):
        names = (normalised(entity.text) for entity in doc.ents if entity.label_ not in _UNNAMED)
        yield [name for name in names if 1 < len(name) <= 70]


def _printed(text: str, known: Container[str]) -> Iterator[str]:
    """Names of `known` that a text prints with a capital, the longest where two begin together."""
    found = _WORD.findall(text)
    at = 0
    while at < len(found):
        step = 1
        if found[at][:1].isupper() or found[at][:1].isdigit():
            for length in range(min(_LONGEST, len(found) - at), 0, -1):
                name = normalised(" ".join(found[at : at + length]))
                if name in known and (length > 1 or len(name) > 3):
                    yield name
                    step = length
                    break
        at += step


def _alike(names: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """`John Quincy Adams` and `John Adams`."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sorted(names):
        parts = words(name)
        if len(parts) > 1:
            groups[parts[0], parts[-1]].append(name)
    for group in groups.values():
        if len(group) <= _ALIKE:
            yield from combinations(group, 2)
