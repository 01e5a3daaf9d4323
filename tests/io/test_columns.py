"""Which column holds texts, labels and features."""

import logging

import pyarrow as pa
import pytest

from setconv.errors import DataError
from setconv.io.columns import feature_columns, find_label_column, find_text_column

LONG = [f"a text of several words, number {n}" for n in range(40)]
SHORT = ["yes", "no"] * 20
NUMBERS = [f"{n}.5" for n in range(40)]


@pytest.mark.parametrize("name", ["text", "Review", "TWEET", "message", " body "])
def test_the_text_column_is_found_by_its_name(name):
    table = pa.table({"id": NUMBERS, name: SHORT, "other": LONG})
    assert find_text_column(table) == name


@pytest.mark.parametrize("name", ["review_text", "cleanedTweet", "message body"])
def test_the_text_column_is_found_by_a_word_of_its_name_if_its_values_fit(name):
    assert find_text_column(pa.table({name: LONG, "notes": LONG})) == name
    assert find_text_column(pa.table({"text_length": NUMBERS, name: LONG})) == name


def test_the_text_column_is_found_by_its_values():
    assert find_text_column(pa.table({"a": SHORT, "b": LONG, "c": NUMBERS})) == "b"


def test_a_feature_file_has_no_text_column():
    assert find_text_column(pa.table({"a": SHORT, "c": NUMBERS, "text": NUMBERS})) is None
    assert find_text_column(pa.table({"x": [1.0, 2.0]})) is None


def test_several_text_columns_are_listed_with_examples():
    table = pa.table({"title": LONG, "words": LONG[::-1], "n": NUMBERS})
    with pytest.raises(DataError) as caught:
        find_text_column(table)
    message = str(caught.value)
    assert "'title' (such as 'a text of several words, numbe...')" in message
    assert "'words'" in message
    assert "--text" in message
    assert "'n'" not in message


def test_of_two_common_names_the_one_with_long_texts_is_taken():
    assert find_text_column(pa.table({"comment": SHORT, "review": LONG})) == "review"


def test_a_given_column_must_exist():
    table = pa.table({"review": LONG, "stars": NUMBERS})
    assert find_text_column(table, "stars") == "stars"
    with pytest.raises(DataError, match=r"no column 'reveiw'\. Did you mean 'review'\?.*--text"):
        find_text_column(table, "reveiw")
    with pytest.raises(DataError, match=r"Did you mean 'stars'\?.*'review', 'stars'.*--label"):
        find_label_column(table, "STAR")


@pytest.mark.parametrize("name", ["label", "Class", "target", "sentiment", "y"])
def test_the_label_column_is_found_by_its_name(name):
    assert find_label_column(pa.table({"a": SHORT, name: SHORT, "b": LONG})) == name


def test_the_label_column_is_found_by_a_word_of_its_name_and_few_values():
    table = pa.table({"airline_sentiment": SHORT, "sentiment_confidence": NUMBERS, "t": LONG})
    assert find_label_column(table) == "airline_sentiment"


def test_a_guess_by_values_is_said(caplog):
    caplog.set_level(logging.INFO, "setconv")
    table = pa.table({"a": LONG, "b": SHORT})
    assert (find_text_column(table), find_label_column(table)) == ("a", "b")
    assert "'a', the only column with long strings" in caplog.text
    assert "'b', the only column with few distinct values" in caplog.text


def test_the_label_column_is_found_by_its_values():
    assert find_label_column(pa.table({"t": LONG, "spam": SHORT, "n": NUMBERS})) == "spam"
    assert find_label_column(pa.table({"t": LONG, "flag": [True, False] * 20})) == "flag"


def test_an_unsure_label_is_listed_and_none_too():
    with pytest.raises(DataError, match=r"'a' \(such as 'yes'\), 'b'.*--label"):
        find_label_column(pa.table({"a": SHORT, "b": SHORT, "t": LONG}))
    with pytest.raises(DataError, match=r"None looks like it.*'t'.*--label"):
        find_label_column(pa.table({"t": LONG}))


def test_an_excluded_column_is_not_the_label():
    table = pa.table({"class": SHORT, "kind": SHORT})
    assert find_label_column(table, exclude=["class"]) == "kind"


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
    assert "numbers the rows" in notes[0]


def test_numbers_as_strings_are_ids_too_and_few_rows_prove_nothing():
    assert feature_columns(pa.table({"n": [str(n) for n in range(40)]}))[0] == []
    assert feature_columns(pa.table({"n": [1, 2, 3], "word": ["a", "b", "c"]}))[0] == ["n", "word"]
    assert feature_columns(pa.table({"id": [1, 2, 3]}))[0] == []
