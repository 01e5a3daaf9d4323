"""One-vs-all heads: sides, weights of the sides, and episodes laid out for all heads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.episodes import ABSENT, EpisodeBatches, EpisodeSampler, head_sides, side_weights
from setconv.sampling import Split

seeds = st.integers(0, 2**31)
class_sizes = st.lists(st.integers(1, 30), min_size=2, max_size=5)
sharing_kinds = st.sampled_from(["shared", "separate"])
sources = st.sampled_from(["leave_one_out", "disjoint", "support"])
SIZES = {"support_size": 12, "n_queries": 3, "n_episodes": 4, "query_source": "disjoint"}


def make_codes(counts, seed):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


def make_episodes(counts, sharing, seed=0, **options):
    codes = make_codes(counts, seed)
    members = options.pop("members", [np.arange(len(codes))])
    left_out = np.stack([~np.isin(np.arange(len(codes)), own) for own in members])
    split = Split.of(codes, left_out, left_out, np.ones(len(members), bool))
    known = {"sharing": sharing, "random_state": seed}
    return EpisodeBatches(split, len(counts), **{**known, **SIZES, **options})


# ----------------------------------------------------------------------------------------- sides


def test_a_head_has_its_class_on_side_one_and_the_rest_on_side_zero():
    assert head_sides(np.array([1, 0, ABSENT, 1]), 2).tolist() == [[1, 0, ABSENT, 1]]
    sides = [[0, 1, ABSENT, 0], [0, 0, ABSENT, 1], [1, 0, ABSENT, 0]]
    assert head_sides(np.array([2, 0, ABSENT, 1]), 3).tolist() == sides


def test_class_weights_become_side_weights_worked_by_hand():
    np.testing.assert_allclose(side_weights(np.array([1.0, 4.0])), [[0.2, 0.8]])
    # The rest weighs the mean of its classes: 1 against 2, 1.5 against 1, 1.5 against 1.
    np.testing.assert_allclose(
        side_weights(np.array([2.0, 1.0, 1.0])), [[1 / 3, 2 / 3], [0.6, 0.4], [0.6, 0.4]]
    )


# ------------------------------------------------------------------------- layout and draws


def make_members(counts, n_members, seed):
    """Rows of each member: all but some of the classes that can spare them."""
    rng, codes = np.random.default_rng(seed), make_codes(counts, seed)
    kept = rng.random((n_members, len(codes))) < 0.7
    kept[:, np.unique(codes, return_index=True)[1]] = True
    return [np.flatnonzero(one) for one in kept]


@given(class_sizes, st.integers(1, 3), sharing_kinds, sources, seeds)
def test_every_head_of_every_member_averages_the_sides_of_its_own_rows(
    counts, n_members, sharing, source, seed
):
    members = make_members(counts, n_members, seed)
    episodes = make_episodes(
        counts, sharing, seed, members=members, query_source=source, n_queries=2
    )
    sides, layout = head_sides(make_codes(counts, seed), len(counts)), episodes.layout
    n_stacked = n_members * len(sides)
    groups = n_members if sharing == "shared" or len(sides) == 1 else n_stacked
    n_support, n_queries = layout.average.shape[-1], layout.target.shape[-1]
    for _ in range(2):
        drawn = episodes.draw()
        assert drawn.shape[:2] == (groups, 4)
        if source == "leave_one_out":  # every row of an episode is support and query
            assert drawn.shape[-1] == n_support == n_queries
            np.testing.assert_array_equal(layout.average, layout.query_sides)
        for stacked in range(n_stacked):
            member, head = divmod(stacked, len(sides))
            rows = drawn[stacked * groups // n_stacked]
            for matrix, part in (
                (layout.average[stacked], rows[:, :n_support]),
                (layout.query_sides[stacked], rows[:, -n_queries:]),
            ):
                used = matrix.sum(axis=0) > 0
                assert np.isin(part[:, used], members[member]).all()
                # No row counts twice, not even the only row of a class.
                assert all(len(np.unique(one)) == used.sum() for one in part[:, used])
                for side in (0, 1):
                    mine = matrix[side] > 0
                    np.testing.assert_allclose(matrix[side, mine], 1 / mine.sum(), rtol=1e-6)
                    assert (sides[head][part[:, mine]] == side).all()
            used = layout.query_sides[stacked].sum(axis=0) > 0
            truth = sides[head][rows[:, -n_queries:][:, used]]
            assert (np.where(truth == 1, 1, -1) == layout.target[stacked, used]).all()


@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_episodes_are_reproducible_can_be_skipped_and_know_no_other_members(sharing):
    members = make_members([20, 9, 4], 3, 0)
    first, again, alone = (
        make_episodes([20, 9, 4], sharing, members=some, n_queries=1)
        for some in (members, members, members[:1])
    )
    draws = [first.draw() for _ in range(5)]
    again.skip(3)
    np.testing.assert_array_equal(again.draw(), draws[3])
    np.testing.assert_array_equal(again.draw(), draws[4])
    used = alone.layout.average[0].sum(axis=0) > 0
    for drawn in draws:
        expected = alone.draw()
        np.testing.assert_array_equal(
            drawn[: len(expected), :, : len(used)][..., used], expected[..., : len(used)][..., used]
        )


@pytest.mark.parametrize("skipped", [0, 3, 16, 40])
def test_episodes_that_are_drawn_ahead_are_those_that_are_drawn_one_by_one(skipped):
    episodes = make_episodes([30, 11, 2], "shared")
    sampler = EpisodeSampler(make_codes([30, 11, 2], 0), **SIZES, random_state=[0, 0])
    expected = [np.concatenate(sampler.draw(), axis=1) for _ in range(skipped + 40)]
    episodes.skip(skipped)
    for one in expected[skipped:]:
        np.testing.assert_array_equal(episodes.draw()[0], one)
