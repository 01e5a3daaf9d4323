"""Whatever cannot work is refused with the error of its kind, the culprit, and what to do next."""

import re

import numpy as np
import pytest
from scipy import sparse

from setconv.classifier import SetConvClassifier
from setconv.errors import (
    DataError,
    DivergedError,
    LabelError,
    NotFittedError,
    ParameterError,
    SetConvError,
)
from setconv.training import Callback
from setconv.validation import check_rows

NAMES = list("abcdefgh")


def small(**parameters):
    values = {"n_members": 2, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 4}
    return SetConvClassifier(**{**values, "random_state": 0, "progress": False, **parameters})


def refuses(kind, *words):
    """Expect exactly this error of setconv, with all words in its message."""
    pattern = "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)
    return pytest.raises(kind, match=pattern)


@pytest.fixture
def X(binary):  # noqa: N802
    return binary[0].copy()


@pytest.fixture
def y(binary):
    return binary[1].copy()


@pytest.fixture
def pandas_frame(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=NAMES)


@pytest.fixture
def polars_frame(X):
    return pytest.importorskip("polars").DataFrame(X, schema=NAMES)


@pytest.fixture(scope="module")
def model(binary):
    return small().fit(*binary)


def test_the_check_of_messages_wants_every_word():
    with pytest.raises(AssertionError), refuses(ValueError, "left", "right"):
        raise ValueError("left out")


# ----------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_that_is_not_finite_is_refused_with_its_row_and_column(X, y, value, kind, dtype):
    X[17, 5] = value
    X[90, 2] = value
    with refuses(DataError, kind, "row 17", "column 5", "2 values", "SimpleImputer"):
        small().fit(X.astype(dtype), y)


@pytest.mark.parametrize("kind", ["pandas_frame", "polars_frame"])
def test_a_missing_value_of_a_frame_is_refused_with_the_name_of_its_column(kind, y, request):
    frame = request.getfixturevalue(kind)
    holes = np.ones(len(y))
    holes[3] = np.nan
    if kind == "pandas_frame":
        frame = frame.assign(c=holes)
    else:
        polars = pytest.importorskip("polars")
        frame = frame.with_columns(polars.Series("c", holes).fill_nan(None))
    with refuses(DataError, "NaN", "row 3", "column 'c'", "impute"):
        small().fit(frame, y)


