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
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from setconv import metrics
from setconv.errors import DataError, LabelError, MissingDependencyError
from setconv.metrics import ClassMetrics, Report, minimum_of_five, report, scorers

NAN = math.nan
SCORER_NAMES = {
    *("g_mean", "macro_f1", "f1", "sensitivity", "specificity", "auc", "average_precision"),
    *("balanced_accuracy", "mcc", "neg_brier"),
}


@pytest.fixture(autouse=True)
def _no_warning_leaks():
    """Undefined figures are nan without a word from numpy or scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


def rows_of(matrix, names):
    """Label lists that have the given confusion matrix."""
    truth, predicted = [], []
    for i, line in enumerate(matrix):
        for j, count in enumerate(line):
            truth += [names[i]] * count
            predicted += [names[j]] * count
    return truth, predicted


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
LAST = ("g_mean", "auc", "mcc", "brier")


def test_binary_by_hand():
    r = report(BINARY_TRUTH, BINARY_GUESS, probabilities=BINARY_CHANCE)
    assert r.classes == ("no", "yes")
    assert r.positive == "yes"  # 3 rows against 7
    assert dataclasses.asdict(r["yes"]) == close(BINARY_YES)
    assert (r.confusion.tolist(), r.confusion.dtype) == ([[5, 2], [1, 2]], np.int64)
    overall = [r.accuracy, r.balanced_accuracy, r.macro_f1, r.g_mean, r.macro_auc, r.mcc, r.brier]
    # macro F1 is (4/7 + 10/13)/2
    assert overall == close([0.7, 29 / 42, 61 / 91, *(BINARY_YES[name] for name in LAST)])
    # The paper's order; F1 is of the class.
    five = {"spec": 5 / 7, "sens": 2 / 3, "f1": 4 / 7, "g_mean": math.sqrt(10 / 21), "auc": 15 / 21}
    assert r.five() == close(five)
    assert list(r.five()) == list(five)


# Rows are the truth. One against the rest, as in Table 3:
#          crash fire no           TP FN FP TN
#   crash    2    1   1     crash   2  2  1 15
#   fire     0    3   2     fire    3  2  2 13
#   no       1    1   9     no      9  2  3  6
THREE = [[2, 1, 1], [0, 3, 2], [1, 1, 9]]
THREE_NAMES = ["crash", "fire", "no"]


def test_three_classes_by_hand():
    r = report(*rows_of(THREE, THREE_NAMES))
    assert (r.classes, r.positive) == (("crash", "fire", "no"), "crash")
    assert r.confusion.tolist() == THREE
    crash = {
        "n_rows": 4,
        "specificity": 15 / 16,
        "sensitivity": 2 / 4,
        "precision": 2 / 3,
        "f1": 4 / 7,
        "g_mean": math.sqrt(15 / 32),
        "balanced_accuracy": 23 / 32,
        "mcc": 28 / math.sqrt(3264),  # (2 15 - 1 2) / sqrt(3 4 16 17)
    }
    unknown = dict.fromkeys(("auc", "average_precision", "brier"), NAN)
    assert dataclasses.asdict(r["crash"]) == close(crash | unknown)
    assert r.macro_f1 == close((4 / 7 + 3 / 5 + 18 / 23) / 3)
    assert r.g_mean == close((27 / 110) ** (1 / 3))  # (1/2)(3/5)(9/11)
    # truth 4 5 11, predicted 3 5 12: (14 20 - 169) / sqrt((400 - 178)(400 - 162))
    assert r.mcc == close(111 / math.sqrt(222 * 238))


def test_scores_win_over_probabilities_for_ranking_only():
    reverse = [-p for p in BINARY_CHANCE]
    r = report(BINARY_TRUTH, BINARY_GUESS, reverse, probabilities=BINARY_CHANCE)
    assert r["yes"].auc == close(6 / 21)
    assert r["yes"].brier == close(0.22525)
    assert math.isnan(report(BINARY_TRUTH, BINARY_GUESS, reverse).brier)


def test_one_column_speaks_of_the_second_class():
    two = [[1 - p, p] for p in BINARY_CHANCE]
    assert report(BINARY_TRUTH, BINARY_GUESS, probabilities=two) == report(
        BINARY_TRUTH, BINARY_GUESS, probabilities=BINARY_CHANCE
    )
    other_way = report(BINARY_TRUTH, BINARY_GUESS, BINARY_CHANCE, classes=["yes", "no"])
    assert other_way["yes"].auc == close(6 / 21)
    assert other_way.confusion.tolist() == [[2, 1], [2, 5]]


@pytest.mark.parametrize(
    ("matrix", "scores", "expected"),
    [
        # macro F1 .670, G .690, AUC .714, Spec .714, Sens .667; the F1 of yes, .571, is not in it.
        ([[5, 2], [1, 2]], [0.8, 0.7, 0.5, 0.4, 0.2, 0.1, 0.05, 0.9, 0.6, 0.3], 2 / 3),
        # The scores turned round: AUC 6/21.
        ([[5, 2], [1, 2]], [-0.8, -0.7, -0.5, -0.4, -0.2, -0.1, 0, -0.9, -0.6, -0.3], 6 / 21),
        # TP 1, FN 0, FP 2, TN 17: F1 2/4 and 34/36, macro 13/18 = .722; Spec 17/19, Sens 1, AUC 1.
        ([[17, 2], [0, 1]], [0] * 19 + [1], 13 / 18),
        # TP 8, FN 0, FP 1, TN 1: Spec 1/2; F1 16/17 and 2/3, macro .804; G .707, Sens 1, AUC 1.
        ([[1, 1], [0, 8]], [0] * 2 + [1] * 8, 1 / 2),
        # AUC 1; mean Spec (15/16 + 13/15 + 2/3)/3 = .824; mean Sens .639; mean G .728; macro F1
        # .651. The G-mean over all classes, .626, is smaller but not one of the five.
        (THREE, np.repeat(np.eye(3), [4, 5, 11], axis=0), (1 / 2 + 3 / 5 + 9 / 11) / 3),
        ([[5, 2], [1, 2]], None, NAN),
    ],
)
def test_minimum_of_five_is_the_worst_of_means_and_uses_macro_f1(matrix, scores, expected):
    rows = rows_of(matrix, range(len(matrix)))
    positive = 1 if len(matrix) == 2 else None
    assert minimum_of_five(report(*rows, scores, positive=positive)) == close(expected)


# ------------------------------------------------------------------- plain loops, independent


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


def loop_auc(truth, score, weight, c):
    above = below = 0.0
    for t, s, w in zip(truth, score, weight, strict=True):
        for u, r, v in zip(truth, score, weight, strict=True):
            if t == c and u != c:
                above += w * v * (1.0 if s > r else 0.5 if s == r else 0.0)
                below += w * v
    return ratio(above, below)


def loop_average_precision(truth, score, weight, c):
    total = sum(w for t, w in zip(truth, weight, strict=True) if t == c)
    if not total or total == sum(weight):
        return NAN
    area = found = 0.0
    for cut in sorted(set(score), reverse=True):
        kept = [(t, w) for t, s, w in zip(truth, score, weight, strict=True) if s >= cut]
        hits, taken = sum(w for t, w in kept if t == c), sum(w for _, w in kept)
        if taken:
            area += (hits - found) / total * (hits / taken)
        found = hits
    return area


@st.composite
def predictions(draw):
    c = draw(st.integers(2, 4))
    n = draw(st.integers(1, 25))
    label = st.integers(0, c - 1)
    truth = draw(st.lists(label, min_size=n, max_size=n))
    guess = draw(st.lists(label, min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    assume(sum(weight))
    parts = st.lists(st.integers(0, 6), min_size=c, max_size=c).map(lambda p: [v + 1 for v in p])
    chances = np.array(draw(st.lists(parts, min_size=n, max_size=n)), dtype=float)
    return c, truth, guess, weight, chances / chances.sum(axis=1, keepdims=True)


@given(predictions(), st.booleans())
def test_report_against_plain_loops(case, weighted):
    c, truth, guess, weight, chances = case
    weight = weight if weighted else [1] * len(truth)
    given = {"sample_weight": weight} if weighted else {}
    r = report(truth, guess, probabilities=chances, classes=range(c), **given)
    worked = []
    for k, column in enumerate(chances.T.tolist()):
        error = [w * (p - (t == k)) ** 2 for t, p, w in zip(truth, column, weight, strict=True)]
        worked.append(
            loop_class(truth, guess, weight, k)
            | {
                "auc": loop_auc(truth, column, weight, k),
                "average_precision": loop_average_precision(truth, column, weight, k),
                "brier": sum(error) / sum(weight),
                "n_rows": truth.count(k),
            }
        )
        assert dataclasses.asdict(r[k]) == close(worked[k])
    of = {name: [one[name] for one in worked] for name in worked[0]}
    right = sum(w for t, g, w in zip(truth, guess, weight, strict=True) if t == g)
    assert r.accuracy == close(right / sum(weight))
    assert r.balanced_accuracy == close(sum(of["sensitivity"]) / c)
    assert r.g_mean == close(math.prod(of["sensitivity"]) ** (1 / c))
    assert r.macro_f1 == close(sum(of["f1"]) / c)
    assert r.macro_auc == close(sum(of["auc"]) / c)
    assert r.brier == close(sum(of["brier"]) / (2 if c == 2 else 1))


# ------------------------------------------------------------------------------ scikit-learn


@pytest.fixture(scope="module")
def big():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, size=400, p=[0.1, 0.3, 0.6])
    chances = rng.dirichlet(np.ones(3), size=400) + np.eye(3)[truth] * 0.3
    chances /= chances.sum(axis=1, keepdims=True)
    return truth, chances.argmax(axis=1), chances, rng.uniform(0.1, 2, size=400)


@pytest.mark.parametrize("weighted", [False, True])
def test_report_agrees_with_scikit_learn(big, weighted):
    truth, guess, chances, w = big
    at = {"sample_weight": w if weighted else None}
    r = report(truth, guess, probabilities=chances, **at)
    assert r.confusion == close(sk.confusion_matrix(truth, guess, **at))
    assert r.accuracy == close(sk.accuracy_score(truth, guess, **at))
    assert r.balanced_accuracy == close(sk.balanced_accuracy_score(truth, guess, **at))
    assert r.macro_f1 == close(sk.f1_score(truth, guess, average="macro", **at))
    assert r.mcc == close(sk.matthews_corrcoef(truth, guess, **at))
    for k in range(3):
        t, g, p = truth == k, guess == k, chances[:, k]
        theirs = {
            "n_rows": t.sum(),
            "sensitivity": sk.recall_score(t, g, **at),
            "specificity": sk.recall_score(~t, ~g, **at),
            "precision": sk.precision_score(t, g, **at),
            "f1": sk.f1_score(t, g, **at),
            "g_mean": math.sqrt(sk.recall_score(t, g, **at) * sk.recall_score(~t, ~g, **at)),
            "balanced_accuracy": sk.balanced_accuracy_score(t, g, **at),
            "mcc": sk.matthews_corrcoef(t, g, **at),
            "auc": sk.roc_auc_score(t, p, **at),
            "average_precision": sk.average_precision_score(t, p, **at),
            "brier": sk.brier_score_loss(t, p, **at),
        }
        assert dataclasses.asdict(r[k]) == close(theirs)


# Of one class, by default the rarest; or over all classes, unless one is named.
OF_ONE, OF_ALL = ("specificity", "sensitivity", "f1"), ("g_mean", "balanced_accuracy", "mcc")


@pytest.mark.parametrize("name", [*OF_ONE, "auc", "average_precision", *OF_ALL, "brier"])
def test_small_functions_give_the_figures_of_the_report(big, name):
    truth, guess, chances, w = big
    r = report(truth, guess, probabilities=chances, sample_weight=w)
    function = partial(getattr(metrics, name), truth, guess, sample_weight=w)
    if name in ("auc", "average_precision", "brier"):
        function = partial(
            getattr(metrics, name), truth, chances, sample_weight=w, classes=range(3)
        )
    assert function() == getattr(r if hasattr(r, name) else r[0], name)
    assert function(positive=2) == getattr(r[2], name)
    assert metrics.macro_f1(truth, guess, sample_weight=w) == r.macro_f1


# -------------------------------------------------------------------------------- degenerate


def undefined(of):
    """The names of the figures that are nan."""
    figures = vars(of).items()
    return {name for name, value in figures if isinstance(value, float) and math.isnan(value)}


def test_a_class_without_rows_is_nan_not_zero():
    chances = np.full((4, 3), 1 / 3)
    r = report([0, 0, 1, 1], [0, 1, 1, 2], probabilities=chances, classes=[0, 1, 2])
    absent = r[2]
    ranked = {"auc", "average_precision"}
    assert undefined(absent) == {"sensitivity", "f1", "g_mean", "balanced_accuracy", "mcc"} | ranked
    # Predicted once, wrongly: that is a fact.
    assert (absent.n_rows, absent.specificity, absent.precision) == (0, close(3 / 4), 0.0)
    assert absent.brier == close(1 / 9)
    assert undefined(r) == {"balanced_accuracy", "macro_f1", "g_mean", "macro_auc"}
    assert (r.accuracy, r.brier) == (0.5, close(2 / 3))
    assert r.positive == 1  # the rarest that has rows; 0 and 1 tie, the last is taken
    assert math.isnan(report([0, 0, 1], [0, 1, 1], classes=[0, 1, 2])[2].precision)


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


def test_a_class_never_predicted_scores_zero():
    r = report([0, 0, 0, 1], [0, 0, 0, 0])
    assert (r[1].precision, r[1].f1, r[1].mcc, r[1].g_mean) == (0.0, 0.0, 0.0, 0.0)
    assert (r.mcc, r.g_mean) == (0.0, 0.0)
    assert r.macro_f1 == close(3 / 7)  # (6/7 + 0)/2


def test_weights_can_empty_a_class():
    r = report([0, 0, 1], [0, 1, 1], [0.1, 0.2, 0.3], sample_weight=[0.1, 0.2, 0])
    assert {"sensitivity", "auc"} <= undefined(r[1])
    assert math.isnan(r[0].specificity)
    assert (r[0].sensitivity, r[1].n_rows) == (close(1 / 3), 1)


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


def test_positive_default():
    assert report([0, 0, 1], [0, 1, 1]).positive == 1
    assert report([1, 1, 0], [0, 1, 1]).positive == 0
    assert report([0, 1], [0, 1]).positive == 1
    assert report([0, 1], [0, 1], classes=[1, 0]).positive == 0
    assert report([0, 0, 1], [0, 1, 1], positive=0).positive == 0
    # Weights that balance the classes do not change which one is rare.
    assert report([1, 1, 0], [0, 1, 1], sample_weight=[0.5, 0.5, 2]).positive == 0


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
    assert dataclasses.asdict(r[names[1]]) == close(BINARY_YES)
    assert Report.from_dict(json.loads(json.dumps(r.to_dict()))) == r


def test_numbers_of_different_types_meet():
    mixed = report([True, False, True], np.array([1.0, 0.0, 0.0]))
    assert mixed.accuracy == close(2 / 3)
    assert len(mixed.classes) == 2


# ----------------------------------------------------------------------------------- bad input

OK = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "parameter", "row"),
    [
        (([], []), DataError, "y_pred", None),
        ((OK, [0, 1, 0]), DataError, "y_pred", None),
        ((OK, [[0], [1], [0], [1]]), DataError, "y_pred", None),
        (("yes", "yes"), DataError, "y_true", None),
        ((OK, [0, 1, None, 1]), LabelError, "y_pred", 2),
        (([0, 1, NAN, 1], OK), LabelError, "y_true", 2),
        ((["a", "b", NAN], ["a", "b", "b"]), LabelError, "y_true", 2),
        ((OK, [0.2, 0.7, 0.1, 0.6]), LabelError, "y_pred", 0),
        ((OK, ["0", "1", "0", "1"]), LabelError, "classes", None),
    ],
)
def test_bad_labels(arguments, error, parameter, row):
    with pytest.raises(error) as caught:
        report(*arguments)
    assert (caught.value.parameter, caught.value.row) == (parameter, row)


@pytest.mark.parametrize(
    ("name", "value", "row"),
    [
        *(("scores", value, None) for value in ([1, 2, 3], 1.0, np.zeros((4, 1)), ["a"] * 4)),
        ("scores", np.zeros((4, 3)), None),
        ("scores", [1, 2, NAN, 4], 2),
        ("scores", [[0, 0], [0, math.inf], [0, 0], [NAN, 0]], 1),
        ("probabilities", [0.1, 0.2, 0.3, 1.4], 3),
        ("probabilities", [0.1, -0.2, 0.3, 0.4], 1),
        ("probabilities", [[0.5, 0.5], [0.2, 0.9]] * 2, 1),
        *(("sample_weight", value, None) for value in ([1] * 3, [1, 1, 1, -1], [0] * 4, ["x"] * 4)),
        ("sample_weight", [1, 1, 1, NAN], 3),
        *(("classes", value, None) for value in ([0, 1, 1], [], [0, 1, "1"])),
        *(("positive", value, None) for value in (2, "1")),
    ],
)
def test_bad_options(name, value, row):
    with pytest.raises(DataError) as caught:
        report(OK, OK, **{name: value})
    assert (caught.value.parameter, caught.value.row) == (name, row)


def test_one_column_says_nothing_of_three_classes():
    with pytest.raises(DataError):
        report(OK, OK, OK, classes=[0, 1, 2])


@pytest.mark.parametrize(("name", "given"), [("y_true", ["f", "no"]), ("y_pred", ["fire", "no"])])
def test_labels_outside_the_classes_are_named(name, given):
    with pytest.raises(LabelError) as caught:
        report(given, ["f", "no"], classes=["fire", "no"])
    assert caught.value.parameter == name


# ----------------------------------------------------------------------------- the object


@pytest.fixture
def with_nan():
    return report([0, 0, 1], [0, 1, 1], [0.1, 0.2, 0.3], classes=[0, 1])


def test_to_dict_is_json_and_comes_back(with_nan):
    weighted = report([0, 0, 1], [0, 1, 1], sample_weight=[1, 1, 2])
    noted = dataclasses.replace(
        with_nan, prior={0: 0.9, 1: 0.1}, unjudged={1: "why"}, notes=("so",)
    )
    for r in (with_nan, weighted, noted):
        back = Report.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
        assert back == r == pickle.loads(pickle.dumps(r))
        assert (back.classes, back.confusion.dtype) == (r.classes, r.confusion.dtype)
        assert isinstance(back[1], ClassMetrics)
        assert str(back) == str(r)
    assert with_nan != report([0, 0, 1], [0, 1, 0], [0.1, 0.2, 0.3])
    assert with_nan != dataclasses.replace(with_nan, brier=0.5)
    assert with_nan != "a report"


def test_to_frame(monkeypatch):
    r = report(BINARY_TRUTH, BINARY_GUESS, probabilities=BINARY_CHANCE)
    frame = r.to_frame()
    assert (frame.index.tolist(), frame.index.name) == (["no", "yes"], "class")
    assert frame.loc["yes"].to_dict() == close(BINARY_YES)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError):
        r.to_frame()


def test_table_is_aligned_and_complete(with_nan):
    lines = str(with_nan).splitlines()
    assert lines[0] == "positive class: 1 (*)"
    headings = (metrics.HEADINGS[one.name] for one in dataclasses.fields(ClassMetrics))
    assert " ".join(lines[1].split()) == " ".join(["class", *headings])
    assert len({len(line) for line in lines[1:4]}) == 1
    assert (lines[2][:3], lines[3][:3]) == ("  0", "* 1")
    # truth 0 0 1, guess 0 1 1: class 1 has TP 1, FP 1, TN 1; no probabilities, so no Brier
    assert lines[3].split()[1:6] == ["1", "1", "0.500", "1.000", "0.500"]
    assert lines[3].endswith(" -")


def test_report_is_frozen(with_nan):
    with pytest.raises(dataclasses.FrozenInstanceError):
        with_nan.accuracy = 1.0
    with pytest.raises(ValueError, match="read-only"):
        with_nan.confusion[0, 0] = 9
    with pytest.raises(LabelError):
        with_nan["1"]


# ------------------------------------------------------------------------------------- scorers


def rare_rows(n_classes, names):
    X, y = make_classification(
        300,
        6,
        n_informative=4,
        n_classes=n_classes,
        weights=[0.1, 0.9] if n_classes == 2 else [0.15, 0.3, 0.55],
        class_sep=1.0,
        random_state=0,
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


# In both, the first class is the rare one, so that "rarest" is not just classes_[1].
TWO = (2, ["fire", "no"])
THREE_KINDS = (3, ["crash", "fire", "no"])


@pytest.mark.parametrize("kind", [TWO, THREE_KINDS, (2, [False, True])])
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), GaussianNB(), OnlyLabels()])
def test_scorers_give_the_figures_of_the_report(kind, model):
    X, y = rare_rows(*kind)
    model = clone(model).fit(X, y)
    got = scorers(model, X, y)
    assert set(got) == SCORER_NAMES
    assert got == close(expected_scores(model, X, y))
    assert math.isnan(got["neg_brier"]) == (not hasattr(model, "predict_proba"))
    assert math.isnan(got["auc"]) == isinstance(model, OnlyLabels)
    if len(set(y.tolist())) == 2:
        rare = kind[1][0]
        assert got["f1"] == close(sk.f1_score(y == rare, model.predict(X) == rare))


def test_grid_search_in_processes():
    X, y = rare_rows(*TWO)
    grid = {"C": [1e-6, 1.0]}
    search, here = (
        GridSearchCV(
            LogisticRegression(), grid, scoring=scorers, refit="g_mean", cv=3, n_jobs=n_jobs
        ).fit(X, y)
        for n_jobs in (2, None)
    )
    for name in SCORER_NAMES:
        there = search.cv_results_[f"mean_test_{name}"]
        assert there == close(here.cv_results_[f"mean_test_{name}"])
    assert search.best_params_ == {"C": 1.0}
    assert search.score(X, y) == close(metrics.g_mean(y, search.predict(X)))


def test_scorers_of_a_named_class():
    X, y = rare_rows(*THREE_KINDS)
    model = LogisticRegression().fit(X, y)
    r = report(y, model.predict(X), model.decision_function(X))
    named = scorers(model, X, y, positive="fire")
    for name in ("f1", "sensitivity", "specificity", "auc", "average_precision"):
        assert named[name] == close(getattr(r["fire"], name))
    assert named["g_mean"] == close(r.g_mean)
    with pytest.raises(LabelError):
        scorers(model, X, y, positive="fyre")
    result = cross_validate(model, X, y, scoring=partial(scorers, positive="fire"), cv=2)
    assert len(result["test_f1"]) == 2


def test_a_fold_that_lacks_a_class_is_scored_on_the_others():
    X, y = rare_rows(*THREE_KINDS)
    model = LogisticRegression().fit(X, y)
    kept = y != "fire"
    X, y = X[kept], y[kept]
    guess, ranking = model.predict(X), model.decision_function(X)
    assert "fire" in guess  # wrong answers that still have to count against the others
    got = scorers(model, X, y)
    crash, no = (guess[y == c] == c for c in ("crash", "no"))
    assert got["g_mean"] == close(math.sqrt(crash.mean() * no.mean()))
    assert got["balanced_accuracy"] == close((crash.mean() + no.mean()) / 2)
    f1s = [sk.f1_score(y == c, guess == c) for c in ("crash", "no")]
    assert got["macro_f1"] == close(np.mean(f1s))
    assert got["f1"] == close(np.mean(f1s))
    aucs = [sk.roc_auc_score(y == c, ranking[:, k]) for c, k in (("crash", 0), ("no", 2))]
    assert got["auc"] == close(np.mean(aucs))
    assert got["mcc"] == close(sk.matthews_corrcoef(y, guess))


@pytest.mark.parametrize("kind", [TWO, THREE_KINDS])
def test_a_fold_of_one_class_scores_nan(kind):
    X, y = rare_rows(*kind)
    model = LogisticRegression().fit(X, y)
    X, y = X[y == "no"], y[y == "no"]
    for name, score in scorers(model, X, y).items():
        assert math.isnan(score) == (name != "neg_brier"), name


def test_a_fold_with_a_class_the_model_never_saw():
    X, y = rare_rows(*THREE_KINDS)
    model = LogisticRegression().fit(X[y != "crash"], y[y != "crash"])
    got = scorers(model, X, y)
    assert got["g_mean"] == 0.0  # the recall of crash is 0
    recalls = sk.recall_score(y, model.predict(X), average=None)
    assert got["balanced_accuracy"] == close(recalls.mean())
    assert [got["auc"], got["average_precision"], got["neg_brier"]] == close([NAN] * 3)


def test_a_model_of_one_class_has_no_ranking():
    X, y = rare_rows(*TWO)
    model = GaussianNB().fit(X[y == "no"], y[y == "no"])
    got = scorers(model, X, y)
    assert [got["auc"], got["average_precision"], got["neg_brier"]] == close([NAN] * 3)
    assert got["balanced_accuracy"] == 0.5
