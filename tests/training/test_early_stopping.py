"""Validation rows: how they are split off, and the figures that are watched on them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from setconv.errors import DataError
from setconv.training.early_stopping import monitored_figure, split_validation

seeds = st.integers(0, 2**31)
MONITORS = ["loss", "auc", "average_precision", "g_mean", "macro_f1", "minimum_of_five"]


def codes_of(counts, seed=0):
    codes = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(codes)


def largest(scores):
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def assert_partition(train, validation, n):
    for part in (train, validation):
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()
    assert sorted([*train, *validation]) == list(range(n))


# ----------------------------------------------------------------------------------------- split


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=5).filter(lambda counts: max(counts) > 1),
    st.floats(0.01, 0.99),
    seeds,
)
def test_the_split_is_a_stratified_partition(counts, fraction, seed):
    codes = codes_of(counts, seed)
    train, validation = split_validation(codes, fraction, None, seed)
    assert_partition(train, validation, len(codes))
    held_out = np.bincount(codes[validation], minlength=len(counts))
    for count, held in zip(counts, held_out, strict=True):
        if count == 1:
            assert held == 0
        else:
            assert 1 <= held <= count - 1
            assert held in (1, count - 1) or abs(held - fraction * count) <= 0.5


@pytest.mark.parametrize(
    ("codes", "groups"),
    [
        ([0, 1, 2], None),
        ([0, 0, 1, 1], [5, 5, 5, 5]),
        ([0, 0, 1, 1], [0, 0, 1, 1]),  # whichever group is held out takes a class with it
    ],
)
def test_data_that_cannot_be_split_is_refused(codes, groups):
    groups = groups if groups is None else np.array(groups)
    with pytest.raises(DataError):
        split_validation(np.array(codes), 0.5, groups, 0)


# ---------------------------------------------------------------------------------------- groups


@given(st.integers(10, 30), st.integers(3, 8), st.sampled_from([0.1, 0.2, 0.25]), seeds)
def test_groups_are_kept_together_and_every_class_in_training(n_groups, size, fraction, seed):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_groups), size))
    codes = rng.choice(3, size=len(groups), p=[0.6, 0.2, 0.2])
    codes[[np.flatnonzero(groups == g)[0] for g in range(6)]] = [0, 0, 1, 1, 2, 2]
    train, validation = split_validation(codes, fraction, groups, seed)
    assert_partition(train, validation, len(codes))
    assert len(validation) > 0
    assert not np.isin(groups[train], groups[validation]).any()
    assert set(codes[train]) == {0, 1, 2}


def test_the_part_that_shows_most_classes_is_held_out():
    # The rare class lives in two groups of twenty: only two of ten folds can show it.
    groups = np.arange(200) // 10
    codes = np.zeros(200, dtype=np.int64)
    codes[[3, 4, 115]] = 1
    for seed in range(5):
        train, validation = split_validation(codes, 0.1, groups, seed)
        assert set(codes[train]) == set(codes[validation]) == {0, 1}


# --------------------------------------------------------------------------------------- monitors


def make_scores(counts, seed=0):
    """Scores of the heads that are right more often than not."""
    codes = codes_of(counts, seed)
    rng = np.random.default_rng(seed)
    own = codes[:, None] == (np.arange(len(counts)) if len(counts) > 2 else np.array([1]))
    return np.where(own, 1.0, -1.0) + 1.5 * rng.normal(size=own.shape), codes


def balanced_loss(scores, codes):
    """The training loss on whole classes: the sides of a head, and the heads, weigh the same."""
    total = 0.0
    for head, margin in enumerate(scores.T):
        own = codes == (1 if scores.shape[1] == 1 else head)
        total += np.logaddexp(0, -margin[own]).mean() / 2 + np.logaddexp(0, margin[~own]).mean() / 2
    return total / scores.shape[1]


@pytest.mark.parametrize("counts", [[90, 10], [10, 90], [60, 25, 15]], ids=str)
def test_the_figures_are_those_of_the_formula_and_of_scikit_learn(counts):
    scores, codes = make_scores(counts)
    rare, guess = int(np.argmin(counts)), largest(scores)
    # A column of scores for each class, also where there is one head.
    columns = np.column_stack([-scores, scores]) if len(counts) == 2 else scores
    recalls = sk.recall_score(codes, guess, average=None)
    expected = {
        "loss": -balanced_loss(scores, codes),
        "auc": np.mean([sk.roc_auc_score(codes == c, columns[:, c]) for c in range(len(counts))]),
        "average_precision": sk.average_precision_score(codes == rare, columns[:, rare]),
        "g_mean": np.prod(recalls) ** (1 / len(counts)),
        "macro_f1": sk.f1_score(codes, guess, average="macro"),
    }
    if len(counts) == 2:
        five = min(*(expected[name] for name in ("auc", "g_mean", "macro_f1")), *recalls)
        expected["minimum_of_five"] = five
    for monitor, figure in expected.items():
        assert monitored_figure(monitor, scores, codes) == pytest.approx(figure), monitor


@pytest.mark.parametrize("monitor", MONITORS)
def test_a_class_without_validation_rows_does_not_blind_the_figure(monitor):
    # A class of one row always stays in training, see split_validation.
    codes = codes_of([30, 20])
    good = np.where(codes[:, None] == np.arange(3), 2.0, -2.0)
    assert -math.inf < monitored_figure(monitor, -good, codes)
    assert monitored_figure(monitor, -good, codes) < monitored_figure(monitor, good, codes)
