"""What every table and figure of a study is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Findings", "Unit"]


@dataclass(frozen=True)
class Unit:
    """What a row of a table is about: a class of a data set against the rest.

    Attributes
    ----------
    name : str
        Unique in the study, such as "SemEval" or "Davidson: hate".
    dataset : str
    label : str
        The class that is counted as positive.
    imbalance_ratio : float
        Rows of the other classes over rows of this one.
    n_rows : int
    source : str
        Units of one source are no independent evidence.
    test_share : float
        Rows for testing over rows for training, in each split.
    """

    name: str
    dataset: str
    label: str
    imbalance_ratio: float
    n_rows: int
    source: str
    test_share: float

    @property
    def title(self) -> str:
        """The name with the imbalance ratio in brackets, as in the figures of the paper."""
        return f"{self.name} ({self.imbalance_ratio:.2f})"


@dataclass(frozen=True, eq=False)
class Findings:
    """The finished cells of a study.

    Attributes
    ----------
    name, title, about : str
    command : str
        The command that makes the cells.
    methods : tuple of str
        In the order of the study.
    ours : tuple of str
        The methods that the study is about; the first is compared with all others.
    metrics : tuple of str
        In the order of the study.
    units : tuple of Unit
        In the order of the study.
    scores : DataFrame
        Columns unit, method, split, metric and value; nan where a metric is not defined.
    curves : DataFrame
        Columns curve, unit, method, split, metric, setting (a number) and value: the metrics along
        a parameter, such as the size of the post-training subset or the imbalance ratio.
        ``curve`` names the parameter. Empty if the study has none.
    published : DataFrame
        Figures that others reported: columns unit, method, metric, mean and deviation (nan where
        none is given). Empty if there are none.
    cells : DataFrame
        As `Store.cells` gives them: dataset, method, split, status, error, seconds, peak_mb,
        started, versions and notes (both JSON).
    missing : int
        Cells of the study that are not computed yet.
    notes : tuple of str
        Where the rows come from, one text a data set.
    """

    name: str
    title: str
    about: str
    command: str
    methods: tuple[str, ...]
    ours: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[Unit, ...]
    scores: pd.DataFrame
    curves: pd.DataFrame
    published: pd.DataFrame
    cells: pd.DataFrame
    missing: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)

    def unit(self, name: str) -> Unit:
        """Return the unit of a name."""
        return next(one for one in self.units if one.name == name)
