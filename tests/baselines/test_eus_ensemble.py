"""EUS for many rows: how rows are dealt, and what the members make of them."""

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imblearn.under_sampling import RandomUnderSampler
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from setconv.baselines.eus import EvolutionaryUnderSampler
from setconv.baselines.eus_ensemble import EUSEnsembleClassifier, deal
from setconv.baselines.fallbacks import FallbackWarning
from setconv.errors import LabelError, ParameterError

SHORT = EvolutionaryUnderSampler(max_evaluations=200)


def two_clouds(n_majority=180, n_minority=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], [n_majority, n_minority]))
    return rng.standard_normal((len(y), 3)) + 2 * y[:, None], y


def ensemble(**parameters):
    return EUSEnsembleClassifier(**{"sampler": SHORT, "random_state": 0, **parameters})


@given(
    counts=st.tuples(st.integers(5, 60), st.integers(5, 60)),
    number=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_every_row_is_dealt_once_and_classes_evenly(counts, number, seed):
    random = np.random.RandomState(seed)
    codes = random.permutation(np.repeat([0, 1], counts))
    parts = deal(codes, number, random, broadcast=False)
    assert len(parts) == number
    assert sorted(np.concatenate(parts)) == list(range(len(codes)))
    for code in (0, 1):
        shares = [np.sum(codes[part] == code) for part in parts]
        assert max(shares) - min(shares) <= 1


def test_broadcast_gives_each_partition_the_whole_minority():
    codes = np.arange(100) % 10 == 0
    parts = deal(codes.astype(int), 4, np.random.RandomState(0), broadcast=True)
    for part in parts:
        assert set(np.flatnonzero(codes)) <= set(part)
    common = np.concatenate([part[~codes[part]] for part in parts])
    assert sorted(common) == np.flatnonzero(~codes).tolist()


def test_probabilities_are_the_mean_of_the_members_trees():
    X, y = two_clouds()
    clf = ensemble(n_partitions=3).fit(X, y)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.mean([tree.predict_proba(rows) for tree in clf.estimators_], axis=0)
    assert len(clf.estimators_) == len(clf.samplers_) == 3
    assert all(isinstance(tree, DecisionTreeClassifier) for tree in clf.estimators_)
    assert all(tree.min_samples_leaf == 2 for tree in clf.estimators_)
    assert np.allclose(clf.predict_proba(X), expected)
    assert np.array_equal(clf.predict(X), expected.argmax(axis=1))


def test_each_member_learns_from_the_balanced_rows_of_its_own_partition():
    X, y = two_clouds()
    clf = ensemble(n_partitions=3, sampler=RandomUnderSampler()).fit(X, y)
    assert [tree.tree_.n_node_samples[0] for tree in clf.estimators_] == [20, 20, 20]
    whole = ensemble(n_partitions=3, sampler=RandomUnderSampler(), broadcast_minority=True)
    whole.fit(X, y)
    assert [tree.tree_.n_node_samples[0] for tree in whole.estimators_] == [60, 60, 60]


def test_the_scale_of_a_feature_changes_nothing():
    X, y = two_clouds()
    wide = X * [1, 2.0**10, 2.0**-10]
    assert np.allclose(
        ensemble().fit(X, y).predict_proba(X), ensemble().fit(wide, y).predict_proba(wide)
    )


def test_automatic_partitions_have_about_a_thousand_rows_and_thirty_of_the_minority():
    sampler = RandomUnderSampler()
    for counts, expected in [((180, 30), 1), ((2700, 300), 3), ((2941, 59), 1), ((2940, 60), 2)]:
        X, y = two_clouds(*counts)
        assert len(ensemble(sampler=sampler).fit(X, y).estimators_) == expected
    X, y = two_clouds(2700, 300)
    clf = ensemble(sampler=sampler, broadcast_minority=True).fit(X, y)
    assert len(clf.estimators_) == 3


def test_more_partitions_than_the_rows_allow_are_warned_of():
    X, y = two_clouds(60, 7)
    clf = ensemble(n_partitions=10)
    with pytest.warns(FallbackWarning, match="7 of class 1 and 60 of the other; 3 were made"):
        clf.fit(X, y)
    assert len(clf.estimators_) == 3
    assert len(clf.fallbacks_) == 1
    clf = ensemble(n_partitions=10, broadcast_minority=True)
    with pytest.warns(FallbackWarning, match="7 were made"):
        clf.fit(X, y)


def test_what_a_sampler_could_not_do_in_a_partition_is_told_by_the_ensemble():
    X, y = two_clouds(20, 20)
    clf = ensemble(n_partitions=2)
    with pytest.warns(FallbackWarning, match="in partition 0, no class has more rows"):
        clf.fit(X, y)
    assert [sentence[:14] for sentence in clf.fallbacks_] == ["in partition 0", "in partition 1"]


class OnlyTheFirstClass(RandomUnderSampler):
    def _fit_resample(self, X, y):
        return X[y == 0], y[y == 0]


def test_a_partition_left_with_one_class_votes_for_it():
    X, y = two_clouds()
    clf = ensemble(sampler=OnlyTheFirstClass()).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), np.tile([1, 0], (len(X), 1)))


