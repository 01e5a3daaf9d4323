"""The parts of the page that can be wrong by themselves: curves, thresholds, samples, words."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine
from sklearn.metrics import auc, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from setconv.explain import nearest_rows
from setconv.report.measure import (
    Evaluation,
    evaluate,
    explore,
    minority_classes,
    precision_recall,
    reliability,
    roc,
)
from setconv.report.page import safe_json
from setconv.report.rows import compare_judged, draw_map, gather, nearest_other, sample_rows
from setconv.report.words import of_100, readable


def evaluation_of(truth, scores, threshold=0.0):
    """Two classes; the second one is rare."""
    scores = np.asarray(scores, dtype=float)
    predicted = (scores > threshold).astype(int)
    chance = 1 / (1 + np.exp(-scores))
    return Evaluation(
        labels=(0, 1),
        names=("0", "1"),
        codes=np.asarray(truth),
        rows=np.arange(len(truth)),
        truth=np.asarray(truth),
        predicted=predicted,
        scores=np.column_stack([-scores, scores]),
        values=np.column_stack([threshold - scores, scores - threshold]),
        weights=np.ones(len(truth)),
        probabilities=np.column_stack([1 - chance, chance]),
        counts=np.bincount(truth, minlength=2),
        train_counts=None,
        minority=(1,),
    )


def random_evaluation(n, seed=0, threshold=0.3):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.1).astype(int)
    return evaluation_of(truth, rng.normal(size=n) + 2 * truth, threshold)


# ------------------------------------------------------------------------------------ thresholds


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-5, 5)), min_size=1, max_size=40))
def test_every_threshold_counts_the_rows_at_or_above_it(rows):
    truth = np.array([one for one, _ in rows])
    scores = np.array([score / 3 for _, score in rows])
    (explorer,) = explore(evaluation_of(truth, scores))
    assert explorer.cuts == sorted(set(scores.tolist()), reverse=True)
    for place, cut in enumerate(explorer.cuts, 1):
        assert explorer.tp[place] == int(truth[scores >= cut].sum())
        assert explorer.fp[place] == int((1 - truth)[scores >= cut].sum())
    assert (explorer.tp[0], explorer.fp[0]) == (0, 0)
    own_tp = int(((scores > 0) & (truth == 1)).sum())
    own_fp = int(((scores > 0) & (truth == 0)).sum())
    assert (explorer.tp[explorer.own], explorer.fp[explorer.own]) == (own_tp, own_fp)


def test_many_thresholds_are_thinned_and_those_kept_stay_exact():
    evaluation = random_evaluation(30_000)
    (explorer,) = explore(evaluation)
    assert 1000 < len(explorer.cuts) <= 2000
    scores, truth = evaluation.values[:, 1], evaluation.truth
    for place in (1, 17, 500, explorer.own, len(explorer.cuts)):
        flagged = scores >= explorer.cuts[place - 1]
        assert explorer.tp[place] == int((flagged & (truth == 1)).sum())
        assert explorer.fp[place] == int((flagged & (truth == 0)).sum())
    assert explorer.tp[explorer.own] + explorer.fp[explorer.own] == evaluation.predicted.sum()
    assert explorer.tp[-1] == truth.sum()


@pytest.mark.parametrize("c", [0, 1, 2])
def test_ties_are_alarms_of_the_class_that_was_decided_for(c):
    values = np.array([[1, 1, 0], [0, 2, 2], [3, 3, 3], [1, 0, 0], [0, 0, 1], [2, 5, 2]], float)
    truth = np.array([0, 1, 2, 0, 1, 1])
    predicted = values.argmax(axis=1)
    evaluation = replace(
        evaluation_of(truth % 2, np.zeros(6)),
        labels=(0, 1, 2),
        names=("0", "1", "2"),
        truth=truth,
        predicted=predicted,
        values=values,
        probabilities=np.full((6, 3), 1 / 3),
        minority=(c, *({0, 1, 2} - {c})),
    )
    explorer = explore(evaluation)[0]
    own = explorer.tp[explorer.own], explorer.fp[explorer.own]
    alarm = predicted == c
    assert own == ((alarm & (truth == c)).sum(), (alarm & (truth != c)).sum())
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
    curve = roc(is_class, scores, weights)
    assert len(curve.x) <= 302
    assert (curve.x[0], curve.y[0]) == (0, 0)
    assert (curve.x[-1], curve.y[-1]) == (pytest.approx(1), pytest.approx(1))
    expected = roc_auc_score(is_class, scores, sample_weight=weights)
    assert auc(curve.x, curve.y) == pytest.approx(expected, abs=2e-3)
    pr = precision_recall(is_class, scores, weights)
    assert len(pr.x) <= 302
    assert pr.x[-1] == pytest.approx(1)
    assert (np.diff(pr.x) >= 0).all()
    # The last point finds all: its precision is the share of the class, by weight.
    assert pr.y[-1] == pytest.approx(weights[is_class].sum() / weights.sum())
    # Each point is that of a threshold.
    order = np.argsort(-scores, kind="stable")
    found, alarms = np.cumsum((weights * is_class)[order]), np.cumsum(weights[order])
    thresholds = np.stack([found / found[-1], found / alarms], axis=1)
    for point in zip(pr.x, pr.y, strict=True):
        assert np.abs(thresholds - point).max(axis=1).min() < 1e-9


def test_reliability_counts_every_row_once():
    chance = np.array([0.0, 0.05, 0.1, 0.55, 0.95, 1.0])
    is_class = np.array([0, 1, 0, 1, 1, 1], dtype=bool)
    bins = reliability(is_class, chance, np.ones(6))
    assert [(one.low, one.n_rows, one.seen) for one in bins] == [
        (0.0, 2, 0.5),
        (0.1, 1, 0.0),
        (0.5, 1, 1.0),
        (0.9, 2, 1.0),
    ]
    assert bins[0].said == pytest.approx(0.025)
    assert all(one.seen_low <= one.seen <= one.seen_high for one in bins)


def test_the_interval_of_a_group_is_wilsons():
    (one,) = reliability(np.arange(20) < 3, np.full(20, 0.12), np.ones(20))
    assert (one.seen_low, one.seen_high) == pytest.approx(
        proportion_confint(3, 20, method="wilson")
    )


# --------------------------------------------------------------------------------- samples, map


def test_a_sample_keeps_rare_classes_and_its_bound():
    codes = np.repeat([0, 1, 2], [100_000, 300, 4])
    kept = sample_rows(codes, 1500, seed=0)
    counts = np.bincount(codes[kept])
    assert counts[1] == 250
    assert counts[2] == 4
    assert len(kept) <= 1500
    assert (np.diff(kept) > 0).all()
    assert np.array_equal(kept, sample_rows(codes, 1500, seed=0))
    assert sample_rows(codes[:10], 1500, seed=0).tolist() == list(range(10))


def compared(model, X, y, *, out_of_fold=False):
    evaluation = evaluate(model, X, y, predictions=None, out_of_fold=out_of_fold)
    nothing = dict.fromkeys(("texts", "feature_names", "train", "row_names", "train_row_names"))
    sources = gather(model, X, evaluation, **nothing, seed=0)
    return evaluation, compare_judged(model, evaluation, sources, seed=0)


def cosines(model, x):
    """Of one row with the representative of each class, in its head, over the model's members."""
    classes = len(model.classes_)
    heads = 1 if classes == 2 else classes
    sides = np.reshape(model.representatives_, (-1, heads, 2, model.representatives_.shape[-1]))
    own = np.reshape(model.transform(x[None]), (-1, heads, sides.shape[-1]))
    found = []
    for c in range(classes):
        head, side = (0, c) if heads == 1 else (c, 1)
        each = [cosine(row[head], of[head, side]) for row, of in zip(own, sides, strict=True)]
        found.append(1 - np.mean(each))
    return found


