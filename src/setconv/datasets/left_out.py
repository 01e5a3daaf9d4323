"""Rows and files that a loader cannot use: warned of once, and kept with the data set."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from setconv.datasets.problems import SHOWN, Problem, Problems

logger = logging.getLogger("setconv")


def report_left_out(name: str, places: Mapping[str, Sequence[str]]) -> Problems:
    """Return the problems of a data set, and warn of them.

    Parameters
    ----------
    name : str
        Of the data set.
    places : mapping of str to sequence of str
        For each kind of problem all places that have it, such as "reviews.csv, row 17".
    """
    found = [Problem(kind, len(at), tuple(at[:SHOWN])) for kind, at in places.items() if at]
    problems = Problems(tuple(sorted(found, key=lambda one: -one.count)))
    if problems:
        logger.warning("%s: %d problems: %s.", name, problems.count, problems)
    return problems
