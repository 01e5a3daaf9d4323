"""Members: trained at once yet apart, each without a fold; what their out-of-fold scores decide."""

import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_models import assert_same_model, make_rows, small

from setconv.metrics.report import report

OBJECTIVES = ["balanced", "f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5"]
DATA = {
    "binary": make_rows(120, minority=0.25, features=5, wrong=0.1),
    "three": make_rows(150, classes=3, minority=0.4, features=5, wrong=0.1, seed=1),
}
BINARY, THREE = DATA.values()
PROBLEMS = pytest.mark.parametrize("problem", DATA)
pytestmark = pytest.mark.filterwarnings("ignore:recall>=", "ignore:precision>=")


def quick(**parameters):
    return small(**{"max_steps": 15} | parameters)


@pytest.fixture(scope="module")
def fits():
    return {problem: quick().fit(*rows) for problem, rows in DATA.items()}


@pytest.fixture
def clf(fits, problem):
    """A model that a test may move: it is brought back in the end."""
    yield fits[problem]
    fits[problem].set_prior(None).set_objective("balanced")


def left_out_by(clf):
    """The rows that each member left out, (n_members, n_rows)."""
    return clf.predict_out_of_fold().left_out


def by_member(clf, rows):
    """Scores as the members give them, (n_rows, members, heads)."""
    raw = clf._model.member_scores(rows)
    return raw.reshape(len(rows), clf.network_.n_members, clf.network_.n_heads)


def aligned(clf, rows):
    """The same on one scale."""
    scores = by_member(clf, rows)
    level, spread = (a.reshape(scores.shape[1:]) for a in (clf._model.levels, clf._model.spreads))
    return (scores - level) / spread


# ------------------------------------------------------------------------------- on one scale


@PROBLEMS
def test_the_score_is_the_mean_of_members_on_one_scale(clf, problem):
    X, _ = DATA[problem]
    scores, raw = aligned(clf, X), by_member(clf, X)
    assert np.ptp(raw.mean(axis=0), axis=0).max() > 1e-3, "there is something to align"
    np.testing.assert_allclose(scores.mean(axis=0), np.tile(raw.mean(axis=(0, 1)), (3, 1)))
    np.testing.assert_allclose(scores.std(axis=0), np.tile(raw.std(axis=0).mean(axis=0), (3, 1)))
    found = clf.predictions(X).scores.reshape(len(X), -1)
    np.testing.assert_allclose(found, scores.mean(axis=1), rtol=1e-12, atol=1e-12)


def test_a_member_of_constant_scores_does_not_spoil_the_others(fits):
    raw = np.random.default_rng(0).standard_normal((20, 3))
    raw[:, 1] = 4.0
    model = fits["binary"]._model.aligned(raw)
    assert np.isfinite(model.average(raw)).all()
    assert (model.spreads > 0).all()


# -------------------------------------------------------------------------------- out of fold


