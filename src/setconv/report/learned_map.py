"""The learned space on paper: how similar rows are to the representatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from setconv.explain.space import representative_directions, representative_points
from setconv.report.evaluation import Codes, Evaluation, Floats
from setconv.report.sampling import sample_rows
from setconv.report.similarity import Compared

_ROWS = 1500


@dataclass(frozen=True)
class LearnedMap:
    """Rows and representatives in two dimensions.

    Attributes
    ----------
    points : float64 array of shape (n_shown, 2)
        Of two classes: the similarity to the main one and to the other.
    classes : int64 array of shape (n_shown,)
        The true classes of the points.
    representatives : float64 array of shape (n_classes, 2)
    explained : float or None
        Of more classes: the share of the variance that the two dimensions show.
    """

    points: Floats
    classes: Codes
    representatives: Floats
    explained: float | None


def draw_map(model: Any, evaluation: Evaluation, compared: Compared, seed: int) -> LearnedMap:
    """Lay a sample of the compared rows, and the representatives, on paper.

    Two classes have two similarities; of more, the first two principal components are shown.
    """
    shown = sample_rows(compared.codes, _ROWS, seed)
    rows, codes = compared.similarities[shown], compared.codes[shown]
    points, directions = representative_points(model), representative_directions(model)
    stars = points.astype(np.float64) @ directions.T.astype(np.float64)
    if evaluation.binary:
        axes = [evaluation.main, 1 - evaluation.main]
        return LearnedMap(rows[:, axes], codes, stars[:, axes], None)
    pca = PCA(2, svd_solver="full")
    flat = pca.fit_transform(np.vstack([rows, stars]))
    explained = float(np.nan_to_num(pca.explained_variance_ratio_).sum())
    return LearnedMap(flat[: len(rows)], codes, flat[len(rows) :], explained)
