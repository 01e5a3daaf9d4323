"""Means and standard deviations over splits, laid out for figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from setconv.experiment.answers.findings import Findings

if TYPE_CHECKING:
    import pandas as pd


class Summary(NamedTuple):
    """Means and standard deviations over the splits; nan where there is none.

    Attributes
    ----------
    means, deviations : DataFrame
        One row a unit or a setting, one column a method.
    """

    means: pd.DataFrame
    deviations: pd.DataFrame

    @property
    def empty(self) -> bool:
        """Whether there is no number at all."""
        return not self.means.notna().to_numpy().any()

    @property
    def reach(self) -> tuple[float, float]:
        """From where to where means with their deviations reach; nan if there is no number."""
        if self.empty:
            return np.nan, np.nan
        means, spread = self.means.to_numpy(), self.deviations.fillna(0).to_numpy()
        return float(np.nanmin(means - spread)), float(np.nanmax(means + spread))


def unit_scores(findings: Findings, metric: str) -> Summary:
    """Summarise a metric: all units and all methods, in the order of the study."""
    rows = findings.scores[findings.scores["metric"] == metric]
    units = [unit.name for unit in findings.units]
    return _summarise(rows, "unit", units, findings.methods)


def curve_scores(rows: pd.DataFrame, methods: Sequence[str]) -> Summary:
    """Summarise one metric of one curve: all settings, in ascending order."""
    return _summarise(rows, "setting", sorted(rows["setting"].unique()), methods)


def _summarise(
    rows: pd.DataFrame, along: str, order: Sequence[object], methods: Sequence[str]
) -> Summary:
    finite = rows[np.isfinite(rows["value"].astype(float))]
    groups = finite.groupby([along, "method"])["value"]
    means, deviations = (
        one.unstack("method").reindex(index=list(order), columns=list(methods)).astype("float64")
        for one in (groups.mean(), groups.std(ddof=1))
    )
    return Summary(means, deviations)
