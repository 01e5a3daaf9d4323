"""MWMOTE: sets, weights and clusters worked by hand and by brute force, and where new rows lie."""

import numpy as np
import pytest
from easy_rows import distance_to_segments
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_blobs

from setconv.baselines import neighbours
from setconv.baselines.base import FallbackWarning
from setconv.baselines.mwmote import MWMOTESampler

SILENT = pytest.mark.filterwarnings("ignore::setconv.baselines.base.FallbackWarning")

# One feature. Class 1: a = 0, b = 1, c = 2 and, among rows of class 0, the noise n = 100.
TOY = np.array([[0.0], [1], [2], [100], [5], [7], [98], [103], [200], [201]])
TOY_LABELS = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
TOY_PARAMETERS = {"k1": 2, "k2": 2, "k3": 2, "cf_threshold": 0.3, "random_state": 0}


def blobs(seed=0, rare=20, features=2):
    X, y = make_blobs([80, rare], features, cluster_std=4, random_state=seed)
    return X, y


def found_in(X, y, **parameters):
    sampler = MWMOTESampler(**{"random_state": 0, **parameters})
    rows, labels = sampler.fit_resample(X, y)
    return sampler.minorities_[y.max()], rows, labels


def test_sets_weights_and_clusters_of_a_toy_are_those_worked_by_hand():
    found, rows, labels = found_in(TOY, TOY_LABELS, **TOY_PARAMETERS)
    assert found.members.tolist() == [0, 1, 2, 3]
    assert found.filtered.tolist() == [0, 1, 2]  # n's two nearest are 98 and 103
    assert found.borderline.tolist() == [4, 5]  # 5 and 7 are nearest to all of a, b, c
    assert found.informative.tolist() == [1, 2]  # b and c are nearest to both
    # C: of 5, min(1/3, .3)/.3 = 1 to c and 5/6 to b; of 7, 2/3 to c and 5/9 to b.
    # D: of both, 6/11 to c and 5/11 to b. Weights: c 6/11 + 4/11, b 25/66 + 25/99.
    assert np.allclose(found.weights, [125 / 198, 10 / 11])
    assert np.allclose(found.probabilities, [25 / 61, 36 / 61])
    # Nearest in S_minf is 1 away for all: T_h = 3. {a, b, c} join at 1 and 1.5, n at about 99.
    assert found.cluster_threshold == 3
    assert found.clusters[0] == found.clusters[1] == found.clusters[2] != found.clusters[3]
    assert np.bincount(labels).tolist() == [6, 6]
    assert ((rows[10:] >= 0) & (rows[10:] <= 2)).all()


def brute_force_weights(X, y, k1, k2, k3, cf_threshold, unit):
    """Steps 1 to 5, pair by pair."""
    distances = cdist(X, X)
    own, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    nearest = {i: [j for j in np.argsort(distances[i]) if j != i] for i in range(len(X))}
    filtered = [i for i in own if any(y[j] == 1 for j in nearest[i][:k1])]
    border = {j for i in filtered for j in sorted(others, key=lambda m: distances[i, m])[:k2]}
    of_border = {j: sorted(own, key=lambda m: distances[j, m])[:k3] for j in border}
    informative = sorted({i for near in of_border.values() for i in near})

    def closeness(j, i):
        return min(unit / distances[j, i], cf_threshold) / cf_threshold

    weights = dict.fromkeys(informative, 0.0)
    for j, near in of_border.items():
        total = sum(closeness(j, q) for q in informative)
        for i in near:
            weights[i] += closeness(j, i) * closeness(j, i) / total
    return filtered, sorted(border), weights


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("k3", "number"), [(4, 4), ("half", 10)])
@pytest.mark.parametrize("normalise", ["features", "mean"])
def test_weights_are_those_of_the_steps_done_pair_by_pair(seed, k3, number, normalise):
    X, y = blobs(seed)
    found, *_ = found_in(X, y, k3=k3, cf_threshold=0.7, normalise=normalise)
    near = np.sort(cdist(X[found.borderline], X[y == 1]), axis=1)[:, :number]
    unit = near.mean() if normalise == "mean" else 2
    filtered, border, weights = brute_force_weights(X, y, 5, 3, number, 0.7, unit)
    assert found.filtered.tolist() == filtered
    assert found.borderline.tolist() == border
    assert found.informative.tolist() == list(weights)
    assert np.allclose(found.weights, list(weights.values()))
    assert np.allclose(found.probabilities, found.weights / sum(weights.values()))


def test_clusters_are_those_of_average_linkage_up_to_the_threshold():
    X, y = blobs(rare=40)
    found, *_ = found_in(X, y, cp=1.5)
    near = cdist(X[found.filtered], X[found.filtered])
    np.fill_diagonal(near, np.inf)
    assert np.isclose(found.cluster_threshold, 1.5 * near.min(axis=1).mean())
    tree = linkage(pdist(X[y == 1]), "average")
    expected = fcluster(tree, found.cluster_threshold, "distance")
    together = expected[:, None] == expected
    assert np.array_equal(found.clusters[:, None] == found.clusters, together)
    assert 1 < len(set(found.clusters)) < 40


def test_new_rows_lie_between_an_informative_row_and_one_of_its_cluster():
    X, y = blobs(rare=40)
    found, rows, labels = found_in(X, y, cp=1.5, k3=3)
    assert np.bincount(labels).tolist() == [80, 80]
    cluster = found.clusters[np.searchsorted(found.members, found.informative)]
    first, second = np.nonzero(cluster[:, None] == found.clusters)
    starts, ends = X[found.informative[first]], X[found.members[second]]
    assert max(distance_to_segments(row, starts, ends).min() for row in rows[120:]) < 1e-9


