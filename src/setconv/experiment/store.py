"""The store of a study: one SQLite file in which a cell is there whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from setconv.errors import StudyError
from setconv.messages import needed

if TYPE_CHECKING:
    import pandas as pd

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
        object.__setattr__(self, "dataset", str(self.dataset))
        object.__setattr__(self, "method", str(self.method))
        object.__setattr__(self, "split", int(self.split))

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


_FORMAT = 1
_SCHEMA = (
    """
    CREATE TABLE cells (
        dataset TEXT NOT NULL, method TEXT NOT NULL, split INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('ok', 'error', 'timeout')), error TEXT NOT NULL,
        seconds REAL NOT NULL, peak_mb REAL, started TEXT NOT NULL,
        versions TEXT NOT NULL, version TEXT NOT NULL, notes TEXT NOT NULL,
        PRIMARY KEY (dataset, method, split)
    )
    """,
    """
    CREATE TABLE results (
        dataset TEXT NOT NULL, method TEXT NOT NULL, split INTEGER NOT NULL,
        metric TEXT NOT NULL, value REAL,
        PRIMARY KEY (dataset, method, split, metric),
        FOREIGN KEY (dataset, method, split) REFERENCES cells ON DELETE CASCADE
    )
    """,
    f"PRAGMA user_version = {_FORMAT}",
)


class Store:
    """The finished cells of a study and their figures, in one SQLite file.

    Every cell is written in one transaction: a process that dies leaves a store of whole cells.

    Parameters
    ----------
    path : str or Path
        The file; it is made, with the folders above it, if it is not there.

    Raises
    ------
    StudyError
        If the file is not a store, or one of another format.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.sqlite"
    >>> with Store(path) as store:
    ...     store.record(Outcome(Cell("iris", "tree", 0), "ok", "2020-01-01", 0.5, {"f1": 0.9}))
    ...     store.finished()
    {Cell(dataset='iris', method='tree', split=0, version='')}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(self.path, timeout=60)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            raise StudyError(f"{self.path} is no store of a study: {error}.") from error

    def _open(self) -> None:
        self._database.execute("PRAGMA foreign_keys = ON")
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")  # the tables come together or not at all
            names = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}
            for statement in () if names else _SCHEMA:
                self._database.execute(statement)
        ((form,),) = self._database.execute("PRAGMA user_version")
        if form != _FORMAT or (names and not {"cells", "results"} <= names):
            raise StudyError(
                f"{self.path} is a database, but no store of format {_FORMAT}: open it with the "
                "version of setconv that made it."
            )

    def record(self, outcome: Outcome) -> None:
        """Write a cell and its figures in one transaction; an earlier record of it is replaced."""
        key = (outcome.cell.dataset, outcome.cell.method, outcome.cell.split)
        told = (outcome.status, outcome.error, outcome.seconds, outcome.peak_mb, outcome.started)
        versions, notes = (
            json.dumps(dict(one), sort_keys=True) for one in (outcome.versions, outcome.notes)
        )
        row = (*key, *told, versions, outcome.cell.version, notes)
        # SQLite keeps nan as NULL, which results() gives back as nan.
        figures = [(*key, metric, value) for metric, value in outcome.results.items()]
        try:
            with self._database as database:
                database.execute(
                    "DELETE FROM cells WHERE dataset = ? AND method = ? AND split = ?", key
                )
                database.execute(f"INSERT INTO cells VALUES ({', '.join('?' * len(row))})", row)
                database.executemany("INSERT INTO results VALUES (?, ?, ?, ?, ?)", figures)
        except sqlite3.OperationalError as error:
            raise StudyError(
                f"{self.path} cannot be written: {error}. Cells that were finished before are "
                "kept: make room, then run the study again."
            ) from error

    def finished(self) -> set[Cell]:
        """Return the cells that ended well."""
        return self._which("status = 'ok'")

    def failed(self) -> set[Cell]:
        """Return the cells that ended with an error or were stopped at the time limit."""
        return self._which("status <> 'ok'")

    def _which(self, condition: str) -> set[Cell]:
        query = f"SELECT dataset, method, split, version FROM cells WHERE {condition}"
        return {Cell(*row) for row in self._database.execute(query)}

    def results(self) -> pd.DataFrame:
        """Return the figures, tidy: columns dataset, method, split, metric and value.

        Rows are in the order of these columns, whatever the order in which cells finished.
        """
        return self._frame("results", "dataset, method, split, metric", "value")

    def cells(self) -> pd.DataFrame:
        """Return one row a cell: dataset, method, split, status, error and what is known of it."""
        return self._frame("cells", "dataset, method, split", "seconds", "peak_mb")

    def _frame(self, table: str, order: str, *numbers: str) -> pd.DataFrame:
        with needed(f"Store.{table}", "pandas", "experiment"):
            import pandas as pd
        found = pd.read_sql_query(f"SELECT * FROM {table} ORDER BY {order}", self._database)
        return found.astype({"split": "int64", **dict.fromkeys(numbers, "float64")})

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
