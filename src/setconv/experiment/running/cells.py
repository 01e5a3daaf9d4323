"""A cell of a study, and what came out of it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from setconv.errors import ParameterError

__all__ = ["Cell", "Outcome", "Status"]

Status = Literal["ok", "error", "timeout"]


@dataclass(frozen=True, order=True)
class Cell:
    """The smallest piece of a study: one method on one split of one data set.

    Parameters
    ----------
    dataset : str
    method : str
    split : int
    version : str, default=""
        What the cell is computed from, such as a digest of the data and the parameters. A store
        has one version of a cell; a cell of another version is computed again and replaces it.
    """

    dataset: str
    method: str
    split: int
    version: str = ""

    def __post_init__(self) -> None:
        """Make names and number plain, so that equal cells are equal in the store too."""
        for name in ("dataset", "method"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ParameterError(f"{name}={value!r}: give a name that is not empty.")
            object.__setattr__(self, name, str(value))
        if not isinstance(self.version, str):
            raise ParameterError(f"version={self.version!r}: give text.")
        try:
            object.__setattr__(self, "split", operator.index(self.split))
        except TypeError:
            raise ParameterError(f"split={self.split!r}: give an integer.") from None

    def __str__(self) -> str:
        return f"{self.dataset} / {self.method} / {self.split}"


@dataclass(frozen=True)
class Outcome:
    """What came out of a cell: figures, or the error.

    Attributes
    ----------
    cell : Cell
    status : {"ok", "error", "timeout"}
    started : str
        Time of the start, ISO 8601 in UTC.
    seconds : float
        Wall time of the cell alone; imports at the start of a worker do not count.
    results : mapping of str to float
        Metric to value; empty unless the status is "ok".
    error : str
        Empty if the status is "ok".
    peak_mb : float or None
        Peak memory of the worker in MiB, approximate; None if the worker cannot be asked any more.
    versions : mapping of str to str
        Versions of Python and of the packages that the worker had loaded.
    notes : mapping
        What else the work told: anything that JSON can hold.
    """

    cell: Cell
    status: Status
    started: str
    seconds: float
    results: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    peak_mb: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
