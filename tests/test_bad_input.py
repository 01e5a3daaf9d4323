"""Whatever cannot work is refused with the error of its kind and the culprit, and nothing moves."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError
from small_models import ARRAYS, Interrupt, small

from setconv.errors import (
    DataError,
    DivergedError,
    LabelError,
    ParameterError,
    SetConvError,
)
from setconv.pipelines import SetConvTableClassifier
from setconv.validation import check_rows

NAMES = list("abcdefgh")


@contextmanager
def refuses(kind, *words, **fields):
    """Expect an error of setconv with these fields, and words in its message."""
    with pytest.raises(kind) as caught:
        yield
    assert {name: getattr(caught.value, name) for name in fields} == fields
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.fixture
def X(binary):  # noqa: N802
    return binary[0].copy()


@pytest.fixture
def y(binary):
    return binary[1].copy()


@pytest.fixture
def model(binary):
    return small(n_members=2).fit(*binary)


# ----------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("form", [np.float32, np.float64, "csr_matrix", "csc_array", "coo_array"])
def test_a_value_that_is_not_finite_is_refused_with_its_place(model, X, y, value, kind, form):
    X[:17, 5] = 0  # what is stored before it does not count
    X[17, 5] = X[90, 2] = value
    rows = getattr(sparse, form)(X) if isinstance(form, str) else X.astype(form)
    for call in (lambda: small().fit(rows, y), lambda: model.transform(rows)):
        with refuses(DataError, kind, "2 values", row=17, column=5):
            call()


HOLES = np.where(np.arange(240) == 3, np.nan, 1.0)
COLUMNS = {
    "holes": (HOLES, 3),
    "no integer": (pd.array([1, 1, 1, None, *[1] * 236], dtype="Int64"), 3),
    "text": (["red", "blue"] * 120, None),
    "kinds": (pd.Categorical(["red", "blue"] * 120), None),
    "dates": (np.full(240, np.datetime64("2020-01-01", "us")), None),
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_a_frame_that_is_no_numbers_is_refused_by_name(X, y, name, library):
    values, row = COLUMNS[name]
    frame = pd.DataFrame(X, columns=NAMES).assign(c=values)
    if library == "polars":
        frame = pl.from_pandas(frame)
    with refuses(DataError, column="c", row=row):
        small().fit(frame, y)


def test_rows_whose_sum_overflows_but_which_are_finite_are_not_called_infinite(X):
    X[:2, 0] = np.finfo(np.float64).max
    assert np.array_equal(check_rows(small(), X, reset=True), X)


@pytest.mark.parametrize("scaling", [None, "standard"])
def test_a_column_of_enormous_values_is_refused_by_its_number(X, y, scaling):
    X[:, 6] *= 1e200
    with refuses(DataError, column=6):
        small(scaling=scaling).fit(X, y)


def test_rows_too_large_for_a_model_without_scaling_are_refused_in_prediction(X, y):
    with refuses(DataError, row=1):
        small(scaling=None).fit(X, y).predict_proba([[0.0] * 8, [1e38] * 8])


WRONG_ROWS = {
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "one dimension": lambda X: X[:, 0],
    "three": lambda X: X[None],
    "ragged": lambda X: [[1, 2], [3]] * (len(X) // 2),
    "a number": lambda _: 3,
    "nothing": lambda _: None,
    "complex": lambda X: X.astype(complex),
    "sparse and complex": lambda X: sparse.csr_matrix(X.astype(complex)),
    "strings": lambda X: X.astype(str).astype(object) + "m",
    "a column": lambda X: pd.Series(X[:, 0]),
    "named twice": lambda X: pd.DataFrame(X, columns=["a", *NAMES[:7]]),
    "a tensor with a gradient": lambda X: torch.from_numpy(X).requires_grad_(),
    "integers of 128 bits": lambda _: pl.DataFrame(
        {"a": pl.Series([2**100] * 240, dtype=pl.Int128)}
    ),
    "no file": lambda _: pl.scan_parquet("/nowhere/at/all.parquet"),
    "no name of a file": lambda _: "a\0b",
    "a long name": lambda _: "x" * 5000,
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_rows_of_a_wrong_shape_or_type_are_refused(X, y, name):
    with refuses(DataError):
        small().fit(WRONG_ROWS[name](X), y)


NO_NUMBERS = {
    "text": "red",
    "a list": [1],
    "a dict": {},
    "a date": np.datetime64("2020"),
    "2**64 to the 16th": 10**400,
    "a zone": pd.Timestamp("2020", tz="UTC"),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_the_column_of_an_array_that_is_no_numbers_is_named(model, X, y, name):
    rows = X.astype(object)
    rows[5, 3] = NO_NUMBERS[name]
    frame = pd.DataFrame(rows, columns=NAMES)
    for call in (lambda rows: small().fit(rows, y), model.predict):
        with refuses(DataError, "not numbers", column=3):
            call(rows)
    with refuses(DataError, "not numbers", column="d"):
        small().fit(frame, y)
    if name == "2**64 to the 16th":
        with refuses(DataError):
            small().fit(rows.tolist(), y)


def test_integers_over_64_bits_are_numbers(X, y):
    rows = X.astype(object)
    rows[5, 3] = 2**70
    found = small().fit(rows, y).predict_proba(X)
    for same in (rows.tolist(), pd.DataFrame(rows), rows.astype(float)):
        assert np.array_equal(small().fit(same, y).predict_proba(X), found)


@pytest.mark.parametrize("unit", ["M8[D]", "M8[ns]", "m8[s]"])
def test_dates_of_numpy_are_refused_in_the_words_for_those_of_pandas(X, y, unit):
    rows = (1000 * X).astype("i8").astype(unit)
    said = []
    for form in (rows, pd.DataFrame(rows, columns=list(map(str, range(8))))):
        with pytest.raises(DataError) as caught:
            small().fit(form, y)
        said.append(str(caught.value).replace("'", ""))
    assert said[0] == said[1]


GAPS = {
    **{kind: pd.array([1, 1, 1, None, *[1] * 236], kind) for kind in ("boolean", "Int64")},
    "Float64": pd.array([0.5, 1, 1, None, *[1] * 236], "Float64"),
    "string": pd.array(["1", "2", "1", None, *["1"] * 236], "string"),
}


@pytest.mark.parametrize("kind", GAPS)
def test_what_pandas_calls_missing_is_missing(X, y, kind):
    frame = pd.DataFrame(X, columns=NAMES).assign(c=GAPS[kind])
    with refuses(DataError, "NaN", "1 values", row=3, column="c"):
        small().fit(frame, y)


def test_what_is_masked_is_missing(X, y):
    with refuses(DataError, "NaN", row=2, column=4):
        small().fit(np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) == 20), y)
    with refuses(LabelError, row=7, parameter="y"):
        small().fit(X, np.ma.masked_array(y, np.arange(240) == 7))
    whole = small().fit(np.ma.masked_array(X), np.ma.masked_array(y))
    assert np.array_equal(whole.predict_proba(X), small().fit(X, y).predict_proba(X))


def test_a_lazy_frame_is_collected(X, y):
    frame = pl.DataFrame(X, schema=NAMES)
    clf = small().fit(frame.lazy(), pl.DataFrame({"y": y}).lazy())
    assert np.array_equal(
        clf.predict_proba(frame.lazy()), small().fit(frame, y).predict_proba(frame)
    )
    table = SetConvTableClassifier(classifier=small()).fit(frame.lazy(), y)
    assert np.array_equal(table.predict(frame.lazy()), table.predict(frame))
    with refuses(DataError, "(240, 1)", parameter="groups"):
        small().fit(X, y, groups=pl.DataFrame({"g": y}).lazy())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_another_number_of_features_than_in_the_fit_is_refused(model, X, y, form):
    rows = form(X[:, :3])
    for call in (model.predict, model.transform, lambda rows: model.partial_fit(rows, y)):
        with refuses(DataError, "3 features", "expecting 8"):
            call(rows)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_other_names_of_features_than_in_the_fit_are_refused(X, y, library):
    frame = pd.DataFrame(X, columns=NAMES)
    clf = small().fit(library(frame), y)
    renamed = library(frame.rename(columns={"a": "z"}))
    for call in (clf.predict, lambda rows: clf.partial_fit(rows, y)):
        with refuses(DataError, "- z", "- a"):
            call(renamed)
    with refuses(DataError, "same order"):
        clf.predict(library(frame[NAMES[::-1]]))


# --------------------------------------------------------------------------------------- labels


def replaced(y, missing, dtype=object):
    text = y.astype(str).tolist()
    return np.array([*text[:5], missing, *text[6:]], dtype=dtype)


WRONG_LABELS = {
    "one class": (lambda _, y: ["spam"] * len(y), None),
    "too few": (lambda _, y: y[1:], None),
    "too many": (lambda _, y: np.append(y, 1), None),
    "none": (lambda *_: None, None),
    "two columns": (lambda _, y: np.column_stack([y, y]), None),
    "numbers": (lambda X, _: X[:, 0], None),
    "two types": (lambda _, y: np.array([1, "a"], dtype=object)[y], None),
    "NaN": (lambda _, y: np.where(np.arange(len(y)) == 5, np.nan, y), 5),
    "NaN in a list": (lambda _, y: [*y[:5], np.nan, *y[6:]], 5),
    "None in a list": (lambda _, y: [None, *y[1:].astype(str)], 0),
    "NaN among strings": (lambda _, y: replaced(y, np.nan), 5),
    "NA": (lambda _, y: pd.Series(replaced(y, pd.NA), dtype="string"), 5),
    "NA among objects": (lambda _, y: pd.Series(replaced(y, pd.NA)), 5),
    "dates": (lambda _, y: y.astype("M8[D]"), None),
    "tensors": (lambda _, y: [torch.ones(2), *y[1:]], None),
    "128 bits": (lambda _, y: [*y[:5], 2**64, *y[6:]], 5),
    "a thousand bits": (lambda _, y: [*y[:5], -(10**400), *y[6:]], 5),
}


@pytest.mark.parametrize("name", WRONG_LABELS)
def test_labels_that_cannot_be_used_are_refused_with_their_row(X, y, name):
    make, row = WRONG_LABELS[name]
    with refuses(LabelError, parameter="y", row=row):
        small().fit(X, make(X, y))


@pytest.mark.parametrize("kind", [int, bool])
def test_integers_and_bools_in_an_object_array_are_labels(X, y, kind):
    labels = np.array([kind(label) for label in y], dtype=object)
    assert small().fit(X, labels).classes_.tolist() == [kind(0), kind(1)]


@pytest.mark.parametrize("form", ["another", "text"])
def test_a_label_that_was_not_announced_is_refused_by_name(model, X, y, form):
    labels = [0, 1, 9, 7] if form == "another" else ["0", "1", "0", "1"]
    with refuses(LabelError, "0, 1", parameter="y", row=2 if form == "another" else 0):
        model.partial_fit(X[:4], labels)
    with refuses(LabelError, parameter="y", row=int(np.flatnonzero(y == 0)[0])):
        small().partial_fit(X, y, classes=[1, 2])


@pytest.mark.parametrize(
    "classes",
    [None, 1, [1], [0, 1, 2], [], np.array([]), [0, None], [0, "a"], [[0], [1, 2]]],
    ids=repr,
)
def test_classes_that_cannot_be_announced_are_refused(model, X, y, classes):
    clf = model if str(classes) == "[0, 1, 2]" else small()
    with refuses(LabelError, "classes", parameter="classes"):
        clf.partial_fit(X, y, classes=classes)


# ------------------------------------------------------------------- weights, groups, validation


def ones_but(bad):
    return np.where(np.arange(240) == 11, bad, 1.0)


DAYS = np.datetime64("2024-01-31") + np.arange(240)
WRONG_COMPANIONS = {
    "negative": ({"sample_weight": ones_but(-1)}, DataError, 11),
    "NaN": ({"sample_weight": ones_but(np.nan)}, DataError, 11),
    "infinite": ({"sample_weight": ones_but(np.inf)}, DataError, 11),
    "zeros": ({"sample_weight": np.zeros(240)}, DataError, None),
    "too few": ({"sample_weight": np.ones(239)}, DataError, None),
    "a column": ({"sample_weight": np.ones((240, 1))}, DataError, None),
    "words": ({"sample_weight": ["heavy"] * 240}, DataError, None),
    "complex": ({"sample_weight": ones_but(1) + 0j}, DataError, None),
    "dates": ({"sample_weight": ones_but(1).astype("M8[s]")}, DataError, None),
    "1e300": ({"sample_weight": ones_but(1e300)}, DataError, 11),
    "1e-300": ({"sample_weight": ones_but(1e-300)}, DataError, 11),
    "the smallest": ({"sample_weight": ones_but(5e-324)}, DataError, 11),
    "2**64 to the 16th": ({"sample_weight": [10**400] * 240}, DataError, None),
    "groups": ({"groups": np.arange(239)}, DataError, None),
    "no group": ({"groups": ["a" if n != 11 else None for n in range(240)]}, DataError, 11),
    "NaN groups": ({"groups": ones_but(np.nan)}, DataError, 11),
    "NA groups": ({"groups": pd.array([*range(11), None, *range(228)], "Int64")}, DataError, 11),
    "kinds of groups": ({"groups": [1, "1"] * 120}, DataError, None),
    "objects of groups": ({"groups": np.array([1, "1"] * 120, dtype=object)}, DataError, None),
    "nested groups": ({"groups": [{}, {"a": 1}] * 120}, DataError, None),
    "nested times": ({"time": [[1], [1, 2]] * 120}, DataError, None),
    "times too few": ({"time": np.arange(239)}, DataError, None),
    "one time": ({"time": np.zeros(240)}, DataError, None),
    "no such column": ({"time": "when"}, DataError, None),
    "a time missing": ({"time": ones_but(np.nan)}, DataError, 11),
    "no date": (
        {"time": np.where(np.arange(240) == 11, np.datetime64("NaT"), DAYS)},
        DataError,
        11,
    ),
    "nothing": ({"time": [None if n == 11 else day for n, day in enumerate(DAYS)]}, DataError, 11),
    "no time": ({"time": np.where(np.arange(240) == 11, "noon", DAYS.astype(str))}, DataError, 11),
    "two kinds": ({"time": ["17", *DAYS[1:].astype(str)]}, DataError, None),
    "only X_val": ({"y_val": None, "X_val": np.zeros((5, 8))}, DataError, None),
    "only y_val": ({"X_val": None, "y_val": [0, 1]}, DataError, None),
    "other columns": ({"X_val": np.zeros((2, 3)), "y_val": [0, 1]}, DataError, None),
    "not finite": ({"X_val": [[0.0] * 8, [np.nan] * 8], "y_val": [0, 1]}, DataError, 1),
    "no rows": ({"X_val": np.zeros((0, 8)), "y_val": []}, DataError, None),
    "no label": ({"y_val": [0, None], "X_val": np.zeros((2, 8))}, LabelError, 1),
    "other lengths": ({"y_val": [0], "X_val": np.zeros((2, 8))}, LabelError, None),
    "a new label": ({"y_val": [0, 1, 8], "X_val": np.zeros((3, 8))}, LabelError, 2),
}


@pytest.mark.parametrize("name", WRONG_COMPANIONS)
def test_what_comes_with_the_rows_is_refused_by_its_name_and_row(X, y, name):
    given, error, row = WRONG_COMPANIONS[name]
    with refuses(error, parameter=next(iter(given)), row=row):
        small().fit(X, y, **given)


@pytest.mark.parametrize("wrong", [{"n_members": 2}, {"early_stopping": True}], ids=str)
def test_what_cannot_judge_forward_in_time_is_refused_before_training(X, y, wrong):
    with refuses(ParameterError, "with time", parameter=next(iter(wrong))):
        small(**wrong, callbacks=[Interrupt(1)]).fit(X, y, time=DAYS)
    extra = {"X_val": X + 0.1, "y_val": y}
    if "early_stopping" in wrong:
        assert small(**wrong).fit(X, y, time=DAYS, **extra).report_source_ == "out_of_fold"


def test_a_class_that_begins_with_the_last_moment_cannot_be_judged(X, y):
    with refuses(DataError, "forward in time", "class 1 has 0 rows", parameter="time"):
        small().fit(X, y, time=y)


def test_a_class_whose_rows_all_weigh_nothing_is_no_class(X, y):
    with refuses(LabelError, "a weight over 0"):
        small().fit(X, y, sample_weight=(y == 1).astype(float))


@pytest.mark.parametrize("weight", [1e100, 1e-100])
def test_a_row_that_outweighs_all_others_leaves_answers_finite(X, y, weight):
    clf = small().fit(X, y, sample_weight=ones_but(weight))
    clf.partial_fit(X, y, sample_weight=ones_but(weight))
    assert np.isfinite(clf.predict_proba(X)).all()
    # Of those that weigh next to nothing all are alike.
    one = np.where(y == 1, 1e-120, 1e120)
    found = small().fit(X, y, sample_weight=one).predict_proba(X)
    np.testing.assert_allclose(found, small().fit(X, y).predict_proba(X), atol=1e-6)


# ----------------------------------------------------------------------------------- parameters


RATES = {"encoder": 0.1, "setconv": 0.1, "output": 0.1}
WRONG = {
    "objective": ["precision", "recall>=2", {"recall": 0.9, "class": "no"}, [[0, 1]], 3],
    "class_weight": ["even", [1, 2], 3, {5: 1}, {0: 1, "1": 2}, {0: -1}, {1: np.nan}, {0: "heavy"}],
    "n_members": [0, 1.5, "many"],
    "linear_share": [-0.1, 1, "half"],
    "scaling": ["minmax", True, ["standard", "minmax"], []],
    "encoder": [16, None, "ab", (0,), (16, -1), (1.5,)],
    "out_features": [0, 1.5, None],
    "output": [0, "wide"],
    "similarity": ["euclid", None],
    "dropout": [-0.1, 1, np.nan, None],
    "input_dropout": [-0.1, 1.0, "half"],
    "heads": ["joint", None],
    "anchor": [
        *("median", None, 5, ["a"] * 8, [np.nan] * 8),
        *map(np.zeros, (3, (0, 8), (5, 1, 8))),
        *(lambda rows: rows[:, :2], lambda rows: rows * np.inf),
    ],
    "support_size": [1, 64.5, None],
    "n_queries": [0, 1.5],
    "n_episodes": [0, 1.5],
    "query_source": ["elsewhere"],
    "post_size": [1, "all"],
    "max_steps": [-1, 1.5, "many", None],
    "lr": [
        0,
        np.nan,
        np.inf,
        "fast",
        None,
        {"encoder": 0.1},
        RATES | {"output": 0},
        RATES | {"x": 1},
    ],
    "optimizer": ["sgd"],
    "weight_decay": [-1, np.nan, "x"],
    "schedule": ["linear"],
    "early_stopping": ["often"],
    "validation_fraction": [0, 1, np.nan, "a"],
    "patience": [0, 1.5, "long"],
    "monitor": ["accuracy", None],
    "device": ["nonsense", None],
    "progress": ["always"],
    "callbacks": [None, [1]],
    "checkpoint_dir": [3],
    "random_state": ["abc", -1, 1.5],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_that_cannot_work_is_refused_by_name(X, y, name):
    assert set(WRONG) == set(small().get_params())
    for value in WRONG[name]:
        clf = small(**{"early_stopping": True, name: value})
        with refuses(ParameterError, name, parameter=name):
            clf.fit(X, y)
        assert not hasattr(clf, "network_"), value


def test_training_that_diverges_says_what_to_lower(X, y):
    with refuses(DivergedError, "lr", "1e+35", "scaling="):
        small(lr=1e35, scaling=None, schedule="constant").fit(X, y)


@pytest.mark.parametrize("objective", ["f1", "recall>=0.9", [[0, 1], [9, 0]]])
def test_an_objective_without_rows_to_choose_on_is_refused_before_training(X, y, objective):
    never = Interrupt(1, AssertionError("training began"))
    with refuses(ParameterError, "n_members=1", "X_val", parameter="objective"):
        small(n_members=1, objective=objective, callbacks=[never]).fit(X, y)
    small(n_members=1, objective=objective, early_stopping=True).fit(X, y)
    with refuses(ParameterError):
        small(n_members=1).fit(X, y).set_objective(objective)


METHODS = ["predict", "predict_proba", "decision_function", "predictions", "transform", "save"]
METHODS += ["get_feature_names_out", "set_objective", "set_prior", "predict_out_of_fold"]


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_without_a_model_says_so(tmp_path, method):
    given = [] if method == "predict_out_of_fold" else [tmp_path / "model"]
    with refuses(NotFittedError, "SetConvClassifier", "'fit'"):
        getattr(small(), method)(*given)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------ nothing half done


@contextmanager
def left_as_it_was(clf, X):
    """Check that what is inside changes nothing that a user can see."""
    before = {name: np.copy(getattr(clf, name)) for name in ARRAYS}
    said, kept = clf.predict_proba(X), dict(vars(clf))
    yield
    for name, array in before.items():
        assert np.array_equal(getattr(clf, name), array), f"{name} has changed"
    assert np.array_equal(clf.predict_proba(X), said)
    assert vars(clf).keys() == kept.keys()
    assert [name for name in kept if name[-1] == "_" and vars(clf)[name] is not kept[name]] == []


DECISIONS = [("objective", one) for one in ("roc", "recall>=0", {"recall": 0.5, "class": 9}, [[1]])]
DECISIONS += [("objective", {"recall": 0.5, "class": one}) for one in (np.ones(2), [], pd.NA)]
DECISIONS += [("objective", [[0, 10**400], [1, 0]])]
DECISIONS += [
    ("prior", one) for one in ([0.5, 0.6], [1.0, 0.0], [1.0], {"no": 0.5}, "many", np.nan)
]
DECISIONS += [("prior", {1: one}) for one in ("a", None, [0.5], 10**400, 0.5j)]
DECISIONS += [
    ("prior", one) for one in (["a", 0.5], [None, 0.5], [[0.5], 0.5], 10**400, [1, 10**400])
]


@pytest.mark.parametrize(("name", "value"), DECISIONS, ids=lambda one: f"{one!r:.30}")
def test_a_decision_that_cannot_be_leaves_the_one_that_is(model, X, name, value):
    with left_as_it_was(model, X), refuses(ParameterError, parameter=name):
        getattr(model, f"set_{name}")(value)
    assert model.objective == "balanced"


FAIL = {"callbacks": [Interrupt(3, RuntimeError)]}
FAILING_FITS = {
    "nan": (lambda X, y: {"X": X * np.nan, "y": y}, {}),
    "one class": (lambda X, y: {"X": X, "y": 0 * y}, {}),
    "labels": (lambda X, y: {"X": X, "y": y[:5]}, {}),
    "weights": (lambda X, y: {"X": X, "y": y, "sample_weight": -np.ones(len(y))}, {}),
    "groups": (lambda X, y: {"X": X, "y": y, "groups": [1]}, {}),
    "validation": (lambda X, y: {"X": X, "y": y, "X_val": X}, {}),
    "checkpoint": (lambda X, y: {"X": X, "y": y, "resume_from": "nowhere"}, {}),
    "parameter": (lambda X, y: {"X": X, "y": y}, {"lr": -1}),
    "anchor": (lambda X, y: {"X": X, "y": y}, {"anchor": "median"}),
    "other classes": (lambda X, y: {"X": X, "y": y + 5}, FAIL),
    "in training": (lambda X, y: {"X": X, "y": y}, FAIL),
    "diverged": (lambda X, y: {"X": X, "y": y}, {"lr": 1e35, "scaling": None}),
}


@pytest.mark.parametrize("name", FAILING_FITS)
def test_after_a_fit_that_failed_the_earlier_model_is_as_it_was(X, y, name):
    make, parameters = FAILING_FITS[name]
    frame = pd.DataFrame(X, columns=NAMES)
    other = make(X[:, :5], y)
    other["X"] = pd.DataFrame(other["X"]).add_prefix("other")
    clf = small(n_members=2).fit(frame, y)
    for given in (make(X, y), other):
        with left_as_it_was(clf, frame), pytest.raises((SetConvError, RuntimeError)):
            clf.set_params(**parameters).fit(**given)


FAILING_UPDATES = {
    "nan": lambda X, y: (X * np.nan, y),
    "label": lambda X, y: (X, y + 1),
    "length": lambda X, y: (X, y[:3]),
    "classes": lambda X, y: (X, y, [0, 1, 2]),
    "weights": lambda X, y: (X, y, None, -np.ones(len(y))),
    "features": lambda X, y: (X[:, :4], y),
}


@pytest.mark.parametrize("name", FAILING_UPDATES)
def test_after_a_partial_fit_that_failed_the_model_is_as_it_was(model, X, y, name):
    with left_as_it_was(model, X), pytest.raises(DataError):
        model.partial_fit(*FAILING_UPDATES[name](X, y))


@pytest.mark.parametrize("parameters", [{}, {"lr": -1}, FAIL])
def test_a_first_partial_fit_that_failed_can_be_made_again(X, y, parameters):
    clf, rows, classes = small(**parameters), X, [0, 1]
    if not parameters:
        rows, classes = X[:, :3], [5, 6]
    with pytest.raises((SetConvError, RuntimeError)):
        clf.partial_fit(rows, y, classes=classes)
    clf.set_params(lr="auto", callbacks=()).partial_fit(X, y, classes=[0, 1])
    assert np.array_equal(clf.predict_proba(X), small().fit(X, y).predict_proba(X))