@pytest.mark.parametrize("out_of_fold", [False, True])
@pytest.mark.parametrize("kind", ["two", "many"])
def test_similarities_are_cosines_of_the_members_that_may_speak(
    kind, out_of_fold, fitted, binary, fitted_multiclass, multiclass
):
    model, (X, y) = {"two": (fitted, binary), "many": (fitted_multiclass, multiclass)}[kind]
    evaluation, found = compared(model, X, y, out_of_fold=out_of_fold)
    assert np.array_equal(found.rows, evaluation.rows)
    for place in (0, 7, 100):
        who = model._only(evaluation.left_out[:, place]) if out_of_fold else model
        right = cosines(who, X[evaluation.rows[place]])
        np.testing.assert_allclose(found.similarities[place], right, atol=1e-5)


def test_the_map_of_two_classes_has_their_similarities_for_axes(fitted, binary):
    evaluation, found = compared(fitted, *binary)
    laid_out = draw_map(fitted, evaluation, found, seed=0)
    assert laid_out.explained is None
    assert np.array_equal(laid_out.points, found.similarities[:, ::-1])
    assert laid_out.representatives[1, 0] == pytest.approx(1)
    assert laid_out.representatives[0, 1] == pytest.approx(1)
    assert laid_out.representatives[0, 0] == pytest.approx(laid_out.representatives[1, 1])
    centres = np.stack([laid_out.points[laid_out.classes == c].mean(axis=0) for c in (0, 1)])
    distance = np.linalg.norm(laid_out.representatives[:, None] - centres, axis=-1)
    assert distance.argmin(axis=1).tolist() == [0, 1]