def test_a_missing_value_of_a_nullable_column_is_called_missing(pandas_frame, y):
    pandas = pytest.importorskip("pandas")
    values = pandas.array([None] + [1] * (len(y) - 1), dtype="Int64")
    with refuses(DataError, "NaN", "row 0", "column 'c'"):
        small().fit(pandas_frame.assign(c=values), y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_rows_to_predict_are_checked_like_rows_to_fit(model, X, method):
    X[4, 1] = np.nan
    with refuses(DataError, "NaN", "row 4", "column 1"):
        getattr(model, method)(X)


def test_rows_whose_sum_overflows_but_which_are_finite_are_not_called_infinite(X):
    X[:2, 0] = np.finfo(np.float64).max
    assert np.array_equal(check_rows(small(), X, reset=True), X)


@pytest.mark.parametrize(
    ("scaling", "words"), [(None, ["too large for float32"]), ("standard", ["too large"])]
)
def test_a_column_of_enormous_values_is_refused_by_its_number(X, y, scaling, words):
    X[:, 6] *= 1e200
    with refuses(DataError, "Column 6", "rescale", *words):
        small(scaling=scaling).fit(X, y)


def test_rows_too_large_for_a_model_without_scaling_are_refused_in_prediction(X, y):
    clf = small(scaling=None).fit(X, y)
    try:
        shares = clf.predict_proba(np.full((1, 8), 1e38))
    except DataError:
        return
    assert np.isfinite(shares).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_are_refused(X, y, rows):
    error, word = (DataError, "0 sample(s)") if rows == 0 else (LabelError, "one class")
    with refuses(error, word):
        small().fit(X[:rows], y[:rows])


def test_rows_without_columns_are_refused(X, y):
    with refuses(DataError, "0 feature(s)", "(240, 0)"):
        small().fit(X[:, :0], y)


@pytest.mark.parametrize("bad", ["1-D", "3-D", "ragged", "scalar", "None"])
def test_rows_of_a_wrong_shape_are_refused(X, y, bad):
    rows, word = {
        "1-D": (X[:, 0], "reshape(-1, 1)"),
        "3-D": (X[None], "dim 3"),
        "ragged": ([[1, 2], [3]] * 120, "inhomogeneous"),
        "scalar": (3, "2D"),
        "None": (None, "2D"),
    }[bad]
    with refuses(DataError, word):
        small().fit(rows, y)


@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_matrix", "coo_array"])
def test_a_value_of_sparse_rows_that_is_not_finite_is_refused_with_its_place(
    model, X, y, value, kind, form
):
    X[:17, 5] = 0  # what is stored before it does not count
    X[17, 5] = value
    X[90, 2] = value
    rows = getattr(sparse, form)(X)
    for call in (lambda: small().fit(rows, y), lambda: model.predict(rows)):
        with refuses(DataError, kind, "row 17", "column 5", "replace"):
            call()


@pytest.mark.parametrize("method", ["predict", "transform", "partial_fit"])
def test_sparse_rows_of_another_width_than_in_the_fit_are_refused(model, X, y, method):
    rows = sparse.csr_matrix(X[:, :3])
    with refuses(DataError, "X has 3 features", "expecting 8"):
        getattr(model, method)(*((rows, y) if method == "partial_fit" else (rows,)))


def test_complex_sparse_rows_are_refused(X, y):
    with refuses(DataError, "Complex"):
        small().fit(sparse.csr_matrix(X.astype(complex)), y)


@pytest.mark.parametrize("kind", ["pandas_frame", "polars_frame"])
def test_columns_of_text_are_refused_by_name(kind, y, request):
    frame = request.getfixturevalue(kind)
    text = ["red", "blue"] * (len(y) // 2)
    if kind == "pandas_frame":
        pandas = pytest.importorskip("pandas")
        frame = frame.assign(c=text, f=pandas.Categorical(text))
    else:
        polars = pytest.importorskip("polars")
        frame = frame.with_columns(polars.Series("c", text), polars.Series("f", text))
    with refuses(DataError, "not numbers", "'c', 'f'", "OneHotEncoder"):
        small().fit(frame, y)


@pytest.mark.parametrize("kind", ["pandas_frame", "polars_frame"])
def test_columns_of_dates_are_refused_by_name(kind, y, request):
    frame = request.getfixturevalue(kind)
    dates = np.full(len(y), np.datetime64("2020-01-01", "us"))
    if kind == "pandas_frame":
        frame = frame.assign(c=dates)
    else:
        frame = frame.with_columns(pytest.importorskip("polars").Series("c", dates))
    with refuses(DataError, "not numbers", "'c'"):
        small().fit(frame, y)


@pytest.mark.parametrize("dtype", [object, str])
def test_an_array_of_strings_is_refused_with_one_of_them(y, dtype):
    with refuses(DataError, "string", "'red'"):
        small().fit(np.array([["red", "blue"]] * len(y), dtype=dtype), y)


def test_an_array_of_strings_is_refused_with_its_column_and_a_next_step(X, y):
    rows = X.astype(object)
    rows[:, 3] = "red"
    with refuses(DataError, "column 3", "Encode"):
        small().fit(rows, y)


def test_complex_rows_are_refused(X, y):
    with refuses(DataError, "Complex"):
        small().fit(X.astype(complex), y)


@pytest.mark.parametrize("method", ["predict", "transform", "partial_fit"])
def test_another_number_of_features_than_in_the_fit_is_refused(binary, method):
    X, y = binary
    clf = small().fit(X, y)
    arguments = (X[:, :3], y) if method == "partial_fit" else (X[:, :3],)
    with refuses(DataError, "X has 3 features", "expecting 8"):
        getattr(clf, method)(*arguments)


@pytest.mark.parametrize("kind", ["pandas_frame", "polars_frame"])
def test_other_names_of_features_than_in_the_fit_are_refused(kind, y, request):
    frame = request.getfixturevalue(kind)
    clf = small().fit(frame, y)
    renamed = (
        frame.rename({"a": "z"}) if kind == "polars_frame" else frame.rename(columns={"a": "z"})
    )
    with refuses(DataError, "unseen at fit time", "- z", "now missing", "- a"):
        clf.predict(renamed)
    with refuses(DataError, "same order"):
        clf.predict(frame[NAMES[::-1]])
    with refuses(DataError, "unseen at fit time", "- z"):
        clf.partial_fit(renamed, y)


# --------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("label", [0, "spam", True])
def test_a_single_class_is_refused_by_its_name(X, label):
    with refuses(LabelError, "only one class", str(label), "240 rows", "at least two classes"):
        small().fit(X, [label] * len(X))


def test_a_class_whose_rows_all_weigh_nothing_is_no_class(X, y):
    with refuses(LabelError, "only one class"):
        small().fit(X, y, sample_weight=(y == 1).astype(float))


@pytest.mark.parametrize("labels", [239, 241])
def test_another_number_of_labels_than_rows_is_refused(X, y, labels):
    with refuses(LabelError, "X has 240 rows", f"y has {labels} labels"):
        small().fit(X, np.resize(y, labels))


def test_no_labels_are_refused(X):
    with refuses(LabelError, "y is None", "give a label for each row"):
        small().fit(X, None)


def test_labels_in_two_columns_are_refused(X, y):
    with refuses(LabelError, "1d array", "(240, 2)"):
        small().fit(X, np.column_stack([y, y]))


def test_numbers_that_are_no_labels_are_refused(X):
    with refuses(LabelError, "continuous", "discrete classes"):
        small().fit(X, X[:, 0])


def test_nan_among_numbers_is_refused(X, y):
    with refuses(LabelError, "NaN"):
        small().fit(X, np.where(y == 1, np.nan, 0.0))


MISSING = {
    "None": lambda text: [None, *text[1:]],
    "None later": lambda text: [*text[:5], None, *text[6:]],
    "nan": lambda text: np.array([*text[:5], np.nan, *text[6:]], dtype=object),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_label_is_a_label_error(X, y, name):
    with pytest.raises(LabelError):
        small().fit(X, MISSING[name](y.astype(str).tolist()))


@pytest.mark.parametrize("name", [*MISSING, "numbers"])
def test_a_missing_label_is_refused_with_its_row(X, y, name):
    labels = [*y[:5], np.nan, *y[6:]]
    if name != "numbers":
        labels = MISSING[name](y.astype(str).tolist())
    row = 0 if name == "None" else 5
    with refuses(LabelError, "no label", f"row {row}", "remove those rows or label them"):
        small().fit(X, labels)


@pytest.mark.parametrize("dtype", ["string", object])
def test_a_missing_label_of_pandas_is_refused_with_its_row(X, y, dtype):
    pandas = pytest.importorskip("pandas")
    text = y.astype(str).tolist()
    labels = pandas.Series([*text[:5], pandas.NA, *text[6:]], dtype=dtype)
    with refuses(LabelError, "no label", "row 5"):
        small().fit(X, labels)


MIXED = {
    "strings first": ["a"] * 100 + [1] * 140,
    "numbers first": [1] * 100 + ["a"] * 140,
}


@pytest.mark.parametrize("name", MIXED)
def test_labels_of_different_types_are_a_label_error(X, name):
    with pytest.raises(LabelError):
        small().fit(X, np.array(MIXED[name], dtype=object))


@pytest.mark.parametrize("name", MIXED)
def test_labels_of_different_types_are_refused_with_the_types(X, name):
    with refuses(LabelError, "different types", "int, str", "one type"):
        small().fit(X, np.array(MIXED[name], dtype=object))


@pytest.mark.parametrize("kind", [int, bool])
def test_integers_and_bools_in_an_object_array_are_labels(X, y, kind):
    labels = np.array([kind(label) for label in y], dtype=object)
    assert small().fit(X, labels).classes_.tolist() == [kind(0), kind(1)]


def test_an_unknown_label_in_partial_fit_is_refused_by_name(binary):
    X, y = binary
    clf = small().fit(X, y)
    before = clf.predict_proba(X)
    with refuses(LabelError, "y has labels", "[0, 1]", "[7, 9]", "row 2", "Fit anew"):
        clf.partial_fit(X[:4], [0, 1, 9, 7])
    assert np.array_equal(clf.predict_proba(X), before)
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()


def test_a_label_that_was_not_announced_is_refused_by_name(X, y):
    with refuses(LabelError, "[1, 2]", "[0]", "row 0"):
        small().partial_fit(X, y, classes=[1, 2])


def test_labels_of_another_type_than_the_classes_are_unknown(binary):
    X, y = binary
    clf = small().fit(X, np.where(y == 1, 10, 2))
    with refuses(LabelError, "[2, 10]", "'2'"):
        clf.partial_fit(X[:2], ["2", "10"])


def test_the_first_partial_fit_without_classes_is_refused(X, y):
    clf = small()
    with refuses(LabelError, "classes=", "first call"):
        clf.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_other_classes_in_a_later_partial_fit_are_refused(X, y):
    clf = small().fit(X, y)
    with refuses(LabelError, "[0, 1, 2]", "[0, 1]", "new estimator"):
        clf.partial_fit(X, y, classes=[0, 1, 2])


def test_a_single_announced_class_is_refused(X, y):
    with refuses(LabelError, "only one class", "1"):
        small().partial_fit(X, y, classes=[1])


def test_classes_that_are_no_list_are_refused(X, y):
    with refuses(LabelError, "classes"):
        small().partial_fit(X, y, classes=1)


# ------------------------------------------------------------------- weights, groups, validation


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_weight_that_cannot_be_is_refused_with_its_row(X, y, bad):
    weights = np.ones(len(y))
    weights[11] = bad
    with refuses(DataError, f"sample_weight is {bad} in row 11", "finite and not negative"):
        small().fit(X, y, weights)


def test_weights_that_are_all_zero_are_refused(X, y):
    with refuses(DataError, "sample_weight is zero for every row", "at least one positive"):
        small().fit(X, y, np.zeros(len(y)))


@pytest.mark.parametrize("shape", [(239,), (240, 1)])
def test_weights_of_a_wrong_shape_are_refused(X, y, shape):
    with refuses(DataError, f"sample_weight has shape {shape}", "240 rows"):
        small().fit(X, y, np.ones(shape))


def test_weights_that_are_no_numbers_are_refused(X, y):
    with refuses(DataError, "sample_weight must be numbers", "heavy"):
        small().fit(X, y, ["heavy"] * len(y))


def test_groups_of_a_wrong_length_are_refused(X, y):
    with refuses(DataError, "groups has shape (239,)", "240 rows"):
        small(early_stopping=True).fit(X, y, groups=np.arange(239))


def test_a_single_group_cannot_be_split(X, y):
    with refuses(DataError, "groups", "X_val"):
        small(early_stopping=True).fit(X, y, groups=np.zeros(240))


def test_a_seed_that_works_without_groups_works_with_them(X, y):
    clf = small(random_state=2**40, early_stopping=True)
    clf.fit(X, y)
    clf.fit(X, y, groups=np.arange(len(y)) // 2)


def test_a_class_that_lives_in_one_group_cannot_be_split(X, y):
    with refuses(DataError, "some class has no rows left", "X_val"):
        small(early_stopping=True).fit(X, y, groups=y)


@pytest.mark.parametrize("given", ["X_val", "y_val"])
def test_validation_rows_and_labels_come_together(X, y, given):
    value = X if given == "X_val" else y
    with refuses(DataError, "both X_val and y_val, or neither"):
        small().fit(X, y, **{given: value})


def test_an_unknown_label_of_the_validation_rows_is_refused_by_name(X, y):
    with refuses(LabelError, "y_val has labels", "[0, 1]", "[8]", "row 3"):
        small().fit(X, y, X_val=X[:5], y_val=[0, 1, 1, 8, 0])


VALIDATION = {
    "features": lambda X, y: (X[:, :3], y),
    "nan": lambda X, y: (X * np.nan, y),
    "length": lambda X, y: (X, y[:3]),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "no labels": lambda X, y: (X, [None] * len(y)),
}


@pytest.mark.parametrize("name", VALIDATION)
def test_validation_rows_that_cannot_be_used_are_refused(X, y, name):
    rows, labels = VALIDATION[name](X, y)
    with pytest.raises(DataError):
        small().fit(X, y, X_val=rows, y_val=labels)


@pytest.mark.parametrize("name", VALIDATION)
def test_validation_rows_that_cannot_be_used_are_named(X, y, name):
    rows, labels = VALIDATION[name](X, y)
    with pytest.raises(DataError, match="_val"):
        small().fit(X, y, X_val=rows, y_val=labels)


def test_rows_too_few_for_a_validation_part_are_refused(X, y):
    rows = [int(np.flatnonzero(y == label)[0]) for label in (0, 1)]
    with refuses(DataError, "validation"):
        small(early_stopping=True).fit(X[rows], y[rows])


# ----------------------------------------------------------------------------------- parameters


BAD_PARAMETERS = [
    ("scaling", "minmax", "or None"),
    ("scaling", True, "or None"),
    ("scaling", ["standard", "minmax"], "'normal'"),
    ("scaling", [], "a list"),
    ("n_members", 0, "at least 1"),
    ("n_members", -3, '"auto"'),
    ("objective", "precision", "recall>=0.95"),
    ("objective", "recall>=2", "up to 1"),
    ("objective", {"recall": 0.9, "class": "no"}, "[0, 1]"),
    ("objective", [[0, 1]], "(2, 2)"),
    ("objective", 3, "cost matrix"),
    ("encoder", (0,), "at least 1"),
    ("encoder", (16, -1), "at least 1"),
    ("out_features", 0, "at least 1"),
    ("out_features", -3, "at least 1"),
    ("output", 0, "at least 1"),
    ("output", -1, "at least 1"),
    ("similarity", "euclid", '"cosine" or "dot"'),
    ("similarity", None, '"cosine" or "dot"'),
    ("dropout", -0.1, "from 0"),
    ("dropout", 1, "from 0"),
    ("dropout", np.nan, "from 0"),
    ("input_dropout", -0.1, "from 0"),
    ("input_dropout", 1.0, "from 0"),
    ("heads", "joint", '"shared" or "separate"'),
    ("heads", None, '"shared" or "separate"'),
    ("anchor", "median", "'kmeans'"),
    ("anchor", None, "(k, 8)"),
    ("anchor", 5, "(k, 8)"),
    ("anchor", np.zeros(3), "(3,)"),
    ("anchor", np.zeros((0, 8)), "(0, 8)"),
    ("anchor", [np.nan] * 8, "finite"),
    ("anchor", np.zeros((3, 1, 8)), "3 heads"),
    ("anchor", lambda rows: rows[:, :2], "2)"),
    ("anchor", lambda rows: rows * np.inf, "finite"),
    ("support_size", 1, "at least 2"),
    ("support_size", 0, "at least 2"),
    ("n_queries", 0, "at least one"),
    ("n_queries", -1, "at least one"),
    ("n_episodes", 0, "at least one"),
    ("query_source", "elsewhere", '"disjoint" or "support"'),
    ("max_steps", -1, "0 or more"),
    ("optimizer", "sgd", '"adamw" or "adam"'),
    ("lr", 0, "positive"),
    ("lr", -0.1, "positive"),
    ("lr", np.nan, "positive"),
    ("lr", {"encoder": 0.1}, "setconv"),
    ("lr", {"encoder": 0.1, "setconv": 0.1, "output": 0}, "positive"),
    ("lr", {"encoder": 0.1, "setconv": 0.1, "output": 0.1, "all": 0.1}, "exactly the keys"),
    ("weight_decay", -1, "0 or more"),
    ("schedule", "linear", "'one_cycle'"),
    ("post_size", 0, "at least 2"),
    ("post_size", 1, "at least 2"),
    ("validation_fraction", 0, "between 0 and 1"),
    ("validation_fraction", 1, "between 0 and 1"),
    ("validation_fraction", -0.5, "between 0 and 1"),
    ("validation_fraction", np.nan, "between 0 and 1"),
    ("patience", 0, "at least 1"),
    ("monitor", "accuracy", "'g_mean'"),
    ("monitor", None, "'g_mean'"),
    ("device", "nonsense", "cannot be used here"),
    ("device", None, "cannot be used here"),
]


def case(value):
    return value.__name__ if callable(value) else None


@pytest.mark.parametrize(("name", "value", "advice"), BAD_PARAMETERS, ids=case)
def test_a_parameter_that_cannot_work_is_refused_by_name(X, y, name, value, advice):
    clf = small(**{"early_stopping": True, name: value})
    with refuses(ParameterError, name, advice):
        clf.fit(X, y)
    assert not hasattr(clf, "network_")


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("even", '"balanced"'),
        ([1, 2], "dict"),
        (3, "dict"),
        ({5: 1}, "[5]"),
        ({0: 1, "1": 2}, "['1']"),
        ({0: -1}, "positive"),
        ({1: 0}, "positive"),
        ({1: np.nan}, "positive"),
    ],
)
def test_a_class_weight_that_cannot_work_is_refused(X, y, value, advice):
    with refuses(ParameterError, "class_weight", advice):
        small(class_weight=value).fit(X, y)


WRONG_TYPES = [
    ("encoder", 16),
    ("encoder", None),
    ("encoder", "ab"),
    ("encoder", (1.5,)),
    ("out_features", None),
    ("out_features", 1.5),
    ("output", "wide"),
    ("dropout", None),
    ("input_dropout", "half"),
    ("anchor", ["a"] * 8),
    ("support_size", None),
    ("n_queries", 1.5),
    ("n_episodes", 1.5),
    ("n_members", 1.5),
    ("n_members", "many"),
    ("max_steps", "many"),
    ("max_steps", None),
    ("lr", "fast"),
    ("lr", None),
    ("weight_decay", "x"),
    ("weight_decay", np.nan),
    ("class_weight", {0: "heavy"}),
    ("post_size", "all"),
    ("validation_fraction", "a"),
    ("patience", "long"),
    ("callbacks", None),
    ("callbacks", [1]),
    ("random_state", "abc"),
    ("random_state", -1),
]


@pytest.mark.parametrize(("name", "value"), WRONG_TYPES)
def test_a_parameter_of_a_wrong_type_is_refused_by_name(X, y, name, value):
    with refuses(ParameterError, name):
        small(**{"early_stopping": True, name: value}).fit(X, y)


# Half a step, half a row, any truthy word.
NONSENSE = [
    ("max_steps", 1.5),
    ("support_size", 64.5),
    ("patience", 1.5),
    ("random_state", 1.5),
    ("lr", np.inf),
    ("progress", "always"),
]


@pytest.mark.parametrize(("name", "value"), NONSENSE)
def test_a_parameter_that_makes_no_sense_is_refused_by_name(X, y, name, value):
    with refuses(ParameterError, name):
        small(**{"early_stopping": True, name: value}).fit(X, y)


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_a_support_set_smaller_than_the_number_of_classes_is_refused(multiclass, heads):
    # Separate heads tell two sides apart, whatever the number of classes.
    too_small = 3 if heads == "shared" else 1
    least = too_small + 1
    with refuses(ParameterError, f"support_size={too_small}", f"at least {least}"):
        small(support_size=too_small, heads=heads).fit(*multiclass)
    small(support_size=least, heads=heads).fit(*multiclass)


def test_training_that_diverges_says_what_to_lower(X, y):
    with refuses(DivergedError, "loss is nan", "step", "lower lr", "1e+35", "scaling="):
        small(lr=1e35, scaling=None, schedule="constant").fit(X, y)


# ------------------------------------------------------------------------------------ unfitted


@pytest.mark.parametrize(
    "method",
    [
        "predict",
        "predict_proba",
        "decision_function",
        "predictions",
        "transform",
        "get_feature_names_out",
        "set_objective",
        "set_prior",
        "save",
    ],
)
def test_an_estimator_without_a_model_says_so(X, tmp_path, method):
    with refuses(NotFittedError, "SetConvClassifier", "not fitted", "Call 'fit'"):
        getattr(small(), method)(tmp_path / "model" if method == "save" else X)


# ------------------------------------------------------------------------------ moving the decision


@pytest.mark.parametrize(
    "objective", ["roc", "recall>=0", {"precision": 0.5, "class": 9}, np.eye(3)]
)
def test_an_objective_that_cannot_be_leaves_the_decision_as_it_was(model, X, objective):
    before = model.predict(X), model.threshold_, model.objective
    with refuses(ParameterError, "objective"):
        model.set_objective(objective)
    assert np.array_equal(model.predict(X), before[0])
    assert (model.threshold_, model.objective) == before[1:]


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.0, 0.0], [1.0], {"no": 0.5}, "many", [np.nan, 1]])
def test_a_prior_that_cannot_be_leaves_the_decision_as_it_was(model, X, prior):
    before = model.predict_proba(X)
    with refuses(ParameterError, "prior="):
        model.set_prior(prior)
    assert np.array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("objective", ["f1", "recall>=0.9", [[0, 1], [9, 0]]])
