"""OOB, UOB, WEOB1 and WEOB2: online bagging for a stream whose classes are out of balance."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import FLOATS, check_class_number, check_training_rows
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

__all__ = ["OOBClassifier", "UOBClassifier", "WEOB1Classifier", "WEOB2Classifier"]

_RATES = {"oob": oversampling_rate, "uob": undersampling_rate}
_CHUNK = 2048
_NUMBER = (int, float, np.number)

_SHARED_DOCUMENTATION = {
    "stream": """
What is original and what is not. Of the paper only the abstract could be read: OOB and UOB both
kept, and adaptive weights in WEOB1 and WEOB2. Class sizes and rates are as two public
implementations give them, recalls and combination as one does; ``theta`` and ``theta_recall`` are
theirs. Fifty perceptrons and a window of 51 rows are the paper's as remembered, not as read.
Reconstructed here: the members' hidden units and learning rate; one shuffled pass as the stream of
a data set that has no order; and the treatment of the features, whatever the paper's was.
Features are standardised by the mean and variance of the rows seen so far, in fit and
partial_fit alike, and cut off at five standard deviations; perceptrons and logistic regressions
see them divided by the root of their number, so that ``lr`` means the same whatever that is.
The running variance sees a row before it is tested; its label is used only after the test.
""",
    "parameters": """
n_estimators : int, default=50
    Members of each ensemble.
base : {"mlp", "logistic"} or classifier, default="mlp"
    The members: perceptrons with one hidden layer, logistic regressions, or clones of a classifier
    with ``partial_fit``. The first two are trained all at once; clones one by one, which is slow.
hidden : int, default=10
    Hidden units of a perceptron.
lr : float, default=0.1
    Step of the gradient descent of the perceptrons and logistic regressions.
theta : float, default=0.9
    How much of the past the class sizes keep at each row. The default remembers about ten rows: a
    rate is then at most 9, and an imbalance beyond it is not wholly evened out.
theta_recall : float, default=0.9
    How much of the past the recalls keep.
recall_window : int, default=51
    Rows over which the recalls are smoothed.
n_passes : int, default=1
    Times that fit goes over its rows; partial_fit goes once.
shuffle : bool, default=True
    Whether fit shuffles its rows; partial_fit never does.
random_state : int, RandomState instance or None, default=None
    Seeds the order of the rows, the first weights and the Poisson counts.
""",
    "attributes": """
classes_ : ndarray of shape (2,)
    The labels, sorted.
class_sizes_ : ndarray of shape (2,)
    The decayed share of each class.
""",
    "weights": """
weights_ : ndarray of shape (n_ensembles,)
    The weight of each ensemble at prediction, OOB before UOB where there are both.
fallbacks_ : list of str
    What could not be done and what was done instead.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, where X had names.
""",
    "reference": """
S. Wang, L. L. Minku and X. Yao. Resampling-based ensemble methods for online class imbalance
learning. IEEE Transactions on Knowledge and Data Engineering 27(5):1356-1368, 2015.
""",
}
for _name in ("oob", "uob"):
    _SHARED_DOCUMENTATION[_name] = f"""
recall_{_name}_ : ndarray of shape (2,)
    The smoothed recall of each class by {_name.upper()}, each row tested before it was learned.
gmean_{_name}_ : float
    The geometric mean of these recalls.
