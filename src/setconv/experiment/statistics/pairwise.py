"""Wilcoxon's signed-rank test with Holm's correction: one method against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from setconv.errors import ParameterError
from setconv.experiment.statistics.evidence import Evidence
from setconv.experiment.statistics.holm import holm
from setconv.experiment.statistics.scores import check_complete, source_scores
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["WilcoxonHolm", "wilcoxon_holm"]

_DIGITS = 12


@dataclass(frozen=True, eq=False)
class WilcoxonHolm(Evidence):
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
    with needed("wilcoxon_holm", "pandas", "experiment"):
        import pandas as pd
    if control not in table.columns:
        raise ParameterError(
            f"control={control!r}: choose one of {', '.join(map(str, table.columns))}."
        )
    scores = source_scores(table, sources)
    check_complete(scores, at_least=2)
    sign = 1 if higher_is_better else -1
    others = [method for method in scores.columns if method != control]
    rows = [_compare((scores[control] - scores[method]).to_numpy(), sign) for method in others]
    comparisons = pd.DataFrame(rows, index=pd.Index(others, name="method"))
    comparisons["p_holm"] = holm(comparisons["p_value"].tolist())
    return WilcoxonHolm(len(scores), alpha, control, comparisons)


def _compare(differences: np.ndarray[Any, np.dtype[np.float64]], sign: int) -> dict[str, float]:
    # Equal differences of decimal scores differ in the last bits, and would not be seen as ties.
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
