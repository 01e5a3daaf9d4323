"""Two classes: against brute force over all cuts, with scikit-learn's metrics."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef, recall_score

from setconv.decisions.scores import check_scores
from setconv.decisions.thresholds import choose_threshold, resamples

KINDS = ["balanced", "f1", "mcc"]
HALF = np.full(2, 0.5)


def measure(kind, truth, guess, weights=None, positive=1, powers=HALF):
    if kind == "balanced":
        recalls = recall_score(
            truth, guess, labels=[0, 1], average=None, sample_weight=weights, zero_division=0
        )
        return float(np.prod(recalls**powers))
    if kind == "f1":
        return f1_score(truth, guess, pos_label=positive, sample_weight=weights, zero_division=0)
    # One class alone has no correlation; rounding can make it nan instead of 0.
    return float(np.nan_to_num(matthews_corrcoef(truth, guess, sample_weight=weights)))


def best_by_brute_force(kind, scores, truth, **kwargs):
    distinct = np.unique(scores)
    cuts = np.concatenate([[distinct[0] - 1], distinct])
    return max(measure(kind, truth, (scores > cut).astype(int), **kwargs) for cut in cuts)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 25))
    scores = np.array(draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)), dtype=float)
    truth = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    truth[:2] = [0, 1]
    weights = np.array(draw(st.lists(st.sampled_from([0.5, 1, 3]), min_size=n, max_size=n)))
    return scores, truth, weights


def smooth(scores, truth, weights=None, kind="balanced", **kwargs):
    options = {"positive": 1, "powers": HALF} | kwargs
    return choose_threshold(check_scores(scores[:, None], truth, weights, 2), kind, **options)


def choose(*args, **kwargs):
    """Choose as on many rows, where the best cut counts."""
    with patch("setconv.decisions.thresholds.ENOUGH_ROWS", 0):
        return smooth(*args, **kwargs)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=problems(), positive=st.integers(0, 1))
def test_the_exact_threshold_is_the_best_of_all_cuts(kind, problem, positive):
    scores, truth, weights = problem
    powers = np.array([0.3, 0.7])
    found = choose(scores, truth, weights, kind, positive=positive, powers=powers)
    within = weights / (np.bincount(truth, weights) / np.bincount(truth))[truth]
    options = {"weights": within, "positive": positive, "powers": powers}
    reached = measure(kind, truth, (scores > found).astype(int), **options)
    assert reached == pytest.approx(best_by_brute_force(kind, scores, truth, **options), abs=1e-9)


def test_the_threshold_is_the_middle_of_the_gap():
    assert choose(np.array([-2.0, -1.0, 3.0, 4.0]), np.array([0, 0, 1, 1])) == 1.0


def test_of_several_best_cuts_the_widest_gap_is_taken():
    # A geometric mean of sqrt(1/2) at the cuts 0 | 1, 1 and 2 | 10.
    scores, truth = np.array([0.0, 1.0, 2.0, 10.0]), np.array([0, 1, 0, 1])
    assert choose(scores, truth) == 6.0


def test_rows_without_weight_are_as_if_absent():
    scores, truth = np.array([-2.0, -1.0, 0.9, 3.0, 4.0]), np.array([0, 0, 1, 1, 1])
    assert choose(scores, truth, np.array([1.0, 1, 0, 1, 1])) == 1.0


def test_neighbouring_floats_are_still_told_apart():
    low = 1.0
    high = np.nextafter(low, 2)
    scores, truth = np.array([low, high]), np.array([0, 1])
    found = choose(scores, truth)
    assert (scores > found).tolist() == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_smoothed_thresholds_are_deterministic_and_near_the_truth(kind):
    generator = np.random.default_rng(0)
    truth = np.repeat([0, 1], [800, 80])
    scores = generator.normal(truth * 2.0 - 1)
    found = smooth(scores, truth, kind=kind, seed=3)
    assert found == smooth(scores, truth, kind=kind, seed=3)
    fresh_truth = np.repeat([0, 1], [20_000, 2000])
    fresh = generator.normal(fresh_truth * 2.0 - 1)
    reached = measure(kind, fresh_truth, (fresh > found).astype(int))
    grid = [measure(kind, fresh_truth, (fresh > t).astype(int)) for t in np.linspace(-1, 2, 9)]
    assert reached > max(grid) - 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_cannot_be_smoothed_get_the_mean_over_resamples(kind):
    generator = np.random.default_rng(1)
    truth = np.repeat([0, 1], [40, 9])
    scores = np.sort(generator.normal(truth * 2.0))
    scores[truth == 1] = 1.5
    each = [choose(scores, truth, drawn, kind) for drawn in resamples(truth, 100, 5)]
    # A row that is not drawn has no weight; the gap at both ends is then another.
    found = smooth(scores, truth, kind=kind, seed=5)
    assert found == pytest.approx(np.mean(each), abs=0.15)


def test_resamples_keep_the_class_sizes():
    codes = np.array([0, 1, 1, 2, 0, 0])
    for drawn in resamples(codes, 20, 0):
        assert np.bincount(codes, weights=drawn).tolist() == [3, 2, 1]


@pytest.mark.parametrize("choose", [smooth, choose])
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_scores_give_a_finite_threshold(choose, kind):
    for scores, truth in [
        ([1.0, 1.0, 1.0], [0, 0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([1.0, 0.0], [0, 1]),
        ([0.0, 1e9, -1e9, 5.0], [0, 1, 0, 1]),
        ([3.0, 4.0], [1, 1]),
    ]:
        assert np.isfinite(choose(np.array(scores), np.array(truth), kind=kind))


def test_many_rows_are_decided_on_exactly():
    truth = np.repeat([0, 1], [3000, 2500])
    scores = np.random.default_rng(0).normal(truth * 2.0)
    assert smooth(scores, truth) == choose(scores, truth)