def test_an_objective_without_rows_to_choose_on_is_refused_before_training(X, y, objective):
    class Never(Callback):
        def on_fit_begin(self, state):
            raise AssertionError(f"training began: {state}")

    with refuses(ParameterError, "objective=", "n_members=1", "X_val"):
        small(n_members=1, objective=objective, callbacks=[Never()]).fit(X, y)
    small(n_members=1, objective=objective, early_stopping=True).fit(X, y)


def test_a_decision_without_out_of_fold_scores_cannot_be_moved(X, y):
    clf = small(n_members=1).fit(X, y)
    with refuses(ParameterError, "no out-of-fold scores", "members"):
        clf.set_objective("f1")


# ------------------------------------------------------------------------------ nothing half done


class Fail(Callback):
    """Ends a run with an error after a few steps."""

    def on_step_end(self, state):
        if state.step == 3:
            raise RuntimeError("in the middle of training")


def snapshot(clf, X):
    return clf.predict_proba(X), {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in vars(clf).items()
        if name.endswith("_") and name not in clf.get_params()
    }


def assert_as_before(clf, X, before):
    probabilities, attributes = before
    now = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    assert now.keys() == attributes.keys()
    for name, value in attributes.items():
        assert np.array_equal(now[name], value), f"{name} has changed"
    assert np.array_equal(clf.predict_proba(X), probabilities)


