"""Many classes against two: whole default fits, and steps of separate models (`PAPER`)."""

from __future__ import annotations

import statistics
from typing import Any, Literal, NamedTuple

from benchmarks.speed import step
from benchmarks.speed.made import dense_rows
from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import seconds_of
from setconv import SetConvClassifier
from setconv.presets import PAPER

BINARY = 2


class Sizes(NamedTuple):
    rows: int = 12_000
    features: int = 1024
    classes: int = 8
    turns: int = 1
    fit_steps: int | Literal["auto"] = "auto"
    paper_steps: int = 300


FULL = Sizes()
QUICK = Sizes(rows=600, features=120, classes=4, turns=1, fit_steps=5, paper_steps=5)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return seconds of fits, and of steps and products of separate models."""
    counts = (BINARY, sizes.classes)
    fits: dict[int, list[float]] = {classes: [] for classes in counts}
    for _ in range(sizes.turns):
        for classes in counts:
            fits[classes].append(alone(fit, sizes, classes))
    paper = {**PAPER, "max_steps": sizes.paper_steps}
    separate = [alone(step.measure, sizes.rows, sizes.features, c, paper) for c in counts]
    return {
        "rows": sizes.rows,
        "features": sizes.features,
        "classes": sizes.classes,
        "binary_fit": statistics.median(fits[BINARY]),
        "many_fit": statistics.median(fits[sizes.classes]),
        "binary_paper": separate[0],
        "many_paper": separate[1],
    }


def fit(sizes: Sizes, classes: int) -> float:
    """Return the seconds of a fit."""
    X, y = dense_rows(sizes.rows, sizes.features, [1 / (1 + c) for c in range(classes)])
    model = SetConvClassifier(max_steps=sizes.fit_steps, progress=False, random_state=0)
    return seconds_of(lambda: model.fit(X, y))