def test_rows_are_drawn_by_their_weights_and_partners_evenly():
    y = TOY_LABELS
    parameters = {**TOY_PARAMETERS, "sampling_strategy": {1: 40_004, 0: 6}}
    # Clusters of one row: each new row is a copy of the row drawn.
    with pytest.warns(FallbackWarning, match="new rows are copies"):
        _, rows, _ = found_in(TOY, y, **parameters, cp=0.5)
    new = rows[10:, 0]
    assert set(new) == {1.0, 2.0}
    assert abs((new == 2).mean() - 36 / 61) < 0.02
    # The cluster is {0, 1, 2}: from c = 2, a third of the partners is c itself.
    _, rows, _ = found_in(TOY, y, **parameters)
    assert abs((rows[10:, 0] == 2).mean() - 36 / 61 / 3) < 0.02


@SILENT
def test_a_row_at_distance_zero_has_the_largest_closeness():
    X = np.where(TOY == 5, 2.0, TOY)
    found, rows, _ = found_in(X, TOY_LABELS, **{**TOY_PARAMETERS, "k2": 1, "k3": 1})
    assert (found.informative.tolist(), found.weights.tolist()) == ([2], [1.0])
    assert np.isfinite(rows).all()


def test_a_closeness_that_cannot_tell_rows_apart_is_said_and_the_mean_mends_it():
    X, y = make_blobs([60, 12], 400, cluster_std=1, center_box=(0, 1), random_state=0)
    sampler = MWMOTESampler(random_state=0)
    with pytest.warns(FallbackWarning, match="closeness factor is at its maximum"):
        sampler.fit_resample(X, y)
    assert len(set(found_in(X, y, normalise="mean")[0].weights)) > 6


def test_blocks_of_distances_do_not_change_the_result(monkeypatch):
    X, y = blobs(rare=40)
    whole, rows, _ = found_in(X, y)
    monkeypatch.setattr(neighbours, "BLOCK_MEGABYTES", 0.002)
    assert len(list(neighbours.distance_blocks(X))) > 10
    parts, same, _ = found_in(X, y)
    assert np.allclose(parts.weights, whole.weights)
    assert np.array_equal(parts.clusters, whole.clusters)
    assert np.allclose(same, rows)


def test_a_class_too_large_to_cluster_is_clustered_by_a_part_and_that_is_said():
    rng = np.random.default_rng(0)
    places = np.repeat([[0.0, 0], [50, 50]], 30, axis=0)
    rare = places + rng.standard_normal((60, 2))
    often = rng.normal([25, 25], 5, (100, 2))
    X, y = np.vstack([often, rare]), np.repeat([0, 1], [100, 60])
    sampler = MWMOTESampler(max_clustered=20, cp=10, random_state=0)
    with pytest.warns(FallbackWarning, match="class 1 has 60 rows, more than max_clustered: 20 of"):
        sampler.fit_resample(X, y)
    clusters = sampler.minorities_[1].clusters
    assert len(set(clusters[:30])) == len(set(clusters[30:])) == 1
    assert clusters[0] != clusters[-1]


@SILENT
def test_a_class_that_is_all_noise_is_left_to_smote_and_that_is_said():
    often = np.arange(60.0)[:, None]
    rare = np.array([[10.5], [30.5], [50.5]])
    sampler = MWMOTESampler(random_state=0)
    with pytest.warns(FallbackWarning, match="class 1: 0 of 3 rows .* SMOTE over the whole"):
        _, labels = sampler.fit_resample(np.vstack([often, rare]), np.repeat([0, 1], [60, 3]))
    assert np.bincount(labels).tolist() == [60, 60]
    assert sampler.minorities_ == {}


@SILENT
def test_fewer_rows_than_neighbours_are_all_used_and_that_is_said():
    X = np.array([[0.0], [1], [2], [3], [4]])
    y = np.array([1, 1, 0, 0, 0])
    sampler = MWMOTESampler(k1=50, k2=60, k3=70, random_state=0)
    _, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [3, 3]
    assert all(name in " ".join(sampler.fallbacks_) for name in ("k1", "k2", "k3"))


def test_all_other_classes_together_are_the_majority():
    X, y = blobs(rare=20)
    three = y.copy()
    three[(y == 0) & (X[:, 0] > np.median(X[y == 0, 0]))] = 2
    expected, *_ = found_in(X, y)
    sampler = MWMOTESampler(random_state=0)
    sampler.fit_resample(X, three)
    found = sampler.minorities_[1]
    assert np.array_equal(found.borderline, expected.borderline)
    assert np.array_equal(found.weights, expected.weights)


def test_a_row_is_never_its_own_neighbour_among_copies_of_it():
    rows = np.vstack([np.zeros((6, 2)), np.ones((3, 2)), [[5.0, 5]]])
    of = np.arange(10)
    found = neighbours.nearest_others(rows, of, 3)
    assert not (found == of[:, None]).any()
    distances = cdist(rows, rows)
    np.fill_diagonal(distances, np.inf)
    reached = np.sort(np.take_along_axis(distances, found, axis=1), axis=1)
    assert np.allclose(reached, np.sort(distances, axis=1)[:, :3])
