"""KMeans-SMOTE: which clusters are kept, their weights and counts, and where new rows lie."""

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs

from setconv.baselines.base import FallbackWarning
from setconv.baselines.smote import KMeansSMOTESampler, sparsity_weights

SILENT = pytest.mark.filterwarnings("ignore::setconv.baselines.base.FallbackWarning")


def three_places(seed=0):
    """Class 1 has 8 close rows at one place, 6 wide ones at another, 3 among 60 of class 0."""
    rng = np.random.default_rng(seed)
    close = rng.normal([0, 0], 0.3, (8, 2))
    wide = rng.normal([20, 0], 1.5, (6, 2))
    drowned = rng.normal([0, 20], 1, (3, 2))
    often = rng.normal([0, 20], 1, (60, 2))
    return np.vstack([close, wide, drowned, often]), np.repeat([1, 0], [17, 60])


def distance_to_hull(point, corners):
    """Distance to the nearest convex combination, by least squares with a heavy sum constraint."""
    heavy = 1e4
    left = np.vstack([corners.T, np.full(len(corners), heavy)])
    return nnls(left, np.append(point, heavy))[1]


def sampled(X, y, **parameters):
    parameters = {"n_clusters": 3, "random_state": 0, **parameters}
    sampler = KMeansSMOTESampler(**parameters)
    return sampler, *sampler.fit_resample(X, y)


def test_only_clusters_that_the_class_dominates_are_kept():
    X, y = three_places()
    sampler, *_ = sampled(X, y, imbalance_ratio_threshold=1.0)
    found = sampler.clusterings_[1]
    at = [found.clusters[0], found.clusters[8], found.clusters[14]]
    assert np.allclose(found.imbalance_ratios[at], [1 / 9, 1 / 7, 61 / 4])
    assert (found.counts[at] > 0).tolist() == [True, True, False]
    assert np.isnan(found.mean_distances[at]).tolist() == [False, False, True]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3.5])
def test_weights_are_the_sparsities_over_their_sum(exponent):
    X, y = three_places()
    sampler, *_ = sampled(X, y, density_exponent=exponent)
    found = sampler.clusterings_[1]
    sparsity = [pdist(X[:8]).mean() ** exponent / 8, pdist(X[8:14]).mean() ** exponent / 6]
    weights = found.weights[[found.clusters[0], found.clusters[8]]]
    assert np.allclose(weights, sparsity / np.sum(sparsity))
    assert np.isclose(found.weights.sum(), 1)


@SILENT
@pytest.mark.parametrize("seed", range(5))
def test_new_rows_lie_in_the_convex_hull_of_their_clusters_rows_and_counts_balance(seed):
    X, y = make_blobs([150, 30, 20], cluster_std=4, random_state=seed)
    sampler, rows, labels = sampled(X, y, n_clusters=8)
    assert np.bincount(labels).tolist() == [150, 150, 150]
    start = len(X)
    for label, missing in ((1, 120), (2, 130)):
        found = sampler.clusterings_[label]
        if found.counts.any():
            assert found.counts.sum() == missing
            of_cluster = np.repeat(np.arange(8), found.counts)
            for row, cluster in zip(rows[start : start + missing], of_cluster, strict=True):
                own = X[(found.clusters == cluster) & (y == label)]
                assert distance_to_hull(row, own) < 1e-6
        start += missing
    assert any(found.counts.any() for found in sampler.clusterings_.values())


def test_the_automatic_threshold_is_the_ratio_of_the_set():
    X, y = three_places()
    automatic, *_ = sampled(X, y, imbalance_ratio_threshold="auto")
    by_hand, *_ = sampled(X, y, imbalance_ratio_threshold=60 / 17)
    assert np.array_equal(automatic.clusterings_[1].counts, by_hand.clusterings_[1].counts)
    assert (automatic.clusterings_[1].counts > 0).sum() == 2


def test_without_a_cluster_to_keep_smote_is_used_and_that_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((110, 2)), np.repeat([0, 1], [100, 10])
    sampler = KMeansSMOTESampler(n_clusters=2, imbalance_ratio_threshold=1, random_state=0)
    with pytest.warns(FallbackWarning, match=r"no cluster .* class 1 .* below 1: SMOTE"):
        rows, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [100, 100]
    assert not sampler.clusterings_[1].counts.any()
    assert all(distance_to_hull(row, X[y == 1]) < 1e-6 for row in rows[110:])


def test_no_power_overflows_in_a_thousand_features():
    X, y = make_blobs([60, 12, 12], 1000, random_state=0)
    y = np.minimum(y, 1)
    sampler, rows, _ = sampled(X * 1e3, y, density_exponent=1000)
    weights = sampler.clusterings_[1].weights
    assert np.isfinite(weights).all()
    assert np.isclose(weights.sum(), 1)
    assert np.isfinite(rows).all()


def test_clusters_of_equal_rows_have_no_weight_unless_all_are_so():
    assert sparsity_weights(np.array([0.0, 2.0]), np.array([3, 4]), 2).tolist() == [0, 1]
    only = sparsity_weights(np.array([0.0, 0.0]), np.array([2, 6]), 2)
    assert np.allclose(only, [0.75, 0.25])
