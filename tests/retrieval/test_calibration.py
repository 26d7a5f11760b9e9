"""The grade's arithmetic, the actions, and the file that a calibration is kept in."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import Unavailable
from app.opening import open_calibration
from app.retrieval.calibration import FEATURES, Calibration, action, read_calibration, shipped_calibration
from app.settings import Settings

NO_WEIGHT = (0.0,) * (len(FEATURES) - 2)


def calibration() -> Calibration:
    return Calibration((1.0, -0.5, *NO_WEIGHT), -1.0, 0.7, 0.3, {"seed": 0})


@pytest.mark.parametrize(
    ("logit", "cosine", "z"), [(2.0, 0.0, 1.0), (2.0, 2.0, 0.0), (0.0, 4.0, -3.0), (-800, 0, -801)]
)
def test_a_grade_is_the_logistic_of_the_weighted_features(logit: float, cosine: float, z: float) -> None:
    expected = 1 / (1 + math.exp(-z)) if z > -700 else 0.0
    assert calibration().probability((logit, cosine, *NO_WEIGHT)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("best", "called"), [(0.7, "correct"), (0.69, "ambiguous"), (0.3, "ambiguous"), (0.29, "incorrect")]
)
def test_the_best_grade_calls_for_an_action(best: float, called: str) -> None:
    assert action(best, upper=0.7, lower=0.3) == called


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "grader.json").write_text(calibration().to_json())
    assert read_calibration(tmp_path / "grader.json") == calibration()


@pytest.mark.parametrize("change", [{"weights": {}}, {"lower": 0.8}, {"upper": "high"}])
def test_what_is_no_calibration_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "grader.json"
    path.write_text(json.dumps(json.loads(calibration().to_json()) | change))
    with pytest.raises(Unavailable, match="sextant-eval calibrate"):
        read_calibration(path)
    with pytest.raises(Unavailable, match="nowhere"):
        read_calibration(tmp_path / "nowhere.json")


def test_the_shipped_one_is_for_the_shipped_cross_encoder() -> None:
    shipped = shipped_calibration()
    assert shipped.fitted["reranker"] == "sextant-grader"
    assert 0 < shipped.lower < shipped.upper < 1


def test_a_collections_own_calibration_is_found_and_a_named_one_goes_first(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert open_calibration(settings) == shipped_calibration()
    settings.index_dir.mkdir(parents=True)
    (settings.index_dir / "grader.json").write_text(calibration().to_json())
    assert open_calibration(settings) == calibration()
    named = replace(calibration(), lower=0.1)
    (tmp_path / "named.json").write_text(named.to_json())
    assert open_calibration(Settings(data_dir=tmp_path, grader_calibration=tmp_path / "named.json")) == named
