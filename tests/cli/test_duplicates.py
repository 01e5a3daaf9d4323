"""Rows that two files share."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from setconv.cli.evaluate import find_duplicates
from setconv.sampling import text_keys


def pairs(train, test):
    return list(map(tuple, find_duplicates(train, test).tolist()))


def test_texts_that_are_in_both_are_counted_with_their_rows():
    found = pairs(["a", "b", "b", "c"], ["x", "b", "c", "b"])
    assert found == [(1, 1), (3, 2), (1, 3)]


def test_texts_are_alike_as_the_copies_in_a_fit_are():
    train = ["Fire at http://a.b/c", "RT @one: the bridge is down", "@two"]
    test = ["  fire  AT", "rt @two: the bridge\nis down", "@one", "fires at", "@TWO"]
    assert pairs(train, test) == [(0, 0), (1, 1), (2, 4)]
    keys = text_keys(train + test)
    assert [key in keys[:3] for key in keys[3:]] == [True, True, False, False, True]


def test_values_of_a_table_are_compared_exactly():
    assert pairs(pa.table({"t": ["a b", "c"]}), pa.table({"t": ["A b", "c "]})) == []


def test_whole_rows_are_compared_by_all_columns():
    train = pa.table({"a": [1, 1, 2], "b": ["x", "y", None]})
    test = pa.table({"b": ["y", "x", None], "a": [1, 2, 2], "other": [0, 0, 0]})
    assert pairs(train, test) == [(1, 0), (2, 2)]


def test_types_of_files_may_differ():
    assert pairs(pa.table({"n": ["1", "2"]}), pa.table({"n": [2, 3]})) == [(1, 0)]
    assert pairs(pa.table({"v": [[1.0], [2.0]]}), pa.table({"v": [[2.0]]})) == [(1, 0)]


def test_nothing_shares_nothing():
    assert pairs([], []) == []
    assert pairs(["a"], []) == []
    assert pairs(pa.table({}), pa.table({"a": [1]})) == []


rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.booleans()), min_size=1)


@given(rows, rows)
def test_it_is_what_comparing_every_pair_finds(train, test):
    tables = [
        pa.table(dict(zip("abc", map(list, zip(*part, strict=True)), strict=True)))
        for part in (train, test)
    ]
    expected = [(train.index(row), number) for number, row in enumerate(test) if row in train]
    assert pairs(*tables) == expected


def test_wide_tables_are_quick():
    values = np.random.default_rng(0).standard_normal((5000, 300))
    names = [f"f{n}" for n in range(300)]
    train = pa.table(list(values.T), names=names)
    test = pa.concat_tables([pa.table(list(-values[:100].T), names=names), train.slice(7, 1)])
    assert pairs(train, test) == [(7, 100)]
