"""How metrics are called where people read them, and which way is better."""

from __future__ import annotations

__all__ = ["METRICS", "PROBED", "higher_is_better", "metric_name"]

METRICS = {
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "specificity": "Spec",
    "sensitivity": "Sens",
    "average_precision": "Average precision",
    "balanced_accuracy": "Balanced accuracy",
    "precision": "Precision",
    "mcc": "MCC",
    "brier": "Brier score",
    "macro_f1": "Macro F1",
    "movement": "Movement of representatives",
    "flips": "Changed predictions",
}

# Asked of a fitted model, along a curve only.
PROBED = ("movement", "flips")
_LOWER_IS_BETTER = frozenset({"brier", *PROBED})


def metric_name(metric: str) -> str:
    """Return the display name of a metric; one that is not known is called what it is called."""
    return METRICS.get(metric, metric)


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better."""
    return metric not in _LOWER_IS_BETTER
