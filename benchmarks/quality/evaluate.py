"""One cell: a method on a split of a task, and every figure that the tables need."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.quality import measures
from benchmarks.quality.peers import CALIBRATED, OURS, PRESETS, methods, quiet
from benchmarks.quality.splits import folds, seed_of, split
from benchmarks.quality.tasks import SEMEVAL_ROWS, Spec, Task, load, specs
from benchmarks.quality.tuning import Bench, tuned_thresholds
from benchmarks.quality.wrappers import Searched
from setconv.experiment import Cell

Figures = dict[str, float]

# From so many columns on, peers have the settings for wide data: text, and one tabular set.
_WIDE = 100


def work(cell: Cell, data: Path | None = None, semeval_rows: int = SEMEVAL_ROWS) -> Figures:
    """Return the figures of a cell."""
    task = load(_by_name()[cell.dataset], data, semeval_rows)
    estimator = methods(wide=task.X.shape[1] > _WIDE)[cell.method](cell.split)
    return figures_of(cell, task, estimator)


def figures_of(cell: Cell, task: Task, estimator: Any) -> Figures:
    """Return the figures of an estimator on the cell's split of a task, dense or sparse."""
    quiet()
    # Small sets spend most of their time in checks of the same rows, over and over.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return _evaluate(cell, task, estimator)


def _evaluate(cell: Cell, task: Task, estimator: Any) -> Figures:
    train, test = split(task.y, task.groups, seed_of(task.name, cell.split))
    bench = Bench(task.X, task.y, task.groups)
    started = time.perf_counter()
    model = bench.fit(estimator, train)
    fitted = time.perf_counter()
    scores = bench.scores(train, test)
    figures = {
        "fit_seconds": fitted - started,
        "predict_seconds": time.perf_counter() - fitted,
    }
    y, X = task.y[test], task.X[test]
    figures["auc"] = float(roc_auc_score(y, scores))
    figures["average_precision"] = float(average_precision_score(y, scores))
    natural = model.predict(X)
    figures |= _decisions("natural", y, natural, natural)
    figures |= _probabilities(model, X, y)
    if cell.method == OURS:
        figures |= ours(model, X, y)
    elif cell.method not in {**PRESETS, **CALIBRATED}:
        groups = None if task.groups is None else task.groups[train]
        splits = folds(task.y[train], groups, seed_of(task.name, cell.split, "tuning"))
        started = time.perf_counter()
        # A threshold is found with the parameters that were chosen on all training rows: scores of
        # models that each choose their own have different scales.
        settled = clone(model.estimator_) if isinstance(model, Searched) else estimator
        found = tuned_thresholds(settled, bench, train, splits)
        figures["tuning_seconds"] = time.perf_counter() - started
        figures |= tuned(found, y, scores, natural)
    return figures


@cache
def _by_name() -> dict[str, Spec]:
    return {spec.name: spec for spec in specs()}


def _decisions(kind: str, y: NDArray, for_g_mean: NDArray, for_f1: NDArray) -> Figures:
    return {
        f"g_mean_{kind}": measures.g_mean(y, for_g_mean),
        f"f1_{kind}": measures.f1(y, for_f1),
    }


def tuned(found: dict[str, float], y: NDArray, scores: NDArray, natural: NDArray) -> Figures:
    """Return the decisions at the thresholds that were found for each metric."""
    # Constant scores cannot be tuned: the model's own decision stands.
    chosen = {
        name: (scores >= found[name]).astype(int) if name in found else natural
        for name in ("g_mean", "f1")
    }
    return _decisions("tuned", y, chosen["g_mean"], chosen["f1"])


def _probabilities(model: Any, X: NDArray, y: NDArray) -> Figures:
    if not hasattr(model, "predict_proba"):
        return {}
    p = np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)
    return {"brier": measures.brier(y, p), "ece": measures.calibration_error(y, p)}


def ours(model: Any, X: NDArray, y: NDArray) -> Figures:
    """Return decisions for both objectives, and what the fit itself expected of them."""
    model.set_objective("balanced")
    expected, for_g_mean = model.oof_report_, model.predict(X)
    figures = {
        "oof_auc": expected[1].auc,
        "oof_average_precision": expected[1].average_precision,
        "oof_g_mean": expected.g_mean,
    }
    model.set_objective("f1")
    figures["oof_f1"] = model.oof_report_[1].f1
    return figures | _decisions("tuned", y, for_g_mean, model.predict(X))
