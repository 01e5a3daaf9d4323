"""Whole fits and predictions of several methods on the same rows: time, peak memory, AUC."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.metrics import roc_auc_score

from benchmarks.speed.made import Rows
from benchmarks.speed.processes import Alone, forget_peak, held_gigabytes, peak_gigabytes
from benchmarks.speed.timing import seconds_of

Maker = Callable[[], Any]
Costs = dict[str, float]


def compare(
    methods: Mapping[str, Maker], draw: Callable[[], Rows], turns: int, alone: Alone
) -> dict[str, Costs]:
    """Let the methods take turns, each time in a process of its own; return medians."""
    found: dict[str, list[Costs]] = {name: [] for name in methods}
    for _ in range(turns):
        for name, make in methods.items():
            found[name].append(alone(fit_once, make, draw))
    return {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in found.items()
    }


def fit_once(make: Maker, draw: Callable[[], Rows]) -> Costs:
    """Return seconds and gigabytes of a fit and of a prediction, and the AUC on the new rows.

    A peak is all that the process holds, libraries and rows too; what was added is the peak less
    what was held before.
    """
    warnings.simplefilter("ignore")
    rows, model = draw(), make()
    costs = _costs("fit", lambda: model.fit(rows.X, rows.y))
    costs |= _costs("predict", lambda: model.predict(rows.X_new))
    costs["auc"] = float(roc_auc_score(rows.y_new, scores(model, rows.X_new)))
    return costs


def _costs(name: str, job: Callable[[], object]) -> Costs:
    forget_peak()
    before = held_gigabytes()
    seconds, peak = seconds_of(job), peak_gigabytes()
    return {name: seconds, f"{name}_peak": peak, f"{name}_added": max(0.0, peak - before)}


def scores(model: Any, X: Any) -> Any:
    """Return the scores of the second class, by which rows are ranked."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]
