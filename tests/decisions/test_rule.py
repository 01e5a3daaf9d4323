"""The whole rule: decide, move, save; and cross-fitting."""

import json

import numpy as np
import pytest
from scipy.special import expit

from setconv.decisions.objective import Grounds, OutOfFoldScores, parse_objective
from setconv.decisions.rule import (
    DecisionRule,
    FittedDecision,
    cross_fit,
    paper_probabilities,
    smallest,
)
from setconv.decisions.thresholds import Criterion, smoothed_threshold
from setconv.errors import DataError, ParameterError
from setconv.metrics import report
from setconv.metrics.report import report_of_nothing

TWO, THREE = ("no", "fire"), ("a", "b", "c")
COST = {2: [[0, 1], [15, -1]], 3: [[0, 1, 2], [9, 0, 1], [30, 20, 0]]}
OBJECTIVES = [None, "balanced", "f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5", "cost"]
EVEN = np.full(2, 0.5)


def two(n0=900, n1=60, seed=0):
    codes = np.repeat([0, 1], [n0, n1])
    return np.random.default_rng(seed).normal(codes * 2.0 - 1)[:, None], codes


def three(n=500, seed=0):
    generator = np.random.default_rng(seed)
    codes = np.sort(generator.choice(3, size=n, p=[0.8, 0.14, 0.06]))
    scores = generator.normal(size=(n, 3)) - 1
    scores[np.arange(n), codes] += 2
    return scores, codes


def fit(scores, codes, classes, objective="balanced", *, weights=None, class_weights=None, **given):
    """A rule on rows of which the last class is of interest, as rare as it is among them."""
    k, codes = len(classes), np.asarray(codes)
    evidence = OutOfFoldScores(
        scores=scores,
        codes=codes,
        weights=np.ones(len(codes)) if weights is None else np.asarray(weights, float),
        n_classes=k,
    ).evened()
    grounds = Grounds(
        classes=np.array(classes),
        positive=given.pop("positive", k - 1),
        train_prior=given.pop("train_prior") if "train_prior" in given else evidence.prior,
        class_weights=np.ones(k) if class_weights is None else np.asarray(class_weights, float),
        evidence=evidence,
        **given,
    )
    objective = COST[k] if objective == "cost" else objective
    return DecisionRule.choose(grounds, parse_objective(objective, classes))


def without_rows(classes, objective="balanced"):
    k = len(classes)
    none = OutOfFoldScores.none(k)
    return fit(none.scores, none.codes, classes, objective, train_prior=np.full(k, 1 / k))


def decide(rule, scores):
    """The class number of each row."""
    labels = rule.grounds.classes.tolist()
    return np.array([labels.index(label) for label in rule.predictions(scores).labels.tolist()])


both = pytest.mark.parametrize(
    ("data", "classes"), [(two(), TWO), (three(), THREE)], ids=["two", "three"]
)


@both
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_rule_decides_by_its_values_survives_json_and_can_be_moved(data, classes, objective):
    scores, codes = data
    rule = fit(
        *data,
        classes,
        objective,
        weights=np.random.default_rng(3).choice([1.0, 2.0], size=len(codes)),
        class_weights=np.arange(1.0, len(classes) + 1),
        seed=4,
    )
    found = rule.predictions(scores)
    values = found.decision_values
    chosen = (values > 0).astype(int) if len(classes) == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(found.labels, np.array(classes)[chosen])
    assert values.shape == found.scores.shape == scores.squeeze().shape
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    plain = json.loads(json.dumps(rule.to_dict()))
    again = DecisionRule.from_dict(plain, rule.arrays(), np.array(classes))
    np.testing.assert_array_equal(again.decision_values(scores), values)
    np.testing.assert_array_equal(again.probabilities(scores), found.probabilities)
    moved, same = rule.with_objective("mcc"), again.with_objective("mcc")
    np.testing.assert_array_equal(moved.thresholds, same.thresholds)
    back = moved.with_objective(COST[len(classes)] if objective == "cost" else objective)
    np.testing.assert_array_equal(back.thresholds, rule.thresholds)


