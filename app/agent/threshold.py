"""From which residual on a passage leads beyond the question, where that was measured on the collection."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from app.errors import Unavailable

Follow: TypeAlias = Literal["names", "direction"]
"""Whom the evidence names; or what a passage adds to the question, whoever that is."""
LEAST_RESIDUAL = 0.5
"""Where nothing was measured."""


def read_residuals(path: Path) -> Mapping[str, float]:
    """What `sextant-eval calibrate --agent` wrote: by Follow, 0 to 1. Raises Unavailable."""
    try:
        found = json.loads(path.read_text("utf-8"))["least_residual"]
        names, direction = float(found["names"]), float(found["direction"])
        if not (0 <= names <= 1 and 0 <= direction <= 1):
            raise ValueError("a residual is from 0 to 1")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            f"{path} holds no thresholds of this version ({error!r}); write them with sextant-eval calibrate --agent"
        ) from error
    return {"names": names, "direction": direction}
