"""One-vs-all heads: how many there are, and which side of each a row is on."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Sides = NDArray[np.int8]
HeadSharing = Literal["shared", "separate"]
ABSENT = -1  # the class or side of what does not take part


def count_heads(n_classes: int) -> int:
    """Return the number of heads: one for two classes, else one a class (section 3.4)."""
    return 1 if n_classes == 2 else n_classes


def head_sides(codes: NDArray[np.integer], n_classes: int) -> Sides:
    """Return the side (1: the head's class, 0: the rest) of each row, shape (heads, n_rows).

    A code of `ABSENT` is on neither side.
    """
    if n_classes == 2:
        return np.asarray(codes, dtype=np.int8)[None]
    sides = np.asarray(codes[None] == np.arange(n_classes)[:, None], dtype=np.int8)
    return np.where(codes == ABSENT, np.int8(ABSENT), sides)


def side_weights(class_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weight of the two sides of each head, shape (heads, 2), summing to one.

    Equal class weights give one half to each side, however many classes stand behind it.
    """
    n_classes = len(class_weights)
    if n_classes == 2:
        weights = class_weights[None]
    else:
        rest = (class_weights.sum() - class_weights) / (n_classes - 1)
        weights = np.stack([rest, class_weights], axis=1)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
