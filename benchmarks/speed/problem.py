"""A problem of a given size, and what a fit of it takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.speed.made import Labels, dense_rows, sparse_rows
from benchmarks.speed.processes import forget_peak, held_gigabytes, peak_gigabytes
from benchmarks.speed.timing import seconds_of
from setconv import SetConvClassifier

EPISODES = 4


class Problem(NamedTuple):
    """The sizes of a fit; rows are dense if they have no number of non-zeros.

    Members and episodes are given, not "auto", and so are the steps: else they would change with
    the number of rows.
    """

    rows: int = 16_000
    features: int = 384
    classes: int = 2
    members: int = 5
    support: int = 64
    non_zeros: int = 0
    steps: int = 100


class Cost(NamedTuple):
    """What a fit took, over what the libraries hold."""

    seconds: float
    gigabytes: float


def draw(problem: Problem) -> tuple[Any, Labels]:
    """Make the rows of a problem and their classes."""
    if problem.non_zeros:
        return sparse_rows(problem.rows, problem.features, problem.non_zeros)
    shares = [1 / (1 + c) for c in range(problem.classes)]
    return dense_rows(problem.rows, problem.features, shares)


def fit(problem: Problem) -> Cost:
    """Fit a problem; the memory is that of the rows and of the fit."""
    forget_peak()
    libraries = held_gigabytes()
    X, y = draw(problem)
    model = SetConvClassifier(
        n_members=problem.members,
        n_episodes=EPISODES,
        support_size=problem.support,
        max_steps=problem.steps,
        progress=False,
        random_state=0,
    )
    seconds = seconds_of(lambda: model.fit(X, y))
    return Cost(seconds, max(0.0, peak_gigabytes() - libraries))
