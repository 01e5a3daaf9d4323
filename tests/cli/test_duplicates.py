"""Rows that two files share."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setconv.cli.duplicates import Duplicates, find_duplicates
from setconv.copies import text_keys
from setconv.errors import DataError


def test_texts_that_are_in_both_are_counted_with_their_rows():
    found = find_duplicates(["a", "b", "b", "c"], ["x", "b", "c", "b"])
    assert found == Duplicates(3, ((2, 2), (4, 3), (2, 4)))


def test_texts_are_alike_as_the_copies_in_a_fit_are():
    train = ["Fire at http://a.b/c", "RT @one: the bridge is down", "@two"]
    test = ["  fire  AT", "rt @two: the bridge\nis down", "@one", "fires at", "@TWO"]
    assert find_duplicates(train, test) == Duplicates(3, ((1, 1), (2, 2), (3, 5)))
    keys = text_keys(train + test)
    assert [key in keys[:3] for key in keys[3:]] == [True, True, False, False, True]


def test_values_of_a_table_are_compared_exactly():
    assert find_duplicates({"t": ["a b", "c"]}, {"t": ["A b", "c "]}) == Duplicates(0, ())


def test_only_the_first_few_rows_are_listed():
    found = find_duplicates(["a"], ["a"] * 100)
    assert found.count == 100
    assert found.rows == tuple((1, row) for row in range(1, 6))


def test_whole_rows_are_compared_by_all_columns():
    train = pa.table({"a": [1, 1, 2], "b": ["x", "y", None]})
    test = pa.table({"b": ["y", "x", None], "a": [1, 2, 2], "other": [0, 0, 0]})
    assert find_duplicates(train, test) == Duplicates(2, ((2, 1), (3, 3)))


def test_types_of_files_may_differ():
    assert find_duplicates({"n": ["1", "2"]}, {"n": [2, 3]}).rows == ((2, 1),)
    assert find_duplicates({"v": [[1.0], [2.0]]}, {"v": [[2.0]]}).rows == ((2, 1),)


def test_a_column_that_is_not_in_both_is_refused():
    with pytest.raises(DataError, match="no column 'a'"):
        find_duplicates({"a": [1]}, {"b": [1]})


def test_nothing_shares_nothing():
    assert find_duplicates([], []) == Duplicates(0, ())
    assert find_duplicates(["a"], pa.array([], pa.string())) == Duplicates(0, ())


rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.booleans()), min_size=1)


@given(rows, rows)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_it_is_what_comparing_every_pair_finds(train, test):
    tables = [
        pa.table(dict(zip("abc", map(list, zip(*part, strict=True)), strict=True)))
        for part in (train, test)
    ]
    expected = [
        (train.index(row) + 1, number) for number, row in enumerate(test, 1) if row in train
    ]
    found = find_duplicates(*tables)
    assert found.count == len(expected)
    assert list(found.rows) == expected[:5]


def test_wide_tables_are_quick():
    values = np.random.default_rng(0).standard_normal((5000, 300))
    names = [f"f{n}" for n in range(300)]
    train = pa.table(list(values.T), names=names)
    test = pa.concat_tables([pa.table(list(-values[:100].T), names=names), train.slice(7, 1)])
    assert find_duplicates(train, test) == Duplicates(1, ((8, 101),))
