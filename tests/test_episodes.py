"""Which rows form an episode: the class ratio, disjoint queries, and every row before any twice."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setconv.episodes import EpisodeSampler, plan_quotas
from setconv.errors import ParameterError

seeds = st.integers(0, 2**31)
class_sizes = st.lists(st.integers(1, 40), min_size=2, max_size=5)
support_sizes = st.integers(5, 80)
query_numbers = st.integers(1, 9)
sources = st.sampled_from(["leave_one_out", "disjoint", "support"])


def labels_of(counts, seed=0):
    """Labels with the given class sizes, in random order."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


# ------------------------------------------------------------------------------ the class ratio


@given(class_sizes, support_sizes, query_numbers)
def test_every_class_has_a_support_row_and_no_class_gives_more_rows_than_it_has(
    counts, support_size, n_queries
):
    quotas = plan_quotas(counts, support_size, n_queries)
    assert (quotas.support >= 1).all()
    assert (quotas.support + quotas.query <= counts).all()
    assert quotas.support.sum() <= max(support_size, len(counts))
    several = np.array(counts) > 1
    assert (quotas.query[several] >= 1).all()
    assert (quotas.query == np.minimum(n_queries, np.array(counts) // 2)).all()


@pytest.mark.parametrize(
    ("counts", "n_queries", "support"),
    [
        ([20, 10], 2, [16, 8]),  # the largest set in the ratio 2:1 that leaves two rows a class
        ([30, 10], 5, [15, 5]),
        ([52, 13], 3, [40, 10]),
    ],
)
def test_data_too_small_for_the_support_set_shrinks_all_classes_alike(counts, n_queries, support):
    quotas = plan_quotas(counts, 1000, n_queries)
    assert quotas.support.tolist() == support
    assert quotas.query.tolist() == [n_queries, n_queries]


# ---------------------------------------------------------------------------- the rows of a draw


@given(class_sizes, support_sizes, query_numbers, sources, st.integers(1, 5), seeds)
def test_columns_are_of_their_class_and_every_row_is_seen_before_any_is_seen_twice(
    counts, support_size, n_queries, source, n_episodes, seed
):
    y = labels_of(counts, seed)
    sizes = {"support_size": support_size, "n_queries": n_queries, "n_episodes": n_episodes}
    sampler = EpisodeSampler(y, **sizes, query_source=source, random_state=seed)
    quotas = sampler.quotas_
    assert np.bincount(sampler.support_classes_).tolist() == quotas.support.tolist()
    assert (np.bincount(sampler.query_classes_) == np.maximum(quotas.query, 1)).all()
    one_role = quotas.query[sampler.query_classes_] > 0
    streams = [[] for _ in counts]
    for support, query in islice(sampler, 8):
        assert support.dtype == query.dtype == np.int64
        assert (y[support] == sampler.support_classes_).all()
        assert (y[query] == sampler.query_classes_).all()
        # Only the single row of a class is support and query in one.
        for rows in np.concatenate([support, query[:, one_role]], axis=1):
            assert len(np.unique(rows)) == len(rows)
        for own_support, own_query in zip(support, query, strict=True):
            for c, stream in enumerate(streams):
                stream += own_support[sampler.support_classes_ == c].tolist()
                stream += own_query[one_role & (sampler.query_classes_ == c)].tolist()
    for c, stream in enumerate(streams):
        rows = np.flatnonzero(y == c)
        for start in range(0, len(stream), len(rows)):
            one_pass = stream[start : start + len(rows)]
            assert len(set(one_pass)) == len(one_pass)
            if len(one_pass) == len(rows):
                assert sorted(one_pass) == rows.tolist()


# ------------------------------------------------------------------------------ the authors' code


@given(st.integers(100, 2000), st.integers(3, 60), st.integers(8, 64), st.booleans())
def test_every_class_but_the_largest_gets_its_share_rounded_down_and_one_more(
    larger, smaller, size, swapped
):
    taken = int(size * smaller / (larger + smaller)) + 1
    assume(taken <= smaller)
    counts = [smaller, larger] if swapped else [larger, smaller]
    quotas = plan_quotas(counts, size, 1, "support")
    rows = (quotas.support + quotas.query).tolist()
    assert rows == ([taken, size - taken] if swapped else [size - taken, taken])
    of_smaller = quotas.query[0 if swapped else 1]
    assert of_smaller == (0 if taken == 1 else 1)  # a single row is support and query in one


# ----------------------------------------------------------------------------------- other things


@pytest.mark.parametrize(
    "options",
    [{"query_source": "outside"}, {"n_queries": 0}, {"n_episodes": 0}, {"support_size": 2}],
    ids=str,
)
def test_values_that_cannot_work_are_refused_by_name(options):
    with pytest.raises(ParameterError) as raised:
        EpisodeSampler([0, 0, 1, 1, 2, 2], **options)
    assert raised.value.parameter == next(iter(options))
