"""Online bagging, row by row: what OOB, UOB and both WEOB have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from setconv.baselines.checking import FLOATS, check_class_number, check_training_rows
from setconv.baselines.deciding import ArgmaxMixin, BinaryOnlyMixin
from setconv.baselines.fallbacks import FallbackMixin
from setconv.baselines.online_members import (
    ClonedMembers,
    Members,
    RunningScaler,
    StackedLogistic,
    StackedMLPs,
)
from setconv.baselines.online_rates import (
    DecayedClassSizes,
    SmoothedRecall,
    oversampling_rate,
    undersampling_rate,
)
from setconv.checks import check_integer
from setconv.errors import LabelError, ParameterError

_RATES = {"oob": oversampling_rate, "uob": undersampling_rate}
_CHUNK = 2048
_NUMBER = (int, float, np.number)


class OnlineBagging(ArgmaxMixin, BinaryOnlyMixin, FallbackMixin, ClassifierMixin, BaseEstimator):
    """One or both of the ensembles, learning row by row."""

    _ensembles: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        base: Any = "mlp",
        hidden: int = 10,
        lr: float = 0.1,
        theta: float = 0.9,
        theta_recall: float = 0.9,
        recall_window: int = 51,
        n_passes: int = 1,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.base = base
        self.hidden = hidden
        self.lr = lr
        self.theta = theta
        self.theta_recall = theta_recall
        self.recall_window = recall_window
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, then learn from the rows as from a stream.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_parameters()
        rows, codes, classes = check_training_rows(self, X, y, binary=True)
        random = self._begin(classes, rows.shape[1])
        for _ in range(self.n_passes):
            order = random.permutation(len(rows)) if self.shuffle else np.arange(len(rows))
            self._learn(rows, codes, order)
        self._report()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from the next rows of the stream, each once and in their order.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels; a part of the stream may lack a class.
        classes : array-like of shape (2,), default=None
            Both labels of the stream. Needed at the first call, and may be left out afterwards.

        Returns
        -------
        self : object
            Updated.
        """
        self._check_parameters()
        first = not hasattr(self, "classes_")
        rows, y = validate_data(self, X, y, dtype=FLOATS, reset=first)
        check_classification_targets(y)
        announced = self._announced(classes, first)
        codes = _codes(y, announced)
        if first:
            self._begin(announced, rows.shape[1])
        self._learn(rows, codes, np.arange(len(rows)))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Average the members' probabilities, then weigh the ensembles by ``weights_``.

        They are probabilities for the resampled stream, in which the classes are about as frequent
        as each other.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, 2)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, reset=False)
        positive = np.concatenate(
            [self._ensemble_means(part) @ self.weights_ for part in _parts(rows)]
        )
        return np.column_stack([1 - positive, positive])

    def _ensemble_means(self, rows: np.ndarray) -> np.ndarray:
        """Return the mean probability of class 1 in each ensemble, of shape (n, ensembles)."""
        members = self._members.probabilities(self._scaler.transform(rows))
        return np.asarray(members.reshape(len(rows), len(self._ensembles), -1).mean(axis=2))

    def _begin(self, classes: np.ndarray, n_features: int) -> np.random.RandomState:
        """Start with nothing learned."""
        self.fallbacks_ = []
        self.classes_ = classes
        random: np.random.RandomState = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        # Each ensemble has its own generator, so that it is the same alone and within WEOB.
        self._randoms = [
            np.random.default_rng([seed, number])
            for number, name in enumerate(_RATES)
            if name in self._ensembles
        ]
        self._scaler = RunningScaler(n_features)
        self._members = self._new_members(n_features)
        self._class_sizes = DecayedClassSizes(2, self.theta)
        self._recalls = [
            SmoothedRecall(2, self.theta_recall, self.recall_window) for _ in self._ensembles
        ]
        return random

    def _new_members(self, n_features: int) -> Members:
        number, rate = self.n_estimators, self.lr
        if not isinstance(self.base, str):
            return ClonedMembers(self.base, self._randoms, number)
        if self.base == "mlp":
            return StackedMLPs(self._randoms, number, n_features, self.hidden, rate)
        return StackedLogistic(len(self._ensembles) * number, n_features, rate)

    def _learn(self, rows: np.ndarray, codes: np.ndarray, order: np.ndarray) -> None:
        # A row is a small product: threads would cost ten times what they bring.
        with threadpool_limits(limits=1, user_api="blas"):
            for place in order:
                self._test_then_train(rows[place], int(codes[place]))
        self._keep_state()

    def _test_then_train(self, row: np.ndarray, code: int) -> None:
        """Do steps 1 to 5 for one row of the stream."""
        self._scaler.update(row)
        self._class_sizes.update(code)
        counts = [
            random.poisson(_RATES[name](self._class_sizes.sizes, code), self.n_estimators)
            for name, random in zip(self._ensembles, self._randoms, strict=True)
        ]
        inputs = self._scaler.transform(row)
        members = self._members.test_then_train(inputs, code, np.concatenate(counts))
        means = members.reshape(len(self._ensembles), -1).mean(axis=1)
        for recall, mean in zip(self._recalls, means, strict=True):
            recall.update(code, bool((mean > 0.5) == code))

    def _keep_state(self) -> None:
        self.class_sizes_ = self._class_sizes.sizes.copy()
        for name, recall in zip(self._ensembles, self._recalls, strict=True):
            setattr(self, f"recall_{name}_", recall.smoothed())
            setattr(self, f"gmean_{name}_", recall.gmean())
        self.weights_ = self._weights(np.array([recall.gmean() for recall in self._recalls]))

    def _weights(self, gmeans: np.ndarray) -> np.ndarray:
        """Weigh the ensembles; an ensemble alone has the weight 1."""
        return np.ones_like(gmeans)

    def _report(self) -> None:
        """Say what could not be done, where there is a choice of ensembles."""

    def _announced(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None and first:
            raise ParameterError(
                "classes=None at the first call of partial_fit: give both labels of the stream, "
                "such as classes=[0, 1]."
            )
        if classes is None:
            return np.asarray(self.classes_)
        announced = np.unique(classes)
        check_class_number(type(self).__name__, announced, binary=True)
        if not first and not np.array_equal(announced, self.classes_):
            raise ParameterError(
                f"classes={announced.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}: give the same, or start anew with fit."
            )
        return announced

    def _check_parameters(self) -> None:
        for name in ("n_estimators", "hidden", "recall_window", "n_passes"):
            check_integer(name, getattr(self, name), least=1)
        for name in ("theta", "theta_recall"):
            value = getattr(self, name)
            if not (isinstance(value, _NUMBER) and 0 <= value < 1):
                raise ParameterError(f"{name}={value!r}: give a number from 0 to below 1.")
        rate: Any = self.lr
        if not (isinstance(rate, _NUMBER) and 0 < rate < np.inf):
            raise ParameterError(f"lr={rate!r}: give a positive number.")
        named = isinstance(self.base, str) and self.base in ("mlp", "logistic")
        if not named and not hasattr(self.base, "partial_fit"):
            raise ParameterError(
                f'base={self.base!r}: give "mlp", "logistic", or a classifier with partial_fit.'
            )


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise LabelError(
            f"labels {unknown.tolist()} are not among the classes {classes.tolist()}: remove "
            f"their rows, or start anew with fit."
        )
    return np.searchsorted(classes, y)


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    return (rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK))
