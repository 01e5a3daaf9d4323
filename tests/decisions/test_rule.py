"""The whole rule: decide, move, save; and cross-fitting."""

import json
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from setconv.decisions.rule import (
    DecisionRule,
    cross_fit,
    fit_rule,
    paper_probabilities,
    unproven_rule,
)
from setconv.errors import DataError, ParameterError
from setconv.metrics.report import report

OBJECTIVES = [None, "balanced", "f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5"]
TWO, THREE = ("no", "fire"), ("a", "b", "c")


def two(n0=900, n1=60, seed=0):
    codes = np.repeat([0, 1], [n0, n1])
    return np.random.default_rng(seed).normal(codes * 2.0 - 1)[:, None], codes


def three(n=500, seed=0):
    generator = np.random.default_rng(seed)
    codes = np.sort(generator.choice(3, size=n, p=[0.8, 0.14, 0.06]))
    scores = generator.normal(size=(n, 3)) - 1
    scores[np.arange(n), codes] += 2
    return scores, codes


CASES = [(two(), TWO), (three(), THREE)]
COST = {2: [[0, 1], [15, -1]], 3: [[0, 1, 2], [9, 0, 1], [30, 20, 0]]}


def cases():
    for data, classes in CASES:
        for objective in [*OBJECTIVES, COST[len(classes)]]:
            yield pytest.param(*data, classes, objective, id=f"{len(classes)}-{objective}")


@pytest.mark.parametrize(("scores", "codes", "classes", "objective"), list(cases()))
def test_decisions_are_the_sign_or_argmax_of_the_decision_values(scores, codes, classes, objective):
    rule = fit_rule(scores, codes, objective=objective, classes=classes)
    values, decided = rule.decision_values(scores), rule.decide(scores)
    assert decided.dtype == np.int64
    if len(classes) == 2:
        assert values.shape == (len(codes),)
        np.testing.assert_array_equal(values > 0, decided == 1)
    else:
        assert values.shape == scores.shape
        np.testing.assert_array_equal(np.argmax(values, axis=1), decided)
    chances = rule.probabilities(scores)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.parametrize(("scores", "codes", "classes", "objective"), list(cases()))
def test_a_rule_survives_json_and_can_still_be_moved(scores, codes, classes, objective):
    weights = np.random.default_rng(3).choice([1.0, 2.0], size=len(codes))
    rule = fit_rule(
        scores, codes, weights, np.arange(1.0, len(classes) + 1), objective, classes=classes, seed=4
    )
    again = DecisionRule.from_dict(json.loads(json.dumps(rule.to_dict())), rule.arrays(), classes)
    np.testing.assert_array_equal(again.decision_values(scores), rule.decision_values(scores))
    np.testing.assert_array_equal(again.probabilities(scores), rule.probabilities(scores))
    moved, same = rule.with_objective("mcc"), again.with_objective("mcc")
    np.testing.assert_array_equal(moved.thresholds, same.thresholds)
    back = moved.with_objective(objective)
    np.testing.assert_array_equal(back.thresholds, rule.thresholds)


@pytest.mark.parametrize(("data", "classes"), CASES)
def test_without_an_objective_the_rule_is_the_papers(data, classes):
    scores, codes = data
    for rule in (
        fit_rule(scores, codes, objective=None, classes=classes),
        fit_rule(scores, codes, objective="f1", classes=classes).with_objective(None),
        unproven_rule(classes, np.full(len(classes), 1 / len(classes)), objective=None),
    ):
        np.testing.assert_array_equal(rule.probabilities(scores), paper_probabilities(scores))
        natural = scores[:, 0] > 0 if len(classes) == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(rule.decide(scores), natural)
        assert not rule.thresholds.any()
        with pytest.raises(ParameterError, match="no prevalence"):
            rule.with_prior(np.full(len(classes), 1 / len(classes)))


def test_the_papers_probabilities_are_as_printed():
    scores = np.array([[-3.0, 0.5, 2.0], [-3000.0, -2000.0, -2500.0]])
    own = expit(scores[:1])
    np.testing.assert_allclose(paper_probabilities(scores)[:1], own / own.sum())
    np.testing.assert_allclose(paper_probabilities(scores)[1], [0, 1, 0], atol=1e-100)
    np.testing.assert_allclose(paper_probabilities(np.array([[0.7]])), [[expit(-0.7), expit(0.7)]])


