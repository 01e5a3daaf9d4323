"""One seed for an estimator made of others."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone


def cloned(estimator: Any, random: np.random.RandomState) -> Any:
    """Clone an estimator and give a seed to each part of it that has none."""
    copy = clone(estimator)
    seeds = {}
    for name, value in sorted(copy.get_params(deep=True).items()):
        if name.split("__")[-1] == "random_state" and value is None:
            seeds[name] = int(random.randint(np.iinfo(np.int32).max))
    return copy.set_params(**seeds)
