"""Friedman's test: whether the methods differ at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from setconv.errors import DataError
from setconv.experiment.statistics.evidence import Evidence
from setconv.experiment.statistics.scores import check_complete

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Friedman", "friedman"]


@dataclass(frozen=True, eq=False)
class Friedman(Evidence):
    """The outcome of Friedman's test and of its correction by Iman and Davenport.

    Attributes
    ----------
    n_sources : int
    alpha : float
    n_methods : int
    chi_square, p_value : float
        Friedman's statistic, corrected for ties, and its p-value; conservative.
    f_statistic, f_p_value : float
        Iman and Davenport's statistic and its p-value: the one to judge by.
    """

    n_methods: int
    chi_square: float
    p_value: float
    f_statistic: float
    f_p_value: float

    @property
    def significant(self) -> bool:
        """Whether the methods differ; False without sources enough, whatever the p-values."""
        return self.claimed and self.f_p_value <= self.alpha


def friedman(by_source: pd.DataFrame, alpha: float = 0.05) -> Friedman:
    """Test whether all methods are equally good, over sources.

    Parameters
    ----------
    by_source : DataFrame
        Scores or ranks, one row a source, one column a method; see `source_scores` and
        `average_ranks`. They are ranked within each source.
    alpha : float, default=0.05

    Returns
    -------
    Friedman
    """
    check_complete(by_source, at_least=2)
    n, k = by_source.shape
    if k < 3:
        raise DataError("Friedman's test needs 3 methods; compare two with wilcoxon_holm.")
    values = by_source.to_numpy(dtype=np.float64)
    if (values == values[:, :1]).all():
        return Friedman(n, alpha, k, 0.0, 1.0, 0.0, 1.0)
    chi_square, p_value = map(float, stats.friedmanchisquare(*values.T))
    left = n * (k - 1) - chi_square
    # All sources agree on the order when nothing is left, up to rounding.
    agreed = left <= 1e-9 * n * k
    f_statistic = math.inf if agreed else (n - 1) * chi_square / left
    f_p_value = float(stats.f.sf(f_statistic, k - 1, (k - 1) * (n - 1)))
    return Friedman(n, alpha, k, chi_square, p_value, f_statistic, f_p_value)
