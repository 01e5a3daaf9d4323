"""Figures and intervals: against scikit-learn, and against what a bootstrap must satisfy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)
from statsmodels.stats.proportion import proportion_confint

from setconv.metrics.report import report
from setconv.report import measure as bootstrap
from setconv.report.measure import FIGURES, Answers, count_repeats


def reference(is_class, flagged, scores):
    """The seven figures of one class by scikit-learn."""
    spec = recall_score(~is_class, ~flagged)
    sens = recall_score(is_class, flagged)
    return [
        spec,
        sens,
        precision_score(is_class, flagged, zero_division=0),
        f1_score(is_class, flagged),
        np.sqrt(spec * sens),
        roc_auc_score(is_class, scores),
        average_precision_score(is_class, scores),
    ]


def measure(truth, n_classes, methods, *, weights=None, **options):
    weights = np.ones(len(truth)) if weights is None else weights
    return bootstrap.measure(
        truth, n_classes, methods, weights=weights, ranked=range(n_classes), **options
    )


def rows_of(seed, n=120, classes=3, ties=True):
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(classes), rng.integers(classes, size=n - classes)]
    scores = rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[truth]
    if ties:
        scores = scores.round(1)
    return truth, Answers(scores.argmax(axis=1), scores)


@given(st.integers(0, 10_000), st.booleans())
def test_figures_are_those_of_scikit_learn(seed, ties):
    truth, method = rows_of(seed, ties=ties)
    measured = measure(truth, 3, [method], repeats=1, seed=0)[0]
    for c in range(3):
        right = reference(truth == c, method.predicted == c, method.scores[:, c])
        np.testing.assert_allclose(measured.values[c], right, atol=1e-12)


def test_a_draw_is_measured_as_the_rows_repeated_would_be():
    truth, method = rows_of(3)
    weights = np.random.default_rng(0).integers(0, 4, size=len(truth)).astype(float)
    found = bootstrap._Rankings(truth, 3, method, range(3)).figures(weights[None])[0]
    again = np.repeat(np.arange(len(truth)), weights.astype(int))
    for c in range(3):
        right = reference(truth[again] == c, method.predicted[again] == c, method.scores[again, c])
        np.testing.assert_allclose(found[c], right, atol=1e-12)


def test_figures_agree_with_the_metrics_of_the_package_where_they_are_undefined():
    truth = np.array([0, 0, 1, 1])
    method = Answers(np.array([0, 1, 1, 1]), np.eye(3)[[0, 1, 1, 1]])
    measured = measure(truth, 3, [method], repeats=5, seed=0)[0]
    known = report(truth, method.predicted, method.scores, classes=[0, 1, 2])
    names = ["specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision"]
    for c in range(3):
        right = [getattr(known[c], name) for name in names]
        np.testing.assert_allclose(measured.values[c], right)
    method = Answers(np.array([0, 2, 1, 1]), np.eye(3)[[0, 2, 1, 1]])
    measured = measure(truth, 3, [method], repeats=5, seed=0)[0]
    assert measured.values[2][FIGURES.index("precision")] == 0  # an alarm, and a wrong one
    assert np.isnan(measured.values[2][FIGURES.index("sens")])
    assert measured.values[2][FIGURES.index("spec")] == 0.75


def test_draws_are_stratified():
    truth, _ = rows_of(1)
    strata = [np.flatnonzero(truth == c) for c in range(3)]
    weights = bootstrap._draw(np.random.default_rng(0), strata, len(truth))
    assert [weights[rows].sum() for rows in strata] == [len(rows) for rows in strata]


def test_the_interval_of_a_share_has_the_width_that_theory_says():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [400, 400])
    predicted = np.where(truth == 1, rng.random(800) < 0.8, 0).astype(int)
    measured = measure(truth, 2, [Answers(predicted, None)], repeats=2000, seed=0)[0]
    sens = FIGURES.index("sens")
    value = measured.values[1, sens]
    right = proportion_confint(value * 400, 400, method="wilson")
    assert (measured.low[1, sens], measured.high[1, sens]) == pytest.approx(right)


def test_no_interval_loses_its_width_where_all_rows_are_right():
    truth = np.repeat([0, 1, 2], [50, 20, 1])
    method = Answers(truth, np.eye(3)[truth])
    measured = measure(truth, 3, [method], repeats=50, seed=0)[0]
    assert (measured.values == 1).all()
    assert (measured.high == 1).all()
    assert (measured.low < 0.99).all()
    for c, n in enumerate((50, 20, 1)):
        of = dict(zip(FIGURES, measured.low[c], strict=True))
        wilson = {
            k: proportion_confint(k, k, method="wilson")[0] for k in (n, 71 - n, min(n, 71 - n))
        }
        spec, sens = wilson[71 - n], wilson[n]
        assert (of["spec"], of["sens"], of["precision"]) == pytest.approx((spec, sens, sens))
        assert of["g_mean"] == pytest.approx(np.sqrt(spec * sens))
        assert of["f1"] == pytest.approx(sens)
        assert of["auc"] == of["ap"] == pytest.approx(wilson[min(n, 71 - n)])


@given(st.integers(0, 10_000))
def test_weighted_figures_are_those_of_the_package(seed):
    truth, method = rows_of(seed)
    weights = np.random.default_rng(seed).gamma(1, size=len(truth)) + 0.01
    measured = measure(truth, 3, [method], weights=weights, repeats=1, seed=0)[0]
    known = report(truth, method.predicted, method.scores, classes=range(3), sample_weight=weights)
    names = ["specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision"]
    for c in range(3):
        right = [getattr(known[c], name) for name in names]
        np.testing.assert_allclose(measured.values[c], right, atol=1e-9)
    n = weights[truth == 1].sum() ** 2 / (weights[truth == 1] ** 2).sum()
    sens = FIGURES.index("sens")
    right = proportion_confint(measured.values[1, sens] * n, n, method="wilson")
    assert (measured.low[1, sens], measured.high[1, sens]) == pytest.approx(right)


def test_classes_that_are_not_judged_have_no_figures():
    truth, method = rows_of(1)
    two = truth < 2
    method = Answers(method.predicted[two], method.scores[two])
    (measured,) = measure(truth[two], 3, [method], repeats=5, seed=0, unjudged=[2])
    assert np.isnan(measured.values[2]).all()
    assert np.isfinite(measured.values[:2]).all()
    one = np.zeros(10, dtype=np.int64)
    (alone,) = measure(one, 2, [Answers(one, np.zeros((10, 2)))], repeats=5, seed=0, unjudged=[1])
    assert np.isfinite(alone.values).nonzero() == ([0], [FIGURES.index("sens")])
    assert np.isfinite(alone.low).nonzero() == ([0], [FIGURES.index("sens")])


def test_the_same_answers_have_no_gap_in_any_draw():
    truth, method = rows_of(5)
    first, second = measure(truth, 3, [method, method], repeats=50, seed=0)
    assert (second.gap_low == 0).all()
    assert (second.gap_high == 0).all()
    assert np.array_equal(first.low, second.low)


def test_a_paired_gap_is_narrower_than_that_of_separate_intervals():
    truth, method = rows_of(5, n=400)
    other = Answers(
        method.predicted,
        method.scores + 0.05 * np.random.default_rng(1).normal(size=method.scores.shape),
    )
    first, second = measure(truth, 3, [method, other], repeats=200, seed=0)
    auc = FIGURES.index("auc")
    assert (second.gap_high - second.gap_low)[0, auc] < (first.high - first.low)[0, auc] / 2


def test_blocks_of_draws_and_the_seed_decide_nothing_and_everything(monkeypatch):
    truth, method = rows_of(2)
    whole = measure(truth, 3, [method], repeats=40, seed=0)[0]
    other = measure(truth, 3, [method], repeats=40, seed=1)[0]
    monkeypatch.setattr(bootstrap, "_CELLS", 1)
    parts = measure(truth, 3, [method], repeats=40, seed=0)[0]
    assert np.array_equal(whole.low, parts.low)
    assert not np.array_equal(whole.low, other.low)


def test_a_million_rows_have_fewer_draws():
    assert count_repeats(5000 * 4, 1000) == 1000
    assert count_repeats(10**6, 1000) == 100
    assert count_repeats(10**8, 1000) == 100
    assert count_repeats(10**6, 50) == 50
