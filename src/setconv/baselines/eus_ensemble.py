"""EUS for many rows: one under-sampling and one classifier for each partition of the rows."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import FLOATS, check_training_rows, require_rows
from setconv.baselines.deciding import ArgmaxMixin, BinaryOnlyMixin
from setconv.baselines.eus import EvolutionaryUnderSampler
from setconv.baselines.fallbacks import FallbackMixin, FallbackWarning
from setconv.baselines.seeding import cloned
from setconv.errors import ParameterError

__all__ = ["EUSEnsembleClassifier"]

PARTITION_ROWS = 1_000  # what 'auto' aims at
PARTITION_MINORITY_ROWS = 30  # and the least of the rarer class that it accepts for it


class EUSEnsembleClassifier(
    ArgmaxMixin, BinaryOnlyMixin, FallbackMixin, ClassifierMixin, BaseEstimator
):
    """Partitioned evolutionary under-sampling (EUS) of Triguero et al., for two classes.

    The rows are dealt into partitions with the same share of each class. In each, EUS chooses rows
    and one decision tree learns from them. The probabilities of all trees are averaged.

    Features are standardised first, by all training rows: EUS is led by Euclidean neighbours.

    Parameters
    ----------
    n_partitions : int or 'auto', default='auto'
        Number of partitions. 'auto' makes them of about 1,000 rows, or larger where that would be
        fewer than 30 rows of the rarer class.
    sampler : sampler, default=None
        Anything with ``fit_resample``; None is ``EvolutionaryUnderSampler()``.
    estimator : classifier, default=None
        One with ``predict_proba``; None is ``DecisionTreeClassifier(min_samples_leaf=2)``.
    broadcast_minority : bool, default=False
        Whether each partition has all rows of the rarer class.
    n_jobs : int or None, default=None
        Number of processes; None is one.
    random_state : int, RandomState instance or None, default=None
        Seeds the partitions, and the samplers and classifiers that have no seed of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    scaler_ : StandardScaler
        The fitted standardisation.
    samplers_ : list of samplers
        One for each partition, fitted.
    estimators_ : list of classifiers
        One for each partition, fitted on codes 0 and 1, the places in ``classes_``.
    fallbacks_ : list of str
        What could not be done and was done instead.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    Notes
    -----
    Original, by the abstract and the code that its authors published: partitions, EUS with
    windowing and one tree in each. Their tree is C4.5 with pruning (confidence .25) and at least
    two rows in a leaf; here it is CART with at least two rows in a leaf, not pruned. Their trees
    vote; here probabilities are averaged, which gives a score to rank by. Chosen here:
    standardisation, and the size of the partitions. A tree that learns from a few hundred rows of
    text embeddings ranks poorly and only the average of many is of use, so that partitions are
    small; where there are too few rows for many trees, give another ``estimator``. Of their second
    variant, ``broadcast_minority`` is here, but not its change to global selection in partitions
    that are nearly balanced.

    References
    ----------
    Triguero, I., M. Galar, S. Vluymans, C. Cornelis, H. Bustince, F. Herrera, Y. Saeys,
    "Evolutionary undersampling for imbalanced big data classification", IEEE CEC 2015, 715-722.

    S. García, F. Herrera, "Evolutionary undersampling for classification with imbalanced
    datasets: proposals and taxonomy", Evolutionary Computation 17(3), 275-306, 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.eus import EvolutionaryUnderSampler
    >>> from setconv.baselines.eus_ensemble import EUSEnsembleClassifier
    >>> X, y = make_classification(400, weights=[0.9], random_state=0)
    >>> sampler = EvolutionaryUnderSampler(max_evaluations=500)
    >>> clf = EUSEnsembleClassifier(n_partitions=3, sampler=sampler, random_state=0).fit(X, y)
    >>> len(clf.estimators_), clf.predict_proba(X).shape
    (3, (400, 2))
    """

    def __init__(
        self,
        *,
        n_partitions: int | str = "auto",
        sampler: Any = None,
        estimator: Any = None,
        broadcast_minority: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_partitions = n_partitions
        self.sampler = sampler
        self.estimator = estimator
        self.broadcast_minority = broadcast_minority
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a sampler and a classifier on each partition of the training rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self : EUSEnsembleClassifier
            Fitted.
        """
        rows, codes, self.classes_ = check_training_rows(self, X, y, binary=True)
        self.fallbacks_ = []
        require_rows(codes, self.classes_, 2, "leave-one-out 1-NN", "Add rows of it.")
        sampler = EvolutionaryUnderSampler() if self.sampler is None else self.sampler
        estimator = self.estimator
        if estimator is None:
            estimator = DecisionTreeClassifier(min_samples_leaf=2)
        elif not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                f"estimator is {estimator!r}, which gives no probabilities to average; "
                f"give a classifier with predict_proba."
            )
        random = check_random_state(self.random_state)
        self.scaler_ = StandardScaler().fit(rows)
        rows = self.scaler_.transform(rows)
        partitions = deal(codes, self._number(codes), random, broadcast=self.broadcast_minority)
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_member)(
                cloned(sampler, random), cloned(estimator, random), rows[part], codes[part]
            )
            for part in partitions
        )
        self.samplers_ = [sampler for sampler, _ in fitted]
        self.estimators_ = [estimator for _, estimator in fitted]
        for number, sampler in enumerate(self.samplers_):
            for sentence in getattr(sampler, "fallbacks_", []):
                self._fall_back(f"in partition {number}, {sentence}")
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Average the probabilities of the classifiers, for the prevalence after resampling.

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
        rows = self.scaler_.transform(validate_data(self, X, dtype=FLOATS, reset=False))
        total = np.zeros((len(rows), 2))
        for estimator in self.estimators_:
            total[:, estimator.classes_] += estimator.predict_proba(rows)
        return total / len(self.estimators_)

    def _number(self, codes: np.ndarray) -> int:
        counts = np.bincount(codes)
        fewest, most = int(counts.min()), int(counts.max())
        if self.n_partitions == "auto":
            return _automatic_number(fewest, most, broadcast=self.broadcast_minority)
        wanted: Any = self.n_partitions
        if not isinstance(wanted, Integral) or int(wanted) < 1:
            raise ParameterError(
                f"n_partitions is {wanted!r}; give 'auto' or an integer from 1 on."
            )
        share = most // (fewest + 1) if self.broadcast_minority else fewest // 2
        possible = max(1, share)
        number = int(wanted)
        if number > possible:
            rarer = self.classes_.tolist()[counts.argmin()]
            self._fall_back(
                f"{number} partitions are more than the rows allow, {fewest} of class {rarer!r} "
                f"and {most} of the other; {possible} were made"
            )
        return min(number, possible)


