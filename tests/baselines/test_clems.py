"""CLEMS: weighted scaling, mirroring, costs, and decoding by the nearest answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, hamming_loss, jaccard_score, recall_score

from setconv.baselines.clems import CLEMSClassifier, mirrored, set_costs
from setconv.baselines.weighted_mds import WeightedMDS
from setconv.errors import DataError, LabelError, ParameterError


def random_problem(seed, size=6):
    rng = np.random.default_rng(seed)
    delta, weights = rng.random((2, size, size))
    weights[rng.random((size, size)) < 0.3] = 0
    return (delta + delta.T) * (1 - np.eye(size)), weights + weights.T


# Scaling


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_stress_never_rises(seed, n_components):
    delta, weights = random_problem(seed)
    mds = WeightedMDS(n_components=n_components, n_init=1, tol=0, max_iter=50, random_state=seed)
    mds.fit(delta, weights=weights)
    assert (np.diff(mds.stresses_) <= 1e-12).all()
    assert mds.stress_ == mds.stresses_[-1] < mds.stresses_[0]


def test_the_stress_is_the_weighted_sum_over_pairs():
    delta, weights = random_problem(0)
    mds = WeightedMDS(random_state=0)
    Z = mds.fit_transform(delta, weights=weights)
    by_hand = sum(
        weights[i, j] * (np.linalg.norm(Z[i] - Z[j]) - delta[i, j]) ** 2
        for i in range(6)
        for j in range(i)
    )
    assert mds.stress_ == pytest.approx(by_hand)
    assert np.array_equal(mds.embedding_, Z)


def test_distances_that_can_be_met_are_met():
    points = np.random.default_rng(0).standard_normal((7, 2))
    distances = cdist(points, points)
    mds = WeightedMDS(tol=1e-12, max_iter=3000, random_state=0).fit(distances)
    assert cdist(mds.embedding_, mds.embedding_) == pytest.approx(distances, abs=1e-3)


def test_a_pair_of_weight_0_is_free():
    # On a line 0-1-2 of unit steps, the wrong 0-2 would cost if it had a weight.
    delta = np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0.0]])
    chain = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])
    mds = WeightedMDS(tol=1e-15, random_state=0)
    assert mds.fit(delta, weights=chain).stress_ < 1e-6
    assert mds.fit(delta).stress_ > 1


def test_the_best_of_the_starts_is_kept():
    delta, weights = random_problem(3)
    alone = WeightedMDS(n_components=1, n_init=1, random_state=0).fit(delta, weights=weights)
    many = WeightedMDS(n_components=1, n_init=20, random_state=0).fit(delta, weights=weights)
    assert many.stress_ < alone.stress_


@pytest.mark.parametrize(
    ("delta", "weights", "message"),
    [
        (np.ones((2, 3)), None, r"shape \(2, 3\); give a square matrix"),
        (np.array([[0, 1], [2, 0.0]]), None, "dissimilarities must be"),
        (np.ones((2, 2)), np.array([[0, 1], [2, 0.0]]), "weights must be"),
        (np.ones((2, 2)), np.ones((3, 3)), r"weights have shape \(3, 3\); give \(2, 2\)"),
    ],
)
def test_matrices_that_cannot_be_are_refused(delta, weights, message):
    with pytest.raises(DataError, match=message):
        WeightedMDS().fit(delta, weights=weights)


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


def rank_loss(true, answer):
    inside, outside = np.flatnonzero(true == 1), np.flatnonzero(true == 0)
    pairs = [(answer[i], answer[o]) for i in inside for o in outside]
    return sum(1.0 if a < b else 0.5 if a == b else 0.0 for a, b in pairs)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hamming", lambda true, answer: hamming_loss(true, answer)),
        ("f1", lambda true, answer: 1 - f1_score(true, answer, zero_division=1)),
        ("accuracy", lambda true, answer: 1 - jaccard_score(true, answer, zero_division=1)),
        ("rank", rank_loss),
    ],
)
def test_named_costs_of_sets_equal_the_metrics_of_their_names(name, expected):
    sets = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]])
    costs = set_costs(name, sets)
    by_hand = [[expected(true, answer) for answer in sets] for true in sets]
    assert costs == pytest.approx(np.array(by_hand))


def test_a_callable_gets_truth_and_answer():
    X = np.random.default_rng(0).standard_normal((9, 2))
    clf = CLEMSClassifier(cost=lambda true, answer: 2.0 * (true > answer) + (true < answer))
    clf.fit(X, [3, 5, 8] * 3)
    assert clf.cost_.tolist() == [[0, 1, 1], [2, 0, 1], [2, 2, 0]]


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
    assert clf.mds_.stress_ < 0.1
    expected = shares @ costs
    chosen = expected[np.arange(30), clf.predict(np.eye(30))]
    assert chosen == pytest.approx(expected.min(axis=1), abs=0.03)
    assert len(np.unique(clf.predict(np.eye(30)))) == 3


def test_a_dearer_mistake_is_made_less_often():
    X, y = make_classification(600, 8, weights=[0.9], class_sep=0.6, random_state=0)
    recalls = []
    for cost in ([[0, 1], [1, 0]], [[0, 1], [10, 0]]):
        clf = CLEMSClassifier(cost=cost, random_state=0).fit(X, y)
        recalls.append(recall_score(y, clf.predict(X)))
    assert recalls[1] > recalls[0] + 0.2
    balanced = CLEMSClassifier(random_state=0).fit(X, y)
    assert recall_score(y, balanced.predict(X)) > recalls[0] + 0.2


def test_predictions_are_the_argmax_of_probabilities_and_do_not_depend_on_the_batch():
    X, y = make_classification(200, 6, weights=[0.8], random_state=0)
    X = X.astype(np.float32)
    clf = CLEMSClassifier(random_state=0).fit(X, y)
    together = clf.predict_proba(X)
    assert np.array_equal(clf.predict(X), together.argmax(axis=1))
    alone = np.vstack([clf.predict_proba(row[None]) for row in X[:20]])
    assert together[:20] == pytest.approx(alone, abs=1e-12)


def test_the_same_seed_gives_the_same_and_labels_may_have_any_name():
    X, y = make_classification(100, 5, weights=[0.8], random_state=0)
    results = [
        CLEMSClassifier(random_state=0).fit(X, labels).predict_proba(X)
        for labels in (y, y, 2 * y - 1, y + 1, np.array(["a", "b"])[y])
    ]
    assert all(np.array_equal(results[0], other) for other in results[1:])


# Sets of labels


@pytest.mark.parametrize("cost", ["balanced", "hamming", "f1", "accuracy", "rank"])
def test_sets_of_labels_are_answered_with_sets_that_were_seen(cost):
    X, Y = make_multilabel_classification(150, 8, n_classes=4, n_labels=2, random_state=0)
    clf = CLEMSClassifier(cost=cost, n_init=2, random_state=0).fit(X, Y)
    assert clf.answer_points_.shape == (len(np.unique(Y, axis=0)), 4)
    answers = clf.predict(X)
    assert {tuple(line) for line in answers} <= {tuple(line) for line in Y}
    assert clf.predict_proba(X).shape == Y.shape
    constant = (Y.mean(axis=0).round() == Y).mean()
    assert (answers == Y).mean() > constant or cost == "balanced"


def test_the_probability_of_a_label_is_the_sum_over_the_sets_that_have_it():
    X, Y = make_multilabel_classification(80, 6, n_classes=3, random_state=0)
    clf = CLEMSClassifier(cost="hamming", random_state=0).fit(X, Y)
    points = clf.regressor_.predict(X[:1])
    weights = np.exp(-((points - clf.answer_points_) ** 2).sum(axis=1))
    for label in range(3):
        expected = weights[clf.labels_[:, label] == 1].sum() / weights.sum()
        assert clf.predict_proba(X[:1])[0, label] == pytest.approx(expected)


# Bad input


def test_one_row_in_a_class_constant_features_and_equal_rows_work_at_a_ratio_of_500():
    X = np.column_stack([np.zeros(501), np.arange(501) == 500, np.ones(501)]).astype(float)
    y = np.where(np.arange(501) == 500, "rare", "common")
    clf = CLEMSClassifier(random_state=0).fit(X, y)
    assert clf.predict(X[[0, 500]]).tolist() == ["common", "rare"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cost": "cheap"}, "cost='cheap': give one of 'balanced'"),
        ({"cost": np.ones((3, 3))}, r"cost has shape \(3, 3\); give \(2, 2\)"),
        ({"cost": [[0, -1], [1, 0]]}, "not negative"),
        ({"cost": np.zeros((2, 2))}, "not all zero"),
        ({"tau": 0}, "tau=0: give a positive number"),
        ({"n_components": 0}, "n_components=0"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    with pytest.raises(ParameterError, match=message):
        CLEMSClassifier(**parameters).fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize("y", [np.zeros(4), np.ones((4, 2), dtype=int)])
def test_a_single_class_is_refused(y):
    with pytest.raises(LabelError, match="at least two classes"):
        CLEMSClassifier().fit(np.eye(4), y)
