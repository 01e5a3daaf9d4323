"""Figures that others published, shown beside the results of a study."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING

from setconv.experiment.protocol.fields import known_name
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["published_counts", "published_figures", "published_names"]

_FOLDER = files("setconv.experiment") / "published"
_COUNTS = "class_counts"
_COLUMNS = ["unit", "method", "metric", "mean", "deviation"]


def published_names() -> list[str]:
    """Return the names of the tables of published figures."""
    names = [one.name for one in _FOLDER.iterdir()]
    tables = (name.removesuffix(".csv") for name in names if name.endswith(".csv"))
    return sorted(name for name in tables if name != _COUNTS)


def published_counts(dataset: str, n_classes: int) -> dict[str, int]:
    """Return the rows of each class that the paper's tables 1 and 2 give; empty for other sets.

    Parameters
    ----------
    dataset : str
        As the built-in studies call it, such as "Boston" or "Amazon-Books".
    n_classes : int
        2, or 4 for the four classes of incidents.
    """
    name = dataset if n_classes == 2 else f"{dataset} (four classes)"
    text = (_FOLDER / f"{_COUNTS}.csv").read_text(encoding="utf-8")
    lines = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {one["label"]: int(one["rows"]) for one in lines if one["dataset"] == name}


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