def _automatic_number(fewest: int, most: int, *, broadcast: bool) -> int:
    wanted = -(-(fewest + most) // PARTITION_ROWS)
    possible = most // (fewest + 1) if broadcast else fewest // PARTITION_MINORITY_ROWS
    return max(1, min(wanted, possible))


def deal(
    codes: np.ndarray, number: int, random: np.random.RandomState, *, broadcast: bool
) -> list[np.ndarray]:
    """Deal the rows of each class into partitions of equal size, or one less.

    Parameters
    ----------
    codes : int ndarray of shape (n,)
        Class of each row, 0 or 1.
    number : int
        Number of partitions.
    random : RandomState
        Source of chance.
    broadcast : bool
        Whether the rarer class is not dealt but goes whole to each partition.

    Returns
    -------
    partitions : list of int ndarray
        The rows of each partition, sorted.
    """
    rarer = np.bincount(codes).argmin()
    hands = []
    for code in (0, 1):
        rows = random.permutation(np.flatnonzero(codes == code))
        whole = broadcast and code == rarer
        hands.append([rows] * number if whole else np.array_split(rows, number))
    return [np.sort(np.concatenate(hand)) for hand in zip(*hands, strict=True)]


def _fit_member(
    sampler: Any, estimator: Any, rows: np.ndarray, codes: np.ndarray
) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)  # the ensemble warns for all processes
        resampled = sampler.fit_resample(rows, codes)
    return sampler, estimator.fit(*resampled)
