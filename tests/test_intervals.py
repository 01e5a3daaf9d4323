"""Intervals of reports: computed another way, and how often they hold the truth."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from plain_intervals import draws, plain_intervals, size, size_of_share, student
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from setconv.errors import DataError
from setconv.metrics import Report, intervals, report
from setconv.metrics.arithmetic import check_rows


def rows(rng, counts=(90, 30), d=1.2):
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    columns = (rng.normal(size=(len(codes), len(counts))) + d * np.eye(len(counts))[codes]).round(1)
    chances = np.exp(columns) / np.exp(columns).sum(axis=1, keepdims=True)
    return codes, columns.argmax(axis=1), columns, chances


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("counts", [(90, 30), (60, 30, 15)])
def test_every_interval_computed_another_way(weighted, grouped, counts, monkeypatch):
    rng = np.random.default_rng(len(counts))
    codes, guess, columns, chances = rows(rng, counts)
    weights = rng.choice([0.5, 1.0, 4.0], len(codes)) if weighted else None
    units = rng.integers(0, 40, len(codes)) if grouped else None
    monkeypatch.setattr(intervals, "_CELLS", 500)  # a few draws at a time
    found = report(
        codes,
        guess,
        columns,
        probabilities=chances,
        sample_weight=weights,
        confidence_intervals=True,
        groups=None if units is None else [f"group {unit:02}" for unit in units],
    )
    for c in range(len(counts)):
        right = plain_intervals(codes, c, guess == c, columns[:, c], chances[:, c], weights, units)
        assert set(right) == set(found[c].intervals)
        for name, bounds in right.items():
            assert found[c].intervals[name] == pytest.approx(bounds, abs=1e-9), name
    n = size(np.ones(len(codes)), codes >= 0, units)
    if weighted:
        n = size_of_share(codes, weights, codes >= 0, guess == codes, codes >= 0, units)
    right = proportion_confint(found.accuracy * n, n, method="wilson")
    assert found.intervals["accuracy"] == pytest.approx(right)
    assert Report.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    frame = found.to_frame()
    assert frame.loc[1, "auc_low"] == found[1].intervals["auc"][0]
    low, high = found[1].intervals["auc"]
    assert f"{low:.3f}-{high:.3f}".replace("0.", ".") in str(found)


def test_figures_over_all_classes_have_the_interval_of_their_own_draws():
    codes, guess, columns, _ = rows(np.random.default_rng(0), (60, 30, 15))
    found = report(codes, guess, columns, confidence_intervals=True)
    again = [
        report(codes, guess, columns, sample_weight=one)
        for one in draws(codes, np.ones(len(codes)))
    ]
    for name in ("balanced_accuracy", "macro_f1", "g_mean", "macro_auc", "mcc"):
        least = -1.0 if name == "mcc" else 0.0
        right = student(getattr(found, name), [getattr(one, name) for one in again], 15, least)
        assert found.intervals[name] == pytest.approx(right, abs=1e-9)
    assert np.isnan(found.intervals["brier"]).all()  # no probabilities, so no figure
    assert report(codes, guess).intervals == report(codes, guess)[0].intervals == {}


def test_copies_count_as_one():
    codes, guess, columns, chances = rows(np.random.default_rng(1))
    given = {"confidence_intervals": True, "classes": [0, 1]}
    once = report(codes, guess, columns, probabilities=chances, **given)
    copied = [np.tile(one, (4, *[1] * (one.ndim - 1))) if one.ndim > 1 else np.tile(one, 4)
              for one in (codes, guess, columns, chances)]  # fmt: skip
    numbers = np.tile(np.arange(len(codes)), 4)
    tied = report(*copied[:3], probabilities=copied[3], groups=numbers, **given)
    alone = report(*copied[:3], probabilities=copied[3], **given)
    for name, bounds in once[1].intervals.items():
        assert tied[1].intervals[name] == pytest.approx(bounds, abs=1e-9)
        low, high = alone[1].intervals[name]
        assert high - low < 0.7 * (bounds[1] - bounds[0])  # as if they were so many rows


def test_many_rows_are_drawn_from_a_part_and_the_interval_is_not_narrower(monkeypatch):
    codes, guess, columns, _ = rows(np.random.default_rng(2), (4000, 400))
    exact = report(codes, guess, columns, confidence_intervals=True)
    monkeypatch.setattr(intervals, "_MOST", 1)  # 2,000 rows
    drawn = intervals.rows_to_draw(check_rows(codes, guess))
    assert len(drawn.rows) == len(set(drawn.rows)) <= 2000
    # All rare rows, and each class with the weight that it has.
    np.testing.assert_array_equal(np.bincount(codes[drawn.rows])[1], 400)
    np.testing.assert_allclose(np.bincount(codes[drawn.rows], drawn.weights), [4000, 400])
    part = report(codes, guess, columns, confidence_intervals=True)
    for name in ("auc", "average_precision", "f1"):
        wide, right = (np.diff(one[1].intervals[name])[0] for one in (part, exact))
        assert 0.85 * right < wide < 1.6 * right
    assert part[1].intervals["sensitivity"] == exact[1].intervals["sensitivity"]


@pytest.mark.parametrize("d", [1.0, 2.0])
def test_intervals_hold_the_truth_about_as_often_as_they_say(d):
    """300 samples of 25 rare rows of 275: the AUC of two normal distributions is known."""
    rng, truth = np.random.default_rng(3), norm.cdf(d / np.sqrt(2))
    codes = np.repeat([0, 1], [250, 25])
    above = below = 0
    for _ in range(300):
        scores = rng.normal(size=275) + d * codes
        guess = (scores > d / 2).astype(int)
        low, high = report(codes, guess, scores, confidence_intervals=True)[1].intervals["auc"]
        above, below = above + (low > truth), below + (high < truth)
    # 2.5 % each; with so many samples up to 5.5 % may be chance.
    assert above <= 16
    assert below <= 16


def test_one_row_of_a_class_says_next_to_nothing():
    found = report([0, 0, 0, 1], [0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], confidence_intervals=True)
    low, high = found[1].intervals["auc"]
    assert low < 0.25
    assert high == pytest.approx(1)


@pytest.mark.parametrize(
    "groups", [[1], [None, "a"], [["a"], ["b"]], [1, "1"], [math.nan, 1.0], [[1], [1, 2]]]
)
def test_groups_that_cannot_be_counted_are_refused(groups):
    with pytest.raises(DataError) as caught:
        report([0, 1], [0, 1], confidence_intervals=True, groups=groups)
    assert caught.value.parameter == "groups"


def test_huge_weights_count_by_their_ratios():
    codes, guess, columns, _ = rows(np.random.default_rng(4))
    weights = np.random.default_rng(5).choice([1.0, 3.0], len(codes))
    small, huge = (
        report(codes, guess, columns, sample_weight=weights * w, confidence_intervals=True)
        for w in (1, 1e100)
    )
    for name, bounds in small[1].intervals.items():
        assert huge[1].intervals[name] == pytest.approx(bounds, nan_ok=True)


# ------------------------------------------------------------- rows of classes that count unequally


def alarms_of(right, wrong, heavy):
    """Right alarms of weight 1, wrong ones of another, and rows of both classes without alarm."""
    codes = np.repeat([1, 0, 1, 0], [right, wrong, 20, 500])
    return codes, np.repeat([1, 0], [right + wrong, 520]), np.where(codes == 1, 1.0, heavy)


def size_of_precision(right, wrong, heavy):
    codes, guess, weights = alarms_of(right, wrong, heavy)
    rows = check_rows(codes, guess, classes=[0, 1], sample_weight=weights)
    return intervals.Sizes.of(rows, None).precision[1]


@pytest.mark.parametrize(("right", "wrong", "heavy"), [(1000, 30, 9.0), (400, 60, 3.0)])
def test_a_precision_is_as_unsure_as_its_bootstrap(right, wrong, heavy):
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(right + wrong, [right / (right + wrong), wrong / (right + wrong)], 4000)
    shares = drawn[:, 0] / (drawn[:, 0] + heavy * drawn[:, 1])
    p = right / (right + heavy * wrong)
    assert size_of_precision(right, wrong, heavy) == pytest.approx(
        p * (1 - p) / shares.var(), rel=0.08
    )


def test_where_no_alarm_is_wrong_the_heaviest_row_says_how_sure_that_is():
    assert size_of_precision(1000, 0, 20.0) == pytest.approx(1000 / 20, abs=1.5)
    assert size_of_precision(1000, 0, 1.0) == pytest.approx(1000)
    assert size_of_precision(0, 0, 20.0) == 0
    # Never surer than the number of rows, however light the wrong ones are.
    assert size_of_precision(1000, 5, 0.01) == 1005


@pytest.mark.parametrize(
    ("right", "wrong", "heavy"), [(1000, 10, 9.0), (200, 4, 3.0), (500, 3, 20.0)]
)
def test_the_precision_of_unequal_classes_holds_the_truth_as_often_as_said(right, wrong, heavy):
    rng, truth, held = np.random.default_rng(0), right / (right + heavy * wrong), 0
    for _ in range(400):
        one, other = rng.poisson(right), rng.poisson(wrong)
        codes, guess, weights = alarms_of(one, other, heavy)
        rows = check_rows(codes, guess, classes=[0, 1], sample_weight=weights)
        share = one / (one + heavy * other)
        low, high = intervals.wilson(share, intervals.Sizes.of(rows, None).precision[1])
        held += low <= truth <= high
    assert 0.92 <= held / 400 <= 0.99


def test_heavy_rows_of_which_none_is_wrong_leave_the_accuracy_open():
    """100 rows of weight 100, of which one in a hundred is wrong, beside 10,000 of weight 1."""
    rng, held = np.random.default_rng(0), 0
    codes = np.repeat([0, 1], [100, 10_000])
    rows = check_rows(codes, codes, sample_weight=np.where(codes == 0, 100.0, 1.0))
    for _ in range(300):
        guess = np.where(rng.random(len(codes)) < 0.01, 1 - codes, codes)
        one = intervals.Sizes.of(replace(rows, predicted=guess), None)
        share = np.average(guess == codes, weights=rows.weight)
        low, high = intervals.wilson(share, one.every)
        held += low <= 0.99 <= high
    assert held / 300 >= 0.93


@pytest.mark.parametrize("grouped", [False, True])
def test_within_a_class_only_the_ratios_of_weights_count(grouped):
    codes, guess, *_ = rows(np.random.default_rng(6), (90, 60))
    units = np.arange(150) // 2 if grouped else None
    weights = np.random.default_rng(7).choice([0.5, 1.0, 4.0], 150)
    one, other = (
        intervals.Sizes.of(check_rows(codes, guess, sample_weight=weights * by[codes]), units)
        for by in (np.ones(2), np.array([21.0, 1.0]))
    )
    for name in ("specificity", "sensitivity"):
        expected = [size(weights, codes == c, units) for c in (0, 1)]
        if name == "specificity":
            expected = expected[::-1]
        np.testing.assert_allclose(getattr(one, name), expected)
        np.testing.assert_allclose(getattr(other, name), expected)