@pytest.mark.parametrize("n_members", [2, 3, 10])
@PROBLEMS
def test_out_of_fold_scores_are_by_members_that_left_the_row_out(problem, n_members):
    X, y = DATA[problem]
    clf = quick(n_members=n_members).fit(X, y)
    said = clf.predict_out_of_fold()
    assert np.array_equal(said.rows, np.arange(len(y)))
    assert np.array_equal(said.truth, y)
    assert said.left_out.any(axis=0).all()
    by_hand = [s[out].mean(axis=0) for s, out in zip(aligned(clf, X), said.left_out.T, strict=True)]
    np.testing.assert_allclose(
        said.scores.reshape(len(y), -1), np.stack(by_hand), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("parameters", [{}, {"post_size": 20}, {"anchor": "kmeans"}], ids=str)
def test_a_member_knows_nothing_of_the_rows_that_it_leaves_out(parameters):
    X, y = BINARY
    first = quick(scaling=None, **parameters).fit(X, y)
    left_out = left_out_by(first)
    for member in range(3):
        moved = X.copy()
        moved[left_out[member]] += 3.0
        second = quick(scaling=None, **parameters).fit(moved, y)
        assert np.array_equal(left_out, left_out_by(second))
        before, after = (by_member(clf, X)[:, :, 0] for clf in (first, second))
        assert np.array_equal(before[:, member], after[:, member])
        others = [other for other in range(3) if other != member]
        assert (np.abs(before - after)[:, others].max(axis=0) > 1e-3).all()


def test_representatives_and_anchors_are_of_a_members_own_rows(fits):
    X, y = BINARY
    weights = fits["binary"]._model.sums.weight.numpy()
    for member, out in enumerate(left_out_by(fits["binary"])):
        assert weights[member].tolist() == np.bincount(y[~out]).tolist()
        own = X[~out & (y == 1)]
        np.testing.assert_allclose(fits["binary"].anchor_[member], own.mean(axis=0))
    subsets = quick(post_size=20).fit(X, y)._model.sums.weight.numpy()
    assert subsets.sum(axis=1).tolist() == [20] * 3
    assert (subsets >= 1).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
@PROBLEMS
def test_the_report_is_on_decisions_that_every_fold_has_from_the_others(clf, objective):
    said = clf.set_objective(objective).predict_out_of_fold()
    expected = report(
        said.truth,
        said.labels,
        said.scores,
        probabilities=said.probabilities,
        classes=clf.classes_,
        confidence_intervals=True,
    )
    assert replace(clf.oof_report_, notes=()) == replace(clf.report_, notes=()) == expected
    (note,) = clf.report_.notes
    judges, members = re.match(r"Each row is judged by (\d+) of (\d+) members", note).groups()
    assert said.left_out.shape[0] == int(members)
    assert (said.left_out.sum(axis=0) == int(judges)).all()
    assert clf.report_source_ == "out_of_fold"
    values = said.decision_values
    decided = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
    assert np.array_equal(said.labels, clf.classes_[decided])
    thresholds = said.scores - said.decision_values
    of_folds = [thresholds[out][0] for out in said.left_out]
    for out, one in zip(said.left_out, of_folds, strict=True):
        np.testing.assert_allclose(thresholds[out], np.broadcast_to(one, thresholds[out].shape))
    assert not all(np.allclose(one, clf.threshold_, rtol=1e-12) for one in of_folds)


# --------------------------------------------------------------------------- moving the decision


@PROBLEMS
def test_moving_there_and_back_changes_nothing_and_a_fit_would_decide_the_same(clf, problem):
    X, y = DATA[problem]
    before = clf.threshold_, clf.predict_proba(X), clf.oof_report_
    clf.set_objective("f1").set_prior(np.full(len(clf.classes_), 1 / len(clf.classes_)))
    assert not np.array_equal(clf.threshold_, before[0])
    clf.set_prior(None)
    assert_same_model(clf, quick(objective="f1").fit(X, y), X)
    assert clf.objective == clf.objective_ == "f1"
    clf.set_objective("balanced")
    assert np.array_equal(clf.threshold_, before[0])
    assert np.array_equal(clf.predict_proba(X), before[1])
    assert clf.oof_report_ == before[2]


@PROBLEMS
def test_a_larger_prior_never_lowers_the_classs_probability(clf, problem):
    X, _ = DATA[problem]
    n_classes = len(clf.classes_)
    clf.set_objective(1 - np.eye(n_classes))  # the cheapest to move
    for number in range(n_classes):
        previous = np.zeros(len(X))
        for share in (0.001, 0.1, 0.6, 0.999):
            prior = np.full(n_classes, (1 - share) / (n_classes - 1))
            prior[number] = share
            found = clf.set_prior(prior).predict_proba(X)
            np.testing.assert_allclose(found.sum(axis=1), 1)
            assert (found[:, number] >= previous).all()
            previous = found[:, number]


@pytest.mark.parametrize("problem", ["binary"])
def test_a_prior_moves_what_depends_on_it_and_nothing_else(clf):
    X, _ = BINARY
    scores = clf.predictions(X).scores
    assert clf.set_prior([0.99, 0.01]).threshold_ == clf.set_prior(None).threshold_
    clf.set_objective("accuracy")
    assert clf.set_prior([0.99, 0.01]).threshold_ > clf.set_prior([0.2, 0.8]).threshold_
    assert np.array_equal(clf.predictions(X).scores, scores)
    expected = clf.set_prior([0.9, 0.1]).predict_proba(X)
    for same in (0.1, {0: 0.9, 1: 0.1}):  # one number is of the rarer class
        assert np.array_equal(clf.set_prior(None).set_prior(same).predict_proba(X), expected)


# ------------------------------------------------------------------------- all sorts of members


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_several_classes_with_members_and_weights(heads):
    X, y = THREE
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y))
    clf = quick(heads=heads, n_members=4, max_steps=60, lr=0.01)
    clf.fit(X, y, sample_weight=weights)
    assert clf.representatives_.shape == (4, 3, 2, 4)
    assert clf.anchor_.shape == (4, 3, 5)
    assert clf.threshold_.shape == (3,)
    assert clf.transform(X).shape == (len(X), 4 * 3 * 4)
    assert len(clf.get_feature_names_out()) == 4 * 3 * 4
    within = weights / (np.bincount(y, weights) / np.bincount(y))[y]
    np.testing.assert_allclose(clf.predict_out_of_fold().weights, within)
    assert clf.oof_report_.macro_auc > 0.7


