"""Which rows form an episode: the class ratio, disjoint queries, and every row before any twice."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn import functional

from setconv.episodes import EpisodeSampler, plan_quotas
from setconv.errors import LabelError, ParameterError
from setconv.nn.layer import SetConv
from setconv.sampling import share_out

seeds = st.integers(0, 2**31)
class_sizes = st.lists(st.integers(1, 40), min_size=2, max_size=5)
support_sizes = st.integers(5, 80)
query_numbers = st.integers(1, 9)
sources = st.sampled_from(["leave_one_out", "disjoint", "support"])


def labels_of(counts, seed=0):
    """Labels with the given class sizes, in random order."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


def dealt(sampler, draws):
    """The rows of each class in the order in which episodes used them, one list a class."""
    streams = [[] for _ in sampler.classes_]
    for episodes in islice(sampler, draws):
        for support, query in zip(*episodes, strict=True):
            for c, own_query in enumerate(sampler.quotas_.query):
                streams[c] += support[sampler.support_classes_ == c].tolist()
                if own_query:
                    streams[c] += query[sampler.query_classes_ == c].tolist()
    return streams


# ------------------------------------------------------------------------------ the class ratio


@given(st.lists(st.integers(200, 5000), min_size=2, max_size=6), st.integers(6, 128), query_numbers)
def test_the_support_set_keeps_the_class_ratio_to_within_one_row(counts, support_size, n_queries):
    ideal = support_size * np.array(counts) / sum(counts)
    assume((ideal >= 1).all())
    quotas = plan_quotas(counts, support_size, n_queries)
    assert (np.abs(quotas.support - ideal) < 1).all()
    assert quotas.support.sum() == support_size
    assert (quotas.query == n_queries).all()


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=8), st.integers(8, 128))
def test_places_are_shared_out_by_the_largest_remainder_with_one_for_every_class(counts, size):
    counts = np.array(counts)
    places = share_out(counts, size)
    ideal = size * counts / counts.sum()
    assert places.sum() == size
    assert (places >= 1).all()
    assert (places <= np.maximum(1, np.ceil(ideal))).all()
    if (ideal >= 1).all():
        assert (places >= np.floor(ideal)).all()
        up, down = ideal[places > ideal], ideal[places < ideal]
        if len(up) and len(down):
            assert np.min(up % 1) >= np.max(down % 1) - 1e-9


def test_a_class_below_one_place_gets_one_and_the_largest_pays():
    assert share_out(np.array([980, 10, 10]), 10).tolist() == [8, 1, 1]
    assert share_out(np.array([900, 95, 5]), 64).tolist() == [57, 6, 1]
    assert share_out(np.array([10**9, 1]), 64).tolist() == [63, 1]
    assert share_out(np.array([5, 5, 5]), 3).tolist() == [1, 1, 1]


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


@given(class_sizes, support_sizes, query_numbers)
def test_a_support_set_that_shrinks_with_the_data_keeps_the_ratio(counts, support_size, n_queries):
    support = plan_quotas(counts, support_size, n_queries).support
    ideal = support.sum() * np.array(counts) / sum(counts)
    assume((ideal >= 1).all())
    assert (np.abs(support - ideal) < 1).all()


@pytest.mark.parametrize(
    ("counts", "n_queries", "support"),
    [
        ([20, 10], 2, [16, 8]),  # the largest set in the ratio 2:1 that leaves two rows a class
        ([30, 10], 5, [15, 5]),
        ([22, 11], 2, [18, 9]),
        ([26, 13], 3, [20, 10]),
        ([52, 13], 3, [40, 10]),
    ],
)
def test_data_too_small_for_the_support_set_shrinks_all_classes_alike(counts, n_queries, support):
    quotas = plan_quotas(counts, 1000, n_queries)
    assert quotas.support.tolist() == support
    assert quotas.query.tolist() == [n_queries, n_queries]


# ---------------------------------------------------------------------------- the rows of a draw


@given(class_sizes, support_sizes, query_numbers, sources, seeds)
def test_columns_are_of_the_class_that_the_sampler_says(
    counts, support_size, n_queries, source, seed
):
    y = labels_of(counts, seed)
    sampler = EpisodeSampler(
        y,
        support_size=support_size,
        n_queries=n_queries,
        n_episodes=3,
        query_source=source,
        random_state=seed,
    )
    for support, query in islice(sampler, 3):
        assert support.dtype == query.dtype == np.int64
        assert support.shape == (3, len(sampler.support_classes_))
        assert query.shape == (3, len(sampler.query_classes_))
        assert (y[support] == sampler.support_classes_).all()
        assert (y[query] == sampler.query_classes_).all()
    assert np.bincount(sampler.support_classes_).tolist() == sampler.quotas_.support.tolist()
    assert (np.bincount(sampler.query_classes_) == np.maximum(sampler.quotas_.query, 1)).all()


