"""What a question over time follows: a line such as wages, without when, how it moved and what that may mean."""

import re

_MOVED = re.compile(
    r"\b(?:chang(?:e[sd]?|ing)|fluctuat\w+|evol(?:ve[sd]?|ving|ution)|var(?:y|ie[sd]|iations?)|shift(?:s|ed)?|trend(?:s|ed)?"
    r"|patterns?|gr[eo]wn?|growth|increas\w+|decreas\w+|declin\w+|movements?|alterations?|levels?|compar(?:e[sd]?|ison)"
    r"|differ\w*|stack up|consistent\w*|stable)\b",
    re.I,
)
_NEXT_CLAUSE = re.compile(
    r"(?:,\s*|\s)and\s+(?:what|how|why|which|do(?:es)?)\b|,\s*(?:what|how|why|if)\b|[?.]\s|\bif so\b", re.I
)
_ASIDE = re.compile(r"\([^()]*\)")
_WHEN = re.compile(
    r"\b(?:quarter[- ](?:to|by|over)[- ]quarter|quarter(?:ly|s)?|periods?|years?|annual(?:ly)?|time|fiscal|reported"
    r"|reports?|reporting|filings?|10-?[KQ]s?|most recent|latest|previous|prior|past|these|those|each|every|several)\b",
    re.I,
)
_LITTLE = re.compile(
    r"\b(?:how|what|which|has|have|had|did|do(?:es)?|is|are|was|were|been|be|there|any|can|could|in|ways?|across|during"
    r"|over|throughout|from|between|on|of|for|the|a|an|to|by|as|per|with|it|its|their|against|significant(?:ly)?"
    r"|substantial(?:ly)?|notable|historical(?:ly)?|identified|observed|discerned|seen)\b",
    re.I,
)


def followed(question: str) -> str | None:
    """`How have wage levels shifted over the years, and what ...?` -> `wage`.

    None where it asks of no movement, or nothing is left: an impact or an activity is told in sentences.
    """
    if not _MOVED.search(question):
        return None
    end = _NEXT_CLAUSE.search(question)
    clause = _ASIDE.sub(" ", question[: end.start()] if end else question)
    for words in (_WHEN, _MOVED, _LITTLE):
        clause = words.sub(" ", clause)
    return " ".join(re.findall(r"[\w&$%'’/.-]*\w", clause)) or None
