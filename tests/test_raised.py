"""Which raised texts are marks, and how they stand in a page's text."""

import pytest

from app.raised import raised, unmarked


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        ("2", "²"),
        ("12", "¹²"),
        ("(1)", "¹"),
        ("(1)(2)", "¹,²"),
        ("1, 2", "¹,²"),
        (" a ", "ᵃ"),
        ("(b)", "ᵇ"),
        ("-3", "⁻³"),
    ],
)
def test_marks(mark: str, shown: str) -> None:
    assert raised(mark) == shown
    assert unmarked(f"78{shown} 9") == "78" + " " * len(shown) + " 9"


@pytest.mark.parametrize("text", ["th", "st", "®", "TM", "", " ", "2024", "Note", "q", "(", "1."])
def test_what_is_no_mark(text: str) -> None:
    assert raised(text) is None
