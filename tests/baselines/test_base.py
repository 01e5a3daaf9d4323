"""What samplers and classifiers here have in common, and a sampler in its pipeline."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from setconv import baselines
from setconv.baselines.base import (
    FallbackWarning,
    OverSampler,
    UnderSampler,
    check_class_number,
    check_number,
    check_training_rows,
    cloned,
)
from setconv.baselines.smote import SMOTESampler
from setconv.errors import LabelError, ParameterError


class Copies(OverSampler):
    """Adds copies of the first row of the class and remembers what it was given."""

    def __init__(self, *, sampling_strategy="auto", random_state=None):
        super().__init__(sampling_strategy=sampling_strategy)
        self.random_state = random_state

    def _new_rows(self, X, codes, code, count, random):
        self.seen_ = X, codes
        self.drawn_ = int(random.randint(1_000_000))
        return X[np.full(count, np.flatnonzero(codes == code)[0])]


class Chance(UnderSampler):
    """Keeps rows at random, in no order."""

    def __init__(self, *, sampling_strategy="auto", random_state=None):
        super().__init__(sampling_strategy=sampling_strategy)
        self.random_state = random_state

    def _kept_rows(self, X, codes, targets, random):
        shuffled = random.permutation(X.shape[0])
        kept = [shuffled[codes[shuffled] == code] for code in range(len(self.classes_))]
        return np.concatenate([rows[: targets.get(code)] for code, rows in enumerate(kept)])


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


def test_parameters_of_the_sampler_can_be_searched():
    X, y = rows_and_labels()
    grid = {"sampler__k_neighbors": [1, 3]}
    search = GridSearchCV(in_a_pipeline(), grid, cv=2).fit(X, y)
    best = search.best_estimator_["sampler"]
    assert best.k_neighbors == search.best_params_["sampler__k_neighbors"]


def test_what_the_sampler_could_not_do_can_be_read_from_the_pipeline():
    X, y = rows_and_labels()
    keep = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:2]])
    clf = in_a_pipeline()
    with pytest.warns(FallbackWarning, match="class 1 has 2 rows"):
        clf.fit(X[keep], y[keep])
    assert len(clf["sampler"].fallbacks_) == 1


@pytest.mark.parametrize("name", ["IHT", "KMeans-SMOTE", "SMOTE", "MWMOTE", "EUS"])
def test_rows_that_are_no_numbers_and_labels_of_one_class_are_refused(name):
    X, y = rows_and_labels()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        in_a_pipeline(name).fit(X, y)
    with pytest.raises(ValueError, match="class"):
        in_a_pipeline(name).fit(np.nan_to_num(X), np.zeros(len(y)))


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


# ------------------------------------------------------------------------ samplers in general


def test_an_over_sampler_gets_codes_and_a_number_and_labels_its_rows():
    X, y = rows_and_labels(classes=3)
    labels = np.array(["zero", "one", "two"])[y]
    sampler = Copies()
    rows, found = sampler.fit_resample(X, labels)
    assert sampler.classes_.tolist() == ["one", "two", "zero"]
    assert np.array_equal(sampler.classes_[sampler.seen_[1]], labels)
    assert len(set(np.unique(found, return_counts=True)[1])) == 1
    assert found.dtype == labels.dtype
    for label in ("one", "two"):
        first = X[labels == label][0]
        assert (rows[len(X) :][found[len(X) :] == label] == first).all()


def test_an_under_sampler_keeps_rows_in_their_order_and_tells_which():
    X, y = rows_and_labels(classes=3)
    sampler = Chance(random_state=0)
    rows, labels = sampler.fit_resample(X, y)
    assert (np.diff(sampler.sample_indices_) > 0).all()
    assert np.array_equal(rows, X[sampler.sample_indices_])
    assert np.array_equal(labels, y[sampler.sample_indices_])
    assert np.bincount(labels).tolist() == [np.bincount(y).min()] * 3


def test_only_under_samplers_promise_to_tell_which_rows_they_kept():
    assert get_tags(Chance()).sampler_tags.sample_indices
    assert not get_tags(Copies()).sampler_tags.sample_indices


@pytest.mark.parametrize("sampler", [Copies(), Chance(random_state=0)])
def test_a_sampler_with_nothing_to_do_says_so_and_forgets_it_at_the_next_fit(sampler):
    X, y = rows_and_labels()
    balanced = np.arange(len(y)) % 2
    with pytest.warns(FallbackWarning, match="the rows are as they were"):
        rows, _ = sampler.fit_resample(X, balanced)
    assert np.array_equal(rows, X)
    assert len(sampler.fallbacks_) == 1
    sampler.fit_resample(X, y)
    assert sampler.fallbacks_ == []


@pytest.mark.parametrize("storage", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
@pytest.mark.parametrize("sampler", [Copies(), Chance(random_state=0)])
def test_sparse_rows_stay_sparse_in_their_format(sampler, storage):
    X, y = rows_and_labels()
    expected, _ = sampler.fit_resample(X, y)
    rows, _ = sampler.fit_resample(storage(X), y)
    assert rows.format == storage(X).format
    assert np.array_equal(rows.toarray(), expected)


@pytest.mark.parametrize("sampler", [Copies(), Chance(random_state=0)])
def test_single_precision_stays_single(sampler):
    X, y = rows_and_labels()
    rows, _ = sampler.fit_resample(X.astype(np.float32), y)
    assert rows.dtype == np.float32


# ---------------------------------------------------------------------- checks of training rows


@pytest.mark.parametrize("names", [(0, 1), (-1, 1), (1, 2), ("no", "yes"), (False, True)])
def test_codes_stand_for_the_sorted_labels(names):
    X, y = rows_and_labels()
    labels = np.array(names)[y]
    _, codes, classes = check_training_rows(LogisticRegression(), X, labels)
    assert classes.tolist() == sorted(names)
    assert np.array_equal(classes[codes], labels)


def test_checked_rows_keep_single_precision_and_integers_become_numbers():
    X, y = rows_and_labels()
    estimator = LogisticRegression()
    assert check_training_rows(estimator, X.astype(np.float32), y)[0].dtype == np.float32
    assert check_training_rows(estimator, X.astype(int), y)[0].dtype == np.float64
    assert estimator.n_features_in_ == 20


def test_one_class_is_an_error_that_names_it():
    X, y = rows_and_labels()
    with pytest.raises(LabelError, match=r"one class: \['only'\]"):
        check_training_rows(LogisticRegression(), X, np.full(len(y), "only"))


def test_continuous_labels_are_an_error():
    X, _ = rows_and_labels()
    with pytest.raises(ValueError, match="continuous"):
        check_training_rows(LogisticRegression(), X, X[:, 0])


def test_more_than_two_classes_are_an_error_only_where_two_are_asked_for():
    classes = np.array([0, 1, 2])
    check_class_number("Some", classes)
    with pytest.raises(LabelError, match=r"Some is defined for two.*OneVsRestClassifier"):
        check_class_number("Some", classes, binary=True)


@pytest.mark.parametrize(
    ("closed", "allowed", "interval"),
    [
        ("neither", {0.5}, r"\(0, 1\)"),
        ("left", {0, 0.5}, r"\[0, 1\)"),
        ("both", {0, 0.5, 1}, r"\[0, 1\]"),
    ],
)
def test_a_number_out_of_its_interval_is_named_with_it(closed, allowed, interval):
    for value in (-1, 0, np.float32(0.5), 1, 2, np.nan, "half", None):
        if value in allowed:
            check_number("share", value, 0, 1, closed)
        else:
            with pytest.raises(ParameterError, match=f"^share=.*{interval}"):
                check_number("share", value, 0, 1, closed)