@given(class_sizes, support_sizes, query_numbers, seeds)
def test_leave_one_out_draws_the_rows_that_disjoint_queries_are_drawn_with(
    counts, support_size, n_queries, seed
):
    y = labels_of(counts, seed)
    sizes = {"support_size": support_size, "n_queries": n_queries, "random_state": seed}
    left_out, disjoint, default = (
        EpisodeSampler(y, **sizes, **source)
        for source in ({"query_source": "leave_one_out"}, {"query_source": "disjoint"}, {})
    )
    for _ in range(2):
        drawn = left_out.draw()
        for other in (disjoint.draw(), default.draw()):
            np.testing.assert_array_equal(drawn.support, other.support)
            np.testing.assert_array_equal(drawn.query, other.query)


@given(class_sizes, support_sizes, query_numbers, seeds)
def test_queries_are_disjoint_from_the_support_for_every_class_of_two_or_more_rows(
    counts, support_size, n_queries, seed
):
    y = labels_of(counts, seed)
    sampler = EpisodeSampler(
        y,
        support_size=support_size,
        n_queries=n_queries,
        n_episodes=4,
        query_source="disjoint",
        random_state=seed,
    )
    alone = np.flatnonzero(np.array(counts)[y] == 1)
    for support, query in islice(sampler, 4):
        for own_support, own_query in zip(support, query, strict=True):
            common = np.intersect1d(own_support, own_query)
            assert np.isin(common, alone).all()
            # A class of a single row cannot but use it for both.
            assert np.isin(alone, own_support).all()
            assert np.isin(alone, own_query).all()


@given(class_sizes, support_sizes, query_numbers, sources, seeds)
def test_no_row_is_twice_among_the_support_or_the_queries_of_an_episode(
    counts, support_size, n_queries, source, seed
):
    sampler = EpisodeSampler(
        labels_of(counts, seed),
        support_size=support_size,
        n_queries=n_queries,
        n_episodes=4,
        query_source=source,
        random_state=seed,
    )
    for support, query in islice(sampler, 4):
        for rows in (*support, *query):
            assert len(np.unique(rows)) == len(rows)
        one_role = sampler.quotas_.query[sampler.query_classes_] > 0
        for own_support, own_query in zip(support, query[:, one_role], strict=True):
            assert not np.isin(own_query, own_support).any()


def test_a_class_of_two_rows_gives_one_to_each_role_and_both_rows_play_both():
    y = np.array([0] * 30 + [1] * 2)
    sampler = EpisodeSampler(y, support_size=16, n_queries=4, n_episodes=50, random_state=0)
    assert sampler.quotas_.support[1] == sampler.quotas_.query[1] == 1
    support, query = sampler.draw()
    of_support = support[:, sampler.support_classes_ == 1]
    of_query = query[:, sampler.query_classes_ == 1]
    assert (of_support + of_query == 30 + 31).all()
    assert set(of_query.flat) == {30, 31}


def test_a_class_of_one_row_uses_it_as_support_and_query():
    y = np.array([0] * 30 + [1])
    sampler = EpisodeSampler(y, support_size=16, n_queries=4, n_episodes=5, random_state=0)
    support, query = sampler.draw()
    assert (support[:, sampler.support_classes_ == 1] == 30).all()
    assert (query[:, sampler.query_classes_ == 1] == 30).all()
    assert (sampler.query_classes_ == 1).sum() == 1


# -------------------------------------------------------------------------------------- coverage


@given(class_sizes, support_sizes, query_numbers, sources, st.integers(1, 5), seeds)
def test_every_row_of_a_class_is_seen_before_any_is_seen_twice(
    counts, support_size, n_queries, source, n_episodes, seed
):
    y = labels_of(counts, seed)
    sampler = EpisodeSampler(
        y,
        support_size=support_size,
        n_queries=n_queries,
        n_episodes=n_episodes,
        query_source=source,
        random_state=seed,
    )
    for c, stream in enumerate(dealt(sampler, draws=12)):
        rows = np.flatnonzero(y == c)
        for start in range(0, len(stream), len(rows)):
            one_pass = stream[start : start + len(rows)]
            assert len(set(one_pass)) == len(one_pass)
            if len(one_pass) == len(rows):
                assert sorted(one_pass) == rows.tolist()


