"""What one would use instead, on the same embeddings."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv.cli.demo_data import NEGATIVE
from setconv.errors import MissingDependencyError

# What a method says of the held-out rows, its scores, and how long its fit took, in seconds.
Answers = tuple[NDArray[Any], NDArray[np.float64], float]


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
