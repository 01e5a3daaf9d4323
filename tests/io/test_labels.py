"""Labels from a column of strings, numbers or bools."""

import numpy as np
import pyarrow as pa
import pytest

from setconv.errors import LabelError
from setconv.io.columns import labels_of


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
        (["spam", "ham"], ["spam", "ham"]),
        ([True, False], [True, False]),
        (["1.5", "2"], ["1.5", "2"]),
        ([0.5, 1.0], ["0.5", "1"]),
    ],
)
def test_whole_numbers_become_ints_and_everything_else_stays(values, expected):
    for column in (pa.array(values), pa.chunked_array([values]), values):
        labels = labels_of(column)
        assert labels.tolist() == expected
        assert labels.dtype.kind == np.array(expected).dtype.kind


def test_a_categorical_column_is_its_values():
    assert labels_of(pa.array(["b", "a"]).dictionary_encode()).tolist() == ["b", "a"]


@pytest.mark.parametrize(
    "values", [["a", "", "b", " "], ["a", None, "b", "NaN"], [1.0, None, 2.0, np.nan]]
)
def test_missing_labels_are_refused_with_their_rows_or_left_out(values):
    with pytest.raises(LabelError, match=r"2 rows of 4 have no label \(row 2, 4,.*--empty skip"):
        labels_of(values)
    labels, mask = labels_of(values, drop=True)
    assert len(labels) == 2
    assert mask.tolist() == [True, False, True, False]


def test_many_missing_labels_are_counted_and_not_all_listed():
    with pytest.raises(
        LabelError, match=r"100 rows of 101 have no label \(row 2, 3, 4, 5, 6 \.\.\."
    ):
        labels_of(["a"] + [""] * 100)


def test_labels_that_look_alike_are_named_and_not_merged(caplog):
    labels = labels_of(["spam", " spam", "Spam", "spam", "ham"])
    assert len(set(labels)) == 4
    assert "'spam' (2 rows), ' spam' (1 row), 'Spam' (1 row) differ only in case" in caplog.text


def test_numbers_among_words_are_named(caplog):
    assert labels_of(["1", "spam", "0"]).tolist() == ["1", "spam", "0"]
    assert "mix numbers ('1', '0') and words ('spam')" in caplog.text


def test_values_of_several_types_become_words(caplog):
    assert labels_of([1, "spam"]).tolist() == ["1", "spam"]
    assert "mix numbers" in caplog.text


def test_a_label_that_may_stand_for_missing_is_named(caplog):
    assert labels_of(["none", "favor"]).tolist() == ["none", "favor"]
    assert "'none' is taken as a class" in caplog.text


def test_clean_labels_are_silent(caplog):
    labels_of(["spam", "ham", "1st"])
    assert not caplog.text


def test_measurements_and_lists_are_refused():
    numbers = np.linspace(0.1, 0.9, 50)
    for values in (numbers.tolist(), [str(n) for n in numbers]):
        with pytest.raises(LabelError, match=r"50 different numbers such as 0\.1"):
            labels_of(values)
    with pytest.raises(LabelError, match="type list"):
        labels_of(pa.array([[1], [2]]))
