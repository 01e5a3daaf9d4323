"""Splits of a study: every row on one side, classes in their shares, groups and copies together."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError, LabelError
from setconv.experiment.data import Rows
from setconv.experiment.splits import count_splits, make_split, seed_of, thin
from setconv.experiment.study import SplitRule

EVENTS = np.array(["a", "a", "b", "b", "c", "c", "c", "c", "c", "c"] * 3)
LABELS = np.array(["crash"] * 4 + ["no"] * 6 + ["crash"] * 2 + ["no"] * 8 + ["no"] * 10)


def as_rows(labels, groups=None, copies=None):
    return Rows(np.zeros(len(labels)), labels, groups, copies)


@st.composite
def rows(draw):
    counts = draw(st.lists(st.integers(5, 60), min_size=2, max_size=4))
    labels = np.repeat([f"class {number}" for number in range(len(counts))], counts)
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).permutation(labels), seed


@given(rows(), st.sampled_from([(70, 30), (60, 40), (95, 5)]))
def test_every_row_is_on_one_side_and_classes_keep_their_shares(made, parts):
    labels, seed = made
    split = make_split(SplitRule(parts), as_rows(labels), 0, seed)
    assert sorted(np.concatenate(split).tolist()) == list(range(len(labels)))
    for label in np.unique(labels):
        total = (labels == label).sum()
        for side, share in zip(split, parts, strict=True):
            found = (labels[side] == label).sum()
            assert found >= 1
            assert abs(found - total * share / 100) <= 1


@given(rows())
def test_groups_are_never_divided(made):
    labels, seed = made
    groups = np.random.default_rng(seed + 1).integers(0, max(2, len(labels) // 3), len(labels))
    split = make_split(SplitRule(), as_rows(labels, groups), 0, seed)
    assert not set(groups[split.train]) & set(groups[split.test])
    assert sorted(np.concatenate(split).tolist()) == list(range(len(labels)))


def test_each_group_of_a_class_is_left_out_in_turn():
    rule = SplitRule(leave_out="crash")
    of_crash = np.unique(EVENTS[LABELS == "crash"])
    assert count_splits(rule, as_rows(LABELS, EVENTS), "events") == len(of_crash) == 2
    for number, event in enumerate(of_crash):
        split = make_split(rule, as_rows(LABELS, EVENTS), number, seed=number)
        assert event not in EVENTS[split.train]
        assert set(EVENTS[split.test][LABELS[split.test] == "crash"]) == {event}
        assert "no" in LABELS[split.test]
        assert set(LABELS[split.train]) == {"crash", "no"}


@given(rows(), st.sampled_from(["alone", "grouped", "an event left out"]))
def test_no_copy_of_a_test_row_is_learned_from(made, kind):
    labels, seed = made
    rng = np.random.default_rng(seed + 1)
    copies = rng.integers(0, len(labels), len(labels))  # of any class
    groups = None if kind == "alone" else rng.integers(0, max(2, len(labels) // 3), len(labels))
    rule = SplitRule(leave_out="class 0" if kind == "an event left out" else None)
    train, test = make_split(rule, as_rows(labels, groups, copies), 0, seed)
    assert len(train)
    assert len(test)
    assert not set(copies[train]) & set(copies[test])
    if kind == "alone":
        assert sorted(np.concatenate([train, test]).tolist()) == list(range(len(labels)))
    if kind == "grouped":
        assert not set(groups[train]) & set(groups[test])


@given(rows())
def test_classes_keep_their_shares_where_rows_have_copies(made):
    labels, seed = made
    copies = np.random.default_rng(seed + 1).integers(0, len(labels), len(labels))
    copies = np.unique(
        [f"{label} {copy}" for label, copy in zip(labels, copies, strict=True)], return_inverse=True
    )[1]
    _, test = make_split(SplitRule(), as_rows(labels, None, copies), 0, seed)
    for label in np.unique(labels):
        mine = labels == label
        assert abs(mine[test].sum() - 0.3 * mine.sum()) <= np.bincount(copies[mine]).max()


@pytest.mark.parametrize(
    ("rule", "labels", "groups", "error"),
    [
        (SplitRule(), "aaaaa", None, LabelError),
        (SplitRule(), "aaaaab", None, LabelError),
        (SplitRule(leave_out="a"), "aabb", None, DataError),
        (SplitRule(leave_out="c"), "aabb", [1, 2, 3, 4], LabelError),
        (SplitRule(leave_out="a"), "aabb", [1, 1, 3, 4], LabelError),
    ],
)
def test_rows_that_cannot_be_divided_are_refused(rule, labels, groups, error):
    given_groups = None if groups is None else np.array(groups)
    with pytest.raises(error):
        count_splits(rule, as_rows(np.array(list(labels)), given_groups), "mine")


def test_splits_are_those_of_earlier_versions():
    labels = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], [40, 15, 5]))
    groups = np.arange(60) // 3
    seed = seed_of(0, "rows", 1)
    splits = [
        make_split(SplitRule((60, 40)), as_rows(labels), 0, seed),
        make_split(SplitRule(), as_rows(labels, groups), 0, seed),
        make_split(SplitRule(leave_out="b"), as_rows(labels, groups), 1, seed),
    ]
    parts = [part for split in splits for part in split]
    parts.append(thin(np.arange(60), labels, 5, 20, seed))
    digest = hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()
    assert (seed, digest[:16]) == (934748462, "05e5f61ff41964db")


def test_thinned_rows_have_the_ratio_and_hold_those_of_larger_ratios():
    labels = np.repeat(["many", "few"], [500, 200])
    rows = np.arange(700)
    kept = {ratio: thin(rows, labels, ratio, 100, seed=3) for ratio in (1, 5, 50)}
    for ratio, chosen in kept.items():
        assert (labels[chosen] == "many").sum() == 100
        assert (labels[chosen] == "few").sum() == 100 // ratio
    assert set(kept[50]) < set(kept[5]) < set(kept[1])
    with pytest.raises(DataError):
        thin(rows, labels, 0.2, 100, seed=3)  # more rows than there are
