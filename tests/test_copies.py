"""Rows that are there more than once: which they are, and who stays together."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from setconv.io.opening import open_source
from setconv.sampling import leave_out, row_keys, text_keys, tie_copies

SOME = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0**-40, 1e300, 5e-324])


def partition(numbers):
    """The same for numberings that say the same."""
    return np.unique(numbers, return_inverse=True)[1].tolist()


def same_rows(X):
    return partition(np.unique(np.asarray(X) + 0.0, axis=0, return_inverse=True)[1].ravel())


def order(partitioned):
    """Numbers by first occurrence."""
    seen = {}
    return [seen.setdefault(one, len(seen)) for one in partitioned]


# ------------------------------------------------------------------------------------------ keys


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=SOME))
def test_rows_have_the_same_key_if_they_hold_the_same_numbers(X):
    assert order(row_keys(X).tolist()) == order(same_rows(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_of_few_values_are_told_apart(dtype):
    X = np.random.default_rng(0).integers(0, 3, (20_000, 9)).astype(dtype)
    assert order(row_keys(X).tolist()) == order(same_rows(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_rows_on_disk_have_the_keys_of_dense_ones(dtype, tmp_path):
    rows = sparse.random(9000, 40, 0.1, format="csr", random_state=0, dtype=dtype)
    rows.data = np.round(rows.data)  # some of them are zeros that are stored
    dense = rows.toarray()
    np.testing.assert_array_equal(row_keys(rows), row_keys(dense))
    mapped = np.memmap(tmp_path / "rows", dtype, "w+", shape=dense.shape)
    mapped[:] = dense
    with open_source(mapped) as source:
        np.testing.assert_array_equal(row_keys(source.rows), row_keys(dense))


def test_columns_are_not_mistaken_for_one_another():
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert len(np.unique(np.concatenate([row_keys(X), row_keys(X[:, ::-1])]))) == 100


def test_texts_that_say_the_same_have_the_same_key():
    same = [
        "Fire on Main Street",
        "fire  on MAIN street",
        " fire on main street\n",
        "fire on Main Street https://t.co/abc",
        "@jane fire on www.example.org/x Main Street",
    ]
    other = ["fire on main", "fire on main street!", "@jane", "@joe", "https://t.co/a", "#1", "1"]
    assert len(set(text_keys(same).tolist())) == 1
    assert len(set(text_keys(other + same[:1]).tolist())) == len(other) + 1
    # Whatever texts they come with.
    assert text_keys(other + same)[-1] == text_keys(same[:1])[0]


# ------------------------------------------------------------------------------------------ ties


def components(links):
    """Who hangs together with whom, by brute force."""
    n = len(links[0])
    parts = list(range(n))
    for _ in range(n):
        for link in links:
            for a in range(n):
                for b in range(a):
                    if link[a] == link[b]:
                        low, high = sorted((parts[a], parts[b]))
                        parts = [low if p == high else p for p in parts]
    return parts


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 6), st.integers(0, 1)), min_size=2, max_size=14
    )
)
def test_groups_that_share_copies_are_joined(rows):
    groups, kinds, codes = map(np.array, zip(*rows, strict=True))
    assume(len(set(kinds.tolist())) > 1)
    X = np.random.default_rng(0).normal(size=(7, 5))[kinds]
    ties = tie_copies(row_keys(X), X, codes, groups)
    expected = components([groups.tolist(), kinds.tolist()])
    if max(np.bincount(expected)) > max(*np.bincount(groups), len(groups) / 4):
        expected = groups.tolist()  # too large a part would hang together
        assert order(ties.crossing.tolist()) == order(kinds.tolist())
    assert order(ties.units.tolist()) == order(expected)
    assert ties.n_copies == len(kinds) - len(set(kinds.tolist()))
    counts = np.bincount(kinds)[kinds]
    shares = np.ones(len(kinds)) if ties.shares is None else ties.shares
    np.testing.assert_allclose(shares, 1 / counts)


def test_without_groups_and_copies_every_row_stands_alone():
    X = np.random.default_rng(0).normal(size=(30, 2))
    codes = np.arange(30) % 2
    assert tie_copies(row_keys(X), X, codes, None) == (None, None, None, 0, False)


@pytest.mark.parametrize("n_members", [2, 5, 10])
def test_copies_are_left_out_together(n_members):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))[rng.integers(0, 60, 200)]
    codes = (X[:, 0] > 0.8).astype(int)
    ties = tie_copies(row_keys(X), X, codes, None)
    left_out = leave_out(codes, n_members, ties.units, 0)
    for kind in np.unique(ties.units):
        assert len(np.unique(left_out[:, ties.units == kind], axis=1).T) == 1
    assert left_out.any(axis=0).all()


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_of_few_values_are_not_tied_where_too_few_differ(form):
    rng = np.random.default_rng(0)
    codes = (np.arange(400) < 40).astype(int)
    for columns, tied in ((1, False), (3, False), (12, True)):
        X = rng.integers(0, 2, (400, columns)).astype(float)
        rows = sparse.csr_matrix(X) if form == "sparse" else X
        ties = tie_copies(row_keys(rows), rows, codes, None)
        assert ties.natural is not tied
        assert (ties.n_copies > 0) is tied


def test_a_class_of_one_kind_among_categories_is_dealt_row_by_row():
    # As one-hot columns: more rows are possible than there are, and yet one kind has the class.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 14)).astype(float)
    X[:30] = X[0]
    codes = (np.arange(300) < 30).astype(int)
    assert tie_copies(row_keys(X), X, codes, None).natural
    # Copies of a row of numbers are copies.
    Z = rng.normal(size=(300, 14))
    Z[:30] = Z[0]
    assert tie_copies(row_keys(Z), Z, codes, None).n_copies == 29
