"""SMOTE: where new rows lie, how many there are, and classes too small for neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from setconv.baselines.base import FallbackWarning
from setconv.baselines.smote import SMOTESampler
from setconv.errors import ParameterError


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


def test_the_rows_that_were_there_come_first_and_unchanged():
    X, y = two_classes(rare=12)
    rows, labels = SMOTESampler(random_state=0).fit_resample(X, y)
    assert np.array_equal(rows[: len(X)], X)
    assert np.array_equal(labels[: len(X)], y)


def test_every_class_reaches_the_size_of_the_largest():
    X, y = two_classes(rare=20)
    y[-6:] = 2
    _, labels = SMOTESampler(random_state=0).fit_resample(X, y)
    assert np.bincount(labels).tolist() == [40, 40, 40]


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


def test_a_class_with_just_enough_rows_says_nothing():
    sampler = SMOTESampler(random_state=0)
    sampler.fit_resample(*two_classes(rare=6))
    assert sampler.fallbacks_ == []


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


@pytest.mark.parametrize("names", [(-1, 1), (1, 2), ("often", "rare"), (True, False)])
def test_the_names_of_the_classes_do_not_matter(names):
    X, y = two_classes(rare=12)
    expected, codes = SMOTESampler(random_state=0).fit_resample(X, y)
    rows, labels = SMOTESampler(random_state=0).fit_resample(X, np.array(names)[y])
    assert np.array_equal(rows, expected)
    assert np.array_equal(labels, np.array(names)[codes])


@pytest.mark.parametrize("storage", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_rows_give_the_rows_that_dense_ones_give_in_their_format(storage):
    X, y = two_classes(rare=12)
    X[X < 0] = 0
    expected, _ = SMOTESampler(random_state=0).fit_resample(X, y)
    rows, _ = SMOTESampler(random_state=0).fit_resample(storage(X), y)
    assert rows.format == storage(X).format
    assert np.allclose(rows.toarray(), expected)


def test_one_seed_gives_one_result_and_another_gives_another():
    X, y = two_classes(rare=12)
    first, again, other = (
        SMOTESampler(random_state=seed).fit_resample(X, y)[0] for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_imbalance_ratio_of_500_constant_features_and_duplicates_work():
    X, y = two_classes(rare=6, often=3000)
    X[:, 1] = 7.0
    X[-5:] = X[-6]
    rows, labels = SMOTESampler(random_state=0).fit_resample(X, y)
    assert np.bincount(labels).tolist() == [3000, 3000]
    assert (rows[:, 1] == 7).all()
    assert np.allclose(rows[len(X) :], X[-1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_precision_of_the_rows_is_kept(dtype):
    X, y = two_classes(rare=12)
    rows, _ = SMOTESampler(random_state=0).fit_resample(X.astype(dtype), y)
    assert rows.dtype == dtype


@pytest.mark.parametrize("k_neighbors", [0, 2.5, "5", True])
def test_a_wrong_number_of_neighbours_is_named_at_the_fit(k_neighbors):
    sampler = SMOTESampler(k_neighbors=k_neighbors)
    with pytest.raises(ParameterError, match="k_neighbors="):
        sampler.fit_resample(*two_classes(rare=12))


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
