"""Figures that others published, shown beside the results of a study."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from setconv.experiment.protocol.fields import known_name
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["published_figures", "published_names"]

_FOLDER = files("setconv.experiment") / "published"
_COLUMNS = ["unit", "method", "metric", "mean", "deviation"]


def published_names() -> list[str]:
    """Return the names of the tables of published figures."""
    names = [one.name for one in _FOLDER.iterdir()]
    return sorted(name.removesuffix(".csv") for name in names if name.endswith(".csv"))


def published_figures(name: str | None) -> pd.DataFrame:
    """Return a table of published figures: unit, method, metric, mean and deviation.

    Parameters
    ----------
    name : str or None
        None gives a table without rows.
    """
    with needed("Published figures", "pandas", "experiment"):
        import pandas as pd
    if name is None:
        return pd.DataFrame(columns=_COLUMNS)
    known_name("table of published figures", name, published_names())
    with (_FOLDER / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")