FAILING_FITS = {
    "nan": (lambda X, y: ((X * np.nan, y), {}), {}),
    "one class": (lambda X, y: ((X, 0 * y), {}), {}),
    "labels": (lambda X, y: ((X, y[:5]), {}), {}),
    "weights": (lambda X, y: ((X, y, -np.ones(len(y))), {}), {}),
    "groups": (lambda X, y: ((X, y), {"groups": [1]}), {}),
    "validation": (lambda X, y: ((X, y), {"X_val": X}), {}),
    "parameter": (lambda X, y: ((X, y), {}), {"lr": -1}),
    "anchor": (lambda X, y: ((X, y), {}), {"anchor": "median"}),
    "checkpoint": (lambda X, y: ((X, y), {"resume_from": "nowhere"}), {}),
    "other classes": (lambda X, y: ((X, y + 5), {}), {"callbacks": [Fail()]}),
    "in training": (lambda X, y: ((X, y), {}), {"callbacks": [Fail()]}),
    "diverged": (lambda X, y: ((X, y), {}), {"lr": 1e35, "scaling": None}),
}


@pytest.mark.parametrize("name", FAILING_FITS)
def test_after_a_fit_that_failed_the_earlier_model_is_as_it_was(X, y, name):
    arguments, parameters = FAILING_FITS[name]
    clf = small().fit(X, y)
    before = snapshot(clf, X)
    positional, named = arguments(X, y)
    with pytest.raises((SetConvError, RuntimeError)):
        clf.set_params(**parameters).fit(*positional, **named)
    assert_as_before(clf, X, before)


