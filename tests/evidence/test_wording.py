"""How rows are put into an answer without a model."""

from dataclasses import replace

import pytest

from app.evidence.statements import statements
from app.evidence.wording import scale_of, worded
from app.types import Chunk, DocumentMeta, Hit

META = DocumentMeta("Orrin 10-K FY2024", "orrin.pdf", company="Orrin", form="10-K", fiscal_year=2024)


def hit(text: str, columns: tuple[str, ...], unit: str | None) -> Hit:
    chunk = Chunk("c", "d", 1, 0, 0, len(text), text, "", "table", "Item 8", META, columns=columns, unit=unit)
    return Hit(chunk, 1, 1.0)


def said(text: str, columns: tuple[str, ...], unit: str | None, shown: tuple[int, ...]) -> str:
    [statement] = [each for each in statements([hit(text, columns, unit)]) if each.row]
    return worded(statement, shown)


@pytest.mark.parametrize(
    ("row", "unit", "text"),
    [
        (
            "Total assets $ 5,094 $ 4,961",
            "In millions",
            "Total assets: $5,094 million [1], for December 31, 2024 [1].",
        ),
        (
            "Purchases of equipment (1,577) (1,373)",
            "(Dollars in thousands, except per share data)",
            "Purchases of equipment: (1,577) thousand [1], for December 31, 2024 [1].",
        ),
        (
            "Effective tax rate 21.0% 22.5%",
            "in millions",
            "Effective tax rate: 21.0% [1], for December 31, 2024 [1].",
        ),
        ("Total assets $ 5,094 $ 4,961", None, "Total assets: $5,094 [1], for December 31, 2024 [1]."),
        (
            "Common stock repurchased — (31)",
            "In millions",
            "Common stock repurchased: — [1], for December 31, 2024 [1].",
        ),
    ],
)
def test_a_row_says_its_scale_and_period(row: str, unit: str | None, text: str) -> None:
    assert said(row, ("December 31, 2024", "December 31, 2023"), unit, (0,)) == text


def test_source_brackets_do_not_read_as_markers() -> None:
    chunk = replace(hit("As note [2] says, sales rose by a tenth.", (), None).chunk, kind="text")
    [sentence] = statements([Hit(chunk, 1, 1.0)])
    assert worded(sentence, []) == "As note (2) says, sales rose by a tenth. [1]"


def test_several_columns_keep_their_order() -> None:
    text = said("Total assets $ 5,094 $ 4,961", ("December 31, 2024", "December 31, 2023"), "in millions", (0, 1))
    assert text == "Total assets: $5,094 million, $4,961 million [1], for December 31, 2024; December 31, 2023 [1]."


@pytest.mark.parametrize(
    ("label", "unit", "scale"),
    [
        ("Net income", "In millions", "million"),
        ("Net income", "in thousands, except per share amounts", "thousand"),
        ("Net income", "amounts in billions", "billion"),
        ("Net income per share: Diluted", "in millions, except per share data", ""),
        ("Diluted", "in millions, except per-share amounts", ""),
        (
            "Weighted-average shares outstanding",
            "In millions, except number of shares which are reflected in thousands",
            "",
        ),
        ("Weighted-average shares outstanding", "Shares in thousands", "thousand"),
        ("Repurchases", "shares in millions, except per share amounts", ""),
        ("Employees", "Millions, except Employees", ""),
        ("Weighted-average discount rate", "In millions, except lease term and discount rate", ""),
        ("Operating margin", "in millions", ""),
        ("Net income", "percent of sales", ""),
        ("Net income", "", ""),
    ],
)
def test_the_scale_is_left_out_where_a_row_may_be_excepted(label: str, unit: str, scale: str) -> None:
    assert scale_of(label, unit) == scale
