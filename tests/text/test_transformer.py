"""Batches: every text once, little padding, never too large."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setconv.text.encoder import TOKENS_PER_TEXT, plan_batches

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 64))
def test_every_text_is_in_one_batch_and_no_batch_is_too_large(lengths, batch_size):
    batches = plan_batches(lengths, batch_size)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[row] for row in batch)
        assert len(batch) == 1 or padded <= batch_size * TOKENS_PER_TEXT


@given(LENGTHS, st.integers(1, 64))
def test_batches_are_cut_from_the_texts_sorted_by_length(lengths, batch_size):
    spans = sorted(
        (min(lengths[row] for row in batch), max(lengths[row] for row in batch))
        for batch in plan_batches(lengths, batch_size)
    )
    assert all(below[1] <= above[0] for below, above in pairwise(spans))


def test_long_and_short_texts_fill_batches_alike():
    batches = plan_batches([256] * 100 + [8] * 3200, 64)
    tokens = sorted(len(batch) * (256 if batch.min() < 100 else 8) for batch in batches)
    assert tokens[1:] == [2048] * (len(tokens) - 1)


def test_the_first_batches_are_like_the_rest_so_that_the_remaining_time_can_be_told():
    lengths = np.random.default_rng(0).integers(1, 257, 4096)
    longest = [lengths[batch].max() for batch in plan_batches(lengths.tolist(), 64)]
    early, late = longest[: len(longest) // 4], longest[len(longest) // 4 :]
    assert abs(np.mean(early) - np.mean(late)) < 30