def test_passes_are_shuffled_anew():
    sampler = EpisodeSampler(labels_of([24, 24]), support_size=8, n_queries=2, random_state=0)
    stream = dealt(sampler, draws=1)[0]
    assert stream[:24] != stream[24:48]


# ------------------------------------------------------------------------------------- randomness


def drawn(seed, n_draws=3, skip=None):
    y = labels_of([90, 25, 3])
    sampler = EpisodeSampler(y, support_size=16, n_queries=2, n_episodes=4, random_state=seed)
    if skip is not None:
        sampler.skip(skip)
    return [np.concatenate(episodes, axis=1) for episodes in islice(sampler, n_draws)]


@pytest.mark.parametrize("seed", [0, 7, [3, 1]])
def test_the_same_seed_deals_the_same_episodes(seed):
    np.testing.assert_array_equal(drawn(seed), drawn(seed))


def test_other_seeds_deal_other_episodes():
    first, *others = (np.array(drawn(seed)) for seed in (0, 1, [0, 1], None))
    assert all((first != other).any() for other in others)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_skipping_draws_is_as_good_as_making_them(k):
    np.testing.assert_array_equal(drawn(0, n_draws=3, skip=k), drawn(0, n_draws=k + 3)[k:])


@pytest.fixture
def _global_state_put_back():
    state = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.usefixtures("_global_state_put_back")
def test_the_global_random_state_is_neither_used_nor_moved():
    results = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        expected = np.random.random()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        results.append(drawn(0))
        assert np.random.random() == expected  # noqa: NPY002
    np.testing.assert_array_equal(*results)


# ------------------------------------------------------------------------------ the authors' code


def test_queries_out_of_the_support_count_as_in_the_authors_code():
    # Imbalance ratio 9.75, 64 rows: 6 of the minority and 58 of the majority, one each the query.
    sampler = EpisodeSampler(
        labels_of([975, 100]), support_size=64, n_queries=1, query_source="support", random_state=0
    )
    assert sampler.quotas_.support.tolist() == [57, 5]
    assert sampler.quotas_.query.tolist() == [1, 1]
    support, query = sampler.draw()
    assert support.shape[1] + query.shape[1] == 64


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
    "y", [["no"] * 9 + ["fire"] * 3, [False] * 9 + [True] * 3, [-1] * 9 + [5] * 3], ids=str
)
def test_labels_may_be_of_any_kind(y):
    sampler = EpisodeSampler(y, support_size=4, n_queries=1, n_episodes=2, random_state=0)
    np.testing.assert_array_equal(sampler.classes_, np.unique(y))
    support, query = sampler.draw()
    np.testing.assert_array_equal(
        np.array(y)[support], sampler.classes_[[sampler.support_classes_] * 2]
    )
    np.testing.assert_array_equal(
        np.array(y)[query], sampler.classes_[[sampler.query_classes_] * 2]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_source": "outside"}, "query_source='outside'"),
        ({"n_queries": 0}, "n_queries=0"),
        ({"n_episodes": 0}, "n_episodes=0"),
        ({"support_size": 2}, r"support_size=2 .* number of classes \(3\)"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        EpisodeSampler([0, 0, 1, 1, 2, 2], **options)


@pytest.mark.parametrize("y", [[], [[0, 1], [1, 0]], 3], ids=str)
def test_labels_that_are_no_list_are_refused(y):
    with pytest.raises(LabelError, match="non-empty list of labels"):
        EpisodeSampler(y)


def test_the_sampler_and_the_layer_train_in_a_plain_loop():
    rng = np.random.default_rng(0)
    y = labels_of([180, 20])
    rows = torch.from_numpy(rng.normal(size=(200, 6)) + 1.5 * y[:, None]).float()
    anchor = rows[y == 1].mean(dim=0)
    layer = SetConv(6, 8, generator=torch.Generator().manual_seed(0))
    sizes = {"support_size": 32, "n_queries": 2, "n_episodes": 8}
    sampler = EpisodeSampler(y, **sizes, query_source="disjoint", random_state=0)
    truth = torch.from_numpy(sampler.query_classes_).expand(8, -1)
    segments = torch.from_numpy(sampler.support_classes_)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for episodes in islice(sampler, 60):
        classes = layer(rows[episodes.support], anchor, segments=segments)
        logits = layer.embed(rows[episodes.query], anchor) @ classes.mT
        loss = functional.cross_entropy(logits.flatten(0, 1), truth.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