@both
def test_without_an_objective_the_rule_is_the_papers(data, classes):
    scores = data[0]
    natural = scores[:, 0] > 0 if len(classes) == 2 else scores.argmax(axis=1)
    moved = fit(*data, classes, "f1").with_objective(None)
    for rule in (fit(*data, classes, None), moved, without_rows(classes, None)):
        np.testing.assert_array_equal(rule.probabilities(scores), paper_probabilities(scores))
        np.testing.assert_array_equal(decide(rule, scores), natural)
        assert not rule.thresholds.any()
        with pytest.raises(ParameterError):
            rule.with_prior(np.full(len(classes), 1 / len(classes)))
    with pytest.raises(ParameterError):
        without_rows(classes).with_objective("f1")


def test_the_papers_probabilities_are_as_printed():
    scores = np.array([[-3.0, 0.5, 2.0], [-3000.0, -2000.0, -2500.0]])
    own = expit(scores[:1])
    np.testing.assert_allclose(paper_probabilities(scores)[:1], own / own.sum())
    np.testing.assert_allclose(paper_probabilities(scores)[1], [0, 1, 0], atol=1e-100)
    np.testing.assert_allclose(paper_probabilities(np.array([[0.7]])), [[expit(-0.7), expit(0.7)]])


# ------------------------------------------------------------- what each objective and weight means


@both
@pytest.mark.parametrize("moved", [False, True])
def test_costs_and_accuracy_decide_by_the_probabilities(data, classes, moved):
    k = len(classes)
    fresh = np.random.default_rng(5).normal(size=(5000, data[0].shape[1])) * 3
    for objective, cost in (("cost", np.array(COST[k])), ("accuracy", 1 - np.eye(k))):
        rule = fit(*data, classes, objective)
        rule = rule.with_prior(np.full(k, 1 / k)) if moved else rule
        expected = rule.probabilities(fresh) @ cost
        chosen = np.take_along_axis(expected, decide(rule, fresh)[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen, expected.min(axis=1), atol=1e-9)


def test_class_weights_multiply_the_costs_and_are_powers_of_the_recalls():
    weighed = fit(*two(), TWO, [[0, 1], [3, 0]], class_weights=[1, 5])
    assert weighed.thresholds == pytest.approx(fit(*two(), TWO, [[0, 1], [15, 0]]).thresholds)
    assert fit(*two(), TWO, class_weights=[1, 6]).thresholds < fit(*two(), TWO).thresholds


@both
@pytest.mark.parametrize("objective", ["f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5"])
def test_what_a_figure_means_depends_on_no_class_weight(data, classes, objective):
    weights = [1.0, 6.0, 3.0][: len(classes)]
    light, heavy = (fit(*data, classes, objective, class_weights=w) for w in (None, weights))
    np.testing.assert_array_equal(heavy.thresholds, light.thresholds)
    assert heavy.calibrator == light.calibrator


@both
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_only_ratios_of_weights_within_a_class_count(data, classes, objective):
    scores, codes = data
    within = np.random.default_rng(0).choice([1.0, 2.0, 5.0], size=len(codes))
    factors = 2.0 ** np.arange(len(classes))  # a factor a class, as balanced weights are
    one, other = (
        fit(*data, classes, objective, weights=w) for w in (within, within * factors[codes])
    )
    np.testing.assert_allclose(other.thresholds, one.thresholds, atol=1e-9)
    np.testing.assert_allclose(other.probabilities(scores), one.probabilities(scores), atol=1e-9)
    np.testing.assert_allclose(one.evidence.prior, np.bincount(codes) / len(codes))


@both
@pytest.mark.parametrize("objective", ["balanced", "recall>=0.9"])
def test_recall_and_g_mean_do_not_depend_on_the_prior(data, classes, objective):
    rule = fit(*data, classes, objective)
    moved = rule.with_prior(np.full(len(classes), 1 / len(classes)))
    np.testing.assert_array_equal(moved.thresholds, rule.thresholds)
    assert (moved.probabilities(data[0])[:, -1] > rule.probabilities(data[0])[:, -1]).all()
    assert moved.with_prior(None).prior is None


@pytest.mark.parametrize("objective", ["f1", "mcc", "accuracy", "precision>=0.6", "cost"])
def test_a_larger_prior_lowers_the_threshold_of_the_class(objective):
    rule = fit(*two(), TWO, objective)
    assert rule.with_prior({"fire": 0.4}).thresholds[0] < rule.thresholds[0]


@both
@pytest.mark.parametrize("target", [0, 1])
def test_a_minimum_recall_of_any_class_leaves_the_order_of_the_others(data, classes, target):
    scores, codes = data
    decided = decide(fit(*data, classes, {"recall": 0.9, "class": classes[target]}), scores)
    own = codes == target
    assert 0.9 <= (decided[own] == target).mean() <= 0.9 + 2 / own.sum()
    if len(classes) > 2:
        rest = np.where(np.arange(3) == target, -np.inf, scores).argmax(axis=1)
        np.testing.assert_array_equal(decided, np.where(decided == target, target, rest))


# ------------------------------------------ balanced: few rows are drawn to what probabilities say


def scored(n_rare, n_common=400):
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0, 1, n_common), rng.gumbel(2, 1, n_rare)])
    return scores[:, None], np.repeat([0, 1], [n_common, n_rare])


