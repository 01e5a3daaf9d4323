"""Ranks of methods: within data sets, averaged within sources, then over sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from setconv.errors import ParameterError
from setconv.experiment.statistics.scores import check_complete, source_scores
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ranks", "average_ranks", "bootstrap_intervals"]


class Ranks(NamedTuple):
    """Ranks of methods; 1 is best.

    Attributes
    ----------
    average : Series
        Average over sources, by method.
    by_source : DataFrame
        Average over the data sets of a source: one row a source, one column a method.
    """

    average: pd.Series[float]
    by_source: pd.DataFrame


def average_ranks(
    table: pd.DataFrame,
    sources: Mapping[str, str] | None = None,
    higher_is_better: bool = True,
) -> Ranks:
    """Rank the methods within each data set, then average within sources, then over sources.

    Data sets that were made from the same source are no independent evidence: however many a
    source has, it counts once.

    Parameters
    ----------
    table : DataFrame
        Scores, one row a data set, one column a method; see `score_table`.
    sources : mapping of str to str, optional
        Data set to source. By default every data set is a source of its own.
    higher_is_better : bool, default=True

    Returns
    -------
    Ranks
        ``average`` by method and ``by_source``; equal scores share the mean of their ranks.
    """
    check_complete(table)
    by_source = source_scores(rank_rows(table, higher_is_better), sources)
    return Ranks(by_source.mean().rename("rank"), by_source)


def rank_rows(table: pd.DataFrame, higher_is_better: bool) -> pd.DataFrame:
    """Rank within each row; 1 is best, and equal scores share the mean of their ranks."""
    return table.rank(axis="columns", method="average", ascending=not higher_is_better)


def bootstrap_intervals(
    source_ranks: pd.DataFrame, n: int = 2000, level: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Percentile intervals of the average ranks, by drawing sources with replacement.

    Parameters
    ----------
    source_ranks : DataFrame
        One row a source, one column a method: ``by_source`` of `average_ranks`.
    n : int, default=2000
        Number of draws.
    level : float, default=0.95
        Share of the draws inside an interval.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row a method; columns rank, lower and upper.
    """
    with needed("bootstrap_intervals", "pandas", "experiment"):
        import pandas as pd
    if n < 1 or not 0 < level < 1:
        raise ParameterError(
            f"n={n!r}, level={level!r}: give n above 0 and a level between 0 and 1."
        )
    check_complete(source_ranks, at_least=2)
    values = source_ranks.to_numpy(dtype=np.float64)
    size = len(values)
    # How often each source was drawn says all about a draw, and takes no copies of the ranks.
    drawn = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=n)
    outside = (1 - level) / 2
    lower, upper = np.quantile(drawn @ values / size, [outside, 1 - outside], axis=0)
    return pd.DataFrame(
        {"rank": values.mean(axis=0), "lower": lower, "upper": upper},
        index=source_ranks.columns.rename("method"),
    )
