"""SMOTE: where new rows lie, how many there are, and classes too small for neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from setconv.baselines.base import FallbackWarning
from setconv.baselines.smote import SMOTESampler


def two_classes(rare, often=40, features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((often + rare, features))
    X[often:] += 2
    return X, np.repeat([0, 1], [often, rare])


def distance_to_segments(point, starts, ends):
    way = ends - starts
    length = np.maximum((way**2).sum(axis=1), 1e-300)
    step = np.clip(((point - starts) * way).sum(axis=1) / length, 0, 1)
    return np.linalg.norm(starts + step[:, None] * way - point, axis=1)


def test_every_new_row_lies_between_a_row_and_one_of_its_nearest_neighbours():
    X, y = two_classes(rare=12)
    rows, labels = SMOTESampler(k_neighbors=3, random_state=0).fit_resample(X, y)
    rare = X[y == 1]
    nearest = np.argsort(cdist(rare, rare), axis=1)[:, 1:4]
    starts, ends = np.repeat(rare, 3, axis=0), rare[nearest.ravel()]
    new = rows[len(X) :]
    assert len(new) == 28
    assert (labels[len(X) :] == 1).all()
    assert max(distance_to_segments(row, starts, ends).min() for row in new) < 1e-12
    assert cdist(new, rare).min() > 1e-6


def test_the_sampling_strategy_says_which_class_grows_and_how_far():
    X, y = two_classes(rare=20)
    y[-6:] = 2
    sampler = SMOTESampler(sampling_strategy={2: 11}, random_state=0)
    _, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [40, 14, 11]


def test_a_class_with_fewer_rows_than_neighbours_uses_those_it_has_and_says_so():
    X, y = two_classes(rare=3)
    sampler = SMOTESampler(random_state=0)
    with pytest.warns(FallbackWarning, match="class 1 has 3 rows: SMOTE used 2 neighbours"):
        _, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [40, 40]
    assert sampler.fallbacks_ == ["class 1 has 3 rows: SMOTE used 2 neighbours instead of 5"]


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_a_class_of_one_row_is_duplicated_and_says_so(storage):
    X, y = two_classes(rare=1)
    labels = np.where(y == 1, "rare", "often")
    sampler = SMOTESampler(random_state=0)
    with pytest.warns(FallbackWarning, match="'rare' has 1 row"):
        rows, found = sampler.fit_resample(storage(X), labels)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    assert (dense[len(X) :] == X[-1]).all()
    assert (found == "rare").sum() == 40
    assert len(sampler.fallbacks_) == 1


@given(
    seed=st.integers(0, 1000),
    rare=st.integers(1, 12),
    k_neighbors=st.integers(1, 8),
    often=st.integers(13, 30),
)
@pytest.mark.filterwarnings("ignore::setconv.baselines.base.FallbackWarning")
def test_counts_are_exact_and_no_row_leaves_the_box_of_its_class(seed, rare, k_neighbors, often):
    X, y = two_classes(rare, often, seed=seed)
    sampler = SMOTESampler(k_neighbors=k_neighbors, random_state=seed)
    rows, labels = sampler.fit_resample(X, y)
    new = rows[len(X) :]
    assert np.bincount(labels).tolist() == [often, often]
    assert (new >= X[y == 1].min(axis=0) - 1e-12).all()
    assert (new <= X[y == 1].max(axis=0) + 1e-12).all()
