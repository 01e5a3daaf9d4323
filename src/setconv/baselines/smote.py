"""SMOTE and KMeans-SMOTE: new rows between a row of a small class and its neighbours.

SMOTE is after N. V. Chawla, K. W. Bowyer, L. O. Hall and W. P. Kegelmeyer, JAIR 16, 2002.
KMeans-SMOTE, which works inside the clusters where the class dominates, and more in the sparse
ones, is after G. Douzas, F. Bacao and F. Last, Information Sciences 465, 2018. Original are the
rules; decided here are what is done with classes too small, exact numbers of new rows, and the
exponent of the density. The classes say it in full. First comes what both systems share, and
MWMOTE with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from imblearn.over_sampling import SMOTE
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans

from setconv.baselines.base import OverSampler, Random, Rows, parameter
from setconv.baselines.neighbours import mean_distance
from setconv.sampling import share_out
from setconv.validation import at_least, between, one_of


class SMOTEBased(OverSampler):
    """Base of the samplers that use SMOTE, wholly or where their own way is not open."""

    def _smote(self, members: Rows, label: Any, count: int, k: int, random: Random) -> Rows:
        """Make new rows of a class by SMOTE over all of it; a class too small is said."""
        rows = members.shape[0]
        if rows == 1:
            self._fall_back(f"class {label!r} has 1 row, which has no neighbour: it was duplicated")
        elif rows <= k:
            self._fall_back(
                f"class {label!r} has {rows} rows: SMOTE used {rows - 1} neighbours instead of {k}"
            )
        return _interpolated(members, count, k, random)


def _interpolated(members: Rows, count: int, k: int, random: Random) -> Rows:
    """Make ``count`` rows between members and their nearest, at most ``k``, neighbours.

    One member alone is duplicated. Sparse members give sparse rows.
    """
    rows = members.shape[0]
    if rows == 1:
        return members[np.zeros(count, dtype=int)]
    # imbalanced-learn wants a second class; a row of its own stands in, and nothing comes of it.
    stack = sparse.vstack if sparse.issparse(members) else np.vstack
    smote = SMOTE(
        k_neighbors=min(k, rows - 1), sampling_strategy={1: rows + count}, random_state=random
    )
    labels = np.append(np.ones(rows, dtype=int), 0)
    made, _ = smote.fit_resample(stack([members, members[:1]]), labels)
    return made[rows + 1 :]


@dataclass(kw_only=True, eq=False, repr=False)
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

    k_neighbors: int = parameter(5, at_least(1))
    sampling_strategy: Any = "auto"
    random_state: Any = None

    def _new_rows(self, X: Rows, own: np.ndarray, label: Any, count: int, random: Random) -> Rows:
        return self._smote(X[np.flatnonzero(own)], label, count, self.k_neighbors, random)


@dataclass(frozen=True)
class ClusteredClass:
    """What KMeans-SMOTE found for one class that it enlarged.

    Attributes
    ----------
    clusters : ndarray of shape (n,)
        The cluster of every row, of this class and of the others.
    imbalance_ratios : ndarray of shape (n_clusters,)
        ``(rows of other classes + 1) / (rows of the class + 1)`` of each cluster.
    mean_distances : ndarray of shape (n_clusters,)
        Mean distance between two rows of the class in each kept cluster, else NaN.
    weights : ndarray of shape (n_clusters,)
        Share of the new rows that each cluster is due; 0 for clusters that are not kept.
    counts : ndarray of shape (n_clusters,)
        Number of new rows made in each cluster; they stand in this order in the result.
    """

    clusters: np.ndarray
    imbalance_ratios: np.ndarray
    mean_distances: np.ndarray
    weights: np.ndarray
    counts: np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class KMeansSMOTESampler(SMOTEBased):
    """SMOTE inside clusters that are safe, more of it where the class is sparse.

    For each class to be enlarged (all other classes are the majority):

    1. All rows are clustered by k-means.
    2. A cluster f is kept if ``(n_other(f) + 1) / (n_class(f) + 1)`` is below
       ``imbalance_ratio_threshold`` and it has at least two rows of the class.
    3. Its weight is its sparsity, ``D(f)^m / n_class(f)``, over the sum of all, with D(f) the mean
       distance between two of its rows of the class and m the ``density_exponent``.
    4. Each cluster gets its share of the new rows, by SMOTE among its rows of the class alone.

    Original: these steps, as in the first author's program, with k-means by mini-batches, and
    SMOTE over the whole class where no cluster is kept, which is said. The paper's grids are from
    memory of it. Ours: numbers are exact, by largest remainders; weights come from logarithms, so
    that no power overflows. The exponent is 2, one of the paper's grid, where the authors' programs
    take the number of features: with hundreds of them, that gives all new rows to one cluster.

    Parameters
    ----------
    n_clusters : int, default=50
        Number of clusters, one of the paper's grid 2, 20, 50, 100, 250, 500.
    k_neighbors : int, default=5
        Neighbours in SMOTE, one of the paper's grid 3, 5, 20, infinity; a cluster with fewer rows
        of the class uses those that it has.
    imbalance_ratio_threshold : float or 'auto', default='auto'
        Clusters at or above this ratio are not kept. 'auto', after the co-author's program, is the
        ratio of the whole set and keeps those where the class has more than its share. 1, as in
        the first author's program, keeps those where it has the most rows; on embeddings of texts
        we saw it keep none, or one of a few rows. Infinity keeps all.
    density_exponent : float, default=2.0
        The power m of the mean distance; 0 makes the weight depend on numbers of rows alone.
    sampling_strategy : float, str, dict or callable, default='auto'
        Which classes are enlarged and how far, as in imbalanced-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the clustering and the draws.

    Attributes
    ----------
    clusterings_ : dict of label to ClusteredClass
        Clusters, weights and counts of each class that was enlarged.
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

    References
    ----------
    F. Last, G. Douzas, F. Bacao, "Oversampling for Imbalanced Learning Based on K-Means and SMOTE",
    arXiv:1711.00837, 2017; G. Douzas, F. Bacao, F. Last, "Improving Imbalanced Learning through a
    Heuristic Oversampling Method Based on K-Means and SMOTE", Information Sciences 465, 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from setconv.baselines import KMeansSMOTESampler
    >>> X, y = make_blobs([90, 10], random_state=0)
    >>> sampler = KMeansSMOTESampler(n_clusters=5, random_state=0)
    >>> rows, labels = sampler.fit_resample(X, y)
    >>> int((labels == 1).sum()), int(sampler.clusterings_[1].counts.sum())
    (90, 80)
    """

    n_clusters: int = parameter(50, at_least(1))
    k_neighbors: int = parameter(5, at_least(1))
    imbalance_ratio_threshold: float | Literal["auto"] = parameter(
        "auto", one_of("auto"), between(0, None, "right")
    )
    density_exponent: float = parameter(2.0, between(0, None, "left"))
    sampling_strategy: Any = "auto"
    random_state: Any = None

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        self.clusterings_: dict[Any, ClusteredClass] = {}
        return super()._fit_resample(X, y)

    def _new_rows(self, X: Rows, own: np.ndarray, label: Any, count: int, random: Random) -> Rows:
        found = self.clusterings_[label] = self._clustered(X, own, count, random)
        if not found.counts.any():
            self._fall_back(
                f"no cluster has two rows of class {label!r} and an imbalance ratio below "
                f"{self._threshold(own):.4g}: SMOTE over the whole class was used; fewer clusters "
                "or a higher imbalance_ratio_threshold keep more"
            )
            return self._smote(X[np.flatnonzero(own)], label, count, self.k_neighbors, random)
        parts = []
        for cluster in np.flatnonzero(found.counts):
            members = X[np.flatnonzero(own & (found.clusters == cluster))]
            due = int(found.counts[cluster])
            parts.append(_interpolated(members, due, self.k_neighbors, random))
        return sparse.vstack(parts) if sparse.issparse(X) else np.vstack(parts)

    def _clustered(self, X: Rows, own: np.ndarray, count: int, random: Random) -> ClusteredClass:
        n_clusters = min(self.n_clusters, len(own))
        if n_clusters < self.n_clusters:
            self._fall_back(f"{n_clusters} rows make {n_clusters} clusters, not {self.n_clusters}")
        clusters = MiniBatchKMeans(n_clusters, n_init=1, random_state=random).fit_predict(X)
        inside = np.bincount(clusters[own], minlength=n_clusters)
        others = np.bincount(clusters[~own], minlength=n_clusters)
        ratios = (others + 1) / (inside + 1)
        kept = (ratios < self._threshold(own)) & (inside > 1)
        distances = np.full(n_clusters, np.nan)
        for cluster in np.flatnonzero(kept):
            distances[cluster] = mean_distance(X[np.flatnonzero(own & (clusters == cluster))])
        weights, counts = np.zeros(n_clusters), np.zeros(n_clusters, dtype=int)
        if kept.any():
            weights[kept] = sparsity_weights(distances[kept], inside[kept], self.density_exponent)
            counts = share_out(weights, count, least=0)
        return ClusteredClass(clusters, ratios, distances, weights, counts)

    def _threshold(self, own: np.ndarray) -> float:
        if self.imbalance_ratio_threshold == "auto":
            return float((~own).sum() / own.sum())
        return float(self.imbalance_ratio_threshold)


def sparsity_weights(distances: np.ndarray, rows: np.ndarray, exponent: float) -> np.ndarray:
    """Give ``D^m / n`` over its sum, from logarithms; rows that are all alike count as D = 0."""
    if exponent == 0 or not distances.any():
        logs = -np.log(rows)
    else:
        with np.errstate(divide="ignore"):
            logs = exponent * np.log(distances) - np.log(rows)
    powers = np.exp(logs - logs.max())
    return np.asarray(powers / powers.sum())
