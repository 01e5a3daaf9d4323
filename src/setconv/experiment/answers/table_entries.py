"""The figures of a study: a mean, its deviation and its mark for each unit, method and metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from setconv.errors import DataError
from setconv.experiment.answers.findings import Findings, Unit
from setconv.experiment.answers.naming import higher_is_better
from setconv.experiment.answers.significance import Comparison, compare
from setconv.experiment.answers.table_sheet import NO_FIGURE, Shown, number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Entry", "Key", "measured_entries", "published_entries", "scores_by_split"]

Kind = Literal["measured", "published", "failed", "missing", "undefined", "none"]
_WITHOUT_FIGURE: Mapping[Kind, str] = {
    "failed": "failed",
    "missing": NO_FIGURE,
    "undefined": "n/a",
    "none": "",
}


class Key(NamedTuple):
    """What an entry is about."""

    unit: str
    method: str
    metric: str


@dataclass(frozen=True)
class Entry:
    """A method's figure for a metric on a unit.

    Attributes
    ----------
    mean, deviation : float
        Over splits; nan where there is none. The deviation is that of a sample.
    n_splits : int
        Splits behind the mean; 0 for a published figure.
    best : bool
        No other method has a better mean, at the digits that are shown.
    mark : str
        Set where the method differs from the study's own.
    p_value : float
        Of that difference, after Holm; nan where nothing was tested.
    kind : {"measured", "published", "failed", "missing", "undefined", "none"}
        Why there is a mean, or why there is none.
    partial : bool
        Other methods have more splits.
    """

    mean: float
    deviation: float
    n_splits: int
    best: bool = False
    mark: str = ""
    p_value: float = math.nan
    kind: Kind = "measured"
    partial: bool = False

    @property
    def shown(self) -> Shown:
        """The entry as text: mean and deviation, then the mark and the number of splits."""
        if self.kind in _WITHOUT_FIGURE:
            return Shown(_WITHOUT_FIGURE[self.kind])
        text = number(self.mean)
        if not math.isnan(self.deviation):
            text += f" ± {number(self.deviation)}"
        after = [self.mark, f"({self.n_splits})" if self.partial else ""]
        return Shown(text, self.best, " ".join(filter(None, after)))


def scores_by_split(findings: Findings) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the scores of each unit and metric: one row a split, one column a method."""
    scores = findings.scores[findings.scores["method"].isin(findings.methods)]
    scores = scores[np.isfinite(scores["value"].astype(float))]
    twice = scores.duplicated(["unit", "metric", "method", "split"])
    if twice.any():
        first = scores[twice].iloc[0]
        raise DataError(
            f"scores: {first['unit']} / {first['method']} / {first['metric']} has split "
            f"{first['split']} twice: give every score once."
        )
    return {
        (str(unit), str(metric)): group.pivot(index="split", columns="method", values="value")
        for (unit, metric), group in scores.groupby(["unit", "metric"], sort=False)
    }


def measured_entries(findings: Findings) -> dict[Key, Entry]:
    """Return an entry for every unit, method and metric of the study."""
    tables = scores_by_split(findings)
    failed = _failed(findings)
    asked = findings.scores.groupby(["unit", "method", "metric"]).groups
    found = {}
    for unit in findings.units:
        for metric in findings.metrics:
            by_method = _of_unit(findings, unit, metric, tables.get((unit.name, metric)))
            for method in findings.methods:
                entry = by_method.get(method)
                key = Key(unit.name, method, metric)
                if entry is None:
                    undefined = tuple(key) in asked
                    why: Kind = "failed" if (unit.dataset, method) in failed else "missing"
                    entry = _without_figure("undefined" if undefined else why)
                found[key] = entry
    return found


def published_entries(findings: Findings) -> dict[Key, Entry]:
    """Return an entry for every figure that others reported."""
    if findings.published.empty:
        return {}
    columns = findings.published[["unit", "method", "metric", "mean", "deviation"]]
    return {
        Key(str(unit), str(method), str(metric)): Entry(
            float(mean), float(deviation), 0, kind="published"
        )
        for unit, method, metric, mean, deviation in columns.itertuples(index=False)
    }


def _of_unit(
    findings: Findings, unit: Unit, metric: str, by_split: pd.DataFrame | None
) -> dict[str, Entry]:
    """Return the entries of the methods that have scores."""
    if by_split is None:
        return {}
    higher = higher_is_better(metric)
    compared: dict[str, Comparison] = {}
    if findings.ours:
        compared = compare(by_split, findings.ours[0], unit.test_share, higher)
    counts = by_split.count()
    means, deviations, most = by_split.mean(), by_split.std(ddof=1), int(counts.max())
    # Means over other splits than the rest are no basis for who is best.
    whole = [number(means[method]) for method in by_split.columns if counts[method] == most]
    best = (max if higher else min)(whole, key=float)
    nothing = Comparison(math.nan, "")
    return {
        str(method): Entry(
            float(means[method]),
            float(deviations[method]),
            int(counts[method]),
            best=bool(counts[method] == most) and number(means[method]) == best,
            mark=compared.get(str(method), nothing).mark,
            p_value=compared.get(str(method), nothing).p_value,
            partial=bool(counts[method] < most),
        )
        for method in by_split.columns
    }


def _failed(findings: Findings) -> set[tuple[str, str]]:
    """Return the data sets and methods with a cell that did not end well."""
    if findings.cells.empty:
        return set()
    failed = findings.cells[findings.cells["status"] != "ok"]
    return set(zip(failed["dataset"], failed["method"], strict=True))


def _without_figure(kind: Kind) -> Entry:
    return Entry(math.nan, math.nan, 0, kind=kind)
