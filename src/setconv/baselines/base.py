"""What the systems share: checks, decisions, fallbacks, seeds, and the bases of the samplers.

Classifiers take their checked rows from `check_training_rows` and what they have in common from
mixins. Samplers follow imbalanced-learn's interface through `OverSampler` and `UnderSampler`; a
sampler of ours says only which rows it makes or keeps. The labels reach both as codes 0..C-1, so
that the result cannot depend on how the classes are called.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.under_sampling.base import BaseUnderSampler
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.errors import LabelError, ParameterError

FLOATS = [np.float64, np.float32]
Rows = Any  # a dense matrix or one of scipy.sparse


def check_training_rows(
    estimator: Any, X: Any, y: Any, *, binary: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check rows and labels; return rows, codes of the classes 0..C-1, and the classes.

    Parameters
    ----------
    estimator : estimator
        The one that learns; its ``n_features_in_`` is set.
    X : array-like of shape (n, d)
        Rows; single precision stays single.
    y : array-like of shape (n,)
        Labels of any kind.
    binary : bool, default=False
        Whether more than two classes are an error.
    """
    X, y = validate_data(estimator, X, y, dtype=FLOATS)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    check_class_number(type(estimator).__name__, classes, binary=binary)
    return X, codes, classes


def check_new_rows(estimator: Any, X: Any, dtype: Any = FLOATS) -> np.ndarray:
    """Check rows to be predicted, by an estimator that must be fitted."""
    check_is_fitted(estimator)
    return np.asarray(validate_data(estimator, X, dtype=dtype, reset=False))


def check_class_number(name: str, classes: np.ndarray, *, binary: bool = False) -> None:
    """Raise unless there are two classes, or more where the method takes more."""
    if len(classes) < 2:
        raise LabelError(
            f"{name} needs at least two classes; the labels have one class: {classes.tolist()}. "
            f"Add rows of another class."
        )
    if binary and len(classes) > 2:
        raise LabelError(
            f"Only binary classification is supported. The type of the target is multiclass. "
            f"{name} is defined for two classes and the labels have {len(classes)}: take one class "
            f"against the rest, sklearn.multiclass.OneVsRestClassifier(...)."
        )


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float,
    closed: Literal["neither", "left", "both"] = "neither",
) -> None:
    """Refuse what is no number in the interval, of which the ends named by ``closed`` are part."""
    inside = isinstance(value, (int, float, np.number)) and (
        low < value < high
        or (closed != "neither" and value == low)
        or (closed == "both" and value == high)
    )
    if not inside:
        first, last = "(" if closed == "neither" else "[", "]" if closed == "both" else ")"
        raise ParameterError(f"{name}={value!r}: give a number in {first}{low:g}, {high:g}{last}.")


class LogScoresMixin:
    """Decides and ranks by the logarithm of a score of each class, of which nothing underflows."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        chosen = self._log_scores(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the score of each class over the sum of all.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, C)
            Columns in the order of ``classes_``.
        """
        return np.asarray(softmax(self._log_scores(X), axis=1))

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the log-odds, which rank rows even where all probabilities are 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n,) or (n, C)
            For two classes the log-odds of the second; for more, of each against the others.
        """
        logs = self._log_scores(X)
        odds = [
            logs[:, code] - logsumexp(np.delete(logs, code, axis=1), axis=1)
            for code in range(len(self.classes_))
        ]
        return odds[1] if len(odds) == 2 else np.column_stack(odds)

    @abstractmethod
    def _log_scores(self, X: Any) -> np.ndarray:
        """Give the logarithm of the score of each class, of shape (n, C)."""


class BinaryOnlyMixin:
    """Says by its tags that it takes two classes."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class FallbackWarning(UserWarning):
    """A baseline could not do what it is for and did something else."""


class FallbackMixin:
    """Keeps in ``fallbacks_`` what was done instead, sentence by sentence, in order."""

    fallbacks_: list[str]

    def _fall_back(self, sentence: str) -> None:
        """Warn of a fallback and keep the sentence."""
        self.fallbacks_.append(sentence)
        warnings.warn(f"{type(self).__name__}: {sentence}", FallbackWarning, stacklevel=2)


def draw_seed(random: np.random.RandomState) -> int:
    """Draw the seed of one part, so that what another part draws does not change it."""
    return int(random.randint(np.iinfo(np.int32).max))


