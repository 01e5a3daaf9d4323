"""IML: iterative metric learning, a stable class-balanced neighbourhood for each query."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import check_number, check_training_rows
from setconv.baselines.deciding import ArgmaxMixin
from setconv.baselines.fallbacks import FallbackMixin
from setconv.baselines.lmnn import learned_metric
from setconv.baselines.lmnn_objective import nearest_others, nearest_rows
from setconv.checks import check_integer

_ROWS_FOR_WIDTH = 1000


class Neighbourhoods(NamedTuple):
    """Where the iterations ended for each query.

    Attributes
    ----------
    rows : ndarray of shape (n, s)
        Numbers of the training rows selected, class by class, nearest first.
    distances : ndarray of shape (n, s)
        Their squared distances in the metric of the last iteration.
    iterations : ndarray of shape (n,)
        Iterations made, counted from 1.
    ratios : ndarray of shape (n,)
        The matching ratio of the last two selections; nan after one iteration.
    """

    rows: np.ndarray
    distances: np.ndarray
    iterations: np.ndarray
    ratios: np.ndarray


class IMLClassifier(ArgmaxMixin, FallbackMixin, ClassifierMixin, BaseEstimator):
    """Iterative metric learning: classify a query by a neighbourhood that has become stable.

    Metrics are learned one on top of the other, each on the rows as the one before maps them. For
    a query, iteration i selects the nearest training rows of each class in metric i, equally many
    of each class. When two selections in a row match (the Jaccard ratio of the two sets reaches
    ``match_threshold``), or metrics are used up, a vote of the last selection decides.

    Only the abstract of the original could be read. Original is the idea of a training subset for
    each query, found by iterated metric learning until it is stable. The steps above, LMNN as the
    metric, the defaults ``n_per_class=10`` and ``match_threshold=0.8``, and the reading that one
    chain of metrics serves all queries follow a third party's implementation (pyDML). Choices of
    this library: features are standardised and reduced to principal components first; LMNN learns
    from a class-balanced subset of at most 5,000 rows; five metrics; the vote.

    All selected rows vote with weights ``exp(-d^2 / h_c)``; the probabilities of the classes are
    the mean weights of their rows over the sum of these. The width ``h_c`` is the mean of ``d^2``
    from rows of class c to their nearest other rows of c in the same metric. One width for all
    classes would hand most queries to the majority: having more rows, its ``n_per_class`` nearest
    are nearer almost everywhere. Probabilities thus speak of balanced classes, not of the
    prevalence.

    Parameters
    ----------
    n_per_class : int, default=10
        Rows selected from each class; all rows of a class that has fewer.
    match_threshold : float, default=0.8
        Matching ratio at which a query is finished, from 0 to 1.
    max_iter : int, default=5
        Number of metrics; five for speed, the third party has ten.
    n_components : int, default=64
        Principal components kept, all if there are fewer.
    random_state : int, RandomState instance or None, default=None
        Seeds the principal components, the metrics and the widths of the vote.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    scaler_ : StandardScaler
        The fitted standardisation.
    pca_ : PCA
        The fitted principal components.
    metrics_ : list of ndarray of shape (p, p)
        The chain of metrics, linear maps; each maps what the one before gives.
    rows_ : ndarray of shape (n, p)
        Principal components of the training rows.
    codes_ : ndarray of shape (n,)
        Classes of the training rows, as numbers in ``classes_``.
    n_per_class_ : ndarray of shape (C,)
        Rows selected from each class.
    widths_ : ndarray of shape (max_iter, C)
        The widths of the vote, by metric and class, from at most 1000 rows of each class.
    n_iter_ : int
        Number of metrics.
    fallbacks_ : list of str
        What could not be done.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    N. Wang, X. Zhao, Y. Jiang and Y. Gao. Iterative metric learning for imbalance data
    classification. IJCAI 2018, 2805-2811.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.iml import IMLClassifier
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> clf = IMLClassifier(random_state=0).fit(X, y)
    >>> clf.neighbourhoods(X).rows.shape
    (300, 20)
    """

    def __init__(
        self,
        *,
        n_per_class: int = 10,
        match_threshold: float = 0.8,
        max_iter: int = 5,
        n_components: int = 64,
        random_state: Any = None,
    ) -> None:
        self.n_per_class = n_per_class
        self.match_threshold = match_threshold
        self.max_iter = max_iter
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the chain of metrics.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self : IMLClassifier
            Fitted.
        """
        rows, self.codes_, self.classes_ = check_training_rows(self, X, y)
        self._check_parameters()
        self.fallbacks_ = []
        self.n_per_class_ = self._selected_per_class()
        random = check_random_state(self.random_state)
        self.scaler_ = StandardScaler().fit(rows)
        kept = min(*rows.shape, self.n_components)
        self.pca_ = PCA(kept, random_state=random.randint(np.iinfo(np.int32).max))
        with np.errstate(invalid="ignore"):  # constant rows have no variance to explain
            components = self.pca_.fit_transform(self.scaler_.transform(rows))
        # In double precision a query's products do not depend on the queries beside it.
        self.rows_ = components.astype(np.float64)
        self.metrics_, widths, mapped = [], [], self.rows_
        for _ in range(self.max_iter):
            of_metric = np.random.RandomState(random.randint(np.iinfo(np.int32).max))
            metric = learned_metric(mapped, self.codes_, of_metric, self._fall_back)
            mapped = mapped @ metric.T
            self.metrics_.append(metric)
            widths.append(self._class_widths(mapped, random))
        self.widths_ = np.array(widths)
        self.n_iter_ = len(self.metrics_)
        return self

    def neighbourhoods(self, X: Any) -> Neighbourhoods:
        """Select training rows for each query, iterating until the selection is stable.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Queries.

        Returns
        -------
        neighbourhoods : Neighbourhoods
            Selected rows, squared distances, iterations and matching ratios.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        queries = np.asarray(self.pca_.transform(self.scaler_.transform(rows)))
        shape = len(queries), int(self.n_per_class_.sum())
        found = Neighbourhoods(
            rows=np.empty(shape, dtype=np.intp),
            distances=np.empty(shape),
            iterations=np.zeros(len(queries), dtype=int),
            ratios=np.full(len(queries), np.nan),
        )
        going, mapped, training = np.arange(len(queries)), queries, self.rows_
        for iteration, metric in enumerate(self.metrics_, start=1):
            mapped, training = mapped @ metric.T, training @ metric.T
            rows, distances = self._nearest_of_each_class(mapped, training)
            if iteration > 1:
                found.ratios[going] = matching_ratios(rows, found.rows[going])
            found.rows[going], found.distances[going] = rows, distances
            found.iterations[going] = iteration
            unstable = ~(found.ratios[going] >= self.match_threshold)
            going, mapped = going[unstable], mapped[unstable]
            if len(going) == 0:
                break
        return found

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probabilities by the vote, for balanced classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, C)
            Columns in the order of ``classes_``.
        """
        found = self.neighbourhoods(X)
        widths = np.repeat(self.widths_, self.n_per_class_, axis=1)[found.iterations - 1]
        exponents = -found.distances / widths
        by_class = np.split(exponents, np.cumsum(self.n_per_class_)[:-1], axis=1)
        scores = np.column_stack([logsumexp(part, axis=1) for part in by_class])
        return np.asarray(softmax(scores - np.log(self.n_per_class_), axis=1))

    def _check_parameters(self) -> None:
        for name in ("n_per_class", "max_iter", "n_components"):
            check_integer(name, getattr(self, name), least=1)
        check_number("match_threshold", self.match_threshold, 0, 1, "both")

    def _selected_per_class(self) -> np.ndarray:
        counts = np.bincount(self.codes_)
        for place in np.flatnonzero(counts < self.n_per_class):
            self._fall_back(
                f"rows of class {self.classes_.tolist()[place]!r}: {counts[place]}, fewer than the "
                f"{self.n_per_class} to select; all are selected"
            )
        return np.minimum(self.n_per_class, counts)

    def _nearest_of_each_class(
        self, queries: np.ndarray, training: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows, distances = [], []
        for code, count in enumerate(self.n_per_class_):
            (members,) = np.nonzero(self.codes_ == code)
            nearest, distance = nearest_rows(queries, training[members], count)
            rows.append(members[nearest])
            distances.append(distance)
        return np.hstack(rows), np.hstack(distances)

    def _class_widths(self, mapped: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """Give for each class the mean squared distance of its rows to their nearest others."""
        widths = np.zeros(len(self.classes_))
        for code, count in enumerate(self.n_per_class_):
            members = mapped[self.codes_ == code]
            if len(members) > 1:
                places = random.permutation(len(members))[:_ROWS_FOR_WIDTH]
                _, distances = nearest_others(members, places, min(count, len(members) - 1))
                widths[code] = distances.mean()
        known = widths > 0
        # A single row, or rows all equal, have no width of their own.
        widths[~known] = widths[known].mean() if known.any() else 1
        return widths


def matching_ratios(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Give for each line the Jaccard ratio of two sets of row numbers of the same size."""
    together = np.sort(np.hstack([first, second]), axis=1)
    shared = (together[:, 1:] == together[:, :-1]).sum(axis=1)
    return np.asarray(shared / (together.shape[1] - shared))
