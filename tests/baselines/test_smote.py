"""SMOTE: where new rows lie, how many there are, and classes too small for neighbours."""

import numpy as np
import pytest
from easy_rows import distance_to_segments
from scipy import sparse
from scipy.spatial.distance import cdist

from setconv.baselines.base import FallbackWarning
from setconv.baselines.smote import SMOTESampler


def two_classes(rare, often=40, features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((often + rare, features))
    X[often:] += 2
    return X, np.repeat([0, 1], [often, rare])


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


def test_a_class_with_fewer_rows_than_neighbours_uses_those_it_has_and_says_so():
    X, y = two_classes(rare=3)
    sampler = SMOTESampler(random_state=0)
    with pytest.warns(FallbackWarning):
        _, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [40, 40]
    assert len(sampler.fallbacks_) == 1


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
