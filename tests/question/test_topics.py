"""What a question over time follows, or that it asks of no movement."""

import pytest

from app.question.topics import followed


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How have inventory levels changed across these quarters, and what might this indicate?", "inventory"),
        ("How has Acme's total net sales evolved over time?", "Acme's total net sales"),
        ("What is the effective tax rate in these quarters and how does it differ between them?", "effective tax rate"),
        ("Has there been a change in operating expenses over the years? If so, why?", "operating expenses"),
        ("Can any trends be identified in WID (Widget Industrial Devices) revenue by quarter?", "WID revenue"),
        ("Can any trends be identified in Widgets revenue over the reported periods?", "Widgets revenue"),
        ("How does R&D expense in the latest quarter compare to previous quarters?", "R&D expense"),
        ("What is the impact of exchange rates on each reported period?", None),
        ("Has Acme bought back shares in the reported quarters?", None),
        ("How did it change over time?", None),
        ("", None),
    ],
)
def test_followed(question: str, topic: str | None) -> None:
    assert followed(question) == topic
