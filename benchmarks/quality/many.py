"""Fits of more than a million rows, with keyed folds and sampled evidence, against the exact way.

    python -m benchmarks.quality.many --data DIR

Two made problems of 1.05 million rows, and the paper's SemEval set (MiniLM embeddings) repeated
with noise to 1.1 million, each with test rows of its own. The exact way is the same code with its
limits out of reach: shuffled folds and decks, and every row as evidence. ``--data`` is as in
`benchmarks.quality`; without it the made problems alone are fitted. Needs 16 GB of memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import setconv.fitting
import setconv.sampling
from benchmarks.quality.markdown import number, table
from benchmarks.speed.made import dense_rows
from setconv import SetConvClassifier

_MADE = 1_050_000
_TEST = 100_000
_REPEATS = 34  # of the training rows of SemEval
_NOISE = 0.3  # of a column's standard deviation
_EXACT = 10**9

Problem = tuple[Any, Any, Any, Any]


def curved(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return rows of which the rare twentieth lies on a shell around the others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 20), dtype=np.float32)
    y = (rng.random(n_rows) < 0.05).astype(np.int64)
    X[y == 1, :8] *= 1.5
    return X, y


def problems(data: Path | None) -> Iterator[tuple[str, Problem]]:
    """Yield names, and rows to fit and to judge by."""
    X, y = dense_rows(_MADE + _TEST, 64)
    yield "made, two Gaussians, 64 columns", (X[:_MADE], y[:_MADE], X[_MADE:], y[_MADE:])
    yield "made, a shell, 20 columns", (*curved(_MADE, 0), *curved(_TEST, 1))
    if data is None:
        return
    with np.load(data / "embeddings" / "semeval2017.npz") as found:
        X, y = found["X"].astype(np.float32), (found["y"] == "negative").astype(np.int64)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    test, train = np.split(order, [len(y) * 3 // 10])
    spread = _NOISE * X.std(axis=0)
    rows = np.concatenate([X[train]] * _REPEATS)
    for part in np.array_split(rows, _REPEATS):
        part += spread * rng.standard_normal(part.shape, dtype=np.float32)
    yield "SemEval, repeated with noise", (rows, np.tile(y[train], _REPEATS), X[test], y[test])


def fit(problem: Problem, seed: int) -> dict[str, float]:
    """Return AUC on the test rows, and that of the fit's own report."""
    X, y, X_new, y_new = problem
    model = SetConvClassifier(random_state=seed, progress=False, scaling="standard").fit(X, y)
    auc = roc_auc_score(y_new, model.decision_function(X_new))
    said = model.oof_report_[1]
    return {"auc": float(auc), "said": said.auc, "f1": said.f1}


def exactly(problem: Problem, seed: int) -> dict[str, float]:
    """Fit with the limits out of reach."""
    limits = setconv.sampling.MANY_ROWS, setconv.fitting.MOST_EVIDENCE
    setconv.sampling.MANY_ROWS = setconv.fitting.MOST_EVIDENCE = _EXACT
    try:
        return fit(problem, seed)
    finally:
        setconv.sampling.MANY_ROWS, setconv.fitting.MOST_EVIDENCE = limits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    rows = []
    for name, problem in problems(options.data):
        found = [[way(problem, seed) for seed in range(options.seeds)] for way in (fit, exactly)]
        keyed, exact = ({k: np.mean([one[k] for one in of]) for k in of[0]} for of in found)
        cells = [keyed["auc"], exact["auc"], keyed["auc"] - exact["auc"]]
        cells += [keyed["said"], exact["said"], keyed["f1"], exact["f1"]]
        rows.append([name, f"{len(problem[1]):,}", *(number(float(one), 4) for one in cells)])
        print(rows[-1], flush=True)
    head = ["rows", "number", "AUC, keyed", "AUC, exact", "difference"]
    head += ["said of it, keyed", "exact", "F1 said, keyed", "exact"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
