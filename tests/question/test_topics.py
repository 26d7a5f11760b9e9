"""What a question over time follows, or that it asks of no movement."""

import pytest

from app.question.topics import followed


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("How have wage levels shifted over the years, and what does this mean?", "wage"),
        ("How has Acme's total income varied over time?", "Acme's total income"),
        ("What is the occupancy rate in each period and how does it differ between them?", "occupancy rate"),
        ("Has there been a change in operating expenses over the years? If so, why?", "operating expenses"),
        ("Is there a trend in MRO (Mill Repair Orders) revenue by quarter?", "MRO revenue"),
        ("Has Widgets revenue grown during the past periods?", "Widgets revenue"),
        ("How does R&D expense in the latest period compare to prior periods?", "R&D expense"),
        ("What is the impact of exchange rates on each reported period?", None),
        ("Has Acme bought back shares in the reported quarters?", None),
        ("How did it change over time?", None),
        ("", None),
    ],
)
def test_followed(question: str, topic: str | None) -> None:
    assert followed(question) == topic
