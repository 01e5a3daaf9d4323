"""The store of a study: one SQLite file in which a cell is there whole or not at all."""

from __future__ import annotations

import json
import operator
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from setconv.errors import ParameterError, StudyError
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


_FORMAT = 1
_SCHEMA = (
    """
    CREATE TABLE cells (
        dataset TEXT NOT NULL,
        method TEXT NOT NULL,
        split INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('ok', 'error', 'timeout')),
        error TEXT NOT NULL,
        seconds REAL NOT NULL,
        peak_mb REAL,
        started TEXT NOT NULL,
        versions TEXT NOT NULL,
        version TEXT NOT NULL,
        notes TEXT NOT NULL,
        PRIMARY KEY (dataset, method, split)
    )
    """,
    """
    CREATE TABLE results (
        dataset TEXT NOT NULL,
        method TEXT NOT NULL,
        split INTEGER NOT NULL,
        metric TEXT NOT NULL,
        value REAL,
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
        # isolation_level=None: transactions begin where this class says so, table making included.
        self._database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            self._open()
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise StudyError(
                    f"{self.path} cannot be opened as the store of a study: {error}."
                ) from error
            raise

    def _open(self) -> None:
        self._database.execute("PRAGMA foreign_keys = ON")
        with self._transaction():
            names = {name for (name,) in self._rows("SELECT name FROM sqlite_master")}
            for statement in () if names else _SCHEMA:
                self._database.execute(statement)
        if names and not {"cells", "results"} <= names:
            raise StudyError(f"{self.path} is a database, but not the store of a study.")
        ((form,),) = self._rows("PRAGMA user_version")
        if form != _FORMAT:
            raise StudyError(
                f"{self.path} has format {form}, this version reads format {_FORMAT}: "
                "open it with the version of setconv that made it."
            )

    def record(self, outcome: Outcome) -> None:
        """Write a cell and its figures in one transaction; an earlier record of it is replaced."""
        cell = outcome.cell
        key = (cell.dataset, cell.method, cell.split)
        told = (outcome.status, outcome.error, outcome.seconds, outcome.peak_mb, outcome.started)
        kept = [json.dumps(dict(one), sort_keys=True) for one in (outcome.versions, outcome.notes)]
        row = (*key, *told, kept[0], cell.version, kept[1])
        try:
            with self._transaction():
                self._database.execute(
                    "DELETE FROM cells WHERE dataset = ? AND method = ? AND split = ?", key
                )
                marks = ", ".join("?" * len(row))
                self._database.execute(f"INSERT INTO cells VALUES ({marks})", row)
                # SQLite keeps nan as NULL, which results() gives back as nan.
                self._database.executemany(
                    "INSERT INTO results VALUES (?, ?, ?, ?, ?)",
                    [(*key, metric, value) for metric, value in outcome.results.items()],
                )
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

    def results(self) -> pd.DataFrame:
        """Return the figures, tidy: columns dataset, method, split, metric and value.

        Rows are in the order of these columns, whatever the order in which cells finished.
        """
        frame = self._frame("results", "dataset, method, split, metric")
        return frame.astype({"split": "int64", "value": "float64"})

    def cells(self) -> pd.DataFrame:
        """Return one row a cell: dataset, method, split, status, error and what is known of it."""
        frame = self._frame("cells", "dataset, method, split")
        return frame.astype({"split": "int64", "seconds": "float64", "peak_mb": "float64"})

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:  # a full disk ends it by itself
                self._database.execute("ROLLBACK")
            raise

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.execute(query).fetchall()

    def _which(self, condition: str) -> set[Cell]:
        query = f"SELECT dataset, method, split, version FROM cells WHERE {condition}"
        return {Cell(*row) for row in self._rows(query)}

    def _frame(self, table: str, order: str) -> pd.DataFrame:
        with needed(f"Store.{table}", "pandas", "experiment"):
            import pandas as pd
        found = self._database.execute(f"SELECT * FROM {table} ORDER BY {order}")
        return pd.DataFrame(found.fetchall(), columns=[name for name, *_ in found.description])
