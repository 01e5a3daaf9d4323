"""Medians of jobs that take turns, so that what else the machine does falls on all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

_TURN = 0.3  # seconds; the first runs of a turn find the caches as the other job left them
_WARM_UP = 2


def medians(jobs: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Give the jobs ``turns`` turns of equal time; return the median seconds of a run of each."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            runs: list[float] = []
            while len(runs) <= _WARM_UP or sum(runs) < _TURN:
                started = time.perf_counter()
                job()
                runs.append(time.perf_counter() - started)
            seconds[name] += runs[_WARM_UP:]
    return {name: statistics.median(values) for name, values in seconds.items()}
