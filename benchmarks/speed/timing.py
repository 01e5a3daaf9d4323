"""Medians of alternating runs, so that what else the machine does falls on all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def medians(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run the jobs in turn, ``repeats`` times, and return the median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}
