"""A table of numbers, categories and gaps as a matrix."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from setconv.errors import DataError, DataTypeError, ParameterError
from setconv.io.encoder import FeatureEncoder

TRAIN = pa.table(
    {
        "age": ["37", "", "21", "NA", "50", "37"],
        "city": ["Rome", "Oslo", "Rome", "?", "Oslo", "Rome"],
        "member": [True, False, None, True, True, False],
        "vector": pa.array([[n, n + 0.5] for n in range(6)], pa.list_(pa.float32(), 2)),
        "constant": ["x"] * 6,
        "name": [f"person {n}" for n in range(6)],
        "gone": pa.nulls(6),
    }
)


@pytest.fixture
def encoder():
    return FeatureEncoder().fit(TRAIN)


def column(matrix, encoder, name):
    return matrix[:, list(encoder.get_feature_names_out()).index(name)].tolist()


def test_a_table_of_all_kinds(encoder):
    found = encoder.transform(TRAIN)
    assert found.dtype == np.float32
    assert list(encoder.get_feature_names_out()) == [
        *("age", "age=(missing)", "city=Rome", "city=Oslo", "city=(other)", "city=(missing)"),
        *("member", "member=(missing)", "vector[0]", "vector[1]"),
    ]
    expected = [
        [37, 0, 1, 0, 0, 0, 1, 0, 0, 0.5],
        [37, 1, 0, 1, 0, 0, 0, 0, 1, 1.5],
        [21, 0, 1, 0, 0, 0, 1, 1, 2, 2.5],
        [37, 1, 0, 0, 0, 1, 1, 0, 3, 3.5],
        [50, 0, 0, 1, 0, 0, 1, 0, 4, 4.5],
        [37, 0, 1, 0, 0, 0, 0, 0, 5, 5.5],
    ]
    assert found.tolist() == expected


def test_the_notes_say_what_was_done(encoder):
    said = "".join(encoder.notes_)
    assert "age: 2 missing values were filled with the median 37" in said
    assert "city: 2 categories" in said
    for name in ("constant", "name", "gone"):
        assert f"{name}: left out" in said


@pytest.mark.parametrize("token", ["", "NA", "nan", "NaN", "null", "?", "N/A", " n/a "])
def test_every_sign_for_missing_is_missing(token):
    encoder = FeatureEncoder().fit({"x": ["1", "3", token, "9"]})
    assert encoder.transform({"x": [token]}).tolist() == [[3, 1]]


@pytest.mark.parametrize("number", ["1", "-1", "+1", "1.5", ".5", "5.", "1e3", "1E-3", " 2 "])
def test_strings_that_are_numbers_are_numbers(number):
    encoder = FeatureEncoder().fit({"x": ["0", number, "7"]})
    assert encoder.transform({"x": [number]}).tolist() == [[np.float32(float(number))]]


def test_a_gap_that_training_did_not_have_is_filled_without_a_second_column():
    encoder = FeatureEncoder().fit({"x": [1.0, 2.0, 5.0], "c": ["a", "b", "a"]})
    found = encoder.transform({"x": [None, float("nan")], "c": ["", None]})
    assert found.tolist() == [[2, 0, 0, 1]] * 2


def test_categories_beyond_the_most_frequent_share_a_column_with_unknown_ones():
    values = [f"c{n:02d}" for n in range(40) for _ in range(50 - n)]
    encoder = FeatureEncoder().fit({"c": values})
    found = encoder.transform({"c": ["c00", "c29", "c30", "never seen"]})
    assert found.shape == (4, 31)
    assert found.argmax(axis=1).tolist() == [0, 29, 30, 30]
    assert "the 30 most frequent of 40 categories" in encoder.notes_[0]
    assert FeatureEncoder(max_categories=2).fit({"c": values}).transform({"c": ["x"]}).shape[1] == 3


def test_free_texts_and_types_that_cannot_be_features_are_left_out_and_it_is_said():
    texts = [f"some words {n}" for n in range(30)] + ["good"] * 10
    encoder = FeatureEncoder().fit({"t": texts, "x": range(40), "s": [{"a": 1}, {"a": 2}] * 20})
    assert encoder.get_feature_names_out().tolist() == ["x"]
    assert [note.split(",")[0] for note in encoder.notes_] == ["t: left out", "s: left out"]


def test_true_and_false_as_strings_are_one_column():
    encoder = FeatureEncoder().fit({"b": ["True", "false", "TRUE"]})
    assert encoder.transform({"b": ["false", "true"]}).tolist() == [[0], [1]]
    assert encoder.transform({"b": [True, False]}).tolist() == [[1], [0]]


def test_dates_become_days_and_it_is_said():
    days = ["1970-01-02", "1970-01-03 12:00:00", "1970-01-11"]
    for values in (days, pd.to_datetime(days, format="mixed")):
        encoder = FeatureEncoder().fit(pd.DataFrame({"d": values}))
        assert encoder.notes_ == ["d: dates became days since 1970-01-01."]
        assert encoder.transform(pd.DataFrame({"d": values})).tolist() == [[1], [2.5], [10]]


def test_nearly_numbers_are_categories_and_it_is_said():
    encoder = FeatureEncoder().fit({"x": ["1", "2"] * 20 + ["unknown"]})
    assert "1 of 41 values are not, such as 'unknown'" in encoder.notes_[-1]
    assert "x=unknown" in encoder.get_feature_names_out()


def test_types_may_differ_between_training_and_prediction():
    encoder = FeatureEncoder().fit({"x": ["1", "2", "4"], "c": ["1", "b", "1"]})
    assert encoder.transform({"c": [1], "x": [4.0], "more": ["?"]}).tolist() == [[4, 1, 0, 0]]


def test_a_missing_column_is_named_with_near_ones(encoder):
    with pytest.raises(DataError, match=r"Did you mean 'City'\?") as caught:
        encoder.transform(TRAIN.rename_columns({"city": "City"}))
    assert caught.value.column == "city"


@pytest.mark.parametrize(
    ("train", "values"),
    [
        (["1", "2"], ["1", "about 30"]),
        (["1970-01-02", "1970-01-03"], ["1970-01-02", "soon"]),
        (["true", "false"], ["true", "maybe"]),
        ([1.0, 2.0], [1.0, float("inf")]),
        ([1.0, 2.0], [1.0, 1e300]),
        ([[1.0, 2.0]], [[1.0, 2.0], [1.0]]),
        ([[1.0, 2.0]], [[1.0, 2.0], None]),
        ([[1.0, 2.0]], [[1.0, 2.0], [1.0, None]]),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_row(train, values):
    encoder = FeatureEncoder().fit({"x": train})
    first, second = (pa.array([one], pa.array(values).type) for one in values)
    many = pa.table({"x": pa.concat_arrays([first] * 9000 + [second])})
    for rows, expected in ((None, 9001), (np.arange(9001) * 2, 18000)):
        with pytest.raises(DataError) as caught:
            encoder.transform(many, rows=rows)
        assert (caught.value.column, caught.value.row) == ("x", expected)


def test_another_type_than_in_training_is_refused(encoder):
    table = TRAIN.drop(["vector"]).append_column("vector", TRAIN["age"])
    with pytest.raises(DataError) as caught:
        encoder.transform(table)
    assert caught.value.column == "vector"


@pytest.mark.parametrize("value", [[1], {"a": 1}, [[1]], b"\xff"], ids=repr)
@pytest.mark.parametrize("name", ["age", "city", "member", "vector"])
def test_a_cell_that_holds_more_than_one_value_is_refused_with_its_column(encoder, name, value):
    place = TRAIN.column_names.index(name)
    whole = pa.array([value] * 6)
    mixed = TRAIN.to_pydict() | {name: [value, *TRAIN[name].to_pylist()[1:]]}
    tables = [TRAIN.set_column(place, name, whole)]
    if name != "vector":
        tables += [mixed]
    for table in tables:
        with pytest.raises(DataError) as caught:
            encoder.transform(table)
        assert caught.value.column == name


def test_plain_numbers_are_taken_as_they_are_and_without_gaps():
    encoder = FeatureEncoder.of_numbers(["b", "a"])
    assert encoder.transform({"a": ["1", "2"], "b": [0.5, 4]}).tolist() == [[0.5, 1], [4, 2]]
    for value in (None, float("nan"), float("inf")):
        with pytest.raises(DataError) as caught:
            encoder.transform({"a": [1.0, value], "b": [1, 2]})
        assert (caught.value.column, caught.value.row) == ("a", 2)


def test_sliced_lists_are_those_of_their_rows(encoder):
    whole = encoder.transform(TRAIN)
    assert np.array_equal(encoder.transform(TRAIN.slice(2, 3)), whole[2:5])


@pytest.mark.parametrize("make", [pa.Table.to_pandas, pl.from_arrow, pa.Table.to_pydict])
def test_frames_of_other_libraries_give_the_same(make):
    names = ["age", "city", "member"]
    expected = FeatureEncoder().fit_transform(TRAIN.select(names))
    assert np.array_equal(FeatureEncoder().fit_transform(make(TRAIN.select(names))), expected)


def test_what_is_no_table_is_refused():
    with pytest.raises(DataTypeError):
        FeatureEncoder().fit(np.zeros((2, 2)))
    with pytest.raises(DataError):
        FeatureEncoder().fit(pd.Series([1, 2]))
    for values in ([1, "a"], [], [1, 1], [[], []], [2**64, 1], [10**400, 1]):
        with pytest.raises(DataError):
            FeatureEncoder().fit({"x": values})
    with pytest.raises(DataError, match="2 columns are called 'a'"):
        FeatureEncoder().fit(pa.table([[1, 2], [3, 4]], names=["a", "a"]))
    for number in (0, "x", None, 1.5):
        with pytest.raises(ParameterError):
            FeatureEncoder(number).fit(TRAIN)


values = st.one_of(st.none(), st.sampled_from(["", "NA", "1", "2.5", "-3", "a", "b", "true"]))


@given(
    rows=st.lists(st.tuples(values, values, st.floats(-1e6, 1e6)), min_size=4, max_size=40),
    size=st.integers(1, 10),
)
def test_batches_give_the_same_as_the_whole_and_so_does_a_restored_encoder(rows, size):
    first, second, third = zip(*rows, strict=True)
    columns = {"first": pa.array(first, pa.string()), "second": pa.array(second, pa.string())}
    table = pa.table({**columns, "third": third, "anchor": range(len(rows))})
    encoder = FeatureEncoder(max_categories=2).fit(table)
    whole = encoder.transform(table)
    assert whole.shape == (len(rows), len(encoder.get_feature_names_out()))
    assert np.isfinite(whole).all()
    config, arrays = encoder.describe()
    again = FeatureEncoder.restore(json.loads(json.dumps(config)), arrays)
    assert (again.notes_, again.get_params()) == (encoder.notes_, encoder.get_params())
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    parts = [table.slice(start, size) for start in range(0, len(rows), size)]
    assert np.array_equal(np.vstack([again.transform(part) for part in parts]), whole)


def test_it_follows_scikit_learn(encoder):
    with pytest.raises(NotFittedError):
        clone(encoder).transform(TRAIN)
    with pytest.raises(ParameterError):
        FeatureEncoder(max_categories=0).fit(TRAIN)
    model = make_pipeline(FeatureEncoder(), LogisticRegression()).fit(TRAIN, [0, 1, 0, 1, 0, 1])
    assert model.predict(TRAIN).shape == (6,)
    framed = clone(encoder).set_output(transform="pandas").fit_transform(TRAIN)
    assert list(framed.columns) == encoder.get_feature_names_out().tolist()


def test_notes_on_dates_name_dates():
    table = {"a": ["2024-01-31", "2024-02-02", ""], "b": ["2024-01-31"] * 3}
    notes = " ".join(FeatureEncoder().fit(table).notes_)
    assert "filled with the median 2024-02-01" in notes
    assert "it is 2024-01-31 in every row" in notes
