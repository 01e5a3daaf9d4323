"""What scores prove: ranks over sources, and the tests that compare methods.

Over many data sets, Friedman's test asks whether the methods differ at all, Nemenyi's which of all
pairs do, and Wilcoxon's with Holm's correction which differ from one method; all of them count
independent sources, and claim nothing where there are few. On the random splits of one data set,
two methods are compared by the corrected resampled t test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scikit_posthocs import posthoc_nemenyi_friedman  # type: ignore[import-untyped]
from scipy import stats

from setconv.errors import DataError, ParameterError

MINIMUM_SOURCES = 10
# Equal differences of decimal scores differ in the last bits, and would not be seen as ties.
_DIGITS = 12
# Scores that agree so far share a rank: what nobody would report decides none.
_RANK_DIGITS = 4


def source_scores(table: pd.DataFrame, sources: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Average over the data sets of a source: one row a source, one column a method.

    Parameters
    ----------
    table : DataFrame
        One row a data set, one column a method.
    sources : mapping of str to str, optional
        Data set to source. By default every data set is a source of its own.

    Returns
    -------
    DataFrame
    """
    _check_complete(table)
    if sources is None:
        return table.rename_axis(index="source")
    if absent := [str(dataset) for dataset in table.index if dataset not in sources]:
        raise DataError(f"sources has no source for {', '.join(absent)}.")
    return table.groupby([sources[one] for one in table.index]).mean().rename_axis(index="source")


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
    table: pd.DataFrame, sources: Mapping[str, str] | None = None, higher_is_better: bool = True
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
        ``average`` by method and ``by_source``; scores that agree to four decimals share the mean
        of their ranks.
    """
    by_source = source_scores(_rank_rows(table, higher_is_better), sources)
    return Ranks(by_source.mean().rename("rank"), by_source)


def _rank_rows(table: pd.DataFrame, higher_is_better: bool) -> pd.DataFrame:
    """Rank within each row; 1 is best, and scores that agree share the mean of their ranks."""
    rounded = table.round(_RANK_DIGITS)
    return rounded.rank(axis="columns", method="average", ascending=not higher_is_better)


def _check_complete(table: pd.DataFrame, at_least: int = 1) -> None:
    """Refuse a table with holes, with a name twice, or with too few rows or methods."""
    unique = table.index.is_unique and table.columns.is_unique
    if len(table) < at_least or table.shape[1] < 2 or not unique or table.isna().any(axis=None):
        raise DataError(
            f"give a table of at least {at_least} rows and 2 methods, with every name once and "
            "without missing scores."
        )


@dataclass(frozen=True, eq=False)
class TestResult:
    """The ground on which a test stands.

    Whether a result is significant is never stored but follows from the p-values and this ground,
    so no result can claim more than its sources support.

    Attributes
    ----------
    n_sources : int
        Number of independent sources.
    alpha : float
        Level of significance.
    """

    n_sources: int
    alpha: float

    def __post_init__(self) -> None:
        """Refuse a level that is none."""
        if not 0 < self.alpha < 1:
            raise ParameterError(f"alpha={self.alpha!r}: give a number between 0 and 1.")

    @property
    def claimed(self) -> bool:
        """Whether there are sources enough to claim anything."""
        return self.n_sources >= MINIMUM_SOURCES

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty if there are sources enough."""
        if self.claimed:
            return ""
        return (
            f"{self.n_sources} independent sources are fewer than {MINIMUM_SOURCES}: "
            "no significance is claimed, whatever the p-values."
        )


@dataclass(frozen=True, eq=False)
class Friedman(TestResult):
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
    _check_complete(by_source, at_least=2)
    n, k = by_source.shape
    if k < 3:
        raise DataError("Friedman's test needs 3 methods; compare two with wilcoxon_holm.")
    values = by_source.to_numpy(dtype=np.float64).round(_RANK_DIGITS)
    if (values == values[:, :1]).all():
        return Friedman(n, alpha, k, 0.0, 1.0, 0.0, 1.0)
    chi_square, p_value = map(float, stats.friedmanchisquare(*values.T))
    left = n * (k - 1) - chi_square
    # All sources agree on the order when nothing is left, up to rounding.
    agreed = left <= 1e-9 * n * k
    f_statistic = math.inf if agreed else (n - 1) * chi_square / left
    f_p_value = float(stats.f.sf(f_statistic, k - 1, (k - 1) * (n - 1)))
    return Friedman(n, alpha, k, chi_square, p_value, f_statistic, f_p_value)


@dataclass(frozen=True, eq=False)
class Nemenyi(TestResult):
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
    _check_complete(by_source, at_least=2)
    n, k = by_source.shape
    within = _rank_rows(by_source, higher_is_better)
    ranks = within.mean().sort_values(kind="stable").rename("rank")
    p_values = posthoc_nemenyi_friedman(within[ranks.index].to_numpy())
    p_values = p_values.set_axis(ranks.index, axis=0).set_axis(ranks.index, axis=1)
    return Nemenyi(n, alpha, ranks, p_values, critical_difference(k, n, alpha))


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
    quantile = float(stats.studentized_range.ppf(1 - alpha, k, math.inf))
    return quantile / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