def test_the_map_of_many_classes_lays_stars_among_their_rows(fitted_multiclass, multiclass):
    evaluation, found = compared(fitted_multiclass, *multiclass)
    laid_out = draw_map(fitted_multiclass, evaluation, found, seed=0)
    assert laid_out.points.shape == (400, 2)
    assert 0 < laid_out.explained <= 1
    centres = np.stack([laid_out.points[laid_out.classes == c].mean(axis=0) for c in range(4)])
    offset = laid_out.representatives - laid_out.representatives.mean(axis=0)
    apart = centres - centres.mean(axis=0)
    assert ((offset * apart).sum(axis=1) > 0).all()  # in the direction of its rows


def test_the_nearest_row_is_never_barred_and_members_may_differ(fitted, binary):
    X, _ = binary
    barred = np.eye(6, len(X), dtype=bool)
    members = np.ones((len(fitted.representatives_), 6), dtype=bool)
    members[0, :3] = False
    places, similarities = nearest_other(fitted, X[:6], members, X, barred)
    for row in range(6):
        who = fitted._only(members[:, row])
        right = nearest_rows(who, X[row : row + 1], X, k=2)
        assert right.indices[0].tolist() == [row, places[row]]
        assert similarities[row] == pytest.approx(right.similarities[0, 1], abs=1e-5)
    assert nearest_other(fitted, X[:6], None, X, np.ones((6, len(X)), bool))[0].tolist() == [-1] * 6


def test_minority_classes_have_less_than_an_equal_share_the_rarest_first():
    assert minority_classes(np.array([90, 10])) == (1,)
    assert minority_classes(np.array([10, 90])) == (0,)
    assert minority_classes(np.array([70, 20, 5, 5])) == (3, 2, 1)
    assert minority_classes(np.array([50, 50])) == (1,)


# ----------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0"),
        (1, "100"),
        (0.914, "91"),
        (0.9999, "more than 99.9"),
        (0.996, "99.6"),
        (0.004, "0.4"),
        (0.0001, "fewer than 0.1"),
        (float("nan"), "n/a"),
    ],
)
def test_a_share_never_rounds_to_a_false_all_or_none(share, words):
    assert of_100(share) == words


def test_any_value_becomes_text_that_can_be_written():
    shown = readable("a\x00b\ud800c\r\n d" + "x" * 10**6, 20)
    assert shown.encode("utf-8")
    assert shown == "a b c dxxxxxxxxxxxxx …"
    assert readable("", 10) == "(empty)"
    assert readable(True, 10) == "True"


@given(st.text(max_size=50))
def test_json_in_a_script_is_safe_and_says_the_same(text):
    written = str(safe_json({"name": text}))
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {"name": text}
