"""How time and memory of a fit grow: one series a size, all else the same."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from benchmarks.speed.problem import Cost, Problem, fit
from benchmarks.speed.processes import Alone


class Series(NamedTuple):
    """A field of a problem, the values that it takes, and the rest of the problem."""

    field: str
    values: tuple[int, ...]
    problem: Problem = Problem()


class Sizes(NamedTuple):
    series: dict[str, Series]
    turns: int


_SPARSE = Problem(features=100_000, non_zeros=60)
_SMALL = Problem(rows=400, features=110, members=2, steps=5)
_SMALL_SPARSE = Problem(rows=400, features=2000, members=2, steps=5, non_zeros=15)

FULL = Sizes(
    {
        "rows": Series("rows", (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)),
        "features": Series("features", (64, 128, 256, 512, 1024, 2048, 4096)),
        "classes": Series("classes", (2, 4, 8, 16)),
        "members": Series("members", (1, 2, 5, 10, 20)),
        "support rows": Series("support", (32, 64, 128, 256, 512)),
        "non-zeros": Series("non_zeros", (15, 30, 60, 120, 240), _SPARSE),
        "sparse columns": Series(
            "features", (10_000, 30_000, 100_000, 300_000, 1_000_000), _SPARSE
        ),
    },
    turns=1,
)
QUICK = Sizes(
    {
        "rows": Series("rows", (200, 400), _SMALL),
        "features": Series("features", (110, 220), _SMALL),
        "classes": Series("classes", (2, 4), _SMALL),
        "members": Series("members", (1, 2), _SMALL),
        "support rows": Series("support", (32, 64), _SMALL),
        "non-zeros": Series("non_zeros", (15, 30), _SMALL_SPARSE),
        "sparse columns": Series("features", (2_000, 20_000), _SMALL_SPARSE),
    },
    turns=1,
)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return, for each series, a table of (value, seconds, gigabytes)."""
    return {
        name: {
            "points": measure(series, sizes.turns, alone),
            "rest": {
                field: value
                for field, value in series.problem._asdict().items()
                if field != series.field and value
            },
        }
        for name, series in sizes.series.items()
    }


def measure(series: Series, turns: int, alone: Alone) -> list[list[float]]:
    """Fit the problems of a series in turns; return medians."""
    costs: dict[int, list[Cost]] = {value: [] for value in series.values}
    for _ in range(turns):
        for value in series.values:
            costs[value].append(alone(fit, series.problem._replace(**{series.field: value})))
    return [
        [value, *(statistics.median(part) for part in zip(*found, strict=True))]
        for value, found in costs.items()
    ]