def test_the_estimator_is_a_parameter():
    X, y = two_clouds()
    clf = ensemble(estimator=LogisticRegression()).fit(X, y)
    assert isinstance(clf.estimators_[0], LogisticRegression)
    assert np.mean(clf.predict(X) == y) > 0.9


@pytest.mark.parametrize("labels", [(-1, 1), (1, 2), ("no", "yes")])
def test_labels_of_any_kind_work(labels):
    X, y = two_clouds()
    named = np.array(labels)[y]
    clf = ensemble().fit(X, named)
    assert clf.classes_.tolist() == sorted(labels)
    assert np.mean(clf.predict(X) == named) > 0.8
    assert np.array_equal(clf.predict_proba(X), ensemble().fit(X, y).predict_proba(X))


def test_the_same_seed_gives_the_same_result_whatever_runs_at_once():
    X, y = two_clouds()
    one = ensemble(n_partitions=3).fit(X, y).predict_proba(X)
    with joblib.parallel_backend("threading"):
        two = ensemble(n_partitions=3, n_jobs=2).fit(X, y).predict_proba(X)
    other = ensemble(n_partitions=3, random_state=1).fit(X, y).predict_proba(X)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_a_prediction_does_not_depend_on_the_batch():
    X, y = two_clouds()
    clf = ensemble().fit(X, y)
    alone = np.concatenate([clf.predict_proba(row[None]) for row in X[:10]])
    assert np.array_equal(alone, clf.predict_proba(X)[:10])


@pytest.mark.parametrize("rows", ["duplicates", "constant", "rare"])
def test_poor_rows_work(rows):
    X, y = two_clouds(1000, 2) if rows == "rare" else two_clouds()
    if rows == "duplicates":
        X = np.repeat(X[::5], 5, axis=0)
    elif rows == "constant":
        X = np.ones_like(X)
    assert np.isfinite(ensemble().fit(X, y).predict_proba(X)).all()


def test_a_class_with_one_row_or_three_classes_are_clear_errors():
    X, y = two_clouds(30, 1)
    with pytest.raises(LabelError, match="class 1 has 1 row"):
        ensemble().fit(X, y)
    with pytest.raises(LabelError, match=r"OneVsRestClassifier\(EUSEnsembleClassifier"):
        ensemble().fit(X, np.arange(len(y)) % 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_partitions": 0}, "n_partitions is 0"),
        ({"n_partitions": "many"}, "n_partitions is 'many'"),
        ({"estimator": LinearSVC()}, "gives no probabilities"),
    ],
)
def test_parameters_that_cannot_work_are_named(parameters, message):
    X, y = two_clouds()
    with pytest.raises(ParameterError, match=message):
        ensemble(**parameters).fit(X, y)
