"""Figures, intervals, thresholds and curves: against scikit-learn, statsmodels and plain counts."""

import numpy as np
import pytest
from judging import NAMES, evaluation_of, reference_figures
from scipy import stats
from sklearn.metrics import auc, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from setconv.metrics import report
from setconv.metrics.intervals import DRAWS
from setconv.report import measure
from setconv.report.measure import Method, explore, measure_methods
from setconv.sampling import bootstrap_weights

RARE = {"train_counts": np.array([9, 1])}


def part(measured, name="value"):
    """One part of all figures: an array of shape (n_classes, n_figures)."""
    return np.array([[getattr(one, name) for one in of.values()] for of in measured])


# ------------------------------------------------------------------------- figures and intervals


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_are_those_of_the_report_and_gaps_those_of_rows_drawn_again(rng, weighted):
    truth = np.r_[0, 1, 2, rng.integers(3, size=87)]
    ours, theirs = ((rng.normal(size=(90, 3)) + np.eye(3)[truth]).round(1) for _ in range(2))
    weights = rng.gamma(1, size=90) + 0.01 if weighted else np.ones(90)
    evaluation = evaluation_of(truth, ours, weights=weights)
    methods = [Method("", scores.argmax(axis=1), scores) for scores in (ours, theirs)]
    measured = measure_methods(evaluation, methods)

    def figures(method, weights):
        return [
            list(reference_figures(truth == c, method.predicted == c, scores, weights).values())
            for c, scores in enumerate(method.scores.T)
        ]

    for method, found in zip(methods, measured, strict=True):
        given = (truth, method.predicted, method.scores)
        right = report(*given, sample_weight=weights, confidence_intervals=True)
        np.testing.assert_allclose(part(found), figures(method, weights))
        for of, c in zip(found, right.classes, strict=True):
            for name, figure in of.items():
                assert (figure.low, figure.high) == pytest.approx(right[c].intervals[name])
    draws = np.random.default_rng(0)
    drawn = [weights * bootstrap_weights(truth, draws) for _ in range(DRAWS)]
    again = np.array([[figures(method, one) for one in drawn] for method in methods])
    gap = np.subtract(*(part(found) for found in measured))
    np.testing.assert_allclose(part(measured[1], "gap"), gap, atol=1e-9)
    sizes = np.array(
        [[rows.sum() ** 2 / (rows**2).sum() for rows in (weights[truth == c], weights[truth != c])]
         for c in range(3)]
    ).min(axis=1)  # fmt: skip
    half = stats.t.ppf(0.975, sizes - 1) * np.sqrt(sizes / (sizes - 1))
    half = half[:, None] * (again[0] - again[1]).std(axis=0)
    np.testing.assert_allclose(part(measured[1], "gap_low"), gap - half, atol=1e-9)
    np.testing.assert_allclose(part(measured[1], "gap_high"), gap + half, atol=1e-9)


def test_no_interval_loses_its_width_where_all_rows_are_right():
    counts = (50, 20, 1)
    truth = np.repeat([0, 1, 2], counts)
    methods = [Method("", truth, np.eye(3)[truth])]
    (measured,) = measure_methods(evaluation_of(truth, np.eye(3)[truth]), methods)
    assert (part(measured) == 1).all()
    assert part(measured, "high") == pytest.approx(1)
    for of, n in zip(measured, counts, strict=True):
        spec, sens, least = (
            proportion_confint(k, k, method="wilson")[0] for k in (71 - n, n, min(n, 71 - n))
        )
        right = [spec, sens, sens, least, least, least, least]
        assert part([of], "low")[0] == pytest.approx(right)
    assert list(measured[0]) == NAMES


# -------------------------------------------------------------------------- thresholds and curves


def test_ties_are_alarms_of_the_class_that_was_decided_for():
    values = np.array([[1, 1, 0], [0, 2, 2], [3, 3, 3], [1, 0, 0], [0, 0, 1], [2, 5, 2]], float)
    evaluation = evaluation_of(np.array([0, 1, 2, 0, 1, 1]), values)
    for c, explorer in explore(evaluation).items():
        alarm, is_class = evaluation.predicted == c, evaluation.truth == c
        own = explorer.rows["tp"][explorer.own], explorer.rows["fp"][explorer.own]
        assert own == ((alarm & is_class).sum(), (alarm & ~is_class).sum())
        assert (np.array(explorer.cuts) > 0).sum() == explorer.own


def test_many_thresholds_and_points_are_thinned_and_those_kept_stay_exact(rng):
    is_class = rng.random(20_000) < 0.1
    scores = rng.normal(size=20_000) + 2 * is_class
    evaluation = evaluation_of(is_class.astype(int), scores, threshold=0.3, **RARE)
    explorer = explore(evaluation)[1]
    assert 1000 < len(explorer.cuts) <= 2000
    for place in (1, 17, 500, explorer.own, len(explorer.cuts)):
        flagged = evaluation.values[:, 1] >= explorer.cuts[place - 1]
        assert explorer.rows["tp"][place] == (flagged & is_class).sum()
        assert explorer.rows["fp"][place] == (flagged & ~is_class).sum()
        assert place != explorer.own or np.array_equal(flagged, evaluation.predicted == 1)
    assert flagged.all()
    # Other weights within a class, and another prevalence.
    weights = rng.choice([0.2, 1.0, 5.0], len(scores)) * np.where(is_class, 0.1, 1.0)
    curve, pr = (one(is_class, scores, weights) for one in (measure.roc, measure.precision_recall))
    assert max(len(curve.x), len(pr.x)) <= 302
    assert (curve.x[0], curve.y[0]) == (0, 0)
    assert (curve.x[-1], curve.y[-1], pr.x[-1]) == pytest.approx((1, 1, 1))
    right = roc_auc_score(is_class, scores, sample_weight=weights)
    assert auc(curve.x, curve.y) == pytest.approx(right, abs=2e-3)
    # Each point is that of a threshold.
    order = np.argsort(-scores, kind="stable")
    found, alarms = np.cumsum((weights * is_class)[order]), np.cumsum(weights[order])
    thresholds = np.stack([found / found[-1], found / alarms], axis=1)
    for point in zip(pr.x, pr.y, strict=True):
        assert np.abs(thresholds - point).max(axis=1).min() < 1e-9


def test_reliability_counts_every_row_once_at_the_edges_too():
    chance = np.array([0.0, 0.05, 0.1, 0.55, 0.95, 1.0])
    both = {"probabilities": np.column_stack([1 - chance, chance])}
    bins = measure.reliability(evaluation_of(np.array([0, 1, 0, 1, 1, 1]), chance, **both, **RARE))
    counted = [(one.low, one.n_rows, one.seen) for one in bins]
    assert counted == [(0.0, 2, 0.5), (0.1, 1, 0.0), (0.5, 1, 1.0), (0.9, 2, 1.0)]


def test_minority_classes_have_less_than_an_equal_share_the_rarest_first():
    cases = {(90, 10): (1,), (10, 90): (0,), (70, 20, 5, 5): (3, 2, 1), (50, 50): (1,)}
    for counts, right in cases.items():
        truth = np.repeat(range(len(counts)), counts)
        assert evaluation_of(truth, np.eye(len(counts))[truth]).minority == right
