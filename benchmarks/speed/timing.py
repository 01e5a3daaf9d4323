"""Medians of jobs that take turns, so that what else the machine does falls on all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

_BURST = 10  # runs a turn; the first of them finds the caches as the other job left them


def medians(jobs: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Give the jobs ``turns`` turns of several runs each and return the median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            for run in range(_BURST):
                started = time.perf_counter()
                job()
                if run:
                    seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}
