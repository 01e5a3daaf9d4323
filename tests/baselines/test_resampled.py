"""The classifier around a sampler, and what samplers and classifiers here have in common."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import ClassifierTags, get_tags

from setconv.baselines.checking import check_class_number, check_training_rows, require_rows
from setconv.baselines.fallbacks import FallbackWarning
from setconv.baselines.resampled import ResampledClassifier
from setconv.baselines.sampling import OverSampler, UnderSampler
from setconv.baselines.seeding import cloned
from setconv.baselines.smote import SMOTESampler
from setconv.errors import LabelError


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


class BinaryCopies(Copies):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def rows_and_labels(n=120, classes=2):
    X, y = make_classification(
        n, n_classes=classes, n_informative=4, weights=[0.7, 0.2], flip_y=0, random_state=0
    )
    return X * 5 + 3, y


def test_predictions_are_those_of_the_three_steps_done_by_hand():
    X, y = rows_and_labels()
    clf = ResampledClassifier(SMOTESampler(random_state=1)).fit(X, y)
    scaler = StandardScaler().fit(X)
    rows, labels = SMOTESampler(random_state=1).fit_resample(scaler.transform(X), y)
    by_hand = LogisticRegression(max_iter=1000).fit(rows, labels)
    other = X[::-1] * 1.1
    assert np.allclose(clf.predict_proba(other), by_hand.predict_proba(scaler.transform(other)))
    assert np.array_equal(clf.predict(other), by_hand.predict(scaler.transform(other)))


def test_the_sampler_sees_standardised_training_rows_or_if_asked_the_rows_as_they_are():
    X, y = rows_and_labels()
    seen, codes = ResampledClassifier(Copies()).fit(X, y).sampler_.seen_
    assert np.allclose(seen.mean(axis=0), 0)
    assert np.allclose(seen.std(axis=0), 1)
    assert np.array_equal(codes, y)
    plain = ResampledClassifier(Copies(), standardize=False).fit(X, y)
    assert np.array_equal(plain.sampler_.seen_[0], X)
    assert plain.scaler_ is None


def test_prediction_does_not_resample_and_does_not_depend_on_the_batch():
    X, y = rows_and_labels()
    clf = ResampledClassifier(SMOTESampler(), random_state=0).fit(X, y)
    whole = clf.predict_proba(X)
    assert len(whole) == len(X)
    assert np.allclose(np.vstack([clf.predict_proba(row[None]) for row in X[:9]]), whole[:9])


def test_the_parameters_given_are_not_fitted_themselves():
    X, y = rows_and_labels()
    sampler, estimator = SMOTESampler(), LogisticRegression()
    ResampledClassifier(sampler, estimator).fit(X, y)
    assert not hasattr(sampler, "classes_")
    assert not hasattr(estimator, "coef_")


def test_one_seed_reaches_the_sampler_and_the_classifier():
    X, y = rows_and_labels()
    tree = DecisionTreeClassifier(max_features=1)
    first, again, other = (
        ResampledClassifier(SMOTESampler(), tree, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert first.sampler_.random_state == again.sampler_.random_state
    assert first.sampler_.random_state != other.sampler_.random_state
    assert np.array_equal(first.predict_proba(X * 0.9), again.predict_proba(X * 0.9))
    assert first.estimator_.random_state != other.estimator_.random_state


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


@pytest.mark.parametrize(
    ("estimator", "probabilities", "scores"),
    [(None, True, True), (RidgeClassifier(), False, True), (DecisionTreeClassifier(), True, False)],
)
def test_there_are_just_the_scores_that_the_classifier_has(estimator, probabilities, scores):
    X, y = rows_and_labels()
    clf = ResampledClassifier(Copies(), estimator)
    for one in (clf, clone(clf).fit(X, y)):
        assert hasattr(one, "predict_proba") == probabilities
        assert hasattr(one, "decision_function") == scores


def test_columns_are_in_the_order_of_the_sorted_labels():
    X, y = rows_and_labels(classes=3)
    labels = np.array(["c", "a", "b"])[y]
    clf = ResampledClassifier(Copies()).fit(X, labels)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    chosen = clf.classes_[clf.predict_proba(X).argmax(axis=1)]
    assert np.array_equal(chosen, clf.predict(X))


def test_a_binary_sampler_makes_a_binary_classifier_whose_error_names_the_wrapper():
    clf = ResampledClassifier(BinaryCopies())
    assert not get_tags(clf).classifier_tags.multi_class
    assert get_tags(ResampledClassifier(Copies())).classifier_tags.multi_class
    with pytest.raises(LabelError, match="OneVsRestClassifier"):
        clf.fit(*rows_and_labels(classes=3))
    assert clf.fit(*rows_and_labels()).predict([[0.0] * 20]).shape == (1,)


def test_parameters_of_the_sampler_can_be_searched():
    X, y = rows_and_labels()
    grid = {"sampler__k_neighbors": [1, 3]}
    search = GridSearchCV(ResampledClassifier(SMOTESampler(), random_state=0), grid, cv=2)
    search.fit(X, y)
    assert search.best_estimator_.sampler_.k_neighbors == search.best_params_[next(iter(grid))]


def test_feature_names_are_kept_and_checked():
    X, y = rows_and_labels()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(20)])
    clf = ResampledClassifier(Copies()).fit(frame, y)
    assert clf.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"f0": "g0"}))


def test_what_the_sampler_could_not_do_can_be_read_from_the_classifier():
    X, y = rows_and_labels()
    keep = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:2]])
    clf = ResampledClassifier(SMOTESampler(), random_state=0)
    with pytest.warns(FallbackWarning, match="class 1 has 2 rows"):
        clf.fit(X[keep], y[keep])
    assert len(clf.sampler_.fallbacks_) == 1


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
    with pytest.raises(LabelError, match=r"OneVsRestClassifier\(Some"):
        check_class_number("Some", classes, binary=True)


def test_a_class_with_too_few_rows_is_named_with_their_number():
    codes, classes = np.array([0, 0, 0, 1]), np.array(["many", "few"])
    require_rows(codes, classes, 1, "a mean", "Add rows.")
    with pytest.raises(LabelError, match=r"'few' has 1 row; .*at least 2 .*Add rows\."):
        require_rows(codes, classes, 2, "a spread", "Add rows.")
    with pytest.raises(LabelError, match="'many' has 3 rows"):
        require_rows(codes, classes, 4, "a spread", "Add rows.")
