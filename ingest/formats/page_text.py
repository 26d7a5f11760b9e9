"""What characters say: words cleaned, the printed page number, and how far a text layer reads like text."""

import re

_FOOT = re.compile(r"(?:page\s+)?((?:[A-Z]{1,2}-)?\d{1,4}|[ivxl]{1,6})|.{1,100}\|\s*(?:page\s+)?(\d{1,4})", re.I)
_TRAILING_HYPHENS = re.compile("[\ufffe\u00ad\x02]+$")
_LOST_MINUS = re.compile(r"^[\x02\x03\x12\ufffe](?=[$€£]?\.?\d[\d,.]*%?$)")
"""Of a number, in a font that does not tell what its sign is; losing it would make a loss a gain."""
_LOST_LIGATURE = re.compile("(?<=[A-Za-z])[\ufffe\x02](?=[a-z])|^[\ufffe\x02](?=[a-z]{3})")
_UNWANTED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\ufff0-\uffff\ud800-\udfff]"
)
_REPLACED = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
    | {"\uf0b7": "•", "\uf0a7": "▪", "\uf0be": "—", "\uf078": "☒", "\uf0fe": "☒", "\uf06f": "☐", "\uf0a8": "☐"}
)
_LIGATURES = (
    ("ffi", re.compile(r"(?:e|o|su|di|a|tra)\0(?:c|li|ni|rm|d)", re.I)),
    ("ffl", re.compile(r"(?:wa|ba|shu|sni|mu)\0e", re.I)),
    ("ff", re.compile(r"(?:di|e|o|su|sta|bu|cuto|layo|tari|a|tradeo|spino)\0(?:e|o|s|ing|a|u|$)", re.I)),
    ("fl", re.compile(r"(?:\b|re|in|con|over|work|cash)\0(?:e[ctx]|o[wo]|at|u|y|i[gc][ht])", re.I)),
)
"""The letters that a lost ligature must have stood for, by what surrounds it (\\0); "fi" elsewhere."""


def clean(word: str) -> str:
    """One word without control characters, soft hyphens, lone surrogates and private symbols.

    PDFium writes U+FFFE (or U+0002) for a line-end hyphen, which is kept as "-", and for a ligature whose letters the
    font does not tell, which is guessed ("e￾ciency" becomes "efficiency").
    """
    word = _LOST_MINUS.sub("-", _TRAILING_HYPHENS.sub("-", word.translate(_REPLACED)))
    if _LOST_LIGATURE.search(word):
        word = _restore_ligatures(word)
    word = _UNWANTED.sub("", word) if not word.isprintable() or "\ufffd" in word else word
    return "".join(c for c in word if not "\ue000" <= c <= "\uf8ff").strip()


def _restore_ligatures(word: str) -> str:
    marked = _LOST_LIGATURE.sub("\0", word)
    for letters, pattern in _LIGATURES:
        marked = pattern.sub(lambda m, letters=letters: m[0].replace("\0", letters), marked)  # type: ignore[misc]
    return marked.replace("\0", "fi")


def printed_label(text: str) -> str | None:
    """The page number at the foot of a page: "F-35", "Acme Corp | Form 10-K | 35"."""
    match = _FOOT.fullmatch(text.rstrip().rpartition("\n")[2])
    return match[1] or match[2] if match else None


def text_quality(text: str) -> float:
    """How far a text layer reads like text, 0 to 1; below about 0.5 the page is garbled and needs OCR.

    Fonts without a usable character map give replacement characters, symbols in the middle of words or letters in
    impossible mixtures. Empty text has quality 0.
    """
    tokens = text.split()
    if not tokens:
        return 0.0
    weight = sum(map(len, tokens))
    return sum(len(token) for token in tokens if _plausible(token)) / weight


_PLAUSIBLE = re.compile(
    r"[\W_]{1,3}|[.\-_=•·*]+"
    r"|[\"'“‘(\[$€£¥<+#-]*(?:[A-Z]?[^\W\d_A-Z]+|[A-Z]+|(?:[A-Z]?[a-z]+)+[A-Z]*|[A-Z]+s|[A-Z]+[a-z]+)(?:[’'./&@:,-]+\w+)*[\W_]{0,4}"
    r"|[$€£¥(\[<~+#-]*\d[\d,.:/()-]*[A-Za-z%]{0,4}[\W_]{0,4}"
    r"|[A-Za-z]{1,4}-?\d[\w./-]*[\W_]{0,3}|https?://\S+|www\.\S+|\S+@\S+"
)
_VOWELS = frozenset("aeiouyàáâãäåèéêëìíîïòóôõöùúûü")


def _plausible(token: str) -> bool:
    if not _PLAUSIBLE.fullmatch(token):
        return not token.isascii() and token.isalpha()
    letters = [c for c in token if c.isalpha()]
    if len(letters) < 5 or not token.isascii():
        return True
    return (token.isupper() and len(letters) < 7) or any(c in _VOWELS for c in token.lower())