@dataclass(frozen=True, eq=False)
class WilcoxonHolm(TestResult):
    """One method against each other.

    Attributes
    ----------
    n_sources : int
    alpha : float
    control : str
    comparisons : DataFrame
        One row for each other method, in the order of the table. Columns: ``difference``, the
        median over sources of the control's score minus the other's; ``wins``, ``ties`` and
        ``losses`` of the control; ``statistic``, the smaller of the two sums of ranks;
        ``p_value``, two-sided; ``p_holm``, corrected for the number of comparisons.
    """

    control: str
    comparisons: pd.DataFrame

    @property
    def significant(self) -> pd.Series[bool]:
        """From which methods the control differs; all False without sources enough."""
        differs: pd.Series[bool] = (self.comparisons["p_holm"] <= self.alpha) & self.claimed
        return differs.rename("significant")


def wilcoxon_holm(
    table: pd.DataFrame,
    control: str,
    sources: Mapping[str, str] | None = None,
    alpha: float = 0.05,
    higher_is_better: bool = True,
) -> WilcoxonHolm:
    """Compare one method with each other over sources, by paired two-sided Wilcoxon tests.

    Sources on which two methods are equal count half for each, as in Demsar (2006).

    Parameters
    ----------
    table : DataFrame
        Scores, one row a data set, one column a method.
    control : str
        The method that is compared with all others.
    sources : mapping of str to str, optional
        Data set to source; scores are averaged within sources first. By default every row is a
        source of its own.
    alpha : float, default=0.05
    higher_is_better : bool, default=True
        Says only what a win is.

    Returns
    -------
    WilcoxonHolm
    """
    if control not in table.columns:
        raise ParameterError(f"control={control!r} is no method.", parameter="control")
    scores = source_scores(table, sources)
    _check_complete(scores, at_least=2)
    sign = 1 if higher_is_better else -1
    others = [method for method in scores.columns if method != control]
    rows = [_compare((scores[control] - scores[method]).to_numpy(), sign) for method in others]
    comparisons = pd.DataFrame(rows, index=pd.Index(others, name="method"))
    comparisons["p_holm"] = holm(comparisons["p_value"].tolist())
    return WilcoxonHolm(len(scores), alpha, control, comparisons)


def _compare(differences: np.ndarray[Any, np.dtype[np.float64]], sign: int) -> dict[str, float]:
    differences = np.round(differences, _DIGITS)
    # The test has no p-value when nothing differs, which is no evidence of a difference.
    p_value, statistic = 1.0, len(differences) * (len(differences) + 1) / 4
    if differences.any():
        test = stats.wilcoxon(differences, zero_method="zsplit")
        p_value, statistic = float(test.pvalue), float(test.statistic)
    return {
        "difference": float(np.median(differences)),
        "wins": int((sign * differences > 0).sum()),
        "ties": int((differences == 0).sum()),
        "losses": int((sign * differences < 0).sum()),
        "statistic": statistic,
        "p_value": p_value,
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method; nan stays nan."""
    corrected = np.asarray(p_values, dtype=np.float64).copy()
    order = np.argsort(corrected, kind="stable")[: int((~np.isnan(corrected)).sum())]  # nan last
    steps = (len(order) - np.arange(len(order))) * corrected[order]
    corrected[order] = np.maximum.accumulate(np.minimum(steps, 1.0))
    return [float(p) for p in corrected]


def corrected_t_test(differences: ArrayLike, test_share: float) -> float:
    """Return the two-sided p-value of no difference, for splits that share rows.

    Random splits of one data set share most of their training rows, so their scores are not
    independent and a plain paired t test finds differences that are not there. Nadeau and Bengio
    (2003) widen its variance::

        t = mean / sqrt((1 / J + n_test / n_train) * variance),  J - 1 degrees of freedom

    Parameters
    ----------
    differences : array-like of shape (J,)
        Score of one method minus score of the other on the same split.
    test_share : float
        Rows for testing over rows for training: 3/7 for a split of 7:3.

    Returns
    -------
    float
        1.0 where nothing differs; nan where the spread is not known: for fewer than two splits,
        and where the difference is the same on all.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("differences must be one finite number a split.")
    if not test_share > 0:
        raise ParameterError(f"test_share={test_share!r}: give a number above 0.")
    if len(values) < 2:
        return float("nan")
    values = np.round(values, _DIGITS)
    if np.ptp(values) == 0:
        return 1.0 if values[0] == 0 else float("nan")
    t = values.mean() / np.sqrt((1 / len(values) + test_share) * values.var(ddof=1))
    return float(2 * stats.t.sf(abs(t), df=len(values) - 1))
