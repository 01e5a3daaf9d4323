"""Ranks over sources."""

import demsar
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from setconv.errors import DataError
from setconv.experiment.statistics import average_ranks, source_scores

scores = arrays(
    np.float64, st.tuples(st.integers(2, 8), st.integers(2, 5)), elements=st.integers(0, 4)
)


def table_of(values):
    rows, columns = values.shape
    return pd.DataFrame(
        values, [f"data {row}" for row in range(rows)], [f"method {c}" for c in range(columns)]
    )


# ------------------------------------------------------------------------------------- the ranks


def test_the_ranks_of_the_published_example():
    average, by_source = average_ranks(demsar.scores())
    assert average.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    assert by_source.loc["iris"].tolist() == [1, 2.5, 4, 2.5]
    assert by_source.loc["mushroom"].tolist() == [2.5] * 4


def test_a_source_counts_once_however_many_data_sets_it_has():
    table = pd.DataFrame(
        {"x": [1.0, 1.0, 1.0, 0.0], "y": [0.0, 0.0, 2.0, 1.0]}, index=["a1", "a2", "a3", "b"]
    )
    ranks = average_ranks(table, {"a1": "a", "a2": "a", "a3": "a", "b": "b"})
    assert ranks.by_source.loc["a"].tolist() == pytest.approx([4 / 3, 5 / 3])
    assert ranks.by_source.index.tolist() == ["a", "b"]
    assert ranks.average.tolist() == pytest.approx([5 / 3, 4 / 3])


def test_lower_may_be_better():
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    assert average_ranks(table, higher_is_better=False).average.tolist() == [1, 2]


@given(scores)
def test_ranks_share_out_the_same_sum_and_turn_round_with_the_scores(values):
    table = table_of(values)
    methods = values.shape[1]
    sources = {name: "first" if i < 2 else name for i, name in enumerate(table.index)}
    ranks = average_ranks(table, sources)
    sums = ranks.by_source.sum(axis="columns")
    np.testing.assert_allclose(sums, methods * (methods + 1) / 2)
    turned = average_ranks(-table, sources).average
    np.testing.assert_allclose(ranks.average + turned, methods + 1)
    same = average_ranks(table, sources, higher_is_better=False).average
    np.testing.assert_allclose(same, turned)


def test_scores_of_a_source_are_the_mean_of_its_data_sets():
    table = pd.DataFrame({"x": [1.0, 2.0, 5.0], "y": [0.0, 1.0, 5.0]}, index=list("abc"))
    means = source_scores(table, {"a": "s", "b": "s", "c": "t"})
    assert means.to_dict("index") == {"s": {"x": 1.5, "y": 0.5}, "t": {"x": 5.0, "y": 5.0}}


@pytest.mark.parametrize(
    ("table", "sources", "message"),
    [
        (pd.DataFrame({"x": [1.0, np.nan], "y": 1.0}, ["a", "b"]), None, "missing for b"),
        (pd.DataFrame({"x": 1.0, "y": 1.0}, ["a", "a"]), None, "twice"),
        (pd.DataFrame({"x": 1.0}, ["a"]), None, "the table has 1 and 1"),
        (pd.DataFrame({"x": 1.0, "y": 1.0}, ["a", "b"]), {"a": "s"}, "no source for b"),
    ],
)
def test_tables_that_cannot_be_ranked_are_refused(table, sources, message):
    with pytest.raises(DataError, match=message):
        average_ranks(table, sources)