def cloned(estimator: Any, random: np.random.RandomState) -> Any:
    """Clone an estimator and give a seed to each part of it that has none."""
    copy = clone(estimator)
    seeds = {}
    for name, value in sorted(copy.get_params(deep=True).items()):
        if name.split("__")[-1] == "random_state" and value is None:
            seeds[name] = draw_seed(random)
    return copy.set_params(**seeds)


def stratified_share(
    codes: np.ndarray, fraction: float, random: np.random.RandomState
) -> np.ndarray:
    """Draw a share of the rows of each class, rounded, as a mask over the rows."""
    drawn = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == code))
        drawn[members[: int(fraction * len(members) + 0.5)]] = True
    return drawn


class EarlyStoppingMixin(FallbackMixin):
    """Sets rows aside for early stopping, the same share of each class."""

    classes_: np.ndarray
    early_stopping: bool
    validation_fraction: float

    def _held_out(self, codes: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """Choose the rows, as a mask; none without early stopping or two classes to judge by."""
        if not self.early_stopping:
            return np.zeros(len(codes), dtype=bool)
        held_out = stratified_share(codes, self.validation_fraction, random)
        lacking = [
            f"{self.classes_[code].item()!r} ({int((codes == code).sum())})"
            for code in np.setdiff1d(codes, codes[held_out])
        ]
        if not lacking:
            return held_out
        too_few = (
            f"of some classes {self.validation_fraction:g} is less than half a row, so none is set "
            f"aside for early stopping: class (rows) {', '.join(lacking)}"
        )
        if len(self.classes_) - len(lacking) >= 2:
            self._fall_back(f"{too_few}; the other classes alone decide when to stop")
            return held_out
        self._fall_back(f"{too_few}; training goes on to its end")
        return np.zeros(len(codes), dtype=bool)


class _Sampler(FallbackMixin):
    """Turns labels into codes and the sampling strategy into numbers by code."""

    classes_: np.ndarray
    random_state: Any
    sampling_strategy_: dict[Any, int]

    def _begin(self, y: np.ndarray) -> tuple[np.ndarray, dict[int, int], np.random.RandomState]:
        self.fallbacks_ = []
        self.classes_, codes = np.unique(y, return_inverse=True)
        code = {label: number for number, label in enumerate(self.classes_.tolist())}
        numbers = {code[label]: int(rows) for label, rows in self.sampling_strategy_.items()}
        return codes, numbers, check_random_state(self.random_state)


class OverSampler(_Sampler, BaseOverSampler):
    """Base of the samplers that add rows."""

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, missing, random = self._begin(y)
        missing = {code: count for code, count in missing.items() if count > 0}
        if not missing:
            self._fall_back("no class has fewer rows than it should; the rows are as they were")
        parts, labels = [X], [y]
        for code, count in missing.items():
            parts.append(self._new_rows(X, codes, code, count, random))
            labels.append(np.full(count, self.classes_[code], dtype=y.dtype))
        if sparse.issparse(X):
            stacked = sparse.vstack(parts, format=X.format)
        else:
            stacked = np.vstack([np.asarray(part, dtype=X.dtype) for part in parts])
        return stacked, np.concatenate(labels)

    @abstractmethod
    def _new_rows(
        self, X: Rows, codes: np.ndarray, code: int, count: int, random: np.random.RandomState
    ) -> Rows:
        """Make exactly ``count`` new rows of class ``code``, sparse if X is."""


class UnderSampler(_Sampler, BaseUnderSampler):
    """Base of the samplers that keep a part of the rows; ``sample_indices_`` are those kept."""

    sample_indices_: np.ndarray

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, targets, random = self._begin(y)
        counts = np.bincount(codes)
        targets = {code: rows for code, rows in targets.items() if rows < counts[code]}
        if targets:
            self.sample_indices_ = np.sort(self._kept_rows(X, codes, targets, random))
        else:
            self._fall_back("no class has more rows than it should; the rows are as they were")
            self.sample_indices_ = np.arange(len(codes))
        return X[self.sample_indices_], y[self.sample_indices_]

    @abstractmethod
    def _kept_rows(
        self, X: Rows, codes: np.ndarray, targets: dict[int, int], random: np.random.RandomState
    ) -> np.ndarray:
        """Choose the rows to keep; ``targets`` is how many of each class that is to be reduced."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags
