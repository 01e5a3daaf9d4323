"""OOB, UOB, WEOB1 and WEOB2: online bagging for a stream whose classes are out of balance."""

from __future__ import annotations

from inspect import cleandoc
from typing import ClassVar, TypeVar

import numpy as np

from setconv.baselines.online_bagging import OnlineBagging

__all__ = ["OOBClassifier", "UOBClassifier", "WEOB1Classifier", "WEOB2Classifier"]

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
feature_names_in_ : ndarray of shape (d,)
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


@_documented
class OOBClassifier(OnlineBagging):
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
class UOBClassifier(OnlineBagging):
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


class _BothEnsembles(OnlineBagging):
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
