"""Figures, intervals, thresholds and curves: against scikit-learn, statsmodels and plain counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import evaluation_of, reference_figures
from sklearn.metrics import auc, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from setconv.metrics.report import report
from setconv.report import measure as measuring
from setconv.report.measure import (
    FIGURES,
    Answers,
    count_repeats,
    explore,
    measure_methods,
    precision_recall,
    reliability,
    roc,
)


def rows_of(seed, n=120, classes=3, ties=True, **changes):
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(classes), rng.integers(classes, size=n - classes)]
    scores = rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[truth]
    return evaluation_of(truth, scores.round(1) if ties else scores, **changes)


def measured_of(evaluation, *others, repeats=5, seed=0):
    ours = Answers("ours", evaluation.predicted, evaluation.scores)
    return measure_methods(evaluation, [ours, *others], repeats=repeats, seed=seed)


def part(measured, name="value"):
    """One part of all figures: an array of shape (n_classes, n_figures)."""
    return np.array([[getattr(one, name) for one in of.values()] for of in measured])


# --------------------------------------------------------------------------------------- figures


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_figures_are_those_of_scikit_learn_and_of_the_package(seed, ties, weighted):
    weights = np.random.default_rng(seed).gamma(1, size=120) + 0.01 if weighted else np.ones(120)
    evaluation = rows_of(seed, ties=ties, weights=weights)
    truth, predicted, scores = evaluation.truth, evaluation.predicted, evaluation.scores
    (measured,) = measured_of(evaluation, repeats=1)
    known = report(truth, predicted, scores, classes=range(3), sample_weight=weights)
    for c, of in enumerate(measured):
        right = reference_figures(truth == c, predicted == c, scores[:, c], weights)
        assert {name: one.value for name, one in of.items()} == pytest.approx(right, abs=1e-9)
        assert right == pytest.approx({n: getattr(known[c], n) for n in FIGURES}, abs=1e-9)
    n = weights[truth == 1].sum() ** 2 / (weights[truth == 1] ** 2).sum()
    sens = measured[1]["sensitivity"]
    right = proportion_confint(sens.value * n, n, method="wilson")
    assert (sens.low, sens.high) == pytest.approx(right)


def test_figures_agree_with_the_metrics_of_the_package_where_they_are_undefined():
    truth = np.array([0, 0, 1, 1])
    for predicted in ([0, 1, 1, 1], [0, 2, 1, 1]):
        evaluation = evaluation_of(truth, np.eye(3)[predicted])
        (measured,) = measured_of(evaluation)
        known = report(truth, predicted, evaluation.scores, classes=[0, 1, 2])
        right = [[getattr(known[c], name) for name in FIGURES] for c in range(3)]
        np.testing.assert_allclose(part(measured), right)
    assert measured[2]["precision"].value == 0  # an alarm, and a wrong one
    assert measured[2]["specificity"].value == 0.75
    assert not measured[2]["sensitivity"].defined


def test_classes_that_are_not_judged_have_no_figures():
    whole = rows_of(1)
    two = whole.truth < 2
    left_out = {"left_out": np.ones((1, two.sum()), dtype=bool)}
    (measured,) = measured_of(evaluation_of(whole.truth[two], whole.scores[two], **left_out))
    assert np.isnan(part(measured)[2]).all()
    assert np.isfinite(part(measured)[:2]).all()
    left_out = {"left_out": np.ones((1, 10), dtype=bool)}
    (alone,) = measured_of(evaluation_of(np.zeros(10, int), -np.ones(10), **left_out))
    for name in ("value", "low"):
        assert np.isfinite(part(alone, name)).nonzero() == ([0], [FIGURES.index("sensitivity")])


# ------------------------------------------------------------------------------------- intervals


def test_no_interval_loses_its_width_where_all_rows_are_right():
    counts = (50, 20, 1)
    truth = np.repeat([0, 1, 2], counts)
    (measured,) = measured_of(evaluation_of(truth, np.eye(3)[truth]), repeats=50)
    assert (part(measured) == 1).all()
    assert (part(measured, "high") == 1).all()
    for of, n in zip(measured, counts, strict=True):
        spec, sens, least = (
            proportion_confint(k, k, method="wilson")[0] for k in (71 - n, n, min(n, 71 - n))
        )
        right = [spec, sens, sens, sens, np.sqrt(spec * sens), least, least]
        assert [one.low for one in of.values()] == pytest.approx(right)


def test_the_same_answers_have_no_gap_and_like_ones_a_narrow_one():
    evaluation = rows_of(5, n=400)
    noise = 0.05 * np.random.default_rng(1).normal(size=evaluation.scores.shape)
    same = Answers("same", evaluation.predicted, evaluation.scores)
    alike = Answers("alike", evaluation.predicted, evaluation.scores + noise)
    first, second, third = measured_of(evaluation, same, alike, repeats=200)
    for name in ("gap_low", "gap_high"):
        assert (part(second, name) == 0).all()
    assert np.array_equal(part(first, "low"), part(second, "low"))
    ours, theirs = first[0]["auc"], third[0]["auc"]
    assert theirs.gap_high - theirs.gap_low < (ours.high - ours.low) / 2


def test_blocks_of_draws_and_the_seed_decide_nothing_and_everything(monkeypatch):
    whole = part(measured_of(rows_of(2), repeats=40)[0], "low")
    other = part(measured_of(rows_of(2), repeats=40, seed=1)[0], "low")
    monkeypatch.setattr(measuring, "_CELLS", 1)
    parts = part(measured_of(rows_of(2), repeats=40)[0], "low")
    assert np.array_equal(whole, parts)
    assert not np.array_equal(whole, other)


def test_a_million_rows_have_fewer_draws():
    asked = [(5000 * 4, 1000), (10**6, 1000), (10**8, 1000), (10**6, 50)]
    assert [count_repeats(*one) for one in asked] == [1000, 100, 100, 50]


# ------------------------------------------------------------------------------------ thresholds

RARE = {"train_counts": np.array([9, 1])}


def random_evaluation(n):
    rng = np.random.default_rng(0)
    truth = (rng.random(n) < 0.1).astype(int)
    return evaluation_of(truth, rng.normal(size=n) + 2 * truth, threshold=0.3, **RARE)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-5, 5)), min_size=1, max_size=40))
def test_every_threshold_counts_the_rows_at_or_above_it(rows):
    truth, scores = np.array(rows).T / [[1], [3]]
    explorer = explore(evaluation_of(truth.astype(int), scores, **RARE))[1]
    assert explorer.cuts == sorted(set(scores.tolist()), reverse=True)
    alarms = [scores > np.inf, *(scores >= cut for cut in explorer.cuts)]
    assert explorer.rows["tp"] == [int(truth[alarm].sum()) for alarm in alarms]
    assert explorer.rows["fp"] == [int((1 - truth)[alarm].sum()) for alarm in alarms]
    assert np.array_equal(alarms[explorer.own], scores > 0)


def test_many_thresholds_are_thinned_and_those_kept_stay_exact():
    evaluation = random_evaluation(30_000)
    explorer = explore(evaluation)[1]
    assert 1000 < len(explorer.cuts) <= 2000
    for place in (1, 17, 500, explorer.own, len(explorer.cuts)):
        flagged = evaluation.values[:, 1] >= explorer.cuts[place - 1]
        assert explorer.rows["tp"][place] == (flagged & (evaluation.truth == 1)).sum()
        assert explorer.rows["fp"][place] == (flagged & (evaluation.truth == 0)).sum()
    assert (
        explorer.rows["tp"][explorer.own] + explorer.rows["fp"][explorer.own]
        == evaluation.predicted.sum()
    )
    assert explorer.rows["tp"][-1] == evaluation.truth.sum()


def test_ties_are_alarms_of_the_class_that_was_decided_for():
    values = np.array([[1, 1, 0], [0, 2, 2], [3, 3, 3], [1, 0, 0], [0, 0, 1], [2, 5, 2]], float)
    evaluation = evaluation_of(np.array([0, 1, 2, 0, 1, 1]), values)
    for c, explorer in explore(evaluation).items():
        alarm, is_class = evaluation.predicted == c, evaluation.truth == c
        own = explorer.rows["tp"][explorer.own], explorer.rows["fp"][explorer.own]
        assert own == ((alarm & is_class).sum(), (alarm & ~is_class).sum())
        assert (np.array(explorer.cuts[: explorer.own]) > 0).all()
        assert (np.array(explorer.cuts[explorer.own :]) <= 0).all()


# ---------------------------------------------------------------------------------------- curves


@pytest.mark.parametrize("weighted", [False, True])
def test_thinned_curves_keep_their_area_and_ends(weighted):
    evaluation = random_evaluation(20_000)
    is_class, scores = evaluation.truth == 1, evaluation.scores[:, 1]
    weights = evaluation.weights
    if weighted:  # other weights within a class, and another prevalence
        rng = np.random.default_rng(0)
        weights = rng.choice([0.2, 1.0, 5.0], len(scores)) * np.where(is_class, 0.1, 1.0)
    curve, pr = (one(is_class, scores, weights) for one in (roc, precision_recall))
    assert max(len(curve.x), len(pr.x)) <= 302
    assert (curve.x[0], curve.y[0]) == (0, 0)
    assert (curve.x[-1], curve.y[-1], pr.x[-1]) == pytest.approx((1, 1, 1))
    expected = roc_auc_score(is_class, scores, sample_weight=weights)
    assert auc(curve.x, curve.y) == pytest.approx(expected, abs=2e-3)
    # The last point finds all: its precision is the share of the class, by weight.
    assert pr.y[-1] == pytest.approx(weights[is_class].sum() / weights.sum())
    # Each point is that of a threshold.
    order = np.argsort(-scores, kind="stable")
    found, alarms = np.cumsum((weights * is_class)[order]), np.cumsum(weights[order])
    thresholds = np.stack([found / found[-1], found / alarms], axis=1)
    for point in zip(pr.x, pr.y, strict=True):
        assert np.abs(thresholds - point).max(axis=1).min() < 1e-9


def test_reliability_counts_every_row_once_at_the_edges_too():
    chance = np.array([0.0, 0.05, 0.1, 0.55, 0.95, 1.0])
    truth = np.array([0, 1, 0, 1, 1, 1])
    both = np.column_stack([1 - chance, chance])
    bins = reliability(evaluation_of(truth, chance, probabilities=both, **RARE))
    counted = [(one.low, one.n_rows, one.seen) for one in bins]
    assert counted == [(0.0, 2, 0.5), (0.1, 1, 0.0), (0.5, 1, 1.0), (0.9, 2, 1.0)]
    assert bins[0].said == pytest.approx(0.025)
    for one in bins:
        right = proportion_confint(one.seen * one.n_rows, one.n_rows, method="wilson")
        assert (one.seen_low, one.seen_high) == pytest.approx(right)


def test_minority_classes_have_less_than_an_equal_share_the_rarest_first():
    cases = {(90, 10): (1,), (10, 90): (0,), (70, 20, 5, 5): (3, 2, 1), (50, 50): (1,)}
    for counts, right in cases.items():
        truth = np.repeat(range(len(counts)), counts)
        assert evaluation_of(truth, np.eye(len(counts))[truth]).minority == right
