"""MWMOTE: new rows from those near the border of a small class, inside its clusters.

After S. Barua, M. M. Islam, X. Yao and K. Murase, "MWMOTE - Majority Weighted Minority Oversampling
Technique for Imbalanced Data Set Learning", IEEE TKDE 26(2), 2014. The seven steps are original, as
another program states them; decided here are a second unit of distance, the bound on what is
clustered, and SMOTE where the class is too thin. The class says it in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from setconv.baselines.base import Random, Rows, parameter
from setconv.baselines.neighbours import (
    average_linkage,
    distance_blocks,
    nearest,
    nearest_distances,
    nearest_mask,
    nearest_others,
)
from setconv.baselines.smote import SMOTEBased
from setconv.validation import at_least, between, one_of


@dataclass(frozen=True)
class WeightedMinority:
    """What MWMOTE found for one class that it enlarged; rows are numbers of rows of X.

    Attributes
    ----------
    members : ndarray
        The rows of the class (S_min).
    filtered : ndarray
        Those with a row of the class among their k1 nearest (S_minf).
    borderline : ndarray
        Rows of other classes that are among the k2 nearest of a filtered row (S_bmaj).
    informative : ndarray
        Rows of the class that are among the k3 nearest of a borderline row (S_imin).
    weights : ndarray
        Selection weight of each informative row (S_w).
    probabilities : ndarray
        The weights over their sum (S_p).
    clusters : ndarray
        The cluster of each member.
    cluster_threshold : float
        Mean distance between clusters above which none were joined (T_h).
    """

    members: np.ndarray
    filtered: np.ndarray
    borderline: np.ndarray
    informative: np.ndarray
    weights: np.ndarray
    probabilities: np.ndarray
    clusters: np.ndarray
    cluster_threshold: float


@dataclass(kw_only=True, eq=False, repr=False)
class MWMOTESampler(SMOTEBased):
    """Majority weighted minority over-sampling.

    For each class to be enlarged, all other classes being the majority:

    1. S_minf: rows of the class with another of it among their ``k1`` nearest rows; the rest is
       taken for noise.
    2. S_bmaj: the ``k2`` majority rows nearest to each of S_minf.
    3. S_imin: the ``k3`` rows of the class nearest to each y of S_bmaj, N_min(y).
    4. For y of S_bmaj and x of N_min(y), with d the distance over the number of features: the
       closeness ``C(y, x) = min(1 / d, cf_threshold) / cf_threshold``, the density
       ``D(y, x) = C(y, x) / sum of C(y, q) over q in S_imin``, the information weight C D.
    5. The weight of x is the sum of its information weights over S_bmaj.
    6. The class is clustered by average linkage up to ``cp`` times the mean distance of the rows
       of S_minf to their nearest in S_minf.
    7. A new row is ``x + a (z - x)``: x drawn from S_imin by weight, z uniformly from the cluster
       of x, a uniform on [0, 1).

    Reconstructed: the full text of the paper was not at hand; steps and constants are those that
    another program, the R package imbalance, states as the paper's. That program sums the density
    of step 4 over N_min(y) alone and leaves distances of 0 out of step 6. Ours: half of the rows
    rounded down; no factor C_max of the closeness, which scales all weights alike;
    ``normalise='mean'``; SMOTE over the whole class where S_minf has fewer than two rows, and the
    bound on what is clustered, which are said.

    Parameters
    ----------
    k1 : int, default=5
        Neighbours that tell noise.
    k2 : int, default=3
        Majority neighbours that make the border.
    k3 : int or 'half', default='half'
        Neighbours of the class of each border row; 'half' is half of its rows.
    cp : float, default=3.0
        How far clusters may be apart and yet be joined.
    cf_threshold : float, default=5.0
        Closeness above which nearer is no closer.
    normalise : {'features', 'mean'}, default='features'
        What distances are divided by in step 4: the number of features, as in the paper, or the
        mean distance of the pairs weighed. In some 50 standardised features and more, the first
        leaves every pair at the largest closeness; that is said.
    max_clustered : int, default=10000
        Average linkage takes memory by the square of the rows, 0.8 GB for 10,000. Of a larger
        class so many, drawn at random, are clustered, and the others join the cluster of the
        nearest of these.
    sampling_strategy : float, str, dict or callable, default='auto'
        Which classes are enlarged and how far, as in imbalanced-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the draws.

    Attributes
    ----------
    minorities_ : dict of label to WeightedMinority
        Sets, weights and clusters of each class that was enlarged, but for those left to SMOTE.
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
    S. Barua, M. M. Islam, X. Yao, K. Murase, "MWMOTE - Majority Weighted Minority Oversampling
    Technique for Imbalanced Data Set Learning", IEEE Transactions on Knowledge and Data Engineering
    26(2), 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from setconv.baselines.mwmote import MWMOTESampler
    >>> X, y = make_blobs([90, 10], random_state=0)
    >>> sampler = MWMOTESampler(random_state=0)
    >>> rows, labels = sampler.fit_resample(X, y)
    >>> int((labels == 1).sum()), round(float(sampler.minorities_[1].probabilities.sum()), 6)
    (90, 1.0)
    """

    k1: int = parameter(5, at_least(1))
    k2: int = parameter(3, at_least(1))
    k3: int | Literal["half"] = parameter("half", one_of("half"), at_least(1))
    cp: float = parameter(3.0, between(0, None))
    cf_threshold: float = parameter(5.0, between(0, None))
    normalise: Literal["features", "mean"] = parameter("features", one_of("features", "mean"))
    max_clustered: int = parameter(10_000, at_least(2))
    sampling_strategy: Any = "auto"
    random_state: Any = None

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        self.minorities_: dict[Any, WeightedMinority] = {}
        return super()._fit_resample(X, y)

    def _new_rows(self, X: Rows, own: np.ndarray, label: Any, count: int, random: Random) -> Rows:
        members, others = np.flatnonzero(own), np.flatnonzero(~own)
        half = max(1, len(members) // 2)
        k1 = self._at_most(label, "k1", self.k1, len(own) - 1)
        k2 = self._at_most(label, "k2", self.k2, len(others))
        k3 = self._at_most(label, "k3", half if self.k3 == "half" else self.k3, len(members))
        filtered = members[own[nearest_others(X, members, k1)].any(axis=1)]
        if len(filtered) < 2:
            self._fall_back(
                f"class {label!r}: {len(filtered)} of {len(members)} rows have another of the "
                f"class among their {k1} nearest, and 2 are needed; SMOTE over the whole class was "
                "used"
            )
            return self._smote(X[members], label, count, self.k1, random)
        borderline = others[np.unique(nearest(X[others], X[filtered], k2))]
        informative, weights = self._weights(label, X[borderline], X[members], k3)
        threshold = self.cp * float(nearest_distances(X[filtered]).mean())
        found = self.minorities_[label] = WeightedMinority(
            members=members,
            filtered=filtered,
            borderline=borderline,
            informative=members[informative],
            weights=weights,
            probabilities=weights / weights.sum(),
            clusters=self._clusters(label, X[members], threshold, random),
            cluster_threshold=threshold,
        )
        return self._drawn(X, label, found, count, random)

    def _at_most(self, label: Any, name: str, asked: int, there: int) -> int:
        if asked > there:
            self._fall_back(f"class {label!r}: {name} is {asked}; all {there} such rows were used")
        return min(asked, there)

    def _weights(
        self, label: Any, borderline: Rows, members: Rows, k3: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the informative members and their selection weights: steps 3 to 5."""
        is_informative = np.zeros(members.shape[0], dtype=bool)
        total = 0.0
        for distances in distance_blocks(borderline, members):
            chosen = nearest_mask(distances, k3)
            is_informative |= chosen.any(axis=0)
            total += float(distances[chosen].sum(dtype=np.float64))
        mean = total / (borderline.shape[0] * k3)
        unit = members.shape[1] if self.normalise == "features" else mean
        weights = np.zeros(members.shape[0])
        saturated = True
        for distances in distance_blocks(borderline, members):
            chosen = nearest_mask(distances, k3)
            closeness = self._closeness(distances, unit)
            density = closeness / closeness[:, is_informative].sum(axis=1, keepdims=True)
            weights += np.where(chosen, closeness * density, 0).sum(axis=0)
            saturated = saturated and bool((closeness[chosen] == 1).all())
        if saturated:
            self._fall_back(
                f"class {label!r}: every closeness factor is at its maximum, so that a weight only "
                f"counts the borderline rows that have the row among their {k3} nearest; "
                "normalise='mean' or a higher cf_threshold makes distances count"
            )
        informative = np.flatnonzero(is_informative)
        return informative, weights[informative]

    def _closeness(self, distances: np.ndarray, unit: float) -> np.ndarray:
        """Give ``min(1 / d, cf_threshold) / cf_threshold`` (step 4), 1 for d = 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = unit / distances.astype(np.float64)
        inverse[distances == 0] = np.inf
        return np.asarray(np.minimum(inverse / self.cf_threshold, 1))

    def _clusters(self, label: Any, members: Rows, threshold: float, random: Random) -> np.ndarray:
        """Cluster the members (step 6), through a part of them where they are too many."""
        rows = members.shape[0]
        if rows <= self.max_clustered:
            return average_linkage(members, threshold)
        self._fall_back(
            f"class {label!r} has {rows} rows, more than max_clustered: {self.max_clustered} of "
            "them were clustered, and the others joined the cluster of the nearest of these"
        )
        part = members[random.permutation(rows)[: self.max_clustered]]
        joined = nearest(part, members, 1)[:, 0]
        return np.asarray(average_linkage(part, threshold)[joined])

    def _drawn(
        self, X: Rows, label: Any, found: WeightedMinority, count: int, random: Random
    ) -> Rows:
        """Draw the new rows: step 7."""
        sizes = np.bincount(found.clusters)
        by_cluster = np.argsort(found.clusters, kind="stable")
        clusters = found.clusters[np.searchsorted(found.members, found.informative)]
        if sizes[clusters].max() == 1:
            self._fall_back(
                f"class {label!r}: every informative row is alone in its cluster, so that the new "
                "rows are copies; a higher cp makes larger clusters"
            )
        drawn = random.choice(len(clusters), size=count, p=found.probabilities)
        cluster = clusters[drawn]
        place = (random.uniform(size=count) * sizes[cluster]).astype(int)
        partner = found.members[by_cluster[np.cumsum(sizes)[cluster] - sizes[cluster] + place]]
        return _between(X, found.informative[drawn], partner, random.uniform(size=count))


def _between(X: Rows, start: np.ndarray, end: np.ndarray, steps: np.ndarray) -> Rows:
    """Give ``x + a (z - x)`` for rows x of ``start``, z of ``end`` and steps a."""
    first, way = X[start], X[end] - X[start]
    column = steps[:, None].astype(np.result_type(X.dtype, np.float32))
    way = way.multiply(column).tocsr() if sparse.issparse(X) else way * column
    return (first + way).astype(X.dtype)
