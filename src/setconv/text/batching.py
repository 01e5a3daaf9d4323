"""Which texts go through the network together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# A batch holds so many tokens for each text of ``batch_size``: long texts fill it with few rows,
# short ones with many, and all batches take about the same time and memory.
TOKENS_PER_TEXT = 32


def plan_batches(lengths: Sequence[int], batch_size: int) -> list[NDArray[np.intp]]:
    """Deal texts of similar length into batches of similar size.

    Parameters
    ----------
    lengths : sequence of int
        The number of tokens of each text.
    batch_size : int
        Texts of 32 tokens in a batch.

    Returns
    -------
    list of array of int
        The texts of each batch by their numbers. The batches come in a shuffled order, so that the
        first ones are like the rest and the time that remains can be told from them.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        stop = start + max(1, batch_size * TOKENS_PER_TEXT // longest)
        batches.append(order[start:stop])
        start = stop
    shuffled = np.random.default_rng(0).permutation(len(batches))
    return [batches[number] for number in shuffled]
