"""Tables of scores: data sets or sources by methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from setconv.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["source_scores"]


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
            f"give at least {at_least} rows and 2 methods: the table has {len(table)} and "
            f"{table.shape[1]}."
        )
    if not table.index.is_unique or not table.columns.is_unique:
        raise DataError("the table has a name twice: rows and methods must be unique.")
    holes = table.isna().any(axis="columns")
    if holes.any():
        names = ", ".join(map(str, table.index[holes]))
        raise DataError(f"scores are missing for {names}: leave these rows out.")
