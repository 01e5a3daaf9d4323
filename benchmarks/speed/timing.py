"""Medians of jobs that take turns, so that what else the machine does falls on all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

_TURN = 0.3  # seconds; the first runs of a turn find the caches as the other job left them
_WARM_UP = 2


def seconds_of(job: Callable[[], object]) -> float:
    """Return how long one run of the job takes."""
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def medians(
    jobs: Mapping[str, Callable[[], object]], turns: int, warm_up: int = _WARM_UP
) -> dict[str, float]:
    """Give the jobs ``turns`` turns of equal time; return the median seconds of a run of each.

    The first ``warm_up`` runs of a turn do not count; long jobs need none.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            runs: list[float] = []
            spent = 0.0
            while len(runs) <= warm_up or spent < _TURN:
                runs.append(seconds_of(job))
                spent += runs[-1]
            seconds[name] += runs[warm_up:]
    return {name: statistics.median(values) for name, values in seconds.items()}
