"""WEOB2: online bagging for a stream whose classes are out of balance.

After S. Wang, L. L. Minku and X. Yao, "Resampling-based ensemble methods for online class imbalance
learning", IEEE TKDE 27(5), 2015. Original are the two ensembles, one that over-samples and one that
under-samples, and the adaptive choice between them; decided here are the size and learning rate of
the members, how features are scaled, and the stream that a data set without order makes. The class
says it in full. Below it stand its parts: the scaling of a stream, and the members of both
ensembles, stacked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import sger
from scipy.special import expit
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from setconv.baselines.base import FLOATS, BinaryClassifier, Random, draw_seed, parameter
from setconv.errors import LabelError, ParameterError
from setconv.validation import at_least, between

_CHUNK = 2048  # rows that are predicted together
_FARTHEST = 5.0  # in standard deviations: no single value may undo what was learned


@dataclass(kw_only=True, eq=False, repr=False)
class WEOB2Classifier(BinaryClassifier):
    """Weighted ensemble of OOB and UOB: the one with the larger G-mean decides alone.

    OOB and UOB are online bagging by over- and under-sampling; both learn the whole stream. For
    each row of class c:

    1. The decayed class sizes move: ``w_k <- theta w_k + (1 - theta) [c = k]``, from 1/2.
    2. Both ensembles are tested on the row. The recall of class c moves in the same way, with
       ``theta_recall``; smoothed recalls are means over the last ``recall_window`` rows.
    3. Each member is trained k times on the row, k drawn from a Poisson distribution of rate
       ``w_max / w_c`` in OOB and ``w_min / w_c`` in UOB (the improved rule of the 2015 paper).

    The G-mean of an ensemble is the geometric mean of its smoothed recalls; the probability is that
    of OOB if its G-mean is larger, else that of UOB. Two classes only, as in the paper; memory does
    not grow with the stream.

    What is original and what is not. Of the paper only the abstract could be read: OOB and UOB both
    kept, and adaptive weights. Class sizes and rates are as two public implementations give them,
    recalls and combination as one does; ``theta`` and ``theta_recall`` are theirs. Fifty
    perceptrons and a window of 51 rows are the paper's as remembered, not as read. Reconstructed
    here: the members' hidden units and learning rate; one shuffled pass as the stream of a data set
    that has no order; and the treatment of the features, whatever the paper's was. Features are
    standardised by the mean and variance of the rows seen so far, in fit and partial_fit alike, and
    cut off at five standard deviations; perceptrons see them divided by the root of their number,
    so that ``lr`` means the same whatever that is. The running variance sees a row before it is
    tested; its label is used only after the test.

    Parameters
    ----------
    n_estimators : int, default=50
        Members of each ensemble, perceptrons with one hidden layer.
    hidden : int, default=10
        Hidden units of a perceptron.
    lr : float, default=0.1
        Step of the gradient descent of the perceptrons.
    theta : float, default=0.9
        How much of the past the class sizes keep at each row. The default remembers about ten rows:
        a rate is then at most 9, and an imbalance beyond it is not wholly evened out.
    theta_recall : float, default=0.9
        How much of the past the recalls keep.
    recall_window : int, default=51
        Rows over which the recalls are smoothed.
    random_state : int, RandomState instance or None, default=None
        Seeds the order of the rows in fit, the first weights and the Poisson counts.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    class_sizes_ : ndarray of shape (2,)
        The decayed share of each class.
    recalls_ : ndarray of shape (2, 2)
        The smoothed recall of each class (column) by OOB and UOB (lines), each row tested before it
        was learned.
    gmeans_ : ndarray of shape (2,)
        The geometric means of these recalls.
    fallbacks_ : list of str
        What could not be done and what was done instead.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    S. Wang, L. L. Minku and X. Yao. Resampling-based ensemble methods for online class imbalance
    learning. IEEE Transactions on Knowledge and Data Engineering 27(5):1356-1368, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.weob import WEOB2Classifier
    >>> X, y = make_classification(500, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = WEOB2Classifier(random_state=0)
    >>> for start in range(0, 500, 100):
    ...     part = slice(start, start + 100)
    ...     clf = clf.partial_fit(X[part], y[part], classes=[0, 1])
    >>> clf.predict_proba(X).shape
    (500, 2)
    """

    n_estimators: int = parameter(50, at_least(1))
    hidden: int = parameter(10, at_least(1))
    lr: float = parameter(0.1, between(0, None))
    theta: float = parameter(0.9, between(0, 1, "left"))
    theta_recall: float = parameter(0.9, between(0, 1, "left"))
    recall_window: int = parameter(51, at_least(1))
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, then learn from the rows, shuffled, as from a stream.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self : WEOB2Classifier
            Fitted.
        """
        rows, codes, random = self._check_training(X, y)
        self._start(random, rows.shape[1])
        self._learn(rows, codes, random.permutation(len(rows)))
        if not self.gmeans_.any():
            self._fall_back(
                f"neither ensemble recognised both classes in the last {self.recall_window} rows, "
                f"so their G-means of 0 give no preference; UOB is used"
            )
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
        self : WEOB2Classifier
            Updated.
        """
        self._validate_params()
        first = not hasattr(self, "classes_")
        rows, y = validate_data(self, X, y, dtype=FLOATS, reset=first)
        check_classification_targets(y)
        announced = getattr(self, "classes_", None) if classes is None else np.unique(classes)
        if announced is None or not (first or np.array_equal(announced, self.classes_)):
            raise ParameterError(
                f"classes={classes!r}: give both labels of the stream, such as classes=[0, 1], at "
                f"the first call of partial_fit, and later the same or none.",
                parameter="classes",
            )
        unknown = np.setdiff1d(y, announced)
        if len(unknown):
            raise LabelError(
                f"labels {unknown.tolist()} are not among the classes {announced.tolist()}: remove "
                f"their rows, or start anew with fit."
            )
        if first:
            _, random = self._begin(announced)
            self._start(random, rows.shape[1])
        self._learn(rows, np.searchsorted(announced, y), np.arange(len(rows)))
        return self

    def _second_class(self, X: Any) -> np.ndarray:
        """Average the probabilities of the members of the ensemble that decides."""
        rows = self._check_rows(X)
        chosen = 0 if self.gmeans_[0] > self.gmeans_[1] else 1
        means = []
        for part in gen_batches(len(rows), _CHUNK):
            members = self._members.probabilities(self._scaler.transform(rows[part]))
            means.append(members.reshape(len(members), 2, -1).mean(axis=2)[:, chosen])
        return np.concatenate(means)

    def _start(self, random: Random, n_features: int) -> None:
        """Begin with nothing learned."""
        seed = draw_seed(random)
        self._randoms = [np.random.default_rng([seed, ensemble]) for ensemble in range(2)]
        self._scaler = RunningScaler(n_features)
        self._members = StackedMLPs(
            self._randoms, self.n_estimators, n_features, self.hidden, self.lr
        )
        self.class_sizes_ = np.full(2, 0.5)
        self._recalls = np.zeros((2, 2))
        self._recent: deque[np.ndarray] = deque(maxlen=self.recall_window)

    def _learn(self, rows: np.ndarray, codes: np.ndarray, order: np.ndarray) -> None:
        # A row is a small product: threads would cost ten times what they bring.
        with threadpool_limits(limits=1, user_api="blas"):
            for place in order:
                self._test_then_train(rows[place], int(codes[place]))
        self.recalls_ = np.mean(self._recent, axis=0)
        self.gmeans_ = np.sqrt(self.recalls_.prod(axis=1))

    def _test_then_train(self, row: np.ndarray, code: int) -> None:
        """Do steps 1 to 3 for one row of the stream."""
        self._scaler.update(row)
        sizes = self.class_sizes_
        sizes *= self.theta
        sizes[code] += 1 - self.theta
        counts = [
            random.poisson(size / sizes[code], self.n_estimators)
            for random, size in zip(self._randoms, (sizes.max(), sizes.min()), strict=True)
        ]
        inputs = self._scaler.transform(row)
        members = self._members.test_then_train(inputs, code, np.concatenate(counts))
        hits = (members.reshape(2, -1).mean(axis=1) > 0.5) == code
        # The first row of the stream sets the recall of its class; the other starts at 0.
        theta = self.theta_recall if self._recent else 0.0
        self._recalls[:, code] = theta * self._recalls[:, code] + (1 - theta) * hits
        self._recent.append(self._recalls.copy())


class RunningScaler:
    """Standardises by the mean and variance of the rows seen so far (Welford's recurrence).

    A constant feature becomes 0, and values beyond five standard deviations are cut off.

    Parameters
    ----------
    n_features : int
        Number of features, d.
    """

    def __init__(self, n_features: int) -> None:
        self.n_rows = 0
        self.mean = np.zeros(n_features)
        self.squares = np.zeros(n_features)

    def update(self, row: np.ndarray) -> None:
        """Count a row."""
        self.n_rows += 1
        distance = row - self.mean
        self.mean += distance / self.n_rows
        self.squares += distance * (row - self.mean)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Return the standardised rows, of shape (..., d)."""
        deviation = np.sqrt(self.squares / max(self.n_rows, 1))
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        scaled = (rows - self.mean) * factor
        return np.asarray(scaled.clip(-_FARTHEST, _FARTHEST))


class StackedMLPs:
    """Perceptrons with one hidden layer of tanh units, trained by gradient descent on the log-loss.

    The hidden weights of all members are one matrix: a row costs one product with it and one update
    of rank one. Training on a row again moves the inputs of the hidden units along that row only,
    by its squared length, so any number of repetitions is exact without touching the matrix in
    between.

    Parameters
    ----------
    randoms : sequence of Generator
        One for each ensemble; its members' first weights are drawn from it.
    n_members : int
        Members of each ensemble.
    n_features : int
        Number of features.
    hidden : int
        Hidden units of each member.
    lr : float
        Step of the gradient descent.
    """

    def __init__(
        self,
        randoms: Sequence[np.random.Generator],
        n_members: int,
        n_features: int,
        hidden: int,
        lr: float,
    ) -> None:
        self.lr = np.float32(lr)

        def drawn(*shape: int) -> np.ndarray:
            each = [random.standard_normal(shape, dtype=np.float32) for random in randoms]
            return np.concatenate(each)

        self.weights = drawn(n_members * hidden, n_features + 1)
        self.output_weights = drawn(n_members, hidden) / np.float32(np.sqrt(hidden))
        self.output_bias = np.zeros(len(self.output_weights), dtype=np.float32)

    def test_then_train(self, row: np.ndarray, code: int, counts: np.ndarray) -> np.ndarray:
        """Return each member's probability of class 1, then train member m ``counts[m]`` times."""
        row = _inputs(row).astype(np.float32)
        squared_length = row @ row
        inputs = (self.weights @ row).reshape(self.output_weights.shape)
        moves = np.zeros_like(inputs)
        units, before = self._forward(inputs)
        probability = before
        for repetition in range(counts.max()):
            step = self.lr * (code - probability) * (counts > repetition)
            push = step[:, None] * self.output_weights * (1 - units * units)
            self.output_weights += step[:, None] * units
            self.output_bias += step
            moves += push
            inputs += push * squared_length
            units, probability = self._forward(inputs)
        # weights + outer(moves, row), in place: BLAS sees the transpose.
        updated = sger(1.0, row, moves.ravel(), a=self.weights.T, overwrite_a=True)
        self.weights = np.asarray(updated.T)
        return before

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of class 1, of shape (n, members)."""
        inputs = _inputs(rows) @ self.weights.T.astype(np.float64)
        units = np.tanh(inputs).reshape(len(rows), *self.output_weights.shape)
        scores = np.einsum("nmh,mh->nm", units, self.output_weights.astype(np.float64))
        return np.asarray(expit(scores + self.output_bias))

    def _forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        units = np.tanh(inputs)
        scores = np.einsum("mh,mh->m", units, self.output_weights) + self.output_bias
        return units, expit(scores)


def _inputs(rows: np.ndarray) -> np.ndarray:
    """Return rows of a squared length of about 1, whatever their width, and a 1 for the bias."""
    width = rows.shape[-1]
    inputs = np.ones((*rows.shape[:-1], width + 1))
    inputs[..., :-1] = rows / np.sqrt(width)
    return inputs
