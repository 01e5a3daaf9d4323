"""Which column holds texts, labels and features, and what classes a column of labels has."""

import logging

import numpy as np
import pyarrow as pa
import pytest

from setconv.errors import DataError, LabelError
from setconv.io.columns import (
    feature_columns,
    find_columns,
    find_label_column,
    find_text_column,
    has_label,
    has_text,
    labels_of,
)

LONG = [f"a text of several words, number {n}" for n in range(40)]
SHORT = ["yes", "no"] * 20
NUMBERS = [f"{n}.5" for n in range(40)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": NUMBERS, "Review": SHORT, "other": LONG}, "Review"),
        ({"id": NUMBERS, " body ": SHORT, "other": LONG}, " body "),
        ({"review_text": LONG, "notes": LONG}, "review_text"),
        ({"text_length": NUMBERS, "cleanedTweet": LONG}, "cleanedTweet"),
        ({"a": SHORT, "b": LONG, "c": NUMBERS}, "b"),
        ({"comment": SHORT, "review": LONG}, "review"),
        ({"a": SHORT, "c": NUMBERS, "text": NUMBERS}, None),
        ({"x": [1.0, 2.0]}, None),
    ],
)
def test_the_text_column_is_found_by_its_name_or_its_values(columns, expected):
    assert find_text_column(pa.table(columns)) == expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": SHORT, "Class": SHORT, "b": LONG}, "Class"),
        ({"a": SHORT, "y": SHORT, "b": LONG}, "y"),
        ({"airline_sentiment": SHORT, "sentiment_confidence": NUMBERS}, "airline_sentiment"),
        ({"t": LONG, "spam": SHORT, "n": NUMBERS}, "spam"),
        ({"t": LONG, "flag": [True, False] * 20}, "flag"),
    ],
)
def test_the_label_column_is_found_by_its_name_or_its_values(columns, expected):
    assert find_label_column(pa.table(columns)) == expected


def test_a_guess_by_values_is_said(caplog):
    caplog.set_level(logging.INFO, "setconv")
    found = find_columns(pa.table({"a": LONG, "b": SHORT}))
    assert (found.text, found.label) == ("a", "b")
    assert "'a', the only column with long strings" in caplog.text
    assert "'b', the only column with few distinct values" in caplog.text


def test_several_candidates_are_listed_with_examples():
    table = pa.table({"title": LONG, "words": LONG[::-1], "n": NUMBERS, "a": SHORT, "b": SHORT})
    with pytest.raises(DataError) as caught:
        find_text_column(table)
    assert caught.value.parameter == "text"
    assert "'title' (such as 'a text of several words, numbe...'), 'words'" in str(caught.value)
    assert "'n'" not in str(caught.value)
    for columns in (["a", "b"], ["title"]):
        with pytest.raises(DataError) as caught:
            find_label_column(table.select(columns))
        assert caught.value.parameter == "label"
        assert all(repr(name) in str(caught.value) for name in columns)


@pytest.mark.parametrize("parameter", ["text", "label", "group", "id", "features"])
def test_a_column_that_is_named_must_exist(parameter):
    table = pa.table({"review": LONG, "kind": SHORT})
    given = ["reveiw"] if parameter == "features" else "reveiw"
    with pytest.raises(DataError, match="Did you mean 'review'") as caught:
        find_columns(table, **{parameter: given})
    assert (caught.value.parameter, caught.value.column) == (parameter, "reveiw")


def test_columns_with_a_purpose_are_not_taken_for_another():
    table = pa.table({"class": SHORT, "kind": SHORT, "text": LONG, "words": LONG})
    assert find_columns(table, group="class").label == "kind"
    assert find_columns(table, id="text", label="kind").text == "words"
    assert find_columns(table, label="text", features=["kind"]).text is None
    assert find_columns(table, features=[], id="class").no_features == ["kind", "class"]
    for given in ({"features": ["class"], "label": "class"}, {"text": "text", "id": "text"}):
        with pytest.raises(DataError) as caught:
            find_columns(table, **given)
        assert caught.value.column in ("class", "text")


def test_features_are_all_columns_that_do_not_only_name_the_rows():
    table = pa.table(
        {
            "Unnamed: 0": list(range(40)),
            "customer_id": [7 * n % 41 for n in range(40)],
            "userId": [f"u{n}" for n in range(40)],
            "code": [f"x{n}" for n in range(40)],
            "age": [n % 7 for n in range(40)],
            "amount": NUMBERS,
            "day": [f"2024-01-{n % 28 + 1:02d}" for n in range(40)],
            "label": SHORT,
        }
    )
    names, notes = feature_columns(table, exclude=["label"])
    assert names == ["age", "amount", "day"]
    assert [note.split(":")[0] for note in notes] == ["Unnamed", "customer_id", "userId", "code"]


def test_numbers_as_strings_are_ids_too_and_few_rows_prove_nothing():
    assert feature_columns(pa.table({"n": [str(n) for n in range(40)]}))[0] == []
    assert feature_columns(pa.table({"n": [1, 2, 3], "word": ["a", "b", "c"]}))[0] == ["n", "word"]
    assert feature_columns(pa.table({"id": [1, 2, 3]}))[0] == []


# --------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0", "1", "-1"], [0, 1, -1]),
        (["1.0", "0.0", "2"], [1, 0, 2]),
        ([1.0, 0.0], [1, 0]),
        ([3, 1], [3, 1]),
        (["01", "1"], ["01", "1"]),
        (["-0", "1"], ["-0", "1"]),
        (["true", "false"], ["true", "false"]),
        ([True, False], [True, False]),
        (["1.5", "2"], ["1.5", "2"]),
        ([0.5, 1.0], ["0.5", "1"]),
    ],
)
def test_whole_numbers_become_ints_and_everything_else_stays(values, expected):
    for column in (
        pa.array(values),
        pa.chunked_array([values]),
        pa.array(values).dictionary_encode(),
    ):
        labels = labels_of(column)
        assert labels.tolist() == expected
        assert labels.dtype.kind == np.array(expected).dtype.kind


def test_which_rows_have_a_text_or_label():
    for values in (["a", "", "b", " "], ["a", None, "b", "NaN"], [1.0, None, 2.0, np.nan]):
        assert has_label(pa.array(values)).tolist() == [True, False, True, False]
    texts = pa.array(["a", "", None, " \t", "NaN"])
    assert has_text(texts).tolist() == [True, False, False, False, True]
    assert not has_text(pa.array([1, 2])).any()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["spam", " spam", "Spam", "ham"], "'spam' (1 row), ' spam' (1 row), 'Spam' (1 row)"),
        (["1", "spam", "0"], "mix numbers and words: '1', 'spam', '0'"),
        (["none", "favor"], "'none'"),
        (["spam", "ham", "1st"], ""),
    ],
)
def test_labels_that_may_be_mistakes_are_named_and_not_merged(caplog, values, said):
    assert labels_of(pa.array(values)).tolist() == values
    assert said in caplog.text
    assert bool(caplog.text) == bool(said)


def test_measurements_and_lists_are_refused():
    numbers = np.linspace(0.1, 0.9, 50)
    for values in (numbers.tolist(), [str(n) for n in numbers], [[1], [2]]):
        with pytest.raises(LabelError) as caught:
            labels_of(pa.array(values))
        assert caught.value.parameter == "label"
