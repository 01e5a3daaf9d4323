"""How a cost grows with a size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Fit b of costs ~ sizes^b by least squares on logarithms; nan with fewer than two sizes."""
    return power_law(sizes, costs)[1]


def power_law(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """Fit (a, b) of costs ~ a sizes^b likewise; costs that are not positive do not count."""
    known = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if cost > 0]
    if len({size for size, _ in known}) < 2:
        return np.nan, np.nan
    log_sizes, log_costs = np.log(np.array(known, dtype=np.float64)).T
    b, log_a = np.polyfit(log_sizes, log_costs, deg=1)
    return float(np.exp(log_a)), float(b)
