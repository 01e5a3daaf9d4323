"""Dropout that an explicit generator drives, at a fraction of the cost of Bernoulli draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_LEVELS = 256


def drop(values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Set a share of the values to zero and scale the others up; the identity without generator."""
    kept = draw_mask(values.shape, values, share, generator)
    return values if kept is None else values * kept.mul_(dropout_scale(share))


def draw_mask(
    shape: Sequence[int], like: Tensor, share: float, generator: torch.Generator | None
) -> Tensor | None:
    """Return 1 for each value to keep and 0 for others, or None where nothing is dropped.

    On the device and of the type of ``like``.
    The share is taken to the nearest 1/256, and something is always kept: one random byte a value
    costs a tenth of a Bernoulli draw, and masks are a large part of a training step.
    """
    threshold = _threshold(share)
    if generator is None or threshold == 0:
        return None
    # Eight bytes at a time.
    size = math.prod(shape)
    words = torch.empty(-(-size // 8), dtype=torch.int64, device=like.device)
    noise = words.random_(-(2**63), None, generator=generator).view(torch.uint8)
    # Comparing in place stays with floats: torch is slow at making booleans.
    return noise[:size].view(shape).to(like.dtype).ge_(threshold)


def dropout_scale(share: float) -> float:
    """Return the factor on what is kept, so that the mean stays."""
    return _LEVELS / (_LEVELS - _threshold(share))


def _threshold(share: float) -> int:
    return min(round(share * _LEVELS), _LEVELS - 1)
