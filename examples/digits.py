"""Find the rare class in built-in data, next to balanced logistic regression.

The data is scikit-learn's handwritten digits; the class that matters is the eight, one image in
ten, the digit that is most easily taken for others:

    python examples/digits.py [--output FOLDER]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv import SetConvClassifier
from setconv.metrics import Report, report

NAMES = {"spec": "Spec", "sens": "Sens", "f1": "F1", "g_mean": "G-mean", "auc": "AUC"}
BLUE, ORANGE = "#8da9c4", "#d95f02"
mpl.use("Agg")  # a file, no window


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    X = digits.data
    y = np.where(digits.target == 8, "eight", "other")
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    rare = int((y_train == "eight").sum())
    print(
        f"Digits: {len(y_train)} training rows, {rare} of them eights; {len(y_test)} test rows.\n"
    )

    models = {
        "logistic regression, balanced": make_pipeline(
            StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
        ),
        "SetConv": SetConvClassifier(random_state=0),
    }
    print(
        f"{'test rows':30}" + "".join(f"{name:>8}" for name in NAMES.values()) + f"{'seconds':>9}"
    )
    for name, model in models.items():
        started = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - started
        five = judge(model, X_test, y_test).five()
        print(f"{name:30}" + "".join(f"{five[key]:8.3f}" for key in NAMES) + f"{seconds:9.1f}")

    setconv = models["SetConv"]
    setconv.save(folder / "model")
    draw_space(setconv, X_test, y_test, folder / "space.png")
    print(f"\nSaved the model to {folder / 'model'} and a picture of what it learned to")
    print(f"{folder / 'space.png'}. Load the model with setconv.load({str(folder / 'model')!r}).")


def judge(model: Any, X: np.ndarray, y: np.ndarray) -> Report:
    return report(y, model.predict(X), model.decision_function(X), positive="eight")


def draw_space(model: SetConvClassifier, X: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Draw the test rows in the learned space, flattened to two dimensions."""
    # The embeddings of the members lie side by side, and so do their representatives.
    flat = PCA(2).fit(model.transform(X))
    rows = flat.transform(model.transform(X))
    representatives = flat.transform(np.concatenate(model.representatives_, axis=1))
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for label, colour, place in zip(model.classes_, (ORANGE, BLUE), representatives, strict=True):
        here = rows[y == label]
        axes.scatter(*here.T, s=14, color=colour, alpha=0.7, label=f"{label} ({len(here)} rows)")
        axes.scatter(
            *place,
            s=320,
            marker="*",
            color=colour,
            edgecolor="black",
            zorder=3,
            label=f"representative of {label}",
        )
    axes.set(
        title="Test rows in the learned space: one representative a class",
        xlabel="first principal component",
        ylabel="second principal component",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
