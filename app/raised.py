"""Raised digits and letters: a footnote's mark beside a number is no part of it, and must not read as if it were."""

import re

_LOW = "0123456789+-−abcdefghijklmnoprstuvwxyz"
MARKS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
"""Unicode has no raised q."""
_RAISE = str.maketrans(_LOW, MARKS)
_ONE = r"(?:\d{1,2}|[a-pr-z])"
_MARK = re.compile(rf"{_ONE}(?:\s?,\s?{_ONE})*|(?:\({_ONE}\)[\s,]?)+|[-−+]\d{{1,2}}")
RAISED = re.compile(f"[{MARKS}]+(?:,[{MARKS}]+)*")
"""One mark, or several with commas between, as a page's text has them."""


def raised(mark: str) -> str | None:
    """`(1)(2)` as `¹,²`, `a` as `ᵃ`, `-3` as `⁻³`; None where it is neither mark nor exponent, as the th of 4th."""
    mark = mark.strip()
    if not _MARK.fullmatch(mark):
        return None
    parts = [mark] if mark[0] in "-−+" else re.findall(_ONE, mark)
    return ",".join(parts).translate(_RAISE)


def unmarked(text: str) -> str:
    """The text with blanks for marks: every other character keeps its place."""
    return RAISED.sub(lambda mark: " " * len(mark[0]), text)
