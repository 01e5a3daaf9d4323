"""IML: the chain of metrics, class-balanced neighbourhoods, the stopping rule and the vote."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from setconv.baselines import iml
from setconv.baselines.base import FallbackWarning
from setconv.baselines.iml import IMLClassifier, learned_metric

QUICK = {"max_iter": 4, "random_state": 0}


@pytest.fixture
def same_metric(monkeypatch):
    """Metrics that change nothing."""
    monkeypatch.setattr(iml, "learned_metric", lambda rows, *_: np.eye(rows.shape[1]))


@pytest.fixture(scope="module")
def data():
    X, codes = make_classification(
        240, 10, n_informative=5, n_classes=3, weights=[0.7, 0.2], random_state=0
    )
    return X[:160], np.array(["a", "b", "c"])[codes[:160]], X[160:]


@pytest.fixture(scope="module")
def fitted(data):
    X, y, _ = data
    with pytest.MonkeyPatch.context() as patch:
        # Few steps a metric: the selections then take several metrics to become stable.
        patch.setattr(iml, "learned_metric", partial(learned_metric, max_iter=5))
        return IMLClassifier(n_per_class=4, match_threshold=0.8, **QUICK).fit(X, y)


def standardised(clf, X):
    """By hand: what the principal components of standardised rows are."""
    return ((X - clf.scaler_.mean_) / clf.scaler_.scale_ - clf.pca_.mean_) @ clf.pca_.components_.T


def brute_neighbourhood(clf, X, y, query):
    """The algorithm for one query, by sets and composed matrices L_i = A_i L_(i-1)."""
    L = np.eye(clf.pca_.n_components_)
    rows, z = standardised(clf, X), standardised(clf, query[None])
    before, ratio, iteration = None, np.nan, 0
    for metric in clf.metrics_:
        L, iteration = metric @ L, iteration + 1
        distances = ((rows @ L.T - z @ L.T) ** 2).sum(axis=1)
        selected = []
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            selected += members[np.argsort(distances[members])[:4]].tolist()
        if before is not None:
            ratio = len(set(selected) & before) / len(set(selected) | before)
            if ratio >= clf.match_threshold:
                break
        before = set(selected)
    return selected, distances[selected], iteration, ratio


def test_neighbourhoods_and_the_stopping_rule_are_those_of_the_steps_by_hand(data, fitted):
    X, y, queries = data
    found = fitted.neighbourhoods(queries)
    for place, query in enumerate(queries):
        rows, distances, iteration, ratio = brute_neighbourhood(fitted, X, y, query)
        assert found.rows[place].tolist() == rows
        assert found.distances[place] == pytest.approx(distances, rel=1e-5)
        assert found.iterations[place] == iteration
        assert found.ratios[place] == pytest.approx(ratio)
    # All ways to end are there: at once, later, and not at all.
    assert set(found.iterations) == {2, 3, 4}
    assert (found.ratios[found.iterations < 4] >= 0.8).all()
    assert (found.ratios < 0.8).any()


def test_equal_rows_do_not_unsettle_a_selection():
    X = np.repeat(np.random.default_rng(0).standard_normal((6, 3)), 20, axis=0)
    clf = IMLClassifier(max_iter=2)
    with pytest.warns(FallbackWarning, match="equal rows"):
        clf.fit(X, np.arange(120) % 2)
    # In another metric, in which the rows that are equal still are.
    clf.metrics_[1] = 3 * np.eye(3)
    assert (clf.neighbourhoods(X).ratios == 1).all()


def test_each_metric_is_learned_on_what_the_one_before_gives(fitted):
    mapped, random = fitted.rows_, np.random.RandomState(0)
    for metric in fitted.metrics_:
        alone = learned_metric(mapped, fitted.codes_, random, print, max_iter=5)
        assert np.array_equal(alone, metric)
        mapped = mapped @ metric.T


@pytest.mark.usefixtures("same_metric")
def test_the_vote_is_the_mean_weight_of_each_class_with_widths_from_within_the_class():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [14.0]])
    clf = IMLClassifier(n_per_class=2, max_iter=1)
    clf.fit(X, [0, 0, 0, 1, 1])
    unit = X.var()  # standardised squared distances are squared distances over this
    # Of each row of class 0 the two others: 1, 4 | 1, 1 | 1, 4; of class 1 the one other: 16.
    assert clf.widths_[0] * unit == pytest.approx([2, 16])
    found = clf.neighbourhoods([[5.0]])
    assert found.rows.tolist() == [[2, 1, 3, 4]]
    weights = np.exp([-9 / 2, -16 / 2]), np.exp([-25 / 16, -81 / 16])
    scores = np.array([part.mean() for part in weights])
    assert clf.predict_proba([[5.0]])[0] == pytest.approx(scores / scores.sum(), rel=1e-5)


@pytest.mark.usefixtures("same_metric")
def test_rows_that_nearly_coincide_have_a_hundredth_of_the_largest_width():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [10.00001]])
    clf = IMLClassifier(n_per_class=2, max_iter=1).fit(X, [0, 0, 0, 1, 1])
    assert clf.widths_[0] * X.var() == pytest.approx([2, 0.02])


@pytest.mark.filterwarnings("ignore::setconv.baselines.base.FallbackWarning")
@pytest.mark.parametrize("rare", [1, 2])
def test_the_decision_function_ranks_where_probabilities_are_all_0(rare):
    rng = np.random.default_rng(0)

    def rows_of(n, m):
        labels = np.arange(n + m) >= n
        return rng.standard_normal((n + m, 384)) + 0.25 * labels[:, None], labels

    clf = IMLClassifier(random_state=0).fit(*rows_of(600, rare))
    rows, labels = rows_of(200, 200)
    probabilities = clf.predict_proba(rows)[:, 1]
    assert (probabilities == 0).mean() > 0.9
    ranked = roc_auc_score(labels, clf.decision_function(rows))
    assert ranked > roc_auc_score(labels, probabilities) + 0.2
    assert ranked > 0.75


def test_the_decision_function_has_the_log_odds_of_the_probabilities(data, fitted):
    X, y, queries = data
    probabilities = fitted.predict_proba(queries)
    inside = (probabilities > 1e-12).all(axis=1) & (probabilities < 1 - 1e-9).all(axis=1)
    assert inside.sum() > 10
    scores = fitted.decision_function(queries)
    assert scores[inside] == pytest.approx(logit(probabilities[inside]), rel=1e-4, abs=1e-9)
    assert np.array_equal(fitted.predict(queries), fitted.classes_[scores.argmax(axis=1)])
    two = IMLClassifier(**QUICK).fit(X, y == "a")
    scores = two.decision_function(queries)
    assert expit(scores) == pytest.approx(two.predict_proba(queries)[:, 1])
    assert np.array_equal(two.predict(queries), scores > 0)
