"""The learned space on paper: its two directions of largest variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from setconv.explain.rows import take_rows
from setconv.explain.space import representative_points, unit_vectors
from setconv.report.evaluation import Codes, Evaluation, Floats
from setconv.report.sampling import sample_rows

_ROWS = 1500


@dataclass(frozen=True)
class LearnedMap:
    """Rows and representatives in two dimensions.

    Attributes
    ----------
    points : float64 array of shape (n_shown, 2)
    classes : int64 array of shape (n_shown,)
        The true classes of the points.
    representatives : float64 array of shape (n_classes, 2)
    explained : float
        Share of the variance that the two dimensions show.
    """

    points: Floats
    classes: Codes
    representatives: Floats
    explained: float


def draw_map(model: Any, X: Any, evaluation: Evaluation, seed: int) -> LearnedMap:
    """Lay a sample of rows, and the representatives, on their first two principal components.

    `transform` has the embeddings of all members side by side; the representatives of a class,
    side by side too, are a point of the same space.
    """
    shown = sample_rows(evaluation.truth, _ROWS, seed)
    rows = unit_vectors(model, take_rows(X, shown))
    everything = np.vstack([rows, representative_points(model)]).astype(np.float64)
    n_components = min(2, everything.shape[1])
    pca = PCA(
        n_components,
        svd_solver="full" if everything.shape[1] < 500 else "randomized",
        random_state=seed,
    )
    flat = np.zeros((len(everything), 2))
    flat[:, :n_components] = pca.fit_transform(everything)
    explained = float(np.nan_to_num(pca.explained_variance_ratio_).sum())
    return LearnedMap(flat[: len(rows)], evaluation.truth[shown], flat[len(rows) :], explained)
