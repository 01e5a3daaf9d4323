"""What is measured of a fitted classifier on test rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.experiment.protocol.study import METRICS
from setconv.metrics import report

__all__ = ["key", "measure", "read_key"]

_OVERALL = ("accuracy", "balanced_accuracy", "macro_f1", "g_mean", "mcc")


def measure(
    model: Any, rows: Any, truth: NDArray[Any], reported: Sequence[str]
) -> dict[str, float]:
    """Return every metric of each reported class against the rest, and some over all classes.

    Decisions are the classifier's own; the AUC is that of its probabilities, or of its decision
    function if it has none.
    """
    predicted = np.asarray(model.predict(rows))
    classes = list(model.classes_)
    # Test rows may have a class that was not trained on: then nobody scored it.
    unseen = sorted(set(truth.tolist()) - set(classes))
    scores, probabilities = (None, None) if unseen else _scores(model, rows, len(classes))
    found = report(
        truth, predicted, scores, probabilities=probabilities, classes=[*classes, *unseen]
    )
    figures = {
        key(metric, label): float(getattr(found[label], metric))
        for label in reported
        for metric in METRICS
    }
    return figures | {name: float(getattr(found, name)) for name in _OVERALL}


def key(metric: str, label: str, curve: str = "", setting: float = 0.0) -> str:
    """Return the name under which the store has a figure of a class."""
    along = f"@{curve}={setting:g}" if curve else ""
    return f"{metric}{along}:{label}"


def read_key(name: str) -> tuple[str, str, str, float] | None:
    """Return metric, class, curve and setting of such a name; None for a figure of all classes."""
    metric, colon, label = name.partition(":")
    if not colon:
        return None
    metric, _, along = metric.partition("@")
    curve, _, setting = along.partition("=")
    return metric, label, curve, float(setting or "nan")


def _scores(model: Any, rows: Any, n_classes: int) -> tuple[Any, Any]:
    """Return what rows are ranked by, and the probabilities; None where the model has none."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(rows))
        return probabilities, probabilities
    if not hasattr(model, "decision_function"):
        return None, None
    scores = np.asarray(model.decision_function(rows))
    return (scores if scores.ndim == 1 or scores.shape[1] == n_classes else None), None
