"""Nemenyi's test: which methods differ from which others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import stats

from setconv.errors import ParameterError
from setconv.experiment.statistics.evidence import Evidence
from setconv.experiment.statistics.ranks import rank_rows
from setconv.experiment.statistics.scores import check_complete
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Nemenyi", "critical_difference", "nemenyi"]


@dataclass(frozen=True, eq=False)
class Nemenyi(Evidence):
    """All methods against each other.

    Attributes
    ----------
    n_sources : int
    alpha : float
    ranks : Series
        Average over sources of the rank within a source, by method, best first.
    p_values : DataFrame
        Methods by methods, best first.
    critical_difference : float
        Difference of average ranks from which two methods differ.
    """

    ranks: pd.Series[float]
    p_values: pd.DataFrame
    critical_difference: float

    @property
    def significant(self) -> pd.DataFrame:
        """Which methods differ; False throughout without sources enough."""
        return (self.p_values <= self.alpha) & self.claimed

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Longest runs of methods, in the order of ranks, within which no two differ."""
        apart = self.significant.to_numpy()
        names = list(self.ranks.index)
        ends = [max(j for j in range(i, len(names)) if not apart[i, j]) for i in range(len(names))]
        return [
            tuple(names[i : end + 1])
            for i, end in enumerate(ends)
            if end > i and (i == 0 or end > ends[i - 1])
        ]


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Return the difference of average ranks from which two methods differ (Nemenyi).

    Parameters
    ----------
    k : int
        Number of methods.
    n : int
        Number of sources.
    alpha : float, default=0.05

    Returns
    -------
    float

    Examples
    --------
    >>> round(critical_difference(k=4, n=14), 2)
    1.25
    """
    if k < 2 or n < 1 or not 0 < alpha < 1:
        raise ParameterError(
            f"k={k!r}, n={n!r}, alpha={alpha!r}: give 2 methods, 1 source and a level in (0, 1)."
        )
    quantile = float(stats.studentized_range.ppf(1 - alpha, k, math.inf))
    return quantile / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


def nemenyi(
    by_source: pd.DataFrame, alpha: float = 0.05, higher_is_better: bool = False
) -> Nemenyi:
    """Compare all methods with each other, over sources.

    Parameters
    ----------
    by_source : DataFrame
        One row a source, one column a method: ``by_source`` of `average_ranks`, in which lower is
        better, or scores. They are ranked within each source, since the distribution of the test
        is that of ranks from 1 to the number of methods.
    alpha : float, default=0.05
    higher_is_better : bool, default=False

    Returns
    -------
    Nemenyi
    """
    with needed("nemenyi", "scikit-posthocs", "experiment"):
        from scikit_posthocs import posthoc_nemenyi_friedman  # type: ignore[import-untyped]
    check_complete(by_source, at_least=2)
    n, k = by_source.shape
    within = rank_rows(by_source, higher_is_better)
    ranks = within.mean().sort_values(kind="stable").rename("rank")
    within = within[ranks.index]
    p_values = posthoc_nemenyi_friedman(within.to_numpy())
    p_values = p_values.set_axis(ranks.index, axis=0).set_axis(ranks.index, axis=1)
    return Nemenyi(n, alpha, ranks, p_values, critical_difference(k, n, alpha))
