"""Risk themes that filings of every kind share, and the words by which a text or a question is about one of them.

The vocabulary is general English of risk factors, kept by rule; phrases of one corpus become entities of their own
(`concept`), and a theme that is in neither is searched for by meaning.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Theme:
    name: str
    label: str
    terms: re.Pattern[str]
    """What a text about it says."""
    asked: re.Pattern[str]
    """What a question that means it says; `terms` do as well."""


def _theme(raw: dict[str, Any], goods: str) -> Theme:
    terms, asked = ("|".join(raw[field]).replace("{goods}", goods) for field in ("terms", "asked"))
    return Theme(raw["name"], raw["label"], re.compile(rf"\b(?:{terms})", re.I), re.compile(rf"\b(?:{asked})", re.I))


def _read(text: str) -> tuple[Theme, ...]:
    raw = tomllib.loads(text)
    goods = "|".join(raw["goods"])
    return tuple(_theme(each, goods) for each in raw["theme"])


THEMES = _read(Path(__file__).with_name("themes.toml").read_text(encoding="utf-8"))
BY_NAME = {theme.name: theme for theme in THEMES}
_HEADING_WEIGHT = 3
_LEAST = 2
"""Points below which a risk factor is not on a theme."""
_SHARE = 0.5
"""Of the points of a risk factor's first theme, that another needs."""


def theme_key(name: str) -> str:
    return f"theme:{name}"


def named_theme(phrase: str) -> Theme | None:
    """The theme whose words come first in a question's phrase; the longer words where two begin together."""
    found = []
    for theme in THEMES:
        for pattern in (theme.asked, theme.terms):
            if match := pattern.search(phrase):
                found.append((match.start(), match.start() - match.end(), theme.name))
    return BY_NAME[min(found)[2]] if found else None


def mentions_of(text: str) -> Iterator[tuple[str, int, int]]:
    """(theme, start, end) of every term of every theme in a text."""
    for theme in THEMES:
        for match in theme.terms.finditer(text):
            yield theme.name, match.start(), match.end()


def themes_of_factor(heading: str, body: str) -> dict[str, int]:
    """Points by theme of one risk factor: distinct terms of its body, and those of its heading threefold."""
    points: Counter[str] = Counter()
    for text, weight in ((heading, _HEADING_WEIGHT), (body, 1)):
        terms = dict.fromkeys((name, text[start:end].casefold()) for name, start, end in mentions_of(text))
        points.update({name: 0 for name, _ in terms})
        for name, _ in terms:
            points[name] += weight
    most = max(points.values(), default=0)
    return {name: n for name, n in points.items() if n >= max(_LEAST, _SHARE * most)}