def test_a_rule_without_rows_cannot_be_moved():
    with pytest.raises(ParameterError, match="out-of-fold"):
        unproven_rule(TWO, np.array([0.9, 0.1])).with_objective("f1")


@pytest.mark.parametrize(("data", "classes"), CASES)
@pytest.mark.parametrize("moved", [False, True])
def test_a_cost_matrix_minimises_the_expected_cost(data, classes, moved):
    scores, codes = data
    k = len(classes)
    rule = fit_rule(scores, codes, objective=COST[k], classes=classes)
    if moved:
        rule = rule.with_prior(np.full(k, 1 / k))
    expected = rule.probabilities(scores) @ np.array(COST[k])
    chosen = np.take_along_axis(expected, rule.decide(scores)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, expected.min(axis=1), atol=1e-9)


def test_class_weights_multiply_the_costs():
    scores, codes = two()
    weighed = fit_rule(scores, codes, None, [1, 5], [[0, 1], [3, 0]], classes=TWO)
    plain = fit_rule(scores, codes, None, None, [[0, 1], [15, 0]], classes=TWO)
    assert weighed.thresholds == pytest.approx(plain.thresholds)


def test_a_heavier_class_is_decided_on_more_often():
    light, heavy = (fit_rule(*two(), None, w, classes=TWO) for w in ([1, 1], [1, 6]))
    assert heavy.thresholds[0] < light.thresholds[0]


@pytest.mark.parametrize(("data", "classes"), CASES)
@pytest.mark.parametrize("objective", ["f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5"])
def test_what_a_figure_means_depends_on_no_class_weight(data, classes, objective):
    weights = [1.0, 6.0, 3.0][: len(classes)]
    light, heavy = (fit_rule(*data, None, w, objective, classes=classes) for w in (None, weights))
    np.testing.assert_array_equal(heavy.thresholds, light.thresholds)
    assert heavy.calibrator == light.calibrator


