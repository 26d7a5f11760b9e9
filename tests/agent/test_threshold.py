"""The threshold of a hop as it was measured on a collection."""

from pathlib import Path

import pytest

from app.agent.threshold import read_residuals
from app.errors import Unavailable
from evals.residuals import Fitted, to_json


def test_what_calibration_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    found = [Fitted("names", 7, {0.0: 0.2, 0.5: 0.8, 1.0: 0.2}), Fitted("direction", 9, {0.0: 0.1, 0.5: 0.3, 1.0: 0.3})]
    file.write_text(to_json(found), "utf-8")
    assert read_residuals(file) == {"names": 0.5, "direction": 0.75}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"least_residual": {"names": 0.5}}',
        '{"least_residual": {"names": 0.5, "direction": "far"}}',
        '{"least_residual": {"names": 0.5, "direction": 1.5}}',
        '{"least_residual": {"names": NaN, "direction": 0.5}}',
    ],
)
def test_what_it_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "agent.json"
    file.write_text(text)
    with pytest.raises(Unavailable, match="sextant-eval calibrate --agent"):
        read_residuals(file)
