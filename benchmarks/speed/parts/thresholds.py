"""What choosing thresholds costs with few and with many classes of the same number of rows."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from benchmarks.speed.made import dense_rows
from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import medians
from setconv import SetConvClassifier

KINDS = ("balanced", "f1", "mcc")


class Sizes(NamedTuple):
    rows: int = 900
    features: int = 10
    classes: tuple[int, ...] = (6, 30, 60)
    turns: int = 5


FULL = Sizes()
QUICK = Sizes(rows=200, classes=(3, 12), turns=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return the seconds of each number of classes, measured in turns in one process."""
    return alone(measure, sizes)


def measure(sizes: Sizes) -> dict[str, Any]:
    """Return the seconds that the thresholds of all kinds take, and those of `set_objective`."""
    jobs: dict[str, Any] = {}
    for classes in sizes.classes:
        X, y = dense_rows(sizes.rows, sizes.features, [1 + c / classes for c in range(classes)])
        # How good the scores are does not matter here.
        model = SetConvClassifier(max_steps=10, n_members=5, progress=False, random_state=0)
        model.fit(X, y)
        jobs[f"choose {classes}"] = partial(choose_all, model)
        jobs[f"move {classes}"] = partial(model.set_objective, "f1")
    found = medians(jobs, sizes.turns, warm_up=0)
    return {
        "rows": sizes.rows,
        "features": sizes.features,
        "classes": list(sizes.classes),
        "choose": [found[f"choose {classes}"] for classes in sizes.classes],
        "move": [found[f"move {classes}"] for classes in sizes.classes],
    }


def choose_all(model: SetConvClassifier) -> None:
    """Choose calibrator and thresholds for each kind of objective."""
    for kind in KINDS:
        model._decision.rule.with_objective(kind)
