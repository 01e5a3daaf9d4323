"""Rows that two files share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setconv.cli.evaluate import find_duplicates


def pairs(train, test):
    return list(map(tuple, find_duplicates(train, test).tolist()))


def test_texts_are_alike_as_the_copies_in_a_fit_are():
    assert pairs(["a", "b", "b", "c"], ["x", "b", "c", "b"]) == [(1, 1), (3, 2), (1, 3)]
    train = ["Fire at http://a.b/c", "RT @one: the bridge is down", "@two"]
    test = ["  fire  AT", "rt @two: the bridge\nis down", "@one", "fires at", "@TWO"]
    assert pairs(train, test) == [(0, 0), (1, 1), (2, 4)]
    assert pairs(["a"], []) == []


rows = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1)


@given(rows, rows)
def test_it_is_what_comparing_every_pair_finds(train, test):
    expected = [(train.index(row), number) for number, row in enumerate(test) if row in train]
    assert pairs(np.array(train, np.float32), np.array(test, np.float32)) == expected
