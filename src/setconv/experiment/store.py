"""The store of a study: one SQLite file in which a cell is there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from setconv.errors import StudyFileError
from setconv.io.files import why_not
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
        for name, kind in (("dataset", str), ("method", str), ("split", int)):
            object.__setattr__(self, name, kind(getattr(self, name)))

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


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in plain words why a file of a study cannot be written."""
    try:
        yield
    except OSError as error:
        raise StudyFileError(
            f"{path} cannot be written: {why_not(error)}.",
            hint="What was finished before is kept: make room, then try again.",
        ) from error


def computed_by(versions: str) -> str:
    """Return the version of setconv among those of a cell; empty if it is not known."""
    return str(json.loads(versions).get("setconv", ""))


_FORMAT = 2
_SCHEMA = (
    """
    CREATE TABLE cells (
        dataset TEXT NOT NULL, method TEXT NOT NULL, split INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('ok', 'error', 'timeout')), error TEXT NOT NULL,
        seconds REAL NOT NULL, peak_mb REAL, started TEXT NOT NULL,
        versions TEXT NOT NULL, version TEXT NOT NULL, notes TEXT NOT NULL,
        checksum TEXT NOT NULL DEFAULT '',
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
_KEY = "dataset, method, split"
_THIS = "dataset = ? AND method = ? AND split = ?"
_TOLD = "status, error, seconds, peak_mb, started, versions, version, notes"
# Errors that say nothing about the content of the file.
_OUTSIDE = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOMEM),
)


class Store(AbstractContextManager["Store"]):
    """The finished cells of a study and their figures, in one SQLite file.

    Every cell is written in one transaction, with a checksum of all that is known of it: a process
    that dies leaves a store of whole cells, and a file that was damaged is not taken. Several
    processes may have the file open.

    Parameters
    ----------
    path : str or Path
        The file; it is made, with the folders above it, if it is not there.

    Raises
    ------
    StudyFileError
        If the file is no store or damaged, is one of another format, or cannot be written.

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
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.path.is_file():
            raise StudyFileError(f"{self.path} is no file: move it away.")
        with self._told():
            self._database = sqlite3.connect(self.path, timeout=60)
            try:
                self._open()
                self._verify()
            except BaseException:
                self._database.close()
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what an error of the database means, and what to do about it."""
        try:
            yield
        except UnicodeDecodeError as error:  # of a message that quotes the file
            raise self._damaged("a text in it cannot be read") from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.ProgrammingError):  # a fault of ours
                raise
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _OUTSIDE:
                raise self._damaged(str(error)) from error
            raise StudyFileError(
                f"{self.path} cannot be read or written: {error}.",
                hint="What was finished before is kept: make room, then try again.",
            ) from error

    def _damaged(self, why: str) -> StudyFileError:
        return StudyFileError(
            f"{self.path} is damaged, or no store of a study: {why}.",
            hint="Put a copy from before in its place, or move it away and run the study again, "
            "which then computes all cells.",
        )

    def _open(self) -> None:
        self._database.execute("PRAGMA foreign_keys = ON")
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")  # the tables come together or not at all
            names = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}
            ((form,),) = self._database.execute("PRAGMA user_version")
            if names and (form != _FORMAT or not {"cells", "results"} <= names):
                raise StudyFileError(
                    f"{self.path} is a database, but no store of format {_FORMAT}: open it with "
                    "the version of setconv that made it."
                )
            for statement in () if names else _SCHEMA:
                self._database.execute(statement)

    def _verify(self) -> None:
        """Refuse a file that has anything else than what was written."""
        with self._database:
            self._database.execute("BEGIN")
            ((found,),) = self._database.execute("PRAGMA integrity_check(1)")
            if found != "ok":
                raise self._damaged(found)
            for *key, checksum in self._database.execute(f"SELECT {_KEY}, checksum FROM cells"):
                if checksum != self._checksum(key):
                    raise self._damaged(f"the cell {' / '.join(map(str, key))} has changed")

    def _checksum(self, key: Sequence[Any]) -> str:
        """Return the digest of what the file has of a cell."""
        told = f"SELECT {_KEY}, {_TOLD} FROM cells WHERE {_THIS}"
        figures = f"SELECT metric, value FROM results WHERE {_THIS} ORDER BY metric"
        content = ascii([self._database.execute(one, key).fetchall() for one in (told, figures)])
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

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
        with self._told(), self._database as database:
            database.execute(f"DELETE FROM cells WHERE {_THIS}", key)
            places = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO cells ({_KEY}, {_TOLD}) VALUES ({places})", row)
            database.executemany("INSERT INTO results VALUES (?, ?, ?, ?, ?)", figures)
            signed = (self._checksum(key), *key)
            database.execute(f"UPDATE cells SET checksum = ? WHERE {_THIS}", signed)

    def stamp(self, cell: Cell) -> tuple[Any, ...] | None:
        """Return what tells the record of a cell from a later one; None if there is none."""
        query = f"SELECT status, started, seconds FROM cells WHERE {_THIS} AND version = ?"
        key = (cell.dataset, cell.method, cell.split, cell.version)
        with self._told():
            found: tuple[Any, ...] | None = self._database.execute(query, key).fetchone()
        return found

    def finished(self, by: str | None = None) -> set[Cell]:
        """Return the cells that ended well; those alone that a version of setconv computed."""
        found = self._which("status = 'ok'")
        return {cell for cell, one in found.items() if by is None or computed_by(one) == by}

    def failed(self) -> set[Cell]:
        """Return the cells that ended with an error or were stopped at the time limit."""
        return set(self._which("status <> 'ok'"))

    def _which(self, condition: str) -> dict[Cell, str]:
        """Return cells with the versions that they were computed with."""
        query = f"SELECT {_KEY}, version, versions FROM cells WHERE {condition}"
        with self._told():
            return {Cell(*cell): one for *cell, one in self._database.execute(query)}

    def results(self) -> pd.DataFrame:
        """Return the figures, tidy: columns dataset, method, split, metric and value.

        Rows are in the order of these columns, whatever the order in which cells finished.
        """
        return self._frame("results", f"{_KEY}, metric, value", "value")

    def cells(self) -> pd.DataFrame:
        """Return one row a cell: dataset, method, split, status, error and what is known of it."""
        return self._frame("cells", f"{_KEY}, {_TOLD}", "seconds", "peak_mb")

    def _frame(self, table: str, columns: str, *numbers: str) -> pd.DataFrame:
        with needed(f"Store.{table}", "pandas", "experiment"):
            import pandas as pd
        with self._told():
            query = f"SELECT {columns} FROM {table} ORDER BY {columns}"
            found = pd.DataFrame(self._database.execute(query), columns=columns.split(", "))
        return found.astype({"split": "int64", **dict.fromkeys(numbers, "float64")})

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._database.close()

    def __exit__(self, *error: object) -> None:
        self.close()
