"""What the systems share: checks, decisions, fallbacks, seeds, and the bases of the samplers.

A system is a `Classifier`, or a sampler of imbalanced-learn's interface through `OverSampler` or
`UnderSampler`, which says only which rows it makes or keeps. Each is a dataclass of its parameters,
which compares and shows itself as scikit-learn's estimators do. The labels reach all as codes
0..C-1, so that the result cannot depend on how the classes are called.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import Field, field, fields
from typing import Any, ClassVar

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.under_sampling.base import BaseUnderSampler
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.errors import LabelError
from setconv.sampling import draw_by_class
from setconv.validation import check_parameter

FLOATS = [np.float64, np.float32]
Rows = Any  # a dense matrix or one of scipy.sparse
Random = np.random.RandomState


class FallbackWarning(UserWarning):
    """A baseline could not do what it is for and did something else."""


def parameter(default: Any, *allowed: Any) -> Any:
    """Declare a parameter: its default, and what is checked when a fit begins, any one of these."""
    return field(default=default, metadata={"allowed": list(allowed)})


class System:
    """What classifiers and samplers have in common: checks, and a record of what they did instead.

    Attributes
    ----------
    fallbacks_ : list of str
        What was done instead, sentence by sentence, in order.
    """

    classes_: np.ndarray
    fallbacks_: list[str]
    random_state: Any
    _binary_only: ClassVar[bool] = False
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def _validate_params(self) -> None:
        """Check the parameters; for samplers imbalanced-learn calls it, and constrains its own."""
        allowed = dict(getattr(self, "_parameter_constraints", {}))
        allowed |= {one.name: one.metadata["allowed"] for one in fields(self) if one.metadata}
        for name, constraints in allowed.items():
            check_parameter(self, name, getattr(self, name), constraints)

    def _begin(self, y: np.ndarray) -> tuple[np.ndarray, Random]:
        """Forget what was learned; return the labels as codes, and the random state."""
        self.fallbacks_ = []
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_class_number()
        return codes, check_random_state(self.random_state)

    def _check_class_number(self) -> None:
        """Raise unless there are two classes, or more where the method takes more."""
        name, number = type(self).__name__, len(self.classes_)
        if number < 2:
            raise LabelError(
                f"{name} needs at least two classes; the labels have one class: "
                f"{self.classes_.tolist()}. Add rows of another class."
            )
        if self._binary_only and number > 2:
            raise LabelError(
                f"Only binary classification is supported. The type of the target is multiclass. "
                f"{name} is defined for two classes and the labels have {number}: take one class "
                f"against the rest, sklearn.multiclass.OneVsRestClassifier(...)."
            )

    def _fall_back(self, sentence: str) -> None:
        """Warn of a fallback and keep the sentence."""
        self.fallbacks_.append(sentence)
        warnings.warn(f"{type(self).__name__}: {sentence}", FallbackWarning, stacklevel=2)


class Classifier(System, ClassifierMixin, BaseEstimator):
    """Base of the systems that are classifiers."""

    def _check_training(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Random]:
        """Check parameters, rows and labels; return rows, codes of the classes, and a random state.

        Rows in single precision stay so.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=FLOATS)
        check_classification_targets(y)
        return X, *self._begin(y)

    def _check_rows(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Check rows to be predicted; the classifier must be fitted."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=dtype, reset=False))


class BinaryClassifier(Classifier):
    """Base of the classifiers of two classes that have a score from 0 to 1 for the second."""

    _binary_only = True

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the larger probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        chosen = (self._second_class(X) > 0.5).astype(int)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class, for classes of about the same weight.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, 2)
            Columns in the order of ``classes_``.
        """
        second = self._second_class(X)
        return np.column_stack([1 - second, second])

    @abstractmethod
    def _second_class(self, X: Any) -> np.ndarray:
        """Give the probability of the second class, of shape (n,)."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class LogScoresClassifier(Classifier):
    """Base of those that decide and rank by logarithms of scores, of which nothing underflows."""

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


