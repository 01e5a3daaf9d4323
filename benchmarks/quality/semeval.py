"""The defaults against balanced logistic regression on the paper's SemEval set.

Negative tweets against the rest, MiniLM embeddings, five 70/30 splits by tweet id. The set is
SemEval-2017 task 4, subtask A; ``--data`` is a folder with ``semeval2017.npz`` (arrays ``X``: one
embedding a row, ``y``: negative, neutral or positive, ``id``: the tweet).

    python benchmarks/quality/semeval.py --data FOLDER [--presets] [--linear-share SHARE]

With ``--presets`` the first split is also run with the paper's and the authors' settings, on
features as they are and standardised.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv import SetConvClassifier
from setconv.metrics import report
from setconv.presets import PAPER, REFERENCE


def figures(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    found = report(y, model.predict(X), model.decision_function(X))
    return found["negative"].auc, found.g_mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--presets", action="store_true")
    parser.add_argument("--linear-share", type=float, help="instead of the automatic one")
    arguments = parser.parse_args()
    with np.load(arguments.data / "semeval2017.npz") as stored:
        X, groups = stored["X"].astype(np.float32), stored["id"]
        y = np.where(stored["y"] == "negative", "negative", "rest")
    splitter = GroupShuffleSplit(5, test_size=0.3, random_state=0)
    given = arguments.linear_share
    share: Any = "auto" if given is None else given
    gains = []
    print(f"{'split':5}  {'logistic AUC, G-mean':>20}  {'SetConv AUC, G-mean':>20}  fit seconds")
    for number, (train, test) in enumerate(splitter.split(X, y, groups)):
        logistic = make_pipeline(
            StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
        ).fit(X[train], y[train])
        started = time.perf_counter()
        setconv = SetConvClassifier(linear_share=share, random_state=number, progress=False)
        setconv.fit(X[train], y[train])
        seconds = time.perf_counter() - started
        peer, ours = figures(logistic, X[test], y[test]), figures(setconv, X[test], y[test])
        gains.append(np.subtract(ours, peer))
        print(
            f"{number:5}  {peer[0]:12.4f}, {peer[1]:.4f}  {ours[0]:12.4f}, {ours[1]:.4f}"
            f"  {seconds:11.1f}",
            flush=True,
        )
    auc, g_mean = np.mean(gains, axis=0)
    print(f"mean gain over logistic regression: AUC {auc:+.4f}, G-mean {g_mean:+.4f}")
    if arguments.presets:
        train, test = next(splitter.split(X, y, groups))
        for name, preset in {"PAPER": PAPER, "REFERENCE": REFERENCE}.items():
            for scaling in (None, "standard"):
                model = SetConvClassifier(**{**preset, "scaling": scaling}, random_state=0)
                auc, g_mean = figures(model.fit(X[train], y[train]), X[test], y[test])
                print(f"split 0, {name}, scaling={scaling}: AUC {auc:.4f}, G-mean {g_mean:.4f}")


if __name__ == "__main__":
    main()
