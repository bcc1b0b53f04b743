"""How numbers are shown."""

from __future__ import annotations

import math


def metric_text(value: float, digits: int = 4) -> str:
    """A metric for readers: ``-`` if it is undefined."""
    return "-" if math.isnan(value) else f"{value:.{digits}g}"
