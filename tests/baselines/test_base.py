"""What samplers and classifiers here have in common, and a sampler in its pipeline."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from setconv import baselines
from setconv.baselines.base import FallbackWarning, cloned
from setconv.baselines.smote import SMOTESampler

SAMPLERS = [one for one in baselines.all() if "sampling" in one.kind]


def rows_and_labels(n=120, classes=2):
    X, y = make_classification(
        n, n_classes=classes, n_informative=4, weights=[0.7, 0.2], flip_y=0, random_state=0
    )
    return X * 5 + 3, y


def in_a_pipeline(name="SMOTE", random_state=0):
    (found,) = (one for one in baselines.all() if one.name == name)
    return found.make(random_state=random_state)


def test_predictions_are_those_of_the_three_steps_done_by_hand():
    X, y = rows_and_labels()
    clf = in_a_pipeline().set_params(sampler__random_state=1).fit(X, y)
    scaler = StandardScaler().fit(X)
    rows, labels = SMOTESampler(random_state=1).fit_resample(scaler.transform(X), y)
    by_hand = LogisticRegression(max_iter=1000).fit(rows, labels)
    other = X[::-1] * 1.1
    assert np.allclose(clf.predict_proba(other), by_hand.predict_proba(scaler.transform(other)))
    assert np.array_equal(clf.predict(other), by_hand.predict(scaler.transform(other)))


def test_the_seed_reaches_the_sampler_and_none_leaves_it_to_chance():
    first, again, other = (in_a_pipeline(random_state=seed)["sampler"] for seed in (0, 0, 1))
    assert first.random_state == again.random_state != other.random_state
    assert in_a_pipeline(random_state=None)["sampler"].random_state is None


def test_a_seed_that_a_part_has_is_kept_and_every_part_without_one_gets_its_own():
    pipeline = make_pipeline(
        DecisionTreeClassifier(), LogisticRegression(random_state=7), StandardScaler(), LinearSVC()
    )
    copy = cloned(pipeline, np.random.RandomState(0))
    tree, logistic, _, svc = (step for _, step in copy.steps)
    assert logistic.random_state == 7
    assert isinstance(tree.random_state, int)
    assert isinstance(svc.random_state, int)
    assert tree.random_state != svc.random_state
    assert pipeline.steps[0][1].random_state is None


# --------------------------------------------------------------------------- every sampler of ours


def sampler_of(one):
    quick = {"EUS": {"max_evaluations": 300}, "KMeans-SMOTE": {"n_clusters": 3}}
    return one.estimator(random_state=0, **quick.get(one.name, {}))


@pytest.mark.parametrize("one", SAMPLERS, ids=lambda one: one.name)
def test_a_sampler_with_nothing_to_do_says_so_and_forgets_it_at_the_next_fit(one):
    X, y = rows_and_labels()
    sampler = sampler_of(one)
    with pytest.warns(FallbackWarning, match="the rows are as they were"):
        rows, _ = sampler.fit_resample(X, np.arange(len(y)) % 2)
    assert np.array_equal(rows, X)
    sampler.fit_resample(X, y)
    assert sampler.fallbacks_ == []


@pytest.mark.parametrize("one", SAMPLERS, ids=lambda one: one.name)
def test_rows_stay_in_their_order_and_have_the_labels_of_their_class(one):
    X, y = rows_and_labels()
    labels = np.array(["often", "rare"])[y]
    sampler = sampler_of(one)
    rows, found = sampler.fit_resample(X, labels)
    assert found.dtype == labels.dtype
    if one.kind == "under-sampling":
        kept = sampler.sample_indices_
        assert (np.diff(kept) > 0).all()
        assert np.array_equal(rows, X[kept])
        assert np.array_equal(found, labels[kept])
    else:
        assert np.array_equal(rows[: len(X)], X)
        assert np.array_equal(found[: len(X)], labels)
        assert (found[len(X) :] == "rare").all()


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("storage", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("one", SAMPLERS, ids=lambda one: one.name)
def test_sparse_rows_give_the_rows_that_dense_ones_give_in_their_format(one, storage):
    X, y = rows_and_labels()
    X[X < 0] = 0
    expected, labels = sampler_of(one).fit_resample(X, y)
    rows, found = sampler_of(one).fit_resample(storage(X), y)
    assert rows.format == storage(X).format
    assert np.allclose(rows.toarray(), expected)
    assert np.array_equal(found, labels)


@pytest.mark.filterwarnings("ignore::setconv.baselines.FallbackWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("one", SAMPLERS, ids=lambda one: one.name)
def test_the_type_of_the_rows_is_kept(one, dtype):
    X, y = rows_and_labels()
    assert sampler_of(one).fit_resample(X.astype(dtype), y)[0].dtype == dtype
