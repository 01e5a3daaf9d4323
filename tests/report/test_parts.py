"""The parts of the page that can be wrong by themselves: curves, thresholds, samples, words."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from setconv.report import curves, wording
from setconv.report.evaluation import Evaluation, minority_classes
from setconv.report.explorer import explore
from setconv.report.learned_map import draw_map
from setconv.report.rendering import safe_json
from setconv.report.sampling import sample_rows


def evaluation_of(truth, scores, threshold=0.0):
    """Two classes; the second one is rare."""
    scores = np.asarray(scores, dtype=float)
    predicted = (scores > threshold).astype(int)
    chance = 1 / (1 + np.exp(-scores))
    return Evaluation(
        labels=(0, 1),
        names=("0", "1"),
        truth=np.asarray(truth),
        predicted=predicted,
        scores=np.column_stack([-scores, scores]),
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


@settings(max_examples=50, deadline=None)
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
    scores, truth = evaluation.scores[:, 1], evaluation.truth
    for place in (1, 17, 500, explorer.own, len(explorer.cuts)):
        flagged = scores >= explorer.cuts[place - 1]
        assert explorer.tp[place] == int((flagged & (truth == 1)).sum())
        assert explorer.fp[place] == int((flagged & (truth == 0)).sum())
    assert explorer.tp[explorer.own] + explorer.fp[explorer.own] == evaluation.predicted.sum()
    assert explorer.tp[-1] == truth.sum()


# ---------------------------------------------------------------------------------------- curves


def test_thinned_curves_keep_their_area_and_ends():
    evaluation = random_evaluation(20_000)
    is_class, scores = evaluation.truth == 1, evaluation.scores[:, 1]
    curve = curves.roc(is_class, scores)
    assert len(curve.x) <= 302
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0, 0, 1, 1)
    assert auc(curve.x, curve.y) == pytest.approx(roc_auc_score(is_class, scores), abs=2e-3)
    pr = curves.precision_recall(is_class, scores)
    assert len(pr.x) <= 302
    assert pr.x[-1] == 1
    assert (np.diff(pr.x) >= 0).all()


def test_reliability_counts_every_row_once():
    chance = np.array([0.0, 0.05, 0.1, 0.55, 0.95, 1.0])
    is_class = np.array([0, 1, 0, 1, 1, 1], dtype=bool)
    bins = curves.reliability(is_class, chance)
    assert [(one.low, one.n_rows, one.seen) for one in bins] == [
        (0.0, 2, 0.5),
        (0.1, 1, 0.0),
        (0.5, 1, 1.0),
        (0.9, 2, 1.0),
    ]
    assert bins[0].said == pytest.approx(0.025)
    assert all(one.seen_low <= one.seen <= one.seen_high for one in bins)


def test_the_interval_of_a_group_is_wilsons():
    (one,) = curves.reliability(np.arange(20) < 3, np.full(20, 0.12))
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


def test_the_map_lays_representatives_among_the_rows_of_their_class(fitted, binary):
    X, y = binary
    evaluation = evaluation_of(y, fitted.predictions(X).scores)
    laid_out = draw_map(fitted, X, evaluation, seed=0)
    assert laid_out.points.shape == (len(X), 2)
    assert 0 < laid_out.explained <= 1
    centres = np.stack([laid_out.points[laid_out.classes == c].mean(axis=0) for c in (0, 1)])
    distance = np.linalg.norm(laid_out.representatives[:, None] - centres, axis=-1)
    assert distance.argmin(axis=1).tolist() == [0, 1]


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
    assert wording.of_100(share) == words


def test_any_value_becomes_text_that_can_be_written():
    shown = wording.readable("a\x00b\ud800c\r\n d" + "x" * 10**6, 20)
    assert shown.encode("utf-8")
    assert shown == "a b c dxxxxxxxxxxxxx …"
    assert wording.readable("", 10) == "(empty)"
    assert wording.readable(True, 10) == "True"


@settings(deadline=None)
@given(st.text(max_size=50))
def test_json_in_a_script_is_safe_and_says_the_same(text):
    written = str(safe_json({"name": text}))
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {"name": text}
