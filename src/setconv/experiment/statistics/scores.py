"""From tidy results to tables of scores: data sets or sources by methods."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from setconv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["score_table", "source_scores"]

logger = logging.getLogger(__name__)


def score_table(
    results: pd.DataFrame,
    metric: str,
    methods: Sequence[str] | None = None,
    *,
    complete: bool = True,
) -> pd.DataFrame:
    """Average a metric over the splits: one row a data set, one column a method.

    A data set is complete if every method has a number for every split that any of these methods
    has; nan is no number.

    Parameters
    ----------
    results : DataFrame
        Tidy results, as `Store.results` gives them.
    metric : str
    methods : sequence of str, optional
        The columns, in this order; by default all methods, sorted.
    complete : bool, default=True
        Leave out data sets that are not complete; a warning in the log names them. Otherwise the
        mean is over the splits that are there, and nan where there is none.

    Returns
    -------
    DataFrame
    """
    chosen = results[results["metric"] == metric]
    if chosen.empty:
        known = ", ".join(sorted(results["metric"].unique()))
        raise DataError(f"metric={metric!r}: the results have only {known or 'no rows'}.")
    present = sorted(chosen["method"].unique())
    names = present if methods is None else list(methods)
    if absent := [name for name in names if name not in present]:
        raise DataError(f"no results of {', '.join(absent)}; there are {', '.join(present)}.")
    chosen = chosen[chosen["method"].isin(names)]
    if chosen.duplicated(["dataset", "method", "split"]).any():
        raise DataError("some cells are in the results twice: give the results of one store.")
    by_split = chosen.pivot(index=["dataset", "split"], columns="method", values="value")[names]
    table = by_split.groupby(level="dataset").mean()
    if not complete:
        return table
    has_all = by_split.notna().groupby(level="dataset").all()
    whole = has_all.all(axis="columns")
    if not whole.all():
        lacking = {
            dataset: [method for method in names if not has_all.at[dataset, method]]
            for dataset in table.index[~whole]
        }
        left_out = [f"{dataset} ({', '.join(which)})" for dataset, which in lacking.items()]
        logger.warning(
            "%s: %d of %d data sets left out, for the methods in brackets lack a split: %s",
            *(metric, len(left_out), len(table), "; ".join(left_out)),
        )
    if not whole.any():
        raise DataError(f"{metric}: no data set has every split of every method.")
    return table[whole]


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
    check_complete(table)
    if sources is None:
        return table.rename_axis(index="source")
    if absent := [str(dataset) for dataset in table.index if dataset not in sources]:
        raise DataError(f"sources has no source for {', '.join(absent)}.")
    of = [sources[dataset] for dataset in table.index]
    return table.groupby(of).mean().rename_axis(index="source")


def check_complete(table: pd.DataFrame, at_least: int = 1) -> None:
    """Refuse a table with holes, with a name twice, or with too few rows or methods."""
    if len(table) < at_least or table.shape[1] < 2:
        raise DataError(
            f"the table has {_count(table.index, 'row')} and {_count(table.columns, 'method')}: "
            f"give at least {at_least} and 2."
        )
    if not table.index.is_unique or not table.columns.is_unique:
        raise DataError("the table has a name twice: rows and methods must be unique.")
    holes = table.isna().any(axis="columns")
    if holes.any():
        names = ", ".join(map(str, table.index[holes]))
        raise DataError(f"scores are missing for {names}: leave these rows out.")


def _count(names: Iterable[object], noun: str) -> str:
    number = len(list(names))
    return f"{number} {noun}{'' if number == 1 else 's'}"
