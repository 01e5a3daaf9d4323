"""IHT: hardness by hand, the rows kept, exact counts, and classes too small for the folds."""

import numpy as np
import pytest
from imblearn.under_sampling import InstanceHardnessThreshold
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from setconv.baselines.base import FallbackWarning
from setconv.baselines.iht import InstanceHardnessSampler

SILENT = pytest.mark.filterwarnings("ignore::setconv.baselines.base.FallbackWarning")


class ReadsProbability(ClassifierMixin, BaseEstimator):
    """Finds the probability of the second class in a feature: hardness is known without folds."""

    def __init__(self, feature=0):
        self.feature = feature

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, self.feature], X[:, self.feature]])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class KnowsItsTrainingRows(ReadsProbability):
    """Is certain of the label of a row it was trained on, and certain of another else."""

    def fit(self, X, y):
        self.seen_ = {tuple(row): label for row, label in zip(X.tolist(), y, strict=True)}
        return super().fit(X, y)

    def predict_proba(self, X):
        known = [self.seen_.get(tuple(row), -1) for row in X.tolist()]
        return (np.array(known)[:, None] == self.classes_).astype(float)


# Three rows of class 1, five of class 0; each feature is a probability of class 1.
P = np.array(
    [
        *([0.9, 0.1], [0.2, 0.8], [0.6, 0.6]),
        *([0.1, 0.5], [0.8, 0.2], [0.4, 0.2], [0.3, 0.3], [0.7, 0.9]),
    ]
)
LABELS = np.repeat([1, 0], [3, 5])


def rows_and_labels(n=300, **parameters):
    return make_classification(n, weights=[0.85], flip_y=0.05, random_state=0, **parameters)


@SILENT
def test_hardness_is_one_minus_the_probability_of_the_own_class():
    sampler = InstanceHardnessSampler(ReadsProbability(), cv=2, random_state=0)
    sampler.fit_resample(P, LABELS)
    assert np.allclose(sampler.instance_hardness_, [0.1, 0.8, 0.4, 0.1, 0.8, 0.4, 0.3, 0.7])
    # The three easiest of class 0 are rows 3, 6 and 5.
    assert sampler.sample_indices_.tolist() == [0, 1, 2, 3, 5, 6]


@SILENT
def test_no_classifier_has_seen_the_row_that_it_judges():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [20, 7])
    sampler = InstanceHardnessSampler(KnowsItsTrainingRows(), random_state=0)
    sampler.fit_resample(rng.standard_normal((27, 3)), y)
    assert (sampler.instance_hardness_ == 1).all()


# A threshold that would leave nothing of class 0 balances instead.
@SILENT
@pytest.mark.parametrize(
    ("threshold", "dropped", "said"), [(0.4, [4, 7], 0), (0.05, [4, 7], 1), (0.9, [], 1)]
)
def test_a_threshold_leaves_out_just_the_harder_rows_and_never_those_of_the_smallest_class(
    threshold, dropped, said
):
    parameters = {"cv": 2, "mode": "threshold", "threshold": threshold, "random_state": 0}
    sampler = InstanceHardnessSampler(ReadsProbability(), **parameters)
    rows, _ = sampler.fit_resample(P, LABELS)
    assert np.array_equal(rows, np.delete(P, dropped, axis=0))
    assert len(sampler.fallbacks_) == said


def test_where_no_rows_tie_the_result_is_that_of_imbalanced_learn():
    X, y = rows_and_labels(n_features=3, n_informative=3, n_redundant=0)
    ours = InstanceHardnessSampler(estimator=GaussianNB(), random_state=0)
    ours.fit_resample(X, y)
    theirs = InstanceHardnessThreshold(estimator=GaussianNB(), random_state=0)
    theirs.fit_resample(X, y)
    assert np.array_equal(ours.sample_indices_, np.sort(theirs.sample_indices_))


def test_counts_are_exact_where_every_row_ties_and_the_seed_breaks_the_tie():
    X, y = rows_and_labels()
    X[:, 0] = 0.5
    kept = []
    for seed in (0, 0, 1):
        sampler = InstanceHardnessSampler(ReadsProbability(), random_state=seed)
        _, labels = sampler.fit_resample(X, y)
        assert (sampler.instance_hardness_ == 0.5).all()
        assert np.bincount(labels).tolist() == [(y == 1).sum()] * 2
        kept.append(sampler.sample_indices_.tolist())
    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize(("rare", "folds"), [(3, 3), (1, 5)])
def test_a_class_too_small_for_the_folds_is_kept_and_said(rare, folds):
    X, y = rows_and_labels()
    keep = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:rare]])
    sampler = InstanceHardnessSampler(random_state=0)
    with pytest.warns(FallbackWarning):
        _, labels = sampler.fit_resample(X[keep], y[keep])
    assert sampler.n_folds_ == folds
    assert np.bincount(labels).tolist() == [rare, rare]
    # The row of a class of one cannot be judged; all others are.
    assert np.array_equal(np.isnan(sampler.instance_hardness_), (y[keep] == 1) & (rare == 1))
