"""What the settings open."""

import pytest

from app.opening import open_quoting
from app.settings import Settings
from tests.fakes import LetterEmbedder


@pytest.mark.parametrize(
    ("generator", "fallback", "quotes"),
    [
        ("local", None, True),
        ("local", False, False),
        ("openai", None, False),
        ("openai", True, True),
        ("extractive", True, False),
    ],
)
def test_a_small_models_refusals_are_quoted_over_and_an_endpoints_where_asked_for(
    generator: str, fallback: bool | None, quotes: bool
) -> None:
    settings = Settings.model_validate({"generator": generator, "quote_fallback": fallback})
    assert (open_quoting(settings, LetterEmbedder()) is not None) == quotes