@pytest.mark.parametrize("name", ["nan", "labels", "one class", "parameter", "in training"])
def test_after_a_fit_on_other_columns_that_failed_the_earlier_model_is_as_it_was(X, y, name):
    arguments, parameters = FAILING_FITS[name]
    clf = small().fit(X, y)
    before = snapshot(clf, X)
    positional, named = arguments(X[:, :5], y)
    with pytest.raises((SetConvError, RuntimeError)):
        clf.set_params(**parameters).fit(*positional, **named)
    assert_as_before(clf, X, before)


def test_after_a_failed_fit_with_other_names_the_earlier_model_is_as_it_was(pandas_frame, y):
    clf = small().fit(pandas_frame, y)
    before = snapshot(clf, pandas_frame)
    with pytest.raises(LabelError):
        clf.fit(pandas_frame.rename(columns={"a": "z"}), 0 * y)
    assert_as_before(clf, pandas_frame, before)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda X, y: (X * np.nan, y),
        lambda X, y: (X, y + 1),
        lambda X, y: (X, y[:3]),
        lambda X, y: (X, y, [0, 1, 2]),
        lambda X, y: (X, y, None, -np.ones(len(y))),
        lambda X, y: (X[:, :4], y),
    ],
    ids=["nan", "label", "length", "classes", "weights", "features"],
)
def test_after_a_partial_fit_that_failed_the_model_is_as_it_was(X, y, arguments):
    clf = small().fit(X, y)
    before = snapshot(clf, X)
    with pytest.raises(DataError):
        clf.partial_fit(*arguments(X, y))
    assert_as_before(clf, X, before)


def test_a_first_partial_fit_that_failed_can_be_made_again(X, y):
    clf = small()
    with pytest.raises(LabelError):
        clf.partial_fit(X[:, :3], y, classes=[5, 6])
    clf.partial_fit(X, y, classes=[0, 1])
    assert np.array_equal(clf.predict_proba(X), small().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("parameters", [{"lr": -1}, {"callbacks": [Fail()]}])
def test_a_partial_fit_that_failed_in_its_fit_can_be_made_again(X, y, parameters):
    clf = small(**parameters)
    with pytest.raises((SetConvError, RuntimeError)):
        clf.partial_fit(X, y, classes=[0, 1])
    clf.set_params(lr=0.001, callbacks=()).partial_fit(X, y, classes=[0, 1])
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()