@pytest.mark.parametrize("n_members", [2, 5])
def test_groups_are_kept_together(n_members):
    X, y = BINARY
    groups = np.array([f"g{number}" for number in np.arange(len(y)) // 6])
    left_out = left_out_by(quick(n_members=n_members, max_steps=1).fit(X, y, groups=groups))
    for group in np.unique(groups):
        assert len(np.unique(left_out[:, groups == group], axis=1).T) == 1
    assert (left_out.sum(axis=0) == 1).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_early_stopping_with_members_holds_rows_out_of_all_of_them(grouped):
    X, y = BINARY
    groups = np.arange(len(y)) // 2 if grouped else None
    clf = quick(early_stopping=True, patience=1, max_steps=200, lr=0.03).fit(X, y, groups=groups)
    assert clf.n_steps_ < 200
    assert clf.report_source_ == "out_of_fold"
    assert int(clf.oof_report_.confusion.sum()) == clf.class_counts_.sum() == 108
    before = clf.threshold_
    assert clf.set_objective("recall>=0.95").threshold_ < before


def test_one_member_with_validation_rows_has_its_rule_from_them():
    extra = make_rows(60, minority=0.25, features=5, seed=5)
    clf = quick(n_members=1, objective="f1").fit(*BINARY, X_val=extra[0], y_val=extra[1])
    assert np.array_equal(
        clf._decision.rule.evidence.scores[:, 0], clf.predictions(extra[0]).scores
    )
    assert clf.report_source_ == "validation"


def test_new_rows_join_the_representatives_of_all_members():
    X, y = BINARY
    clf = quick().fit(X[:100], y[:100])
    before, threshold = clf._model.sums.weight.numpy(), clf.threshold_
    added = clf.partial_fit(X[100:], y[100:])._model.sums.weight.numpy() - before
    assert np.array_equal(added, np.tile(np.bincount(y[100:]), (3, 1)))
    assert clf.threshold_ == threshold


# -------------------------------------------------------------------------------- forward in time


@pytest.mark.parametrize(
    "parameters", [{"linear_share": 0.3}, {"post_size": 20}, {"anchor": "kmeans"}], ids=str
)
def test_a_judge_knows_nothing_of_later_rows(parameters):
    X, y = BINARY
    when = np.random.default_rng(0).permutation(len(y))
    named = {"n_members": 5, "scaling": None} | parameters
    first = quick(**named).fit(X, y, time=when)
    judged = first.predict_out_of_fold()
    speakers = [2, 3, 4]
    assert np.array_equal(np.flatnonzero(~judged.left_out.any(axis=1)), speakers)
    for judge in range(2):
        cut = when[judged.rows[judged.left_out[judge]]].min()
        moved = np.where(when[:, None] >= cut, X + 3.0, X)
        second = quick(**named).fit(moved, y, time=when)
        before, after = (by_member(clf, X)[:, :, 0] for clf in (first, second))
        # To the bit, but for the sums of the linear part, which are those of all rows less some.
        np.testing.assert_allclose(
            before[:, judge], after[:, judge], rtol=0, atol=1e-5 if "linear_share" in named else 0
        )
        assert (np.abs(before - after)[:, speakers].max(axis=0) > 1e-3).all()


@PROBLEMS
def test_those_that_learned_from_all_rows_speak_and_the_judges_judge(problem):
    X, y = DATA[problem]
    clf = quick(n_members=5).fit(X, y, time=np.arange(len(y)))
    scores = aligned(clf, X)
    found = clf.predictions(X).scores.reshape(len(X), -1)
    np.testing.assert_allclose(found, scores[:, 2:].mean(axis=1), rtol=1e-12, atol=1e-12)
    said = clf.predict_out_of_fold()
    by_hand = np.stack([scores[row, said.left_out[:, n]][0] for n, row in enumerate(said.rows)])
    np.testing.assert_allclose(said.scores.reshape(len(said), -1), by_hand, rtol=1e-12, atol=1e-12)
    assert len(clf.representatives_) == 3
    assert clf.transform(X).shape[1] == len(clf.get_feature_names_out())


DAY = datetime(2024, 1, 31)
TIMES = {
    "floats": lambda hours: hours / 3,
    "numbers as strings": lambda hours: [str(one) for one in hours],
    "datetime64": lambda hours: np.datetime64(DAY) + hours.astype("timedelta64[h]"),
    "datetimes": lambda hours: [DAY + timedelta(hours=one) for one in hours.tolist()],
    "dates": lambda hours: [date(2024, 1, 1) + timedelta(days=one) for one in hours.tolist()],
    "pandas": lambda hours: pd.Series(DAY + pd.to_timedelta(hours, "h")),
    "with a zone": lambda hours: pd.Series(DAY + pd.to_timedelta(hours, "h")).dt.tz_localize("CET"),
    "polars": lambda hours: pl.Series([DAY + timedelta(hours=one) for one in hours.tolist()]),
    "ISO": lambda hours: [(DAY + timedelta(hours=one)).isoformat() for one in hours.tolist()],
    "ISO, UTC": lambda hours: [f"{DAY + timedelta(hours=one)}Z" for one in hours.tolist()],
    # Noon in Paris is one hour before noon in London: texts are not compared as texts.
    "ISO, zones": lambda hours: [
        (DAY.replace(tzinfo=timezone(timedelta(hours=one % 5))) + timedelta(hours=one + one % 5))
        .isoformat()
        for one in hours.tolist()
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_any_kind_are_the_same_times(kind):
    X, y = BINARY
    hours = np.random.default_rng(0).permutation(len(y))
    fit = quick(max_steps=2).fit
    assert_same_model(
        fit(X, y, time=hours), quick(max_steps=2).fit(X, y, time=TIMES[kind](hours)), X
    )


def test_rows_of_weight_zero_have_no_time():
    X, y = BINARY
    weights, when = (np.arange(len(y)) % 4 > 0).astype(float), np.arange(len(y))[::-1]
    some = weights > 0
    one = quick(max_steps=2).fit(X, y, weights, time=when)
    assert_same_model(one, quick(max_steps=2).fit(X[some], y[some], time=when[some]), X)
    assert some[one.predict_out_of_fold().rows].all()


def test_two_moments_are_enough_and_the_later_one_has_two_judges():
    X, y = BINARY
    found = quick().fit(X, y, time=np.arange(len(y)) >= 60).predict_out_of_fold()
    assert np.array_equal(np.sort(found.rows), np.arange(60, 120))
    assert found.left_out.sum(axis=1).tolist() == [30, 30, 0]