@pytest.mark.parametrize("n_rare", [5, 20, 60, 1500])
def test_the_probable_cut_counts_like_20_rows_of_the_rarer_class(n_rare):
    rule = fit(*scored(n_rare), TWO)
    cut = smoothed_threshold(rule.evidence, Criterion("balanced", EVEN))
    # Where both classes are equally likely if they are equally frequent.
    probable = rule.calibrator.score_at(0.0, EVEN)
    np.testing.assert_allclose(rule.calibrator.probabilities(np.array([[probable]]), EVEN), 0.5)
    share = 20 / (20 + min(n_rare, 400))
    assert rule.thresholds[0] == pytest.approx((1 - share) * cut + share * probable)


@pytest.mark.parametrize("seed", range(5))
def test_a_probable_cut_beyond_all_scores_is_not_followed(seed):
    # Scores that do not tell the classes apart: the logistic curve is flat, and reaches one half
    # far outside of the scores.
    scores = np.random.default_rng(seed).standard_t(3, size=(210, 1))
    rule = fit(scores, np.repeat([0, 1], [200, 10]), TWO)
    assert len(np.unique(decide(rule, scores))) == 2


# ------------------------------------------------------------------- classes without any evidence


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_of_two_classes_one_without_rows_leaves_the_middle(objective):
    scores = np.random.default_rng(0).normal(size=(50, 1))
    rule = fit(scores, np.zeros(50, int), TWO, objective, train_prior=np.array([0.9, 0.1]))
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
    rule = fit(scores[known], codes[known], THREE, train_prior=prior)
    # The two that have rows are to one another what they are by themselves.
    pair, alone = (
        chances[:, :2] / chances[:, :2].sum(axis=1, keepdims=True)
        for chances in (rule.probabilities(scores), fit(scores, codes, THREE).probabilities(scores))
    )
    assert np.abs(pair - alone).mean() < 0.05
    assert abs(rule.probabilities(scores)[:, 2].mean() - prior[2]) < 0.04
    assert rule.unjudged == (2,)
    assert rule.with_objective({"recall": 0.5, "class": "c"}).met is False
    assert rule.with_objective({"precision": 0.1, "class": "b"}).met is False
    assert rule.with_objective({"recall": 0.5, "class": "b"}).met is True


# ---------------------------------------------------------------------------------- cross-fitting


@both
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cross_fitting_uses_the_other_folds_only(data, classes, objective):
    scores, codes = data
    folds = np.arange(len(codes)) % 3
    found = cross_fit(fit(scores, codes, classes, objective), folds)
    np.testing.assert_array_equal(found.truth, np.array(classes)[codes])
    for fold in range(3):
        here = folds == fold
        other = fit(scores[~here], codes[~here], classes, objective).predictions(scores[here])
        for name in ("labels", "decision_values", "probabilities"):
            np.testing.assert_array_equal(getattr(found, name)[here], getattr(other, name))


@pytest.mark.parametrize("classes", [TWO, THREE])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_class_with_one_row_still_gives_a_report(objective, classes):
    k = len(classes)
    codes = np.append(np.arange(12) % (k - 1), k - 1)
    scores = np.random.default_rng(0).normal(size=(13, 1 if k == 2 else k))
    found = cross_fit(fit(scores, codes, classes, objective), np.arange(13) % 5)
    assert np.isfinite(found.probabilities).all()
    assert np.isfinite(found.decision_values).all()


def test_rows_of_a_single_fold_are_decided_on_without_any_of_them():
    scores, codes = three()
    rule = fit(scores, codes, THREE)
    found = cross_fit(rule, np.zeros(len(codes), int))
    np.testing.assert_array_equal(found.labels, np.array(THREE)[scores.argmax(axis=1)])
    logs = scores + np.log(rule.evidence.prior)
    shares = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.probabilities, shares)


