"""Minimum recall and precision."""

import warnings

import numpy as np
import pytest

from setconv.decisions.thresholds import threshold_for_precision, threshold_for_recall


def ones(rows):
    return np.ones(len(rows))


@pytest.mark.parametrize(("n", "level"), [(19, 0.95), (99, 0.9), (40, 0.9), (200, 0.95), (9, 0.5)])
def test_recall_takes_the_conformal_order_statistic(n, level):
    generator = np.random.default_rng(n)
    own, rest = np.sort(generator.normal(1, 1, n)), generator.normal(-1, 1, 300)
    scores, member = np.append(own, rest), np.repeat([True, False], [n, 300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = threshold_for_recall(scores, member, ones(scores), level)
        twice = threshold_for_recall(scores, member, 2 * ones(scores), level)
    k = int(np.floor(round((n + 1) * (1 - level), 9)))
    lower = np.max(scores[scores < own[k - 1]])
    assert found == twice == (pytest.approx((lower + own[k - 1]) / 2), True)


def test_recall_holds_on_average_for_new_rows():
    generator = np.random.default_rng(0)
    member = np.repeat([True, False], [30, 100])
    recalls = []
    for _ in range(1000):
        scores = generator.normal(member * 1.5)
        found = threshold_for_recall(scores, member, ones(scores), 0.9).threshold
        recalls.append(generator.normal(1.5, size=50) > found)
    assert 0.9 < np.mean(recalls) < 0.94


@pytest.mark.parametrize(("level", "said"), [(0.95, "19 rows are needed"), (1.0, "no number")])
def test_too_few_rows_for_the_recall_are_told(level, said):
    scores, member = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([False, False, True, True])
    with pytest.warns(UserWarning, match=rf"2 rows of the class .*{said}.*0\.667"):
        assert threshold_for_recall(scores, member, ones(scores), level) == (0.5, False)


def test_unequal_weights_count_as_fewer_rows():
    scores, member = np.arange(40.0), np.ones(40, dtype=bool)
    weights = np.where(np.arange(40) < 5, 10.0, 1.0)
    with pytest.warns(UserWarning, match="effective 1"):
        threshold_for_recall(scores, member, weights, 0.95)


def test_precision_takes_the_lowest_threshold_that_has_it():
    scores = np.arange(12.0)
    member = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1], dtype=bool)
    precisions = {t: member[scores > t].mean() for t in scores - 0.5}
    for level in (0.6, 0.75, 0.85):
        found = threshold_for_precision(scores, member, ones(scores), level)
        assert found == (min(t for t, p in precisions.items() if p >= level), True)


def test_precision_out_of_reach_is_told():
    scores, member = np.arange(10.0), np.arange(10) % 2 == 0
    with pytest.warns(UserWarning, match=r"precision>=0.9: .*reach 0\.500, on 10 rows"):
        found = threshold_for_precision(scores, member, ones(scores), 0.9)
    assert found.threshold < 0
    assert not found.met
    member = np.array([0, 0, 0, 0, 0, 0, 1, 0, 0, 1], dtype=bool)
    with pytest.warns(UserWarning, match=r"reach 1\.000, on 1 rows"):
        assert threshold_for_precision(scores, member, ones(scores), 0.9) == (8.5, False)


def test_precision_follows_the_weights():
    scores, member = np.arange(10.0), np.arange(10) >= 5
    member[6] = False
    heavy = np.where(member, 1.0, 100.0)
    light = threshold_for_precision(scores, member, ones(scores), 0.8)
    with pytest.warns(UserWarning, match="on 3 rows"):
        assert threshold_for_precision(scores, member, heavy, 0.8) == (6.5, False)
    assert light == (4.5, True)
