"""The learning rate as a function of the step, so that resuming needs no state."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["one_cycle", "cosine", "constant"]
SCHEDULES: tuple[Schedule, ...] = ("one_cycle", "cosine", "constant")

# Smith's one cycle with the constants of torch.optim.lr_scheduler.OneCycleLR.
_WARM_UP = 0.3
_START = 1 / 25
_END = _START / 1e4


def lr_factor(schedule: Schedule, step: int, max_steps: int) -> float:
    """Return the share of the peak learning rate that step ``step`` (from 0) uses.

    Examples
    --------
    >>> [round(lr_factor("cosine", step, 4), 3) for step in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        return _cosine(1.0, 0.0, step / max_steps)
    peak = max(1.0, _WARM_UP * max_steps - 1)
    if step <= peak:
        return _cosine(_START, 1.0, step / peak)
    return _cosine(1.0, _END, (step - peak) / max(1.0, max_steps - 1 - peak))


def _cosine(start: float, end: float, progress: float) -> float:
    """Go from ``start`` to ``end`` along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2