@pytest.mark.parametrize(
    ("scores", "codes", "row"),
    [
        (np.zeros((3, 2)), [0, 1, 1], None),
        (np.zeros((3, 1)), [0, 1], None),
        (np.array([[0.0], [np.nan], [1.0]]), [0, 1, 1], 1),
    ],
)
def test_rows_that_do_not_fit_are_refused(scores, codes, row):
    with pytest.raises(DataError) as caught:
        fit(scores, codes, TWO)
    assert caught.value.row == row


# --------------------------------------------------------- rows that stand for more than themselves


def grounds_of(scores, codes, weights=None, stands_for=None, units=None):
    codes = np.asarray(codes, dtype=np.int64)
    rows = OutOfFoldScores(
        scores=scores,
        codes=codes,
        weights=np.ones(len(codes)) if weights is None else weights,
        n_classes=2,
        units=units,
        stands_for=stands_for,
    ).evened()
    return Grounds(
        classes=np.array(TWO),
        positive=1,
        train_prior=rows.prior,
        class_weights=np.ones(2),
        evidence=rows,
    )


def decided(grounds, objective="f1", prior=None):
    """What a fit with three folds knows."""
    rule = DecisionRule.choose(grounds, parse_objective(objective, TWO))
    folds = np.arange(len(grounds.evidence)) % 3
    return FittedDecision(
        rule=rule if prior is None else rule.with_prior(prior),
        report=report_of_nothing(TWO, "fire", {}),
        source="out_of_fold",
        left_out=folds == np.arange(3)[:, None],
    ).reported()


@pytest.mark.parametrize(
    "objective", ["balanced", "f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5", "cost"]
)
def test_one_in_ten_of_the_common_rows_decides_as_all_of_them_do(objective):
    scores, codes = two(100_000, 1000)
    kept = np.append(np.arange(0, 100_000, 10), np.arange(100_000, 101_000))
    objective = COST[2] if objective == "cost" else objective
    every = decided(grounds_of(scores, codes), objective)
    some = decided(grounds_of(scores[kept], codes[kept], stands_for=(10.0, 1.0)), objective)
    np.testing.assert_allclose(some.rule.evidence.prior, every.rule.evidence.prior)
    assert some.rule.thresholds[0] == pytest.approx(every.rule.thresholds[0], abs=0.06)
    grid = np.linspace(-3, 4, 50)[:, None]
    ours, theirs = (one.rule.probabilities(grid)[:, 1] for one in (some, every))
    np.testing.assert_allclose(ours, theirs, atol=0.02)
    for name in ("auc", "average_precision", "brier"):  # which no threshold moves
        bounds = some.report["fire"].intervals[name]
        assert bounds[0] <= getattr(every.report["fire"], name) <= bounds[1], name
    for name in ("specificity", "sensitivity", "precision", "f1"):
        ours, theirs = (getattr(one.report["fire"], name) for one in (some, every))
        assert ours == pytest.approx(theirs, abs=0.1), name
    assert some.report.confusion.sum() == pytest.approx(101_000)
    assert some.report["fire"].n_rows == 1000
    assert "11,000 out-of-fold rows that stand for 101,000" in some.basis
    assert not some.report.weighted
    assert some.report.remarks() == [
        "The figures are on 11,000 out-of-fold rows that stand for 101,000."
    ]
    assert every.report.remarks() == []
    assert "stand for" not in every.basis


@pytest.mark.parametrize("prior", [None, {"fire": 0.3}])
def test_figures_are_those_of_the_rows_repeated(prior):
    scores, codes = two(90, 30)
    found = decided(grounds_of(scores, codes, stands_for=(3.0, 1.0)), prior=prior)
    said = found.cross_fitted()
    repeated = np.repeat(np.arange(120), np.where(codes == 0, 3, 1))
    weights = None
    if prior is not None:
        weights = np.where(codes == 0, 0.7 / 270, 0.3 / 30)[repeated] * 300
    right = report(
        said.truth[repeated],
        said.labels[repeated],
        said.scores[repeated],
        probabilities=said.probabilities[repeated],
        classes=TWO,
        positive="fire",
        sample_weight=weights,
    )
    np.testing.assert_allclose(found.report.confusion, right.confusion, rtol=1e-12)
    for label in TWO:
        ours, theirs = (vars(one[label]) for one in (found.report, right))
        for name in set(theirs) - {"n_rows", "intervals"}:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-12), name
    for name in ("accuracy", "macro_f1", "mcc", "brier", "macro_auc"):
        assert getattr(found.report, name) == pytest.approx(getattr(right, name), rel=1e-12)


