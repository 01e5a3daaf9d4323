"""Against the limit: training steps and prediction beside their bare products; a small fit."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from benchmarks.speed import prediction, step
from benchmarks.speed.made import dense_rows
from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import seconds_of
from setconv import SetConvClassifier


class Sizes(NamedTuple):
    rows: int = 10_000
    features: tuple[int, ...] = (384, 1024)
    members: tuple[int, ...] = (5, 1)
    steps: int = 100
    predicted: int = 1_000_000
    predicted_features: int = 384
    turns: int = 5
    small_rows: int = 200
    small_features: int = 10
    small_fits: int = 5


FULL = Sizes()
QUICK = Sizes(rows=1000, steps=10, predicted=20_000, turns=3, small_fits=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return seconds of each job and of its products."""
    steps = []
    for features in sizes.features:
        for members in sizes.members:
            given = {"n_members": members, "max_steps": sizes.steps, "n_episodes": 4}
            costs = alone(step.measure, sizes.rows, features, 2, given)
            steps.append({"features": features, "members": members, **costs})
    predicted = (sizes.predicted, sizes.predicted_features)
    small = (sizes.small_rows, sizes.small_features)
    return {
        "steps": steps,
        "prediction": {
            "rows": predicted[0],
            "features": predicted[1],
            **alone(prediction.measure, *predicted, sizes.turns),
        },
        "small": {
            "rows": small[0],
            "features": small[1],
            **alone(small_fits, *small, sizes.small_fits),
        },
    }


def small_fits(rows: int, features: int, fits: int) -> dict[str, float]:
    """Return the seconds of the first default fit of a process, and the median of later ones."""
    X, y = dense_rows(rows, features)

    def fit() -> None:
        SetConvClassifier(progress=False, random_state=0).fit(X, y)

    first = seconds_of(fit)
    return {"first": first, "median": statistics.median(seconds_of(fit) for _ in range(fits))}
