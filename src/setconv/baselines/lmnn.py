"""LMNN: a linear map in which a row's nearest rows are of its class, by a large margin."""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import FLOATS, check_training_rows
from setconv.baselines.fallbacks import FallbackMixin
from setconv.baselines.lmnn_objective import (
    Triplets,
    lmnn_objective,
    pair_distances,
    target_pairs,
    with_impostors,
)
from setconv.checks import check_integer
from setconv.errors import ParameterError

_LEAST_FALL = 1e-5  # share of the objective; less in one active set and the descent is over

_log = logging.getLogger("setconv")


class LMNN(FallbackMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Large margin nearest neighbours: the metric that iterative metric learning iterates.

    Learns a linear map L that pulls each row to its target neighbours, the nearest rows of its
    class, and pushes rows of other classes (impostors) out of a unit margin around them:
    ``(1 - push) sum |L(x_i - x_j)|^2 + push sum [1 + |L(x_i - x_j)|^2 - |L(x_i - x_l)|^2]_+``.

    Original are the objective, target neighbours that stay fixed, and impostors kept in an active
    set that is renewed from time to time. Choices of this library: L-BFGS on L instead of
    projected gradients on L^T L; rows are first divided by the root mean squared distance to a
    target neighbour, since the margin is of unit size; the active set of a row is its
    ``max_impostors`` nearest rows of other classes, in or near the margin; of
    more than ``max_rows`` rows a subset is learned from, in which each class has an equal share or
    all its rows, whichever is less, so that a rare class stays whole.

    A class of one row has no target neighbours: its row is only pushed by others. With hundreds
    of features, reduce them first: L has as many numbers as the square of the features.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of each row, or all rows of its class if they are fewer. Three is the
        default of other libraries.
    push : float, default=0.5
        Share of the push term, from 0 to 1; 0.5 is the default of other libraries.
    n_components : int, default=None
        Rows of L, which starts from that many principal axes; None for as many as there are
        features, starting from the identity.
    max_iter : int, default=30
        Steps of L-BFGS in all. A choice of this library, for speed.
    max_rows : int, default=5000
        Most rows to learn from; None for all. A choice of this library, for speed.
    max_impostors : int, default=50
        Rows of other classes in the active set of each row. A choice of this library, for speed.
    impostor_refresh : int, default=5
        Steps after which impostors are searched for again. A choice of this library.
    random_state : int, RandomState instance or None, default=None
        Draws the subset of rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        The map L, in units in which the margin is 1.
    objectives_ : list of ndarray
        For each active set of impostors the objective before and after each step; it falls.
    row_indices_ : ndarray
        The rows that were learned from.
    n_iter_ : int
        Steps that were made.
    fallbacks_ : list of str
        What could not be done.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    K. Q. Weinberger and L. K. Saul. Distance metric learning for large margin nearest neighbor
    classification. Journal of Machine Learning Research 10 (2009), 207-244.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from setconv.baselines.lmnn import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        push: float = 0.5,
        n_components: int | None = None,
        max_iter: int = 30,
        max_rows: int | None = 5000,
        max_impostors: int = 50,
        impostor_refresh: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.push = push
        self.n_components = n_components
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.max_impostors = max_impostors
        self.impostor_refresh = impostor_refresh
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self : LMNN
            Fitted.
        """
        rows, codes, _ = check_training_rows(self, X, y)
        self._check_parameters(rows.shape[1])
        self.fallbacks_ = []
        random = check_random_state(self.random_state)
        self.row_indices_ = balanced_subset(codes, self.max_rows, random)
        codes = codes[self.row_indices_]
        centred = rows[self.row_indices_].astype(np.float64)
        centred -= centred.mean(axis=0)
        learned = self._first_map(centred, random)
        self.n_iter_ = 0
        self.objectives_: list[np.ndarray] = []
        targets = target_pairs(centred, codes, self.n_neighbors)
        if len(targets) == 0:
            self._fall_back("no class has two rows to pull together; the metric is the first one")
        else:
            unit = self._unit(learned, centred, targets)
            learned = self._learned(learned, centred / unit, codes, targets) / unit
        self.components_ = learned.astype(rows.dtype)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Map rows to where Euclidean distances are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        mapped : ndarray of shape (n, n_components)
            The rows times the transpose of ``components_``.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        return np.asarray(rows @ self.components_.T.astype(rows.dtype))

    def _check_parameters(self, n_features: int) -> None:
        for name in ("n_neighbors", "max_iter", "max_impostors", "impostor_refresh"):
            check_integer(name, getattr(self, name), least=1)
        if self.max_rows is not None:
            check_integer("max_rows", self.max_rows, least=2)
        if not 0 <= self.push <= 1:
            raise ParameterError(f"push={self.push!r}: give a share from 0 to 1.")
        if self.n_components is not None:
            check_integer("n_components", self.n_components, least=1)
            if self.n_components > n_features:
                raise ParameterError(
                    f"n_components={self.n_components}: the rows have {n_features} features; "
                    f"give at most {n_features}, or None."
                )

    def _first_map(self, centred: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if self.n_components is None:
            return np.eye(centred.shape[1])
        n_axes = min(self.n_components, len(centred))
        if n_axes < self.n_components:
            self._fall_back(
                f"{n_axes} rows have at most {n_axes} principal axes; the map has as many rows "
                f"instead of {self.n_components}"
            )
        return np.array(PCA(n_axes, random_state=random).fit(centred).components_)

    def _unit(self, start: np.ndarray, centred: np.ndarray, targets: np.ndarray) -> float:
        """Give the root mean squared distance to a target neighbour."""
        mean = float(pair_distances(centred @ start.T, targets).mean())
        if mean > 0:
            return float(np.sqrt(mean))
        self._fall_back("all target neighbours are equal rows; distances keep their unit")
        return 1.0

    def _learned(
        self, L: np.ndarray, X: np.ndarray, codes: np.ndarray, targets: np.ndarray
    ) -> np.ndarray:
        falling = True
        while falling and self.n_iter_ < self.max_iter:
            triplets = with_impostors(X @ L.T, codes, targets, self.max_impostors)
            steps_left = self.max_iter - self.n_iter_
            L, values = self._descend(L, X, triplets, min(self.impostor_refresh, steps_left))
            falling = values[0] - values[-1] > _LEAST_FALL * values[0]
            self.n_iter_ += len(values) - 1
            self.objectives_.append(values)
            _log.debug("LMNN: %d steps, objective %.6g", self.n_iter_, values[-1])
        return L

    def _descend(
        self, L: np.ndarray, X: np.ndarray, triplets: Triplets, steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make steps of L-BFGS with one active set; give the map and the objective's values."""

        def flat_objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = lmnn_objective(flat.reshape(L.shape), X, triplets, self.push)
            return value, gradient.ravel()

        values = [flat_objective(L.ravel())[0]]

        def keep_value(intermediate_result: OptimizeResult) -> None:
            values.append(float(intermediate_result.fun))

        found = minimize(
            flat_objective,
            L.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=keep_value,
            options={"maxiter": steps},
        )
        return found.x.reshape(L.shape), np.array(values)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def balanced_subset(
    codes: np.ndarray, max_rows: int | None, random: np.random.RandomState
) -> np.ndarray:
    """Draw at most ``max_rows`` rows, of each class an equal share or all it has, in order.

    What a class has less than its share goes to the larger ones.
    """
    if max_rows is None or len(codes) <= max_rows:
        return np.arange(len(codes))
    classes, counts = np.unique(codes, return_counts=True)
    kept, left = [], max_rows
    for position, place in enumerate(np.argsort(counts, kind="stable")):
        quota = min(int(counts[place]), left // (len(classes) - position))
        (members,) = np.nonzero(codes == classes[place])
        kept.append(random.choice(members, quota, replace=False))
        left -= quota
    return np.sort(np.concatenate(kept))
