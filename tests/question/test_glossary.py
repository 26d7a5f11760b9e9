"""What people write for the name of a line."""

import pytest

from app.question.glossary import spelt_out


@pytest.mark.parametrize(
    ("asked", "spelt"),
    [
        ("What was diluted EPS in 2022?", "What was diluted earnings per share in 2022?"),
        ("eps growth", "earnings per share growth"),
        ("NIM and AUM", "net interest margin and assets under management"),
        ("What did it do in its steps?", "What did it do in its steps?"),
    ],
)
def test_abbreviations_are_spelt_out(asked: str, spelt: str) -> None:
    assert spelt_out(asked) == spelt
