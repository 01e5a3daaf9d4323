"""Ranks of methods: within data sets, averaged within sources, then over sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from setconv.experiment.statistics.scores import check_complete, source_scores

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ranks", "average_ranks"]


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
        Scores, one row a data set, one column a method.
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
