"""LMNN: objective, gradient, target neighbours, impostors and the subset it learns from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from setconv.baselines.iml import (
    balanced_subset,
    learned_metric,
    lmnn_objective,
    target_pairs,
    with_impostors,
)
from setconv.baselines.neighbours import exact_nearest, exact_nearest_others

K = 2


def learned(X, y, seed=0, **parameters):
    """The map, and what could not be done."""
    said = []
    codes = np.unique(y, return_inverse=True)[1]
    random = np.random.RandomState(seed)
    return learned_metric(np.asarray(X), codes, random, said.append, **parameters), said


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [12, 7, 2])
    return rng.standard_normal((21, 4)) + 0.7 * codes[:, None], codes


def squared(a, b):
    return float(((a - b) ** 2).sum())


def brute_targets(X, codes):
    """The K nearest others of the same class, by a sort for each row."""
    found = []
    for i in range(len(X)):
        others = [j for j in range(len(X)) if codes[j] == codes[i] and j != i]
        found += [(i, j) for j in sorted(others, key=lambda j: squared(X[i], X[j]))[:K]]
    return found


def brute_objective(L, X, codes, push):
    """The definition, triplet by triplet, over all rows of other classes."""
    targets = brute_targets(X, codes)
    Z = X @ L.T
    pull = sum(squared(Z[i], Z[j]) for i, j in targets)
    hinges = (
        max(0.0, 1 + squared(Z[i], Z[j]) - squared(Z[i], Z[other]))
        for i, j in targets
        for other in np.flatnonzero(codes != codes[i])
    )
    return ((1 - push) * pull + push * sum(hinges)) / len(targets)


def test_the_objective_is_the_sum_of_pulls_and_hinges_over_all_triplets(rows):
    X, codes = rows
    L = np.random.default_rng(1).standard_normal((3, 4)) / 2
    triplets = with_impostors(X @ L.T, codes, target_pairs(X, codes, K), len(X))
    value, _ = lmnn_objective(L, X, triplets, 0.3)
    assert value == pytest.approx(brute_objective(L, X, codes, 0.3), rel=1e-12)


@pytest.mark.parametrize("push", [0.0, 0.4, 1.0])
def test_the_gradient_equals_finite_differences(rows, push):
    X, codes = rows
    L = np.random.default_rng(2).standard_normal((3, 4)) / 2
    triplets = with_impostors(X @ L.T, codes, target_pairs(X, codes, K), len(X))
    assert len(triplets.target) > 20

    def value(flat):
        return lmnn_objective(flat.reshape(L.shape), X, triplets, push)[0]

    _, gradient = lmnn_objective(L, X, triplets, push)
    assert gradient.ravel() == pytest.approx(approx_fprime(L.ravel(), value, 1e-7), abs=1e-5)


def test_a_row_is_never_its_own_neighbour_even_among_equal_rows():
    nearest, distances = exact_nearest_others(np.ones((6, 2)), np.arange(6), 2)
    assert all(i not in line for i, line in enumerate(nearest))
    assert (distances == 0).all()


def test_of_many_rows_of_other_classes_the_nearest_are_possible_impostors():
    X = np.array([[0.0], [0.1], [0.5], [0.6], [0.7], [9.0]])
    codes = np.array([0, 0, 1, 1, 1, 1])
    triplets = with_impostors(X, codes, np.array([[0, 1], [1, 0]]), 2)
    impostors = triplets.pairs[triplets.n_targets :].tolist()
    assert sorted(impostors) == [[0, 2], [0, 3], [1, 2], [1, 3]]


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_nearest_rows_come_in_order_and_the_first_of_equals_wins(count, seed):
    rows, queries = np.random.default_rng(seed).integers(-2, 3, (2, 12, 2))
    nearest, distances = exact_nearest(queries + 0.1, rows + 0.1, count)
    exact = ((queries[:, None] - rows) ** 2).sum(axis=2)
    expected = np.argsort(exact, axis=1, kind="stable")[:, :count]
    assert np.array_equal(nearest, expected)
    assert distances == pytest.approx(np.take_along_axis(exact, expected, axis=1), abs=1e-5)


def test_it_finds_the_features_that_matter():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = np.column_stack([y + 0.3 * rng.standard_normal(240), 3 * rng.standard_normal((240, 6))])
    reach = np.linalg.norm(learned(X, y)[0], axis=0)  # how far a step of each feature goes
    assert reach[0] > 3 * reach[1:].max()


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(5, 60))
def test_the_subset_has_an_equal_share_of_each_class_or_all_of_it(counts, max_rows):
    codes = np.repeat(np.arange(len(counts)), counts)
    kept = balanced_subset(codes, max_rows, np.random.RandomState(0))
    assert len(np.unique(kept)) == len(kept) == min(max_rows, len(codes))
    sizes = np.bincount(codes[kept], minlength=len(counts))
    share = max_rows // len(counts)
    assert all(size >= min(count, share) for size, count in zip(sizes, counts, strict=True))


def test_classes_of_one_row_each_leave_the_first_metric_and_say_so():
    L, said = learned(np.eye(3), ["a", "b", "c"])
    assert np.array_equal(L, np.eye(3))
    assert len(said) == 1


def test_equal_rows_keep_their_unit_and_say_so():
    L, said = learned(np.repeat([[0.0, 1.0], [1.0, 1.0]], 5, axis=0), np.repeat([0, 1], 5))
    assert np.isfinite(L).all()
    assert len(said) == 1
