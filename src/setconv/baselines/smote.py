"""SMOTE: new rows between a row of a small class and one of its nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from imblearn.over_sampling import SMOTE
from scipy import sparse

from setconv.baselines.sampling import OverSampler, Rows
from setconv.checks import check_integer

__all__ = ["SMOTESampler"]


class SMOTEBased(OverSampler):
    """Base of the samplers that use SMOTE, wholly or where their own way is not open."""

    def _smote(
        self,
        X: Rows,
        codes: np.ndarray,
        code: int,
        count: int,
        k_neighbors: int,
        random: np.random.RandomState,
    ) -> Rows:
        """Make new rows of a class by SMOTE over all of it; a class too small is said."""
        members = X[np.flatnonzero(codes == code)]
        rows = members.shape[0]
        label = self.classes_.tolist()[code]
        if rows == 1:
            self._fall_back(f"class {label!r} has 1 row, which has no neighbour: it was duplicated")
        elif rows <= k_neighbors:
            self._fall_back(
                f"class {label!r} has {rows} rows: SMOTE used {rows - 1} neighbours instead of "
                f"{k_neighbors}"
            )
        return interpolated(members, count, k_neighbors, random)


class SMOTESampler(SMOTEBased):
    """Synthetic minority over-sampling, for classes of any size.

    Each new row is ``x + a (z - x)``: x a row of the class, z one of its k nearest neighbours of
    the same class, a uniform on [0, 1). Classes are enlarged one by one, each to the size of the
    largest unless ``sampling_strategy`` says otherwise.

    Original: the rule and k = 5. The rows are made by imbalanced-learn's SMOTE, which draws x at
    random. Ours: a class with fewer than k + 1 rows uses all the neighbours that it has, and a
    class of one row is duplicated; both are said.

    Parameters
    ----------
    k_neighbors : int, default=5
        Neighbours among which z is drawn; 5 is the paper's.
    sampling_strategy : float, str, dict or callable, default='auto'
        Which classes are enlarged and how far, as in imbalanced-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    sampling_strategy_ : dict
        How many rows each class is to gain.
    fallbacks_ : list of str
        What could not be done, and what was done instead.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    Notes
    -----
    Rows of integers stay integers, as in imbalanced-learn: what lies between is cut off.

    References
    ----------
    N. V. Chawla, K. W. Bowyer, L. O. Hall, W. P. Kegelmeyer, "SMOTE: Synthetic Minority
    Over-sampling Technique", Journal of Artificial Intelligence Research 16, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from setconv.baselines.smote import SMOTESampler
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> y = np.array(["often"] * 7 + ["rare"] * 3)
    >>> rows, labels = SMOTESampler(k_neighbors=2, random_state=0).fit_resample(X, y)
    >>> rows.shape, int((labels == "rare").sum())
    ((14, 2), 7)
    """

    def __init__(
        self,
        *,
        k_neighbors: int = 5,
        sampling_strategy: Any = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.k_neighbors = k_neighbors
        self.random_state = random_state

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        check_integer("k_neighbors", self.k_neighbors, least=1)
        return super()._fit_resample(X, y)

    def _new_rows(
        self, X: Rows, codes: np.ndarray, code: int, count: int, random: np.random.RandomState
    ) -> Rows:
        return self._smote(X, codes, code, count, self.k_neighbors, random)


def interpolated(
    members: Rows, count: int, k_neighbors: int, random: np.random.RandomState
) -> Rows:
    """Make ``count`` rows between members and their nearest, at most ``k_neighbors``, neighbours.

    One member alone is duplicated. Sparse members give sparse rows.
    """
    rows = members.shape[0]
    if rows == 1:
        return members[np.zeros(count, dtype=int)]
    # imbalanced-learn wants a second class; a row of its own stands in, and nothing comes of it.
    stack = sparse.vstack if sparse.issparse(members) else np.vstack
    smote = SMOTE(
        k_neighbors=min(k_neighbors, rows - 1),
        sampling_strategy={1: rows + count},
        random_state=random,
    )
    labels = np.append(np.ones(rows, dtype=int), 0)
    made, _ = smote.fit_resample(stack([members, members[:1]]), labels)
    return made[rows + 1 :]