"""


_Class = TypeVar("_Class", bound=type)


def _documented(cls: _Class) -> _Class:
    """Put what the four classifiers share in place of the names in braces."""
    text = cleandoc(cls.__doc__ or "")
    for name, part in _SHARED_DOCUMENTATION.items():
        text = text.replace(f"{{{name}}}", part.strip())
    cls.__doc__ = text
    return cls


class _OnlineBagging(FallbackMixin, ClassifierMixin, BaseEstimator):
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

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the larger mean probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = tags.classifier_tags or ClassifierTags()
        tags.classifier_tags.multi_class = False
        return tags


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


@_documented
class OOBClassifier(_OnlineBagging):
    """Oversampling-based online bagging: each member learns a row of a rare class several times.

    For each row of the stream: test the ensemble on it, update the decayed class sizes w, and
    train each member k times on it, k drawn from a Poisson distribution of rate
    ``w_max / w_c``, c the class of the row (the improved rule of the 2015 paper). Two classes only,
    as in the paper; memory does not grow with the stream.

    {stream}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    {oob}
    {weights}

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.weob import OOBClassifier
    >>> X, y = make_classification(500, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = OOBClassifier(random_state=0)
    >>> for start in range(0, 500, 100):
    ...     part = slice(start, start + 100)
    ...     clf = clf.partial_fit(X[part], y[part], classes=[0, 1])
    >>> clf.predict_proba(X).shape
    (500, 2)
    """

    _ensembles = ("oob",)


@_documented
class UOBClassifier(_OnlineBagging):
    """Undersampling-based online bagging: a member seldom learns a row of a frequent class.

    As `OOBClassifier`, but the rate is ``w_min / w_c``, which is 1 for the rarer class and less for
    the other. Two classes only, as in the paper; memory does not grow with the stream.

    {stream}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    {uob}
    {weights}

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.weob import UOBClassifier
    >>> X, y = make_classification(500, weights=[0.9], class_sep=2, random_state=0)
    >>> UOBClassifier(random_state=0).fit(X, y).predict_proba(X).shape
    (500, 2)
    """

    _ensembles = ("uob",)


class _BothEnsembles(_OnlineBagging):
    """OOB and UOB side by side, weighed by their G-means on the rows as they were tested."""

    _ensembles = ("oob", "uob")
    _undecided: ClassVar[str]

    def _report(self) -> None:
        if self.gmean_oob_ == self.gmean_uob_ == 0:
            self._fall_back(
                f"neither ensemble recognised both classes in the last {self.recall_window} rows, "
                f"so their G-means of 0 give no preference; {self._undecided}"
            )


@_documented
class WEOB1Classifier(_BothEnsembles):
    """Weighted ensemble of OOB and UOB: their scores are mixed in proportion to their G-means.

    Both ensembles learn the whole stream (`OOBClassifier`, `UOBClassifier`). Each has a G-mean
    ``G``, the geometric mean of its smoothed recalls; the probability is
    ``a_O p_O + a_U p_U`` with ``a_O = G_O / (G_O + G_U)`` and ``a_U = G_U / (G_O + G_U)``. If both
    G-means are 0 the weights are equal, a choice made here.

    {stream}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    {oob}
    {uob}
    {weights}

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.weob import WEOB1Classifier
    >>> X, y = make_classification(500, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = WEOB1Classifier(random_state=0).fit(X, y)
    >>> float(clf.weights_.sum())
    1.0
    """

    _undecided = "both have the same weight"

    def _weights(self, gmeans: np.ndarray) -> np.ndarray:
        total = gmeans.sum()
        return gmeans / total if total > 0 else np.full(2, 0.5)


@_documented
class WEOB2Classifier(_BothEnsembles):
    """Weighted ensemble of OOB and UOB: the one with the larger G-mean decides alone.

    Both ensembles learn the whole stream (`OOBClassifier`, `UOBClassifier`). Each has a G-mean,
    the geometric mean of its smoothed recalls; the probability is that of OOB if its G-mean is
    larger, else that of UOB.

    {stream}

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    {oob}
    {uob}
    {weights}

    References
    ----------
    {reference}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.weob import WEOB2Classifier
    >>> X, y = make_classification(500, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = WEOB2Classifier(random_state=0).fit(X, y)
    >>> sorted(clf.weights_.tolist())
    [0.0, 1.0]
    """

    _undecided = "UOB is used"

    def _weights(self, gmeans: np.ndarray) -> np.ndarray:
        return np.array([1.0, 0.0]) if gmeans[0] > gmeans[1] else np.array([0.0, 1.0])