def test_rows_that_stand_for_others_say_of_weights_what_is_true():
    scores, codes = two(90, 30)
    mine = np.random.default_rng(0).choice([0.5, 2.0], 120)
    plain, own, both_ = (
        decided(grounds_of(scores, codes, weights, stands_for))
        for weights, stands_for in ((None, (3.0, 1.0)), (mine, None), (mine, (3.0, 1.0)))
    )
    assert [one.report.weighted for one in (plain, own, both_)] == [False, True, True]
    assert both_.report["fire"].sensitivity == pytest.approx(
        own.report["fire"].sensitivity, abs=0.2
    )
    once = decided(grounds_of(scores, codes, stands_for=(1.0, 1.0)))
    assert once.report.confusion.dtype == np.int64  # nothing is weighted
    assert once.basis == "120 out-of-fold rows that stand for 120"


@pytest.mark.parametrize("stands_for", [None, (10.0, 1.0), (1.7, 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_few_bytes_a_row_are_kept_and_the_same_come_back(stands_for, weighted, tied):
    scores, codes = two(300, 60)
    weights = np.random.default_rng(0).choice([0.5, 2.0], 360) if weighted else None
    units = np.arange(360) // 2 if tied else None
    rule = DecisionRule.choose(
        grounds_of(scores, codes, weights, stands_for, units), parse_objective("f1", TWO)
    )
    arrays = rule.arrays()
    assert arrays["codes"].dtype == np.uint8
    assert ("weights" in arrays) == weighted
    assert ("units" in arrays) == tied
    plain = json.loads(json.dumps(rule.to_dict()))
    again = DecisionRule.from_dict(plain, arrays, np.array(TWO)).evidence
    for name in ("scores", "codes", "weights", "units"):
        ours, theirs = getattr(again, name), getattr(rule.evidence, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert again.stands_for == stands_for
    for wrong in ([1.0], [0.5, 1.0], [np.inf, 1.0], [np.nan, 1.0], 3.0, [0, 1], [2.0, 1.0, 1.0]):
        with pytest.raises(ValueError, match="wrong"):
            DecisionRule.from_dict(plain | {"stands_for": wrong}, arrays, np.array(TWO))
    for wrong in ([None], [float("inf")]):
        with pytest.raises(ValueError, match="thresholds"):
            DecisionRule.from_dict(plain | {"thresholds": wrong}, arrays, np.array(TWO))
    for name in arrays:
        less = {key: one for key, one in arrays.items() if key != name}
        with pytest.raises((ValueError, KeyError)):
            DecisionRule.from_dict(plain, less, np.array(TWO))
    for name in set(arrays) - {"scores", "weights"}:
        for changed in (arrays[name].astype(np.int64) - 1, arrays[name] * 1.0):
            with pytest.raises(ValueError, match="wrong"):
                DecisionRule.from_dict(plain, arrays | {name: changed}, np.array(TWO))


@pytest.mark.parametrize(
    ("largest", "size"), [(0, 1), (255, 1), (256, 2), (40_000, 4), (2**31 - 1, 4), (2**31, 8)]
)
def test_whole_numbers_in_the_smallest_type(largest, size):
    found = smallest(np.array([0, largest]))
    assert found.dtype.itemsize == size
    np.testing.assert_array_equal(found.astype(np.int64), [0, largest])


def test_other_folds_know_what_their_rows_stand_for():
    scores, codes = two(300, 60)
    rule = DecisionRule.choose(
        grounds_of(scores, codes, stands_for=(10.0, 1.0)), parse_objective("accuracy", TWO)
    )
    folds = np.arange(360) % 3
    said = cross_fit(rule, folds)
    for fold in range(3):
        here = folds == fold
        other = grounds_of(scores[~here], codes[~here], stands_for=(10.0, 1.0))
        right = DecisionRule.choose(other, rule.objective)
        np.testing.assert_array_equal(said.probabilities[here], right.probabilities(scores[here]))
