"""CLEMS: weighted scaling, mirroring, costs, and decoding by the nearest answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression

from setconv.baselines.clems import CLEMSClassifier, mirrored, weighted_mds


def random_problem(seed, size=6):
    rng = np.random.default_rng(seed)
    delta, weights = rng.random((2, size, size))
    weights[rng.random((size, size)) < 0.3] = 0
    apart = 1 - np.eye(size)
    return (delta + delta.T) * apart, (weights + weights.T) * apart


def placed(delta, weights, n_components=2, seed=0, **parameters):
    random = np.random.RandomState(seed)
    return weighted_mds(delta, weights, n_components, random, **parameters)


# Scaling


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_stress_never_rises(seed, n_components):
    delta, weights = random_problem(seed)
    _, stresses = placed(delta, weights, n_components, seed, n_init=1, tol=0, max_iter=50)
    assert (np.diff(stresses) <= 1e-12).all()
    assert stresses[-1] < stresses[0]


def test_the_stress_is_the_weighted_sum_over_pairs():
    delta, weights = random_problem(0)
    Z, stresses = placed(delta, weights)
    by_hand = sum(
        weights[i, j] * (np.linalg.norm(Z[i] - Z[j]) - delta[i, j]) ** 2
        for i in range(6)
        for j in range(i)
    )
    assert stresses[-1] == pytest.approx(by_hand)


def test_a_pair_of_weight_0_is_free():
    # On a line 0-1-2 of unit steps, the wrong 0-2 would cost if it had a weight.
    delta = np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0.0]])
    chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])
    assert placed(delta, chain, tol=1e-15)[1][-1] < 1e-6
    assert placed(delta, 1 - np.eye(3), tol=1e-15)[1][-1] > 1


# Mirroring and costs


def test_mirroring_gives_true_and_answer_points_with_the_counts_as_weights():
    delta, weights = mirrored(np.array([[0.0, 4.0], [9.0, 0.0]]), np.array([5, 2]))
    assert delta.tolist() == [[0, 0, 0, 2], [0, 0, 3, 0], [0, 3, 0, 0], [2, 0, 0, 0]]
    assert weights.tolist() == [[0, 0, 5, 5], [0, 0, 2, 2], [5, 2, 0, 0], [5, 2, 0, 0]]


def test_a_balanced_cost_is_inverse_to_the_class_frequency():
    X = np.random.default_rng(0).standard_normal((10, 3))
    clf = CLEMSClassifier(random_state=0).fit(X, [0] * 6 + [1] * 3 + [2])
    a, b, c = 10 / 18, 10 / 9, 10 / 3
    assert clf.cost_ == pytest.approx(np.array([[0, a, a], [b, 0, b], [c, c, 0]]))


# Decoding


class Given:
    """A regressor that says what the test wants."""

    def __init__(self, points):
        self.points = points

    def predict(self, X):
        return self.points[: len(X)]


def test_the_nearest_answer_is_predicted_and_has_the_highest_probability():
    X, y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
    clf = CLEMSClassifier(tau=0.5, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    clf.answer_points_ = np.array([[0.0, 0, 0], [2, 0, 0], [0, 3, 0]])
    clf.regressor_ = Given(np.array([[0.9, 0, 0], [1.1, 0, 0], [0, 2, 0], [-5, -5, 0]]))
    assert clf.predict(X[:4]).tolist() == ["a", "b", "c", "a"]
    weights = np.exp([-(0.9**2) / 0.5, -(1.1**2) / 0.5, -(0.9**2 + 9) / 0.5])
    assert clf.predict_proba(X[:1])[0] == pytest.approx(weights / weights.sum())


def test_an_exact_embedding_decides_for_the_least_expected_cost():
    # Costs that are squared distances can be met; groups of rows give exact posteriors.
    places = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 2.0]])
    costs = cdist(places, places, "sqeuclidean")
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 20)
    posteriors = rng.dirichlet([0.7, 0.7, 0.7], 30)
    y = np.concatenate([rng.choice(3, 20, p=p) for p in posteriors])
    shares = np.array([np.bincount(y[groups == g], minlength=3) / 20 for g in range(30)])
    X = np.eye(30)[groups]
    clf = CLEMSClassifier(cost=costs, regressor=LinearRegression(), max_iter=3000, random_state=0)
    clf.fit(X, y)
    assert clf.stress_ < 0.1
    expected = shares @ costs
    chosen = expected[np.arange(30), clf.predict(np.eye(30))]
    assert chosen == pytest.approx(expected.min(axis=1), abs=0.03)
    assert len(np.unique(clf.predict(np.eye(30)))) == 3


@pytest.mark.parametrize("costs", [(1, 1), (1, 9), (16, 1), (2, 3)])
@pytest.mark.parametrize("rows", [(50, 50), (90, 10)])
def test_in_two_classes_the_ratio_of_the_costs_acts_as_its_square_root(costs, rows):
    first, second = costs
    y = np.repeat([0, 1], rows)
    clf = CLEMSClassifier(cost=[[0, first], [second, 0]], random_state=0)
    clf.fit(y[:, None], y)
    share = np.linspace(0, 1, 10_001)[:, None]
    clf.regressor_ = Given((1 - share) * clf.true_points_[0] + share * clf.true_points_[1])
    threshold = share[clf.predict(share).argmax(), 0]
    assert threshold / (1 - threshold) == pytest.approx(np.sqrt(first / second), rel=0.02)