def draw_seed(random: Random) -> int:
    """Draw the seed of one part, so that what another part draws does not change it."""
    return int(random.randint(np.iinfo(np.int32).max))


def cloned(estimator: Any, random: Random) -> Any:
    """Clone an estimator and give a seed to each part of it that has none."""
    copy = clone(estimator)
    seeds = {
        name: draw_seed(random)
        for name, value in sorted(copy.get_params(deep=True).items())
        if name.split("__")[-1] == "random_state" and value is None
    }
    return copy.set_params(**seeds)


class EarlyStoppingMixin(System):
    """Sets rows aside for early stopping, the same share of each class."""

    early_stopping: bool
    validation_fraction: float

    def _held_out(self, codes: np.ndarray, random: Random) -> np.ndarray:
        """Choose the rows, as a mask; none without early stopping or two classes to judge by."""
        held_out = np.zeros(len(codes), dtype=bool)
        if not self.early_stopping:
            return held_out
        counts = np.bincount(codes)
        sizes = (self.validation_fraction * counts + 0.5).astype(int)
        lacking = np.flatnonzero(sizes == 0)
        judged = len(counts) - len(lacking) >= 2
        drawn = draw_by_class(codes, sizes, random)
        if len(lacking):
            classes = [f"{self.classes_[code].item()!r} ({counts[code]})" for code in lacking]
            instead = "the other classes alone decide when to stop"
            self._fall_back(
                f"of some classes {self.validation_fraction:g} is less than half a row, so none is "
                f"set aside for early stopping: class (rows) {', '.join(classes)}; "
                f"{instead if judged else 'training goes on to its end'}"
            )
        held_out[drawn] = judged
        return held_out


def _numbers_by_code(sampler: Any) -> dict[int, int]:
    """Give the sampling strategy by code instead of by label."""
    code = {label: number for number, label in enumerate(sampler.classes_.tolist())}
    return {code[label]: int(rows) for label, rows in sampler.sampling_strategy_.items()}


class OverSampler(System, BaseOverSampler):
    """Base of the samplers that add rows."""

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, random = self._begin(y)
        missing = {code: count for code, count in _numbers_by_code(self).items() if count > 0}
        if not missing:
            self._fall_back("no class has fewer rows than it should; the rows are as they were")
        parts, labels = [X], [y]
        for code, count in missing.items():
            label = self.classes_.tolist()[code]
            parts.append(self._new_rows(X, codes == code, label, count, random))
            labels.append(np.full(count, self.classes_[code], dtype=y.dtype))
        stacked = sparse.vstack(parts, format=X.format) if sparse.issparse(X) else np.vstack(parts)
        return stacked, np.concatenate(labels)

    @abstractmethod
    def _new_rows(self, X: Rows, own: np.ndarray, label: Any, count: int, random: Random) -> Rows:
        """Make exactly ``count`` new rows of the class of the rows ``own``, of the type of X."""


class UnderSampler(System, BaseUnderSampler):
    """Base of the samplers that keep a part of the rows; ``sample_indices_`` are those kept."""

    sample_indices_: np.ndarray

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, random = self._begin(y)
        counts = np.bincount(codes)
        targets = {
            code: rows for code, rows in _numbers_by_code(self).items() if rows < counts[code]
        }
        if targets:
            self.sample_indices_ = np.sort(self._kept_rows(X, codes, targets, random))
        else:
            self._fall_back("no class has more rows than it should; the rows are as they were")
            self.sample_indices_ = np.arange(len(codes))
        return X[self.sample_indices_], y[self.sample_indices_]

    @abstractmethod
    def _kept_rows(
        self, X: Rows, codes: np.ndarray, targets: dict[int, int], random: Random
    ) -> np.ndarray:
        """Choose the rows to keep; ``targets`` is how many of each class that is to be reduced."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags
