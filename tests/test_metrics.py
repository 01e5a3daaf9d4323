"""The metrics against hand-worked numbers, plain loops and scikit-learn."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from setconv import metrics
from setconv.errors import DataError, LabelError, MissingDependencyError
from setconv.metrics import ClassMetrics, Report, minimum_of_five, report, scorers

NAN = math.nan


@pytest.fixture(autouse=True)
def _no_warning_leaks():
    """Undefined figures are nan without a word from numpy or scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


# ---------------------------------------------------------------------------- worked by hand

# Ten rows, decided at 0.55. yes: TP 2 (.9, .6), FN 1 (.3); no: FP 2 (.8, .7), TN 5.
BINARY_TRUTH = ["yes"] * 3 + ["no"] * 7
BINARY_CHANCE = [0.9, 0.6, 0.3, 0.8, 0.7, 0.5, 0.4, 0.2, 0.1, 0.05]
BINARY_GUESS = ["yes" if p > 0.55 else "no" for p in BINARY_CHANCE]

BINARY_YES = {
    "n_rows": 3,
    "specificity": 5 / 7,
    "sensitivity": 2 / 3,
    "precision": 2 / 4,
    "f1": 4 / 7,  # 2 (1/2)(2/3) / (1/2 + 2/3) = (2/3) / (7/6)
    "g_mean": math.sqrt(10 / 21),  # (5/7)(2/3)
    "auc": 15 / 21,  # of 7 no each: .9 beats 7, .6 beats 5, .3 beats 3
    "average_precision": 9 / 14,  # precision at the yes: 1/1, 2/4, 3/7; mean (27/14)/3
    "balanced_accuracy": 29 / 42,  # (15/21 + 14/21)/2
    "mcc": 8 / math.sqrt(504),  # (2 5 - 2 1) / sqrt(4 3 7 6)
    "brier": 0.22525,  # yes .01+.16+.49, no .64+.49+.25+.16+.04+.01+.0025; 2.2525/10
}


def binary(scores=None, **given):
    return report(BINARY_TRUTH, BINARY_GUESS, scores, **given)


def figures_of(of):
    """All of a class but its intervals."""
    found = dataclasses.asdict(of)
    assert found.pop("intervals") == {}
    return found


def test_binary_by_hand():
    r = binary(probabilities=BINARY_CHANCE)
    assert (r.classes, r.positive) == (("no", "yes"), "yes")  # 3 rows against 7
    assert figures_of(r["yes"]) == close(BINARY_YES)
    assert (r.confusion.tolist(), r.confusion.dtype) == ([[5, 2], [1, 2]], np.int64)
    # The paper's order; F1 is of the class.
    five = {"spec": 5 / 7, "sens": 2 / 3, "f1": 4 / 7, "g_mean": math.sqrt(10 / 21), "auc": 15 / 21}
    assert r.five() == close(five)
    assert list(r.five()) == list(five)
    assert minimum_of_five(r) == close(2 / 3)  # the F1 of yes is not in it, but macro F1, .670
    assert minimum_of_five(binary([-p for p in BINARY_CHANCE])) == close(6 / 21)  # AUC
    assert math.isnan(minimum_of_five(binary()))
    frame = r.to_frame()
    assert (frame.index.tolist(), frame.index.name) == (["no", "yes"], "class")
    assert frame.loc["yes"].to_dict() == close(BINARY_YES)


def test_scores_win_over_probabilities_for_ranking_only():
    r = binary([-p for p in BINARY_CHANCE], probabilities=BINARY_CHANCE)
    assert (r["yes"].auc, r["yes"].brier) == (close(6 / 21), close(0.22525))
    assert math.isnan(binary(BINARY_CHANCE).brier)


def test_one_column_speaks_of_the_second_class():
    two = [[1 - p, p] for p in BINARY_CHANCE]
    assert binary(probabilities=two) == binary(probabilities=BINARY_CHANCE)
    other_way = binary(BINARY_CHANCE, classes=["yes", "no"])
    assert other_way["yes"].auc == close(6 / 21)
    assert other_way.confusion.tolist() == [[2, 1], [2, 5]]


# ----------------------------------------------------------------- plain loops and scikit-learn


def ratio(above, below):
    return above / below if below else NAN


def loop_class(truth, guess, weight, c):
    """Table 3 and the formulas of the paper, a row at a time."""
    cells = {(t, g): 0.0 for t in (True, False) for g in (True, False)}
    for t, g, w in zip(truth, guess, weight, strict=True):
        cells[t == c, g == c] += w
    tp, fn, fp, tn = cells.values()
    spec, sens = ratio(tn, tn + fp), ratio(tp, tp + fn)
    precision = ratio(tp, tp + fp)
    if math.isnan(precision) and tp + fn:
        precision = 0.0
    both = precision + sens
    sides = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    defined = (tp + fn) * (tn + fp)
    return {
        "specificity": spec,
        "sensitivity": sens,
        "precision": precision,
        "f1": 0.0 if both == 0 else 2 * precision * sens / both,
        "g_mean": math.sqrt(spec * sens),
        "balanced_accuracy": (spec + sens) / 2,
        "mcc": (tp * tn - fp * fn) / math.sqrt(sides) if sides else (0.0 if defined else NAN),
    }


@st.composite
def predictions(draw):
    c = draw(st.integers(2, 4))
    n = draw(st.integers(1, 25))
    label = st.integers(0, c - 1)
    truth = draw(st.lists(label, min_size=n, max_size=n))
    guess = draw(st.lists(label, min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([0, 0.5, 1, 3]), min_size=n, max_size=n))
    assume(sum(weight))
    parts = st.lists(st.integers(0, 6), min_size=c, max_size=c).map(lambda p: [v + 1 for v in p])
    chances = np.array(draw(st.lists(parts, min_size=n, max_size=n)), dtype=float)
    return c, truth, guess, weight, chances / chances.sum(axis=1, keepdims=True)


@given(predictions(), st.booleans())
def test_report_against_plain_loops_and_scikit_learn(case, weighted):
    c, truth, guess, weight, chances = case
    weight = weight if weighted else [1] * len(truth)
    given = {"sample_weight": weight} if weighted else {}
    r = report(truth, guess, probabilities=chances, classes=range(c), **given)
    worked, w = [], np.array(weight)
    for k, column in enumerate(chances.T):
        own = np.equal(truth, k)
        both = w[own].any() and w[~own].any()
        given = {"y_true": own, "y_score": column, "sample_weight": w}
        ranked = {
            "auc": sk.roc_auc_score(**given) if both else NAN,
            "average_precision": sk.average_precision_score(**given) if both else NAN,
            "brier": np.average((column - own) ** 2, weights=w),
            "n_rows": truth.count(k),
        }
        worked.append(loop_class(truth, guess, weight, k) | ranked)
        assert figures_of(r[k]) == close(worked[k])
    of = {name: [one[name] for one in worked] for name in worked[0]}
    known = {"y_true": truth, "y_pred": guess, "sample_weight": w}
    assert r.confusion == close(sk.confusion_matrix(**known, labels=range(c)))
    assert r.accuracy == close(sk.accuracy_score(**known))
    if len({t for t, heavy in zip(truth, weight, strict=True) if heavy}) > 1:
        assert r.mcc == close(sk.matthews_corrcoef(**known))
    assert r.balanced_accuracy == close(sum(of["sensitivity"]) / c)
    assert r.g_mean == close(math.prod(of["sensitivity"]) ** (1 / c))
    assert r.macro_f1 == close(sum(of["f1"]) / c)
    assert r.macro_auc == close(sum(of["auc"]) / c)
    assert r.brier == close(sum(of["brier"]) / (2 if c == 2 else 1))
    of_interest = [r.positive] if c == 2 else range(c)
    names = ("g_mean", "auc", "specificity", "sensitivity")
    five = [r.macro_f1, *(np.mean([of[name][k] for k in of_interest]) for name in names)]
    assert minimum_of_five(r) == close(np.min(five))


@pytest.mark.parametrize("name", sorted(set(BINARY_YES) - {"n_rows", "precision"}))
def test_small_functions_give_the_figures_of_the_report(name):
    rng = np.random.default_rng(0)
    truth, guess = (rng.choice(3, size=400, p=[0.1, 0.3, 0.6]) for _ in range(2))
    chances, w = rng.dirichlet(np.ones(3), size=400), rng.uniform(0.1, 2, size=400)
    r = report(truth, guess, probabilities=chances, sample_weight=w)
    ranked = name in ("auc", "average_precision", "brier")
    given = {"classes": range(3)} if ranked else {}
    given |= {"sample_weight": w}
    function = partial(getattr(metrics, name), truth, chances if ranked else guess, **given)
    assert function() == getattr(r if hasattr(r, name) else r[0], name)
    assert function(positive=2) == getattr(r[2], name)
    assert metrics.macro_f1(truth, guess, sample_weight=w) == r.macro_f1


# -------------------------------------------------------------------------------- degenerate


def undefined(of):
    """The names of the figures that are nan."""
    figures = vars(of).items()
    return {name for name, value in figures if isinstance(value, float) and math.isnan(value)}


@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_a_single_class_in_the_truth(classes):
    scores = [0.1, 0.2, 0.3]
    r = report([0] * 3, [0] * 3, scores, probabilities=scores, classes=classes)
    assert r.positive == 0
    assert (r.accuracy, r[0].sensitivity) == (1.0, 1.0)
    # Nobody said which class the probabilities are of, if there is but one.
    brier = {"brier"} if classes is None else set()
    names = {"g_mean", "balanced_accuracy", "mcc"}
    assert undefined(r[0]) == names | {"specificity", "auc", "average_precision"} | brier
    assert undefined(r) == names | {"macro_f1", "macro_auc"} | brier
    assert r.brier == close(NAN if classes is None else 0.14 / 3)  # (.01 + .04 + .09)/3
    assert math.isnan(minimum_of_five(r))


def test_huge_weights_do_not_hide_a_small_class():
    r = report([0, 0, 1, 1], [0, 1, 1, 0], sample_weight=[1e20, 1e20, 3, 1])
    assert r[0].specificity == close(3 / 4)
    assert r[1].sensitivity == close(3 / 4)
    # TP 3, FN 1, FP 1e20, TN 1e20: (3e20 - 1e20) / sqrt(1e20 4 2e20 1e20)
    assert r.mcc == pytest.approx(2e20 / math.sqrt(8e60), rel=1e-9, abs=0)
    assert r[1].mcc == pytest.approx(r.mcc, rel=1e-9, abs=0)


def test_many_poor_recalls_do_not_underflow():
    truth = np.repeat(np.arange(400), 20)
    guess = np.where(np.arange(8000) % 20 == 0, truth, (truth + 1) % 400)  # every recall is 1/20
    assert metrics.g_mean(truth, guess) == pytest.approx(1 / 20)  # .05**400 is 0 in floats


@pytest.mark.parametrize(
    ("truth", "given", "expected"),
    [
        ([0, 0, 1], {}, 1),
        ([1, 1, 0], {}, 0),
        ([0, 1, 0, 1], {}, 1),  # of equals the last
        ([0, 1, 0, 1], {"classes": [1, 0]}, 0),
        ([0, 0, 1], {"classes": [0, 1, 2]}, 1),  # the rarest that has rows
        ([0, 0, 1], {"positive": 0}, 0),
        # Weights that balance the classes do not change which one is rare.
        ([1, 1, 0], {"sample_weight": [0.5, 0.5, 2]}, 0),
    ],
)
def test_positive_default(truth, given, expected):
    assert report(truth, truth, **given).positive == expected


# ------------------------------------------------------------------------------ kinds of label


def objects(values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("names", "make"),
    [
        *(((False, True), np.array), ((-1, 1), list), ((0.0, 1.0), np.array), ((3, 7), pd.Series)),
        *((("no", "yes"), make) for make in (list, np.array, objects, pd.Series, pd.Categorical)),
    ],
)
def test_every_kind_of_label_gives_the_same_figures(names, make):
    swap = dict(zip(("no", "yes"), names, strict=True))
    truth, guess = (make([swap[label] for label in one]) for one in (BINARY_TRUTH, BINARY_GUESS))
    r = report(truth, guess, probabilities=BINARY_CHANCE)
    assert (r.classes, r.positive) == (names, names[1])
    assert [type(c) for c in r.classes] == [type(name) for name in names]
    assert figures_of(r[names[1]]) == close(BINARY_YES)
    assert Report.from_dict(json.loads(json.dumps(r.to_dict()))) == r
    assert len(report([True, False, True], np.array([1.0, 0.0, 0.0])).classes) == 2


# ----------------------------------------------------------------------------------- bad input

OK = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("truth", "guess", "parameter", "row"),
    [
        ([], [], "y_pred", None),
        (OK, [0, 1, 0], "y_pred", None),
        (OK, [[0], [1], [0], [1]], "y_pred", None),
        ("yes", "yes", "y_true", None),
        (OK, [0, 1, None, 1], "y_pred", 2),
        (["a", "b", NAN], ["a", "b", "b"], "y_true", 2),
        (OK, [0.2, 0.7, 0.1, 0.6], "y_pred", 0),
        (OK, ["0", "1", "0", "1"], "classes", None),
        (OK, None, "y_pred", None),
        (None, OK, "y_true", None),
        (OK, [[0], [1, 2], 0, 1], "y_pred", 0),
        (OK, {}, "y_pred", None),
    ],
)
def test_bad_labels(truth, guess, parameter, row):
    with pytest.raises(DataError) as caught:
        report(truth, guess)
    assert (caught.value.parameter, caught.value.row) == (parameter, row)


@pytest.mark.parametrize(
    ("name", "value", "row"),
    [
        *(("scores", value, None) for value in ([1, 2, 3], 1.0, np.zeros((4, 3)), ["a"] * 4)),
        ("scores", [[0, 0], [0, math.inf], [0, 0], [NAN, 0]], 1),
        ("probabilities", [0.1, 0.2, 0.3, 1.4], 3),
        ("probabilities", [[0.5, 0.5], [0.2, 0.9]] * 2, 1),
        *(("sample_weight", value, None) for value in ([1] * 3, [1, 1, 1, -1], [0] * 4)),
        ("sample_weight", [1, 1, 1, NAN], 3),
        *(("classes", value, None) for value in ([0, 1, 1], [], [0, 1, "1"])),
        *(("positive", value, None) for value in (2, "1", [1], np.ones(2), pd.NA)),
        ("scores", [1, 2, 10**400, 3], None),
        ("scores", [[1], [1, 2], 3, 4], None),
        ("probabilities", np.zeros(4, complex), None),
        ("sample_weight", [1, 10**400, 1, 1], None),
        ("sample_weight", np.ones(4).astype("M8[s]"), None),
        ("sample_weight", [1, 1, 1e300, 1], 2),
        ("sample_weight", [1, 5e-324, 1, 1], 1),
    ],
)
def test_bad_options(name, value, row):
    with pytest.raises(DataError) as caught:
        report(OK, OK, **{name: value})
    assert (caught.value.parameter, caught.value.row) == (name, row)


@pytest.mark.parametrize(
    "name", sorted(set(metrics.__all__) - {"HEADINGS", "ClassMetrics", "Report"})
)
def test_nothing_is_no_argument(name):
    figure = getattr(metrics, name)
    if name == "minimum_of_five":
        calls = [lambda: figure(None)]
    elif name == "scorers":
        model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
        calls = [lambda: figure(model, [[0.0]], None), lambda: figure(model, [[0.0]], [0, 1])]
    else:
        calls = [lambda: figure(None, OK), lambda: figure(OK, None), lambda: figure(OK, OK[1:])]
    for call in calls:
        with pytest.raises(DataError):
            call()


def test_what_does_not_fit_the_classes():
    with pytest.raises(DataError):
        report(OK, OK, OK, classes=[0, 1, 2])  # one column says nothing of three
    with pytest.raises(LabelError):
        report(["f", "no"], ["no", "no"], classes=["fire", "no"])


# ----------------------------------------------------------------------------- the object


@pytest.fixture
def with_nan():
    return report([0, 0, 1], [0, 1, 1], [0.1, 0.2, 0.3], classes=[0, 1])


def test_to_dict_is_json_and_comes_back(with_nan):
    noted = dataclasses.replace(
        with_nan, prior={0: 0.9, 1: 0.1}, unjudged={1: "why"}, notes=("so",)
    )
    for r in (with_nan, noted, report([0, 0, 1], [0, 1, 1], sample_weight=[1, 1, 2])):
        back = Report.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
        assert back == r == pickle.loads(pickle.dumps(r))
        assert (str(back), back.confusion.dtype) == (str(r), r.confusion.dtype)
    assert with_nan != dataclasses.replace(with_nan, brier=0.5)
    assert with_nan != "a report"


def test_table_is_aligned_and_complete(with_nan):
    _, heading, zero, one, *_ = str(with_nan).splitlines()
    figures = [each.name for each in dataclasses.fields(ClassMetrics)][:-1]
    headings = (metrics.HEADINGS[name] for name in figures)
    assert heading.split() == " ".join(["class", *headings]).split()
    assert len(heading) == len(zero) == len(one)
    # truth 0 0 1, guess 0 1 1: class 1 has TP 1, FP 1, TN 1; no probabilities, so no Brier
    assert one.split()[:7] == ["*", "1", "1", "0.500", "1.000", "0.500", "0.667"]
    assert one.endswith(" -")


def test_report_is_frozen(with_nan, monkeypatch):
    with pytest.raises(dataclasses.FrozenInstanceError):
        with_nan.accuracy = 1.0
    with pytest.raises(ValueError, match="read-only"):
        with_nan.confusion[0, 0] = 9
    with pytest.raises(LabelError):
        with_nan["1"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError):
        with_nan.to_frame()


# ------------------------------------------------------------------------------------- scorers

# In both, the first class is the rare one, so that "rarest" is not just classes_[1].
TWO, THREE = ("fire", "no"), ("crash", "fire", "no")


def rare_rows(names):
    weights = [0.1, 0.9] if len(names) == 2 else [0.15, 0.3, 0.55]
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=len(names), weights=weights, random_state=0
    )
    return X, np.array(names)[y]


class OnlyLabels(LogisticRegression):
    """Predicts and no more."""

    decision_function = predict_proba = property()

    def predict(self, X):
        return self.classes_[np.argmax(np.asarray(X) @ self.coef_.T, axis=1) % len(self.classes_)]


def expected_scores(model, X, y):
    """What the scorers must give, by the report of all rows (every class present)."""
    ranking = model.decision_function(X) if hasattr(model, "decision_function") else None
    chances = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    r = report(y, model.predict(X), ranking, probabilities=chances, classes=model.classes_)
    of = [r[r.positive]] if len(r.classes) == 2 else r.per_class.values()
    names = ("f1", "sensitivity", "specificity", "auc", "average_precision")
    return {
        **{name: getattr(r, name) for name in ("g_mean", "macro_f1", "balanced_accuracy", "mcc")},
        **{name: np.mean([getattr(one, name) for one in of]) for name in names},
        "neg_brier": -r.brier,
    }


@pytest.mark.parametrize("names", [TWO, THREE, (False, True)])
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), GaussianNB(), OnlyLabels()])
def test_scorers_give_the_figures_of_the_report(names, model):
    X, y = rare_rows(names)
    model = clone(model).fit(X, y)
    got = scorers(model, X, y)
    assert got == close(expected_scores(model, X, y))
    assert math.isnan(got["neg_brier"]) == (not hasattr(model, "predict_proba"))
    assert math.isnan(got["auc"]) == isinstance(model, OnlyLabels)
    if len(names) == 2:
        assert got["f1"] == close(sk.f1_score(y == names[0], model.predict(X) == names[0]))


def test_grid_search_in_processes():
    X, y = rare_rows(TWO)
    given = {"scoring": scorers, "refit": "g_mean", "cv": 3}
    search, here = (
        GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, n_jobs=n_jobs, **given).fit(X, y)
        for n_jobs in (2, None)
    )
    for name in scorers(here, X, y):
        of = f"mean_test_{name}"
        assert search.cv_results_[of] == close(here.cv_results_[of])
    assert search.best_params_ == {"C": 1.0}
    assert search.score(X, y) == close(metrics.g_mean(y, search.predict(X)))


def test_scorers_of_a_named_class():
    X, y = rare_rows(THREE)
    model = LogisticRegression().fit(X, y)
    r = report(y, model.predict(X), model.decision_function(X))
    named = scorers(model, X, y, positive="fire")
    for name in ("f1", "sensitivity", "specificity", "auc", "average_precision"):
        assert named[name] == close(getattr(r["fire"], name))
    assert named["g_mean"] == close(r.g_mean)
    with pytest.raises(LabelError):
        scorers(model, X, y, positive="fyre")


def test_a_fold_that_lacks_a_class_is_scored_on_the_others():
    X, y = rare_rows(THREE)
    model = LogisticRegression().fit(X, y)
    kept = y != "fire"
    X, y = X[kept], y[kept]
    guess, ranking = model.predict(X), model.decision_function(X)
    assert "fire" in guess  # wrong answers that still have to count against the others
    got = scorers(model, X, y)
    recalls = [(guess[y == c] == c).mean() for c in ("crash", "no")]
    assert got["g_mean"] == close(math.sqrt(math.prod(recalls)))
    assert got["balanced_accuracy"] == close(np.mean(recalls))
    f1s = [sk.f1_score(y == c, guess == c) for c in ("crash", "no")]
    assert got["macro_f1"] == got["f1"] == close(np.mean(f1s))
    aucs = [sk.roc_auc_score(y == c, ranking[:, k]) for c, k in (("crash", 0), ("no", 2))]
    assert got["auc"] == close(np.mean(aucs))
    assert got["mcc"] == close(sk.matthews_corrcoef(y, guess))


@pytest.mark.parametrize("names", [TWO, THREE])
def test_a_fold_of_one_class_scores_nan(names):
    X, y = rare_rows(names)
    model = LogisticRegression().fit(X, y)
    X, y = X[y == "no"], y[y == "no"]
    for name, score in scorers(model, X, y).items():
        assert math.isnan(score) == (name != "neg_brier"), name


def test_a_fold_with_a_class_the_model_never_saw():
    X, y = rare_rows(THREE)
    model = LogisticRegression().fit(X[y != "crash"], y[y != "crash"])
    got = scorers(model, X, y)
    assert got["g_mean"] == 0.0  # the recall of crash is 0
    recalls = sk.recall_score(y, model.predict(X), average=None)
    assert got["balanced_accuracy"] == close(recalls.mean())
    assert [got["auc"], got["average_precision"], got["neg_brier"]] == close([NAN] * 3)


def test_a_model_of_one_class_has_no_ranking():
    X, y = rare_rows(TWO)
    model = GaussianNB().fit(X[y == "no"], y[y == "no"])
    got = scorers(model, X, y)
    assert [got["auc"], got["average_precision"], got["neg_brier"]] == close([NAN] * 3)
    assert got["balanced_accuracy"] == 0.5


@pytest.mark.parametrize("seed", range(40))
def test_no_rounding_brings_a_correlation_beyond_one(seed):
    rng = np.random.default_rng(seed)
    y = np.append([0, 1, 2], rng.integers(0, 3, 20))
    weights = rng.random(len(y))
    for positive in (None, 0):
        assert metrics.mcc(y, y, positive=positive, sample_weight=weights) <= 1
