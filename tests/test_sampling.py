"""Draws by class, rows that stay together, and which of them each member leaves out."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from setconv import data
from setconv.io.opening import open_source
from setconv.sampling import (
    assign_folds,
    bootstrap_weights,
    draw_by_class,
    forward_cuts,
    leave_later_out,
    leave_out,
    row_keys,
    share_out,
    text_keys,
    tie_copies,
)

# ------------------------------------------------------------------------------------------ draws


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=8), st.integers(8, 128))
def test_places_are_shared_out_by_the_largest_remainder_with_one_for_every_class(counts, size):
    counts = np.array(counts)
    places = share_out(counts, size)
    ideal = size * counts / counts.sum()
    assert places.sum() == size
    assert (places >= 1).all()
    assert (places <= np.maximum(1, np.ceil(ideal))).all()
    if (ideal >= 1).all():
        assert (places >= np.floor(ideal)).all()
        up, down = ideal[places > ideal], ideal[places < ideal]
        if len(up) and len(down):
            assert np.min(up % 1) >= np.max(down % 1) - 1e-9


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 99))
def test_draws_are_of_each_class_as_many_as_were_asked_for(codes, seed):
    codes, sizes = np.array(codes), [3, 0, 50, 1]
    drawn = draw_by_class(codes, sizes, np.random.default_rng(seed))
    assert (np.diff(drawn) > 0).all()
    found, there = np.bincount(codes[drawn], minlength=4), np.bincount(codes, minlength=4)
    assert found.tolist() == np.minimum(sizes, there).tolist()
    weights = bootstrap_weights(codes, np.random.default_rng(seed))
    assert (weights >= 0).all()
    np.testing.assert_array_equal(np.bincount(codes, weights, minlength=4), there)


# ------------------------------------------------------------------------------------------ folds


@st.composite
def problems(draw):
    """Classes with at least one row each, in any order, and groups or none."""
    counts = draw(st.lists(st.integers(1, 25), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    groups = None
    if draw(st.booleans()):
        groups = rng.integers(draw(st.integers(1, 30)), size=len(codes))
    return codes, draw(st.integers(1, 12)), groups, draw(st.integers(0, 1000))


def split_repeats(left_out):
    """The members of each repeat: five folds at least, or all members in one."""
    n_members = len(left_out)
    repeats = max(
        r for r in range(1, n_members + 1) if r == 1 or (not n_members % r and n_members // r >= 5)
    )
    return np.split(left_out, repeats)


@given(problems())
def test_rows_are_left_out_once_a_repeat_with_their_group_and_every_class_is_kept(problem):
    codes, n_members, groups, seed = problem
    left_out = leave_out(codes, n_members, groups, seed)
    assert left_out.shape == (n_members, len(codes))
    for out in left_out:
        assert np.array_equal(np.unique(codes[~out]), np.unique(codes))
    if n_members == 1:
        assert not left_out.any()
        return
    for repeat in split_repeats(left_out):
        times = repeat.sum(axis=0)
        assert set(times.tolist()) <= {0, 1}
        if groups is None:  # only a class of a single row is protected
            assert (times == (np.bincount(codes)[codes] > 1)).all()
            continue
        for group in np.unique(groups):
            rows = (groups == group) & repeat.any(axis=0)
            assert len(np.unique(repeat[:, rows], axis=1).T) <= 1
    if groups is None:  # groups of a row each are no groups
        apart = np.arange(len(codes))[::-1]
        assert np.array_equal(leave_out(codes, n_members, apart, seed), left_out)


@given(problems(), st.integers(2, 7))
def test_folds_are_stratified_to_within_a_row_or_keep_groups_whole(problem, k):
    codes, _, groups, seed = problem
    folds = assign_folds(codes, k, groups, np.random.default_rng(seed))
    assert set(folds.tolist()) <= set(range(k))
    if groups is not None:
        assert all(len(np.unique(folds[groups == group])) == 1 for group in np.unique(groups))
        return
    for rows in (codes >= 0, *(codes == code for code in np.unique(codes))):
        counts = np.bincount(folds[rows], minlength=k)
        assert counts.max() - counts.min() <= 1


def test_repeats_are_other_splits_and_seeds_other_folds():
    codes = np.repeat([0, 1], [50, 10])
    first, second = np.split(leave_out(codes, 10, None, 0), 2)
    assert not any(np.array_equal(a, b) for a in first for b in second)
    assert np.array_equal(leave_out(codes, 10, None, 0), leave_out(codes, 10, None, 0))
    assert not np.array_equal(leave_out(codes, 10, None, 0), leave_out(codes, 10, None, 1))


def test_a_class_in_one_group_is_never_left_out_and_its_group_not_torn_apart():
    codes = np.repeat([0, 1], [20, 6])
    left_out = leave_out(codes, 5, np.r_[np.arange(20) // 2, np.full(6, 99)], 0)
    assert not left_out[:, codes == 1].any()
    assert left_out[:, codes == 0].sum() == 20
    groups = np.r_[np.arange(12) // 3, 0]  # the only row of class 1 belongs to group 0
    for out in leave_out(np.repeat([0, 1], [12, 1]), 4, groups, 0):
        assert all(len(np.unique(out[groups == group])) == 1 for group in range(4))


# ------------------------------------------------------------------------------------------ keys


SOME = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0**-40, 1e300, 5e-324])


def same_rows(X):
    return np.unique(np.asarray(X) + 0.0, axis=0, return_inverse=True)[1].ravel().tolist()


def order(partitioned):
    """Numbers by first occurrence."""
    seen = {}
    return [seen.setdefault(one, len(seen)) for one in partitioned]


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=SOME))
def test_rows_have_the_same_key_if_they_hold_the_same_numbers(X):
    assert order(row_keys(X).tolist()) == order(same_rows(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_told_apart_dense_sparse_or_on_disk(dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (20_000, 9)).astype(dtype)
    keys = row_keys(X)
    assert order(keys.tolist()) == order(same_rows(X))
    rows = sparse.csr_matrix(X)
    rows.data[::7] = 0  # zeros that are stored
    np.testing.assert_array_equal(row_keys(rows), row_keys(rows.toarray()))
    mapped = np.memmap(tmp_path / "rows", dtype, "w+", shape=X.shape)
    mapped[:] = X
    np.testing.assert_array_equal(row_keys(open_source(mapped).rows), keys)
    Z = rng.normal(size=(50, 6))  # columns are not mistaken for one another
    assert len(np.unique(np.concatenate([row_keys(Z), row_keys(Z[:, ::-1])]))) == 100


def test_texts_that_say_the_same_have_the_same_key():
    same = [
        "Fire on Main Street",
        " fire  on MAIN street\n",
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
    shares = np.ones(len(kinds)) if ties.shares is None else ties.shares
    np.testing.assert_allclose(shares, 1 / np.bincount(kinds)[kinds])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_of_few_values_are_not_tied_where_too_few_differ(form):
    rng = np.random.default_rng(0)
    codes = (np.arange(400) < 40).astype(int)
    for columns, tied in ((1, False), (3, False), (12, True)):
        rows = form(rng.integers(0, 2, (400, columns)).astype(float))
        ties = tie_copies(row_keys(rows), rows, codes, None)
        assert ties.natural is not tied
        assert (ties.n_copies > 0) is tied


def test_a_class_of_one_kind_among_categories_is_dealt_row_by_row():
    # As one-hot columns: more rows are possible than there are, and yet one kind has the class.
    rng = np.random.default_rng(0)
    codes = (np.arange(300) < 30).astype(int)
    X, Z = rng.integers(0, 2, (300, 14)).astype(float), rng.normal(size=(300, 14))
    X[:30], Z[:30] = X[0], Z[0]
    assert tie_copies(row_keys(X), X, codes, None).natural
    # Copies of a row of numbers are copies.
    assert tie_copies(row_keys(Z), Z, codes, None).n_copies == 29
    # Without groups and copies every row stands alone.
    assert tie_copies(row_keys(Z[29:]), Z[29:], codes[29:], None) == (None, None, None, 0, False)


# -------------------------------------------------------------------------------- forward in time


def in_time(draw, n_classes=4):
    """Moments without gaps, and classes, all of which occur."""
    codes = draw(hnp.arrays(np.int64, st.integers(6, 60), elements=st.integers(0, n_classes - 1)))
    assume(np.ptp(codes))
    when = draw(hnp.arrays(np.int64, len(codes), elements=st.integers(0, 40)))
    return np.unique(when, return_inverse=True)[1], np.unique(codes, return_inverse=True)[1]


@given(st.data(), st.integers(2, 6))
def test_before_the_first_cut_every_class_is_known_and_no_part_is_empty(data, n_cuts):
    moments, codes = in_time(data.draw)
    cuts = forward_cuts(moments, codes, n_cuts)
    counts = np.bincount(codes)
    least = np.where(counts > 2, 2, 1)

    def known(moment):
        return (np.bincount(codes[moments < moment], minlength=len(counts)) >= least).all()

    assert len(cuts) <= n_cuts
    assert (np.diff(cuts) > 0).all()
    if len(cuts):
        assert known(cuts[0])
        assert np.isin(cuts, moments).all()
    else:
        assert not any(known(moment) for moment in moments)


@given(st.lists(st.booleans(), min_size=30, max_size=120), st.integers(2, 5))
def test_the_rare_class_is_spread_over_the_parts(rare, n_cuts):
    codes = np.array(rare, dtype=np.int64)
    assume(3 * (n_cuts + 1) <= codes.sum() < (codes == 0).sum())
    assume((codes[:6] == 0).sum() > 1)
    cuts = forward_cuts(np.arange(len(codes)), codes, n_cuts)
    parts = np.split(codes, cuts)
    assert len(cuts) == n_cuts
    assert np.ptp([part.sum() for part in parts]) <= 1


@given(st.data(), st.integers(3, 10))
def test_judges_learn_from_what_lies_before_the_rows_that_they_judge(data, n_members):
    moments, codes = in_time(data.draw, n_classes=3)
    units = data.draw(st.none() | st.just(np.arange(len(codes)) // 3))
    cuts = forward_cuts(moments, codes, max(2, n_members // 2))
    passed = np.searchsorted(cuts, moments, side="right")
    left_out, judged, speakers = leave_later_out(passed, codes, n_members, units, seed=0)
    judges = judged.any(axis=1)
    assert not (judges & speakers).any()
    assert (judged <= left_out).all()
    assert (judged.sum(axis=0) <= 1).all()
    n_judges = int((~speakers).sum())
    assert n_judges <= max(2, n_members // 2)
    assert speakers[n_judges:].all()
    # The others leave random folds out, of which none holds all of a class.
    right = leave_out(codes, n_members - n_judges, units, seed=0)
    np.testing.assert_array_equal(left_out[n_judges:], right)
    for out, mine in zip(left_out[judges], judged[judges], strict=True):
        assert moments[~out].max() < moments[mine].min()
        assert set(codes[~out]) == set(codes)
        # From the cut on nobody judges before this one does, but for a judge of the same rows.
        assert (
            moments[out].min() == moments[judged[(left_out == out).all(axis=1)].any(axis=0)].min()
        )
    # All that lies behind the first cut is judged, by two members if it is one part.
    assert np.array_equal(judged.any(axis=0), left_out[:n_judges].any(axis=0))
    if judges.any() and judged.any(axis=0).sum() > 1 and units is None:
        assert judges.sum() > 1


@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_small_numbers_are_counted_a_part_at_a_time(kind, monkeypatch):
    monkeypatch.setattr(data, "MERGED", 7)
    numbers = np.array([3, 0, 3, 1, 0] * 5, dtype=kind)
    assert data.count_each(numbers).tolist() == [10, 5, 0, 10]
    assert data.count_each(numbers, 6).tolist() == [10, 5, 0, 10, 0, 0]
    assert data.count_each(numbers[:0], 2).tolist() == [0, 0]
