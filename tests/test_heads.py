"""One-vs-all heads: sides, weights of the sides, and episodes laid out for all heads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.episodes import (
    ABSENT,
    EpisodeBatches,
    EpisodeSampler,
    count_heads,
    head_sides,
    side_weights,
)

seeds = st.integers(0, 2**31)
class_sizes = st.lists(st.integers(1, 30), min_size=2, max_size=5)
weights = st.lists(st.floats(0.01, 100), min_size=2, max_size=6)
sharing_kinds = st.sampled_from(["shared", "separate"])


def make_episodes(counts, sharing, seed=0, **options):
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    sizes = {"support_size": 12, "n_queries": 3, "n_episodes": 4, "query_source": "disjoint"}
    everything = {"members": [np.arange(len(codes))], "random_state": seed}
    episodes = EpisodeBatches(
        codes, len(counts), sharing=sharing, **{**everything, **sizes, **options}
    )
    return codes, episodes


# ----------------------------------------------------------------------------------------- sides


@pytest.mark.parametrize(("n_classes", "heads"), [(2, 1), (3, 3), (7, 7)])
def test_two_classes_are_one_head_and_more_are_one_each(n_classes, heads):
    assert count_heads(n_classes) == heads
    assert len(head_sides(np.arange(n_classes), n_classes)) == heads


def test_a_head_has_its_class_on_side_one_and_the_rest_on_side_zero():
    assert head_sides(np.array([1, 0, 1]), 2).tolist() == [[1, 0, 1]]
    assert head_sides(np.array([2, 0, 1, 2]), 3).tolist() == [
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [1, 0, 0, 1],
    ]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_an_absent_row_is_on_neither_side(n_classes):
    codes = np.array([1, ABSENT, 0])
    sides = head_sides(codes, n_classes)
    assert (sides[:, 1] == ABSENT).all()
    np.testing.assert_array_equal(sides[:, [0, 2]], head_sides(codes[[0, 2]], n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_equal_class_weights_give_both_sides_one_half(n_classes):
    halves = side_weights(np.full(n_classes, 3.7))
    np.testing.assert_allclose(halves, 0.5, rtol=1e-15)
    assert halves.shape == (count_heads(n_classes), 2)


def test_class_weights_become_side_weights_worked_by_hand():
    np.testing.assert_allclose(side_weights(np.array([1.0, 4.0])), [[0.2, 0.8]])
    # The rest weighs the mean of its classes: 1 against 2, 1.5 against 1, 1.5 against 1.
    np.testing.assert_allclose(
        side_weights(np.array([2.0, 1.0, 1.0])), [[1 / 3, 2 / 3], [0.6, 0.4], [0.6, 0.4]]
    )


@given(weights, st.floats(0.01, 100))
def test_side_weights_sum_to_one_and_know_ratios_only(class_weights, factor):
    once = side_weights(np.array(class_weights))
    np.testing.assert_allclose(once.sum(axis=1), 1)
    np.testing.assert_allclose(side_weights(factor * np.array(class_weights)), once)


# ------------------------------------------------------------------------------------------ layout


def columns(matrix, head):
    """The columns that have a weight in a head."""
    return np.flatnonzero(matrix[head].sum(axis=0))


@given(class_sizes, sharing_kinds, st.sampled_from(["disjoint", "support"]), seeds)
def test_the_layout_averages_the_rows_of_each_side_of_each_head(counts, sharing, source, seed):
    codes, episodes = make_episodes(counts, sharing, seed, query_source=source)
    layout = episodes.layout
    sides = head_sides(codes, len(counts))
    n_support = layout.average.shape[-1]
    for _ in range(3):
        drawn = episodes.draw()
        assert drawn.shape[-2:] == (4, n_support + layout.target.shape[-1])
        every_head = np.broadcast_to(drawn, (len(sides), *drawn.shape[-2:]))
        for head, rows in enumerate(every_head):
            for matrix, part in (
                (layout.average, rows[:, :n_support]),
                (layout.query_sides, rows[:, n_support:]),
            ):
                np.testing.assert_allclose(matrix[head].sum(axis=-1), 1, rtol=1e-6)
                for side in (0, 1):
                    used = matrix[head, side] > 0
                    assert (sides[head][part[:, used]] == side).all()
                    np.testing.assert_allclose(matrix[head, side, used], 1 / used.sum(), rtol=1e-6)
            used = columns(layout.query_sides, head)
            truth = sides[head][rows[:, n_support:][:, used]]
            assert (np.where(truth == 1, 1, -1) == layout.target[head, used]).all()


@given(st.lists(st.integers(1, 30), min_size=3, max_size=5), seeds)
def test_in_shared_episodes_every_column_counts_for_every_head(counts, seed):
    _, episodes = make_episodes(counts, "shared", seed)
    assert episodes.draw().ndim == 2
    for matrix in (episodes.layout.average, episodes.layout.query_sides):
        assert (matrix.sum(axis=1) > 0).all()


@given(st.lists(st.integers(2, 30), min_size=3, max_size=5), seeds)
def test_separate_heads_draw_episodes_of_their_own_two_class_problem(counts, seed):
    codes, episodes = make_episodes(counts, "separate", seed)
    sides = head_sides(codes, len(counts))
    drawn = episodes.draw()
    n_support = episodes.layout.average.shape[-1]
    assert drawn.shape[:2] == (len(counts), 4)
    for head in range(len(counts)):
        used = columns(episodes.layout.average, head)
        rows = drawn[head][:, used]
        queries = drawn[head][:, n_support + columns(episodes.layout.query_sides, head)]
        for support, query in zip(rows, queries, strict=True):
            both = np.concatenate([support, query])
            assert len(np.unique(both)) == len(both)
        # The ratio of the two sides is kept to within a row, but for the minimum of one.
        share = sides[head].mean()
        of_class = (sides[head][rows[0]] == 1).sum()
        assert abs(of_class - max(1, share * len(used))) < 1


def test_heads_draw_independently_of_each_other():
    codes, episodes = make_episodes([20, 20, 20], "separate")
    drawn = episodes.draw()
    # Heads of equal class sizes must not take the same places of their classes.
    places = []
    for head in (0, 1):
        rows = drawn[head].ravel()
        places.append(np.searchsorted(np.flatnonzero(codes == head), rows[codes[rows] == head]))
    assert len(places[0]) == len(places[1])
    assert (places[0] != places[1]).any()


def test_with_two_classes_separate_heads_are_shared_ones():
    drawn = [make_episodes([20, 5], sharing)[1].draw() for sharing in ("shared", "separate")]
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_episodes_are_reproducible_and_can_be_skipped(sharing):
    first, again, other = (make_episodes([20, 9, 2], sharing, seed=s)[1] for s in (0, 0, 1))
    draws = [first.draw() for _ in range(5)]
    again.skip(3)
    np.testing.assert_array_equal(again.draw(), draws[3])
    np.testing.assert_array_equal(again.draw(), draws[4])
    assert not np.array_equal(other.draw(), draws[0])


# ---------------------------------------------------------------------------------- leave one out


@given(class_sizes, sharing_kinds, seeds)
def test_with_leave_one_out_every_row_of_an_episode_is_support_and_query(counts, sharing, seed):
    codes, episodes = make_episodes(counts, sharing, seed, query_source="leave_one_out")
    layout = episodes.layout
    np.testing.assert_array_equal(layout.average, layout.query_sides)
    sides = head_sides(codes, len(counts))
    drawn = episodes.draw()
    assert drawn.shape[-1] == layout.average.shape[-1] == layout.target.shape[-1]
    for head, rows in enumerate(np.broadcast_to(drawn, (len(sides), *drawn.shape[-2:]))):
        used = columns(layout.average, head)
        truth = sides[head][rows[:, used]]
        assert (np.where(truth == 1, 1, -1) == layout.target[head, used]).all()
        for side in (0, 1):
            share = layout.average[head, side][used]
            np.testing.assert_allclose(share[share > 0], 1 / (share > 0).sum(), rtol=1e-6)
            assert (truth[:, share > 0] == side).all()
        # No row counts twice, not even the only row of a class.
        assert all(len(np.unique(one)) == len(used) for one in rows[:, used])


@given(class_sizes, st.sampled_from(["disjoint", "leave_one_out"]), seeds)
def test_leave_one_out_takes_the_rows_of_disjoint_episodes(counts, source, seed):
    _, episodes = make_episodes(counts, "shared", seed, query_source=source)
    _, disjoint = make_episodes(counts, "shared", seed, query_source="disjoint")
    np.testing.assert_array_equal(episodes.draw(), disjoint.draw())


# ---------------------------------------------------------------------------------------- members


def make_members(counts, n_members, seed):
    """Rows of each member: all but some of the classes that can spare them."""
    rng = np.random.default_rng(seed)
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    members = []
    for _ in range(n_members):
        keep = rng.random(len(codes)) < 0.7
        for code in range(len(counts)):
            keep[np.flatnonzero(codes == code)[0]] = True
        members.append(np.flatnonzero(keep))
    return members


@given(
    class_sizes,
    st.integers(2, 4),
    sharing_kinds,
    st.sampled_from(["leave_one_out", "disjoint", "support"]),
    seeds,
)
def test_a_member_draws_its_own_rows_only(counts, n_members, sharing, source, seed):
    members = make_members(counts, n_members, seed)
    codes, episodes = make_episodes(
        counts, sharing, seed, members=members, query_source=source, n_queries=2
    )
    sides = head_sides(codes, len(counts))
    n_heads, layout = len(sides), episodes.layout
    assert layout.average.shape[:2] == (n_members * n_heads, 2)
    n_support, n_queries = layout.average.shape[-1], layout.target.shape[-1]
    for _ in range(2):
        drawn = episodes.draw()
        groups = n_members if sharing == "shared" or n_heads == 1 else n_members * n_heads
        assert drawn.shape[:2] == (groups, 4)
        for stacked in range(n_members * n_heads):
            member, head = divmod(stacked, n_heads)
            rows = drawn[stacked * groups // (n_members * n_heads)]
            parts = (
                (layout.average, rows[:, :n_support]),
                (layout.query_sides, rows[:, -n_queries:]),
            )
            for matrix, part in parts:
                used = part[:, columns(matrix, stacked)]
                assert np.isin(used, members[member]).all()
                np.testing.assert_allclose(matrix[stacked].sum(axis=-1), 1, rtol=1e-6)
                for side in (0, 1):
                    of_side = part[:, matrix[stacked, side] > 0]
                    assert (sides[head][of_side] == side).all()


def test_members_with_the_same_rows_draw_independently_of_each_other():
    everything = np.arange(25)
    _, episodes = make_episodes([20, 5], "shared", members=[everything, everything])
    first, second = episodes.draw()
    assert not np.array_equal(first, second)


def test_the_first_member_draws_what_it_draws_alone():
    members = make_members([20, 9, 4], 3, 0)
    for sharing in ("shared", "separate"):
        together = make_episodes([20, 9, 4], sharing, members=members, n_queries=1)[1]
        alone = make_episodes([20, 9, 4], sharing, members=members[:1], n_queries=1)[1]
        for _ in range(3):
            drawn, expected = together.draw(), alone.draw()
            expected = expected[None] if sharing == "shared" else expected
            used = columns(alone.layout.average, 0)
            np.testing.assert_array_equal(drawn[: len(expected)][..., used], expected[..., used])


@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_episodes_of_members_can_be_skipped(sharing):
    members = make_members([20, 9, 4], 3, 0)
    first, again = (make_episodes([20, 9, 4], sharing, members=members)[1] for _ in range(2))
    draws = [first.draw() for _ in range(4)]
    again.skip(3)
    np.testing.assert_array_equal(again.draw(), draws[3])


@pytest.mark.parametrize("skipped", [0, 3, 16, 40])
def test_episodes_that_are_drawn_ahead_are_those_that_are_drawn_one_by_one(skipped):
    codes, episodes = make_episodes([30, 11, 2], "shared")
    sampler = EpisodeSampler(
        codes,
        support_size=12,
        n_queries=3,
        n_episodes=4,
        query_source="disjoint",
        random_state=[0, 0],
    )
    expected = [np.concatenate(sampler.draw(), axis=1) for _ in range(skipped + 40)]
    episodes.skip(skipped)
    for one in expected[skipped:]:
        np.testing.assert_array_equal(episodes.draw(), one)