@pytest.mark.parametrize(("data", "classes"), CASES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_only_ratios_of_weights_within_a_class_count(data, classes, objective):
    scores, codes = data
    within = np.random.default_rng(0).choice([1.0, 2.0, 5.0], size=len(codes))
    # A factor a class, as balanced weights are; powers of two, so that not a bit differs.
    factors = 2.0 ** np.arange(len(classes))
    one, other = (
        fit_rule(scores, codes, w, None, objective, classes=classes)
        for w in (within, within * factors[codes])
    )
    np.testing.assert_allclose(other.thresholds, one.thresholds, atol=1e-9)
    np.testing.assert_allclose(other.probabilities(scores), one.probabilities(scores), atol=1e-9)
    np.testing.assert_allclose(one.train_prior, np.bincount(codes) / len(codes))


@pytest.mark.parametrize(("data", "classes"), CASES)
@pytest.mark.parametrize("prior", [None, "equal"])
def test_accuracy_decides_for_the_largest_probability(data, classes, prior):
    rule = fit_rule(*data, objective="accuracy", classes=classes)
    if prior is not None:
        rule = rule.with_prior(np.full(len(classes), 1 / len(classes)))
    fresh = np.random.default_rng(5).normal(size=(5000, data[0].shape[1])) * 3
    np.testing.assert_array_equal(rule.decide(fresh), rule.probabilities(fresh).argmax(axis=1))
    np.testing.assert_allclose(rule.thresholds.sum() * (len(classes) > 2), 0, atol=1e-9)


# ------------------------------------------------------------------- classes without any evidence


@pytest.mark.parametrize("objective", [*OBJECTIVES, "cost"])
def test_of_two_classes_one_without_rows_leaves_the_middle(objective):
    given = COST[2] if objective == "cost" else objective
    scores = np.random.default_rng(0).normal(size=(50, 1))
    known = {"classes": TWO, "positive": 1, "train_prior": np.array([0.9, 0.1])}
    rule = fit_rule(scores, np.zeros(50, int), None, None, given, **known)
    assert rule.unjudged == (1,)
    assert rule.met is (False if objective in ("recall>=0.9", "precision>=0.5") else None)
    if objective is not None:
        odds = np.log(rule.probabilities(scores)[:, 1] / rule.probabilities(scores)[:, 0])
        np.testing.assert_allclose(odds, scores[:, 0] + np.log(0.1 / 0.9))
    if objective not in ("accuracy", "cost"):
        assert rule.thresholds.tolist() == [0]


def test_a_class_without_rows_is_moved_as_the_others_are_on_average():
    scores, codes = three()
    known = codes != 2
    prior = np.array([0.8, 0.14, 0.06])
    rule = fit_rule(scores[known], codes[known], classes=THREE, train_prior=prior, positive=2)
    whole = fit_rule(scores, codes, classes=THREE)
    # The two that have rows are to one another what they are by themselves.
    pair = rule.probabilities(scores)[:, :2]
    alone = whole.probabilities(scores)[:, :2]
    pair, alone = (p / p.sum(axis=1, keepdims=True) for p in (pair, alone))
    assert np.abs(pair - alone).mean() < 0.05
    assert abs(rule.probabilities(scores)[:, 2].mean() - prior[2]) < 0.04
    assert rule.unjudged == (2,)
    minimum = {"recall": 0.5, "class": "c"}
    assert rule.with_objective(minimum).met is False
    assert rule.with_objective({"precision": 0.1, "class": "b"}).met is False
    assert rule.with_objective({"recall": 0.5, "class": "b"}).met is True


@pytest.mark.parametrize(("data", "classes"), CASES)
@pytest.mark.parametrize("objective", ["balanced", "recall>=0.9"])
def test_recall_and_g_mean_do_not_depend_on_the_prior(data, classes, objective):
    rule = fit_rule(*data, objective=objective, classes=classes)
    prior = np.full(len(classes), 1 / len(classes))
    moved = rule.with_prior(prior)
    np.testing.assert_array_equal(moved.thresholds, rule.thresholds)
    assert (moved.probabilities(data[0])[:, -1] > rule.probabilities(data[0])[:, -1]).all()
    assert moved.with_prior(None).prior is None


@pytest.mark.parametrize("objective", ["f1", "mcc", "accuracy", "precision>=0.6", COST[2]])
def test_a_larger_prior_lowers_the_threshold_of_the_class(objective):
    rule = fit_rule(*two(), objective=objective, classes=TWO)
    assert rule.with_prior({"fire": 0.4}).thresholds[0] < rule.thresholds[0]


def test_the_prior_may_be_given_at_once():
    scores, codes = two()
    moved = fit_rule(scores, codes, objective="f1", classes=TWO).with_prior([0.5, 0.5])
    at_once = fit_rule(scores, codes, objective="f1", classes=TWO, prior=[0.5, 0.5])
    np.testing.assert_array_equal(at_once.thresholds, moved.thresholds)


def test_f1_is_of_the_rarer_class_as_in_the_report():
    scores, codes = two()
    rare_first = fit_rule(-scores, 1 - codes, objective="f1", classes=("fire", "no"))
    rare_last = fit_rule(scores, codes, objective="f1", classes=TWO)
    assert rare_first.positive == 0
    assert rare_last.positive == 1
    assert rare_first.thresholds[0] == pytest.approx(-rare_last.thresholds[0], abs=0.1)
    figures = report(codes, rare_last.decide(scores), classes=[0, 1])
    assert figures.positive == 1


@pytest.mark.parametrize("target", [0, 1])
def test_a_minimum_recall_of_either_class(target):
    scores, codes = two()
    label = TWO[target]
    rule = fit_rule(scores, codes, objective={"recall": 0.9, "class": label}, classes=TWO)
    n = (codes == target).sum()
    reached = (rule.decide(scores)[codes == target] == target).mean()
    assert 0.9 <= reached <= 0.9 + 2 / n


def test_a_minimum_recall_of_one_of_many_leaves_the_others_order():
    scores, codes = three()
    rule = fit_rule(scores, codes, objective={"recall": 0.95, "class": "c"}, classes=THREE)
    assert rule.thresholds[:2].tolist() == [0, 0]
    decided = rule.decide(scores)
    assert (decided[codes == 2] == 2).mean() >= 0.95
    others = decided != 2
    np.testing.assert_array_equal(decided[others], scores[others, :2].argmax(axis=1))


def test_agrees_with_scikit_learns_tuned_threshold(monkeypatch):
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [3000, 300])
    X = generator.normal(size=(3300, 3)) + 0.9 * codes[:, None]
    fresh_codes = np.repeat([0, 1], [20_000, 2000])
    fresh = generator.normal(size=(22_000, 3)) + 0.9 * fresh_codes[:, None]
    model = LogisticRegression().fit(X, codes)
    tuned = TunedThresholdClassifierCV(
        model, scoring="f1", cv="prefit", refit=False, thresholds=400
    ).fit(X, codes)
    scores = model.decision_function(X)[:, None]
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)
    ours = fit_rule(scores, codes, objective="f1", classes=[0, 1])
    assert f1_score(codes, ours.decide(scores)) >= tuned.best_score_ - 1e-9
    fixed = FixedThresholdClassifier(
        model, threshold=ours.thresholds[0], response_method="decision_function"
    ).fit(X, codes)
    fresh_scores = model.decision_function(fresh)[:, None]
    np.testing.assert_array_equal(fixed.predict(fresh), ours.decide(fresh_scores))
    theirs = f1_score(fresh_codes, tuned.predict(fresh))
    assert f1_score(fresh_codes, ours.decide(fresh_scores)) > theirs - 0.01


