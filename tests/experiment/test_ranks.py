"""Tables of scores, and ranks over sources."""

import itertools
import logging

import demsar
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from setconv.errors import DataError, ParameterError
from setconv.experiment import average_ranks, bootstrap_intervals, score_table, source_scores


def tidy(rows, metric="f1"):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "split", "value"])
    return frame.assign(metric=metric)


@pytest.fixture
def results():
    rows = [
        *[("a", "x", 0, 0.2), ("a", "x", 1, 0.4), ("a", "y", 0, 0.5), ("a", "y", 1, 0.7)],
        *[("b", "x", 0, 0.1), ("b", "x", 1, 0.1), ("b", "y", 0, 0.9)],
        *[("c", "x", 0, 0.3), ("c", "y", 0, np.nan), ("c", "z", 0, 0.3), ("c", "z", 1, 0.3)],
    ]
    return pd.concat([tidy(rows), tidy([("d", "x", 0, 7.0)], "loss")])


scores = arrays(
    np.float64, st.tuples(st.integers(2, 8), st.integers(2, 5)), elements=st.integers(0, 4)
)


def table_of(values):
    rows, columns = values.shape
    return pd.DataFrame(
        values, [f"data {row}" for row in range(rows)], [f"method {c}" for c in range(columns)]
    )


# ------------------------------------------------------------------------------------ the scores


def test_scores_are_means_over_splits_of_the_complete_data_sets(results, caplog):
    with caplog.at_level(logging.WARNING, "setconv.experiment"):
        table = score_table(results, "f1", ["y", "x"])
    expected = pd.DataFrame({"y": [0.6], "x": [0.3]}, index=["a"])
    pd.testing.assert_frame_equal(table, expected, check_names=False)
    assert "2 of 3 data sets left out" in caplog.text
    assert "b (y); c (y)" in caplog.text


def test_a_complete_table_warns_of_nothing(results, caplog):
    assert list(score_table(results, "f1", ["x"]).index) == ["a", "b", "c"]
    assert caplog.text == ""


def test_incomplete_rows_are_kept_when_asked(results, caplog):
    table = score_table(results, "f1", complete=False)
    assert list(table.columns) == ["x", "y", "z"]
    assert table.loc["b", "y"] == 0.9
    assert np.isnan(table.loc["c", "y"])
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("auc",), "only f1, loss"),
        (("f1", ["x", "w"]), "no results of w; there are x, y, z"),
        (("f1", ["y", "z"]), "no data set has every split"),
    ],
)
def test_scores_that_are_not_there_are_named(results, arguments, message):
    with pytest.raises(DataError, match=message):
        score_table(results, *arguments)


def test_the_results_of_two_stores_at_once_are_refused(results):
    with pytest.raises(DataError, match="twice"):
        score_table(pd.concat([results, results]), "f1")


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
@settings(max_examples=30, deadline=None)
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
        (pd.DataFrame({"x": 1.0}, ["a"]), None, "1 row and 1 method:"),
        (pd.DataFrame({"x": 1.0, "y": 1.0}, ["a", "b"]), {"a": "s"}, "no source for b"),
    ],
)
def test_tables_that_cannot_be_ranked_are_refused(table, sources, message):
    with pytest.raises(DataError, match=message):
        average_ranks(table, sources)


# --------------------------------------------------------------------------------- the intervals


def test_intervals_of_few_sources_are_those_of_all_possible_draws():
    by_source = pd.DataFrame({"x": [1.0, 2.0, 1.0], "y": [2.0, 1.0, 3.0], "z": [3.0, 3.0, 2.0]})
    draws = itertools.product(range(3), repeat=3)
    means = [by_source.iloc[list(draw)].mean() for draw in draws]
    lower, upper = np.quantile(means, [0.1, 0.9], axis=0)
    found = bootstrap_intervals(by_source, n=200_000, level=0.8)
    np.testing.assert_allclose(found["lower"], lower)
    np.testing.assert_allclose(found["upper"], upper)
    np.testing.assert_allclose(found["rank"], by_source.mean())
    assert found.index.tolist() == ["x", "y", "z"]


def test_intervals_are_a_function_of_the_seed():
    by_source = average_ranks(demsar.scores()).by_source
    one, same, other = (bootstrap_intervals(by_source, n=50, seed=seed) for seed in (0, 0, 1))
    assert one.equals(same)
    assert not one.equals(other)


@given(scores, st.floats(0.1, 0.8))
@settings(max_examples=30, deadline=None)
def test_a_wider_level_gives_wider_intervals_within_the_ranks(values, level):
    by_source = average_ranks(table_of(values)).by_source
    narrow = bootstrap_intervals(by_source, n=100, level=level)
    wide = bootstrap_intervals(by_source, n=100, level=level + 0.15)
    slack = 1e-9
    assert (wide["lower"] <= narrow["lower"] + slack).all()
    assert (narrow["upper"] <= wide["upper"] + slack).all()
    assert (wide["lower"] >= by_source.min() - slack).all()
    assert (wide["upper"] <= by_source.max() + slack).all()


def test_one_source_has_no_interval():
    with pytest.raises(DataError, match="at least 2"):
        bootstrap_intervals(pd.DataFrame({"x": [1.0], "y": [2.0]}))


@pytest.mark.parametrize("parameters", [{"n": 0}, {"level": 1.0}, {"level": 0}])
def test_intervals_without_draws_or_level_are_refused(parameters):
    with pytest.raises(ParameterError):
        bootstrap_intervals(pd.DataFrame({"x": [1.0, 1.0], "y": [2.0, 2.0]}), **parameters)
