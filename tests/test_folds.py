"""Which rows each member leaves out: one fold each, groups together, every class kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.sampling import assign_folds, leave_out


@st.composite
def problems(draw, grouped=None):
    """Classes with at least one row each, in any order, and groups or none."""
    counts = draw(st.lists(st.integers(1, 25), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    groups = None
    if draw(st.booleans()) if grouped is None else grouped:
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
def test_a_row_is_left_out_once_a_repeat_unless_it_is_protected(problem):
    codes, n_members, groups, seed = problem
    left_out = leave_out(codes, n_members, groups, seed)
    assert left_out.shape == (n_members, len(codes))
    assert left_out.dtype == np.bool_
    if n_members == 1:
        assert not left_out.any()
        return
    for repeat in split_repeats(left_out):
        times = repeat.sum(axis=0)
        assert set(times.tolist()) <= {0, 1}
        if groups is None:  # only a class of a single row is protected
            alone = np.bincount(codes)[codes] == 1
            assert (times == ~alone).all()


@given(problems())
def test_every_class_is_among_the_training_rows_of_every_member(problem):
    codes, n_members, groups, seed = problem
    for out in leave_out(codes, n_members, groups, seed):
        assert np.array_equal(np.unique(codes[~out]), np.unique(codes))


@given(problems(grouped=True))
def test_rows_of_a_group_are_left_out_together_but_for_protected_classes(problem):
    codes, n_members, groups, seed = problem
    left_out = leave_out(codes, n_members, groups, seed)
    kept = ~left_out.any(axis=0)
    for repeat in split_repeats(left_out):
        free = repeat.any(axis=0)
        for group in np.unique(groups):
            rows = (groups == group) & free
            assert len(np.unique(repeat[:, rows], axis=1).T) <= 1
    if n_members > 1 and not kept.any():
        assert left_out.any(axis=0).all()


@given(problems(grouped=True), st.integers(2, 7))
def test_a_group_has_one_fold(problem, k):
    codes, _, groups, seed = problem
    folds = assign_folds(codes, k, groups, np.random.default_rng(seed))
    assert folds.min() >= 0
    assert folds.max() < k
    for group in np.unique(groups):
        assert len(np.unique(folds[groups == group])) == 1


@given(problems(grouped=False), st.integers(2, 7))
def test_folds_without_groups_are_stratified_to_within_a_row(problem, k):
    codes, _, _, seed = problem
    folds = assign_folds(codes, k, None, np.random.default_rng(seed))
    sizes = np.bincount(folds, minlength=k)
    assert sizes.max() - sizes.min() <= 1
    for code in np.unique(codes):
        counts = np.bincount(folds[codes == code], minlength=k)
        assert counts.max() - counts.min() <= 1


@given(problems())
def test_groups_of_a_row_each_are_no_groups(problem):
    codes, n_members, _, seed = problem
    apart = np.arange(len(codes))[::-1]
    assert np.array_equal(
        leave_out(codes, n_members, apart, seed), leave_out(codes, n_members, None, seed)
    )


@pytest.mark.parametrize(
    ("n_members", "folds"), [(2, 2), (5, 5), (7, 7), (9, 9), (10, 5), (15, 5), (12, 6)]
)
def test_members_are_repeats_of_at_least_five_folds(n_members, folds):
    codes = np.repeat([0, 1], [60, 60])
    left_out = leave_out(codes, n_members, None, 0)
    assert (left_out.sum(axis=0) == n_members // folds).all()
    assert (left_out.sum(axis=1) == 120 // folds).all() or 120 % folds


def test_repeats_are_other_splits_and_seeds_other_folds():
    codes = np.repeat([0, 1], [50, 10])
    first, second = np.split(leave_out(codes, 10, None, 0), 2)
    assert not any(np.array_equal(a, b) for a in first for b in second)
    assert np.array_equal(leave_out(codes, 10, None, 0), leave_out(codes, 10, None, 0))
    assert not np.array_equal(leave_out(codes, 10, None, 0), leave_out(codes, 10, None, 1))


@pytest.mark.parametrize("rare", [1, 2, 3])
def test_a_class_of_a_few_rows_is_left_out_as_far_as_it_can_be(rare):
    codes = np.repeat([0, 1], [40, rare])
    left_out = leave_out(codes, 5, None, 0)
    assert left_out[:, codes == 0].sum() == 40
    assert left_out[:, codes == 1].sum() == (0 if rare == 1 else rare)


def test_a_class_in_one_group_is_never_left_out():
    codes = np.repeat([0, 1], [20, 6])
    groups = np.r_[np.arange(20) // 2, np.full(6, 99)]
    left_out = leave_out(codes, 5, groups, 0)
    assert not left_out[:, codes == 1].any()
    assert left_out[:, codes == 0].sum() == 20


def test_a_group_with_a_protected_row_is_not_torn_apart():
    codes = np.repeat([0, 1], [12, 1])
    groups = np.r_[np.arange(12) // 3, 0]  # the only row of class 1 belongs to group 0
    for out in leave_out(codes, 4, groups, 0):
        for group in range(4):
            assert len(np.unique(out[groups == group])) == 1


def test_large_groups_spread_a_rare_class_over_the_folds():
    codes = np.tile(np.repeat([0, 1], [9, 1]), 10)
    groups = np.repeat(np.arange(10), 10)
    folds = assign_folds(codes, 5, groups, np.random.default_rng(0))
    assert np.bincount(folds[codes == 1], minlength=5).tolist() == [2] * 5
