"""The figures of a study: a mean, its deviation and its mark for each unit, method and metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from setconv.errors import DataError
from setconv.experiment.answers.findings import Findings, Unit
from setconv.experiment.answers.naming import higher_is_better
from setconv.experiment.answers.table_sheet import NO_FIGURE, Shown, number
from setconv.experiment.statistics.holm import holm
from setconv.experiment.statistics.resampled import corrected_t_test

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Entry", "Key", "compare", "measured_entries", "published_entries", "scores_by_split"]

ALPHA = 0.05
BETTER = "▲"
WORSE = "▼"

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


NOTHING = Entry(math.nan, math.nan, 0, kind="none")


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
                    entry = replace(NOTHING, kind="undefined" if undefined else why)
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
    ours = findings.ours[0] if findings.ours else ""
    compared = compare(by_split, ours, unit.test_share, higher)
    counts = by_split.count()
    means, deviations, most = by_split.mean(), by_split.std(ddof=1), int(counts.max())
    # Means over other splits than the rest are no basis for who is best.
    whole = [number(means[method]) for method in by_split.columns if counts[method] == most]
    best = (max if higher else min)(whole, key=float)
    found = {}
    for method in map(str, by_split.columns):
        complete = bool(counts[method] == most)
        p_value, mark = compared.get(method, (math.nan, ""))
        found[method] = Entry(
            float(means[method]),
            float(deviations[method]),
            int(counts[method]),
            best=complete and number(means[method]) == best,
            mark=mark,
            p_value=p_value,
            partial=not complete,
        )
    return found


def compare(
    by_split: pd.DataFrame, control: str, test_share: float, higher_is_better: bool
) -> dict[str, tuple[float, str]]:
    """Compare every other method with one, on the splits that both have.

    Parameters
    ----------
    by_split : DataFrame
        Scores of one unit and metric: one row a split, one column a method; nan where there is
        none.
    control : str
        The method that the others are compared with.
    test_share : float
        Rows for testing over rows for training.
    higher_is_better : bool

    Returns
    -------
    dict of str to (float, str)
        The two-sided p-value after Holm, nan if the two share fewer than two splits, and
        ``BETTER`` or ``WORSE`` where the method differs. Empty if the control has no scores.
    """
    if control not in by_split.columns:
        return {}
    differences = {
        str(method): (by_split[method] - by_split[control]).dropna().to_numpy()
        for method in by_split.columns
        if method != control
    }
    p_values = holm([corrected_t_test(one, test_share) for one in differences.values()])
    found = {}
    for (method, values), p_value in zip(differences.items(), p_values, strict=True):
        mark = ""
        if p_value <= ALPHA:
            mark = BETTER if (values.mean() > 0) == higher_is_better else WORSE
        found[method] = (p_value, mark)
    return found


def _failed(findings: Findings) -> set[tuple[str, str]]:
    """Return the data sets and methods with a cell that did not end well."""
    if findings.cells.empty:
        return set()
    failed = findings.cells[findings.cells["status"] != "ok"]
    return set(zip(failed["dataset"], failed["method"], strict=True))