@pytest.mark.parametrize("objective", [*OBJECTIVES, "cost"])
@pytest.mark.parametrize(("data", "classes"), CASES)
def test_cross_fitting_uses_the_other_folds_only(data, classes, objective):
    scores, codes = data
    objective = COST[len(classes)] if objective == "cost" else objective
    folds = np.arange(len(codes)) % 3
    options = {"objective": objective, "classes": classes, "positive": len(classes) - 1}
    found = cross_fit(fit_rule(scores, codes, **options), folds)
    for fold in range(3):
        here = folds == fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule = fit_rule(scores[~here], codes[~here], **options)
        np.testing.assert_array_equal(found.codes[here], rule.decide(scores[here]))
        np.testing.assert_array_equal(found.values[here], rule.decision_values(scores[here]))
        np.testing.assert_array_equal(found.probabilities[here], rule.probabilities(scores[here]))


def test_cross_fitting_does_not_flatter_scores_that_say_nothing(monkeypatch):
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)
    generator = np.random.default_rng(0)
    flattered, honest = [], []
    for seed in range(30):
        codes = np.repeat([0, 1], [100, 15])
        scores = generator.normal(size=(115, 1))
        rule = fit_rule(scores, codes, objective="mcc", classes=TWO, positive=1, seed=seed)
        decided = cross_fit(rule, np.arange(115) % 5).codes
        for figures, guess in ((flattered, rule.decide(scores)), (honest, decided)):
            figures.append(np.mean([(guess[codes == c] == c).mean() for c in (0, 1)]))
    assert np.mean(flattered) > 0.53
    assert abs(np.mean(honest) - 0.5) < 0.03


@pytest.mark.parametrize("objective", [*OBJECTIVES, "cost"])
def test_a_class_with_one_row_still_gives_a_report(objective):
    for k, classes in ((2, TWO), (3, THREE)):
        codes = np.append(np.arange(12) % (k - 1), k - 1)
        scores = np.random.default_rng(0).normal(size=(13, 1 if k == 2 else k))
        given = COST[k] if objective == "cost" else objective
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rule = fit_rule(scores, codes, objective=given, classes=classes, positive=k - 1)
        found = cross_fit(rule, np.arange(13) % 5)
        assert np.isin(found.codes, range(k)).all()
        assert np.isfinite(found.probabilities).all()
        assert np.isfinite(rule.decision_values(scores)).all()


def test_rows_of_a_single_fold_are_decided_on_without_any_of_them():
    scores, codes = three()
    rule = fit_rule(scores, codes, classes=THREE)
    found = cross_fit(rule, np.zeros(len(codes), int))
    np.testing.assert_array_equal(found.codes, scores.argmax(axis=1))
    other = unproven_rule(THREE, rule.train_prior).probabilities(scores)
    np.testing.assert_array_equal(found.probabilities, other)


@pytest.mark.parametrize(
    ("scores", "codes", "weights", "message"),
    [
        (np.zeros((3, 2)), [0, 1, 1], None, "shape"),
        (np.zeros((3, 1)), [0, 1], None, "shape"),
        (np.array([[0.0], [np.nan], [1.0]]), [0, 1, 1], None, "row 1"),
        (np.zeros((3, 1)), [0, 1, 2], None, "numbered from 0 to 1"),
        (np.zeros((3, 1)), [0, 1, 1], [1, 1], "weights have shape"),
        (np.zeros((3, 1)), [0, 1, 1], [0, 0, 0], "not all zero"),
    ],
)
def test_rows_that_do_not_fit_are_refused(scores, codes, weights, message):
    with pytest.raises(DataError, match=message):
        fit_rule(scores, np.array(codes), weights, classes=TWO)


def test_folds_of_other_rows_are_refused():
    with pytest.raises(DataError, match="folds have shape"):
        cross_fit(fit_rule(*two(10, 5), classes=TWO), np.zeros(3, int))
