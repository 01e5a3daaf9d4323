"""Anchors: from which rows they are made, by which rule, and in which shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from setconv.errors import ParameterError
from setconv.model import AnchorRows
from setconv.sampling import Split

seeds = st.integers(0, 2**31)


def make_case(counts, seed=0, d=4):
    """Rows of each class around a place of its own, in random order."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    rows = rng.normal(size=(len(codes), d)) + 10 * codes[:, None]
    return rows, codes


def anchors_of(anchor, rows, codes, weights=None, seed=0):
    weights = np.ones(len(rows)) if weights is None else weights
    nobody = np.zeros((1, len(rows)), bool)
    split = Split.of(codes, nobody, nobody, np.ones(1, bool))
    found = AnchorRows(anchor, split, weights, len(np.unique(codes)), rows.shape[1], seed)
    if found.from_sums:
        for start in range(0, len(rows), 16):
            part = slice(start, start + 16)
            found.add(part, rows[part])
    return found.anchors(rows)


# ------------------------------------------------------------------------------ the smaller side


@given(st.lists(st.integers(1, 30), min_size=2, max_size=5), seeds)
def test_every_head_takes_the_smaller_of_its_two_sides(counts, seed):
    rows, codes = make_case(counts, seed)
    anchors = anchors_of("mean", rows, codes)
    classes = [1] if len(counts) == 2 else range(len(counts))
    for head, c in enumerate(classes):
        own, rest = rows[codes == c], rows[codes != c]
        smaller = own if len(own) <= len(rest) else rest
        np.testing.assert_allclose(anchors[head, 0], smaller.mean(axis=0), atol=1e-12)


# ----------------------------------------------------------------------------------------- rules


def test_the_mean_and_a_single_centroid_are_weighted_in_double_precision(monkeypatch):
    monkeypatch.setattr("setconv.model.CENTROIDS", 1)
    rows, codes = make_case([30, 5])
    weights = np.random.default_rng(1).uniform(0.1, 5, size=len(rows))
    minority = codes == 1
    expected = np.average(rows[minority], axis=0, weights=weights[minority])
    for rule in ("mean", "kmeans"):
        found = anchors_of(rule, rows.astype(np.float32), codes, weights)
        assert (found.shape, found.dtype) == ((1, 1, 4), np.float64)
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-5)


def test_a_subset_is_the_mean_of_that_many_rows_of_the_smaller_side(monkeypatch):
    monkeypatch.setattr("setconv.model.SUBSET", 5)
    rows, codes = make_case([30, 12])
    rows = np.eye(42)  # the mean of rows shows which they are
    anchor = anchors_of("subset", rows, codes)[0, 0]
    chosen = np.flatnonzero(anchor)
    assert len(chosen) == 5
    np.testing.assert_allclose(anchor[chosen], 1 / 5)
    assert (codes[chosen] == 1).all()
    weights = np.arange(1.0, 43)
    weighted = anchors_of("subset", rows, codes, weights)[0, 0]
    np.testing.assert_allclose(weighted[chosen], weights[chosen] / weights[chosen].sum())


def test_kmeans_finds_the_centres_of_the_smaller_side(monkeypatch):
    monkeypatch.setattr("setconv.model.CENTROIDS", 3)
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0], [50, 0], [0, 50]])
    rows = np.concatenate([rng.normal(size=(200, 2)) - 500, np.repeat(centres, 10, axis=0)])
    rows += 0.1 * rng.normal(size=rows.shape)
    codes = np.repeat([0, 1], [200, 30])
    found = anchors_of("kmeans", rows, codes)
    assert found.shape == (1, 3, 2)
    expected = KMeans(3, n_init=10, random_state=0).fit(rows[200:]).cluster_centers_
    order = [np.argmin(np.linalg.norm(found[0] - centre, axis=1)) for centre in expected]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(found[0][order], expected)


def test_a_function_gets_the_rows_of_the_smaller_side():
    rows, codes = make_case([60, 5, 8])
    seen = []

    def middle(side):
        seen.append(side)
        return np.median(side, axis=0)

    anchors = anchors_of(middle, rows, codes)
    assert anchors.shape == (3, 1, 4)
    for head, member in enumerate([codes != 0, codes == 1, codes == 2]):
        np.testing.assert_array_equal(seen[head], rows[member])
        np.testing.assert_array_equal(anchors[head, 0], np.median(rows[member], axis=0))


@pytest.mark.parametrize("shape", [(4,), (2, 4), (1, 2, 4), (3, 2, 4)], ids=str)
def test_an_array_is_taken_as_it_is_for_all_heads_or_for_each(shape):
    rows, codes = make_case([60, 5, 8])
    given_anchors = np.random.default_rng(0).normal(size=shape)
    anchors = anchors_of(given_anchors, rows, codes)
    assert anchors.shape == (3, 1 if len(shape) == 1 else 2, 4)
    for head in range(3):
        own = given_anchors[head] if shape[0] == 3 else given_anchors
        np.testing.assert_array_equal(anchors[head], own.reshape(-1, 4))
    anchors[:] = 0  # a copy: the user's array stays
    assert given_anchors.all()


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "anchor",
    [
        "median",
        np.zeros(3),
        np.zeros((2, 1, 4)),  # two heads, and the data has three
        [0, 0, np.nan, 0],
        lambda side: side[:, :2],
        lambda side: np.stack([side[:2]] * 3),  # it is called for each head
    ],
)
def test_anchors_that_cannot_work_are_refused(anchor):
    with pytest.raises(ParameterError) as raised:
        anchors_of(anchor, *make_case([60, 5, 8]))
    assert raised.value.parameter == "anchor"
