"""Numbers that may not fit into memory: rows drawn in any order, or streamed in their own.

`open_source` makes the rows of a file available in any order, for a fit, and `read_batches` streams
them in their own, for a prediction; `write_predictions` streams back to Parquet. pyarrow is
imported only where the rows or the results need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from setconv.errors import DataError, ParameterError
from setconv.io.disk import Batch, DiskRows, Scratch, memmap_rows, refuse_not_finite
from setconv.messages import needed, require_column

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.io.parquet import ColumnReader

Progress = Callable[[int, int], None]

_BATCH = 8192  # rows


@dataclass(frozen=True)
class Source:
    """What a fit needs of a source. As a context manager it closes its rows.

    Attributes
    ----------
    rows : DiskRows
        float32 or float64.
    names : list of str or None
        Of the features; None if they have none.
    labels : ndarray or None
        Of all rows; None if no column was named.
    times : ndarray or None
        As they are in the file, of all rows; None if no column was named.
    """

    rows: DiskRows
    names: list[str] | None = None
    labels: NDArray[Any] | None = None
    times: NDArray[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rows.close()  # a scratch file is gone then


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    progress: Progress | None = None,
    time: str | None = None,
) -> Source:
    """Make the rows of a source available in any order, in bounded memory.

    One pass checks all numbers and writes them as plain rows to a scratch file, of four or eight
    bytes a number. It has no name and goes away with the rows, also if the process is killed. It
    lies in the system's folder for temporary files: where that is in memory, as /tmp on some
    systems, let TMPDIR name one on a disk. A memmap is only checked, and read where it lies.

    Parameters
    ----------
    X : str, Path, pyarrow Dataset, Table or RecordBatch, reader of Parquet files, or memmap
        A path is a Parquet file, or a folder of them that are read in the order of their names. A
        memmap has float32 or float64 numbers in C order.
    columns : sequence of str or None, default=None
        The features, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists.
        None: all columns of numbers, truth values and lists of numbers, in the order of the file.
        A memmap has no names: it is taken whole.
    label : str or None, default=None
        The column that has the labels.
    progress : callable or None, default=None
        Called as ``progress(done_rows, total_rows)``.
    time : str or None, default=None
        The column that says when each row was.

    Returns
    -------
    Source
    """
    if isinstance(X, np.memmap):
        _refuse_names("label", label)
        _refuse_names("time", time)
        rows = memmap_rows(X)
        for _ in _told(_disk_batches(rows, _BATCH), progress, len(rows)):
            pass
        return Source(rows)
    from setconv.io.columns import check_label_column, label_values, time_values

    reader = _column_reader(X)
    if label is not None:
        check_label_column(reader.schema, label)
    if time is not None:
        require_column(time, reader.columns, "time")
    extra = list(dict.fromkeys(one for one in (label, time) if one is not None))
    plan = _plan(reader, columns, extra)
    beside: list[Any] = []
    with Scratch(len(plan.names), plan.dtype, reader.n_rows) as file:
        for batch in _told(_table_batches(reader, plan, extra), progress, reader.n_rows):
            file.append(batch.rows)
            beside.append(batch.extra)
            del batch  # else it is held while the next one is read
        labels = None if label is None else label_values(beside, label)
        times = None if time is None else time_values(beside, time)
        return Source(file.rows(), plan.names, labels, times)


def read_batches(
    X: Any,
    columns: Sequence[str] | None = None,
    size: int = _BATCH,
    extra: Sequence[str] = (),
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Stream the rows of a source in its order; nothing is written.

    Parameters
    ----------
    X : str, Path, pyarrow Dataset, Table or RecordBatch, reader of Parquet files, or memmap
        As `open_source` takes it.
    columns : sequence of str or None, default=None
        The features, in this order, as `open_source` takes them. None: all columns of numbers that
        are not in ``extra``.
    size : int, default=8192
        Rows of a batch; the last may have fewer.
    extra : sequence of str, default=()
        Columns to hand through as they are.
    progress : callable or None, default=None
        Called as ``progress(done_rows, total_rows)``.

    Returns
    -------
    iterator of Batch
        What is wrong with the columns is said here; what is wrong with a row, when it is reached.
    """
    if isinstance(X, np.memmap):
        _refuse_names("extra", extra)
        rows = memmap_rows(X)
        return _told(_disk_batches(rows, size), progress, len(rows))
    reader = _column_reader(X)
    for name in extra:
        require_column(name, reader.columns, "extra")
    plan = _plan(reader, columns, extra if columns is None else ())
    return _told(_table_batches(reader, plan, extra, size), progress, reader.n_rows)


def _column_reader(X: Any) -> ColumnReader:
    """Return the reader of a source that has columns of numbers."""
    with needed("Reading rows from Parquet files or Arrow data", "pyarrow", "cli"):
        from setconv.io.parquet import ColumnReader, read_arrow
        from setconv.io.records import open_records
    if isinstance(X, ColumnReader):
        return X
    if not isinstance(X, str | os.PathLike):
        return read_arrow(X)
    reader = open_records(Path(X))
    if not isinstance(reader, ColumnReader):
        reader.close()
        raise DataError(
            f"{X} is not a Parquet file. Give a Parquet file or a folder of them; read other "
            "formats into an array or a data frame first."
        )
    return reader


def _refuse_names(parameter: str, given: Any) -> None:
    if given:
        raise ParameterError(
            f"{parameter}={given!r}: a memmap has no named columns.", parameter=parameter
        )


def _plan(reader: ColumnReader, columns: Sequence[str] | None, without: Sequence[str]) -> Any:
    from setconv.io.matrix import FeaturePlan

    return FeaturePlan.of(reader, columns, without)


def _table_batches(
    reader: ColumnReader, plan: Any, extra: Sequence[str], size: int | None = None
) -> Iterator[Batch]:
    from setconv.io.sources import in_batches

    done = 0
    tables = reader.tables(list(dict.fromkeys([*plan.columns, *extra])))
    for table in tables if size is None else in_batches(tables, size):
        n_rows = len(table)
        yield Batch(plan.rows(table, done), table.select(list(extra)) if extra else None)
        done += n_rows
        del table


def _disk_batches(rows: DiskRows, size: int) -> Iterator[Batch]:
    for part in gen_batches(len(rows), size):
        some = rows[part]
        refuse_not_finite(some, part.start)
        yield Batch(some)


def _told(batches: Iterator[Batch], progress: Progress | None, total: int) -> Iterator[Batch]:
    done = 0
    for batch in batches:
        done += len(batch.rows)
        yield batch
        del batch
        if progress is not None:
            progress(done, total)


def write_predictions(
    path: str | Path,
    batches: Iterable[tuple[pa.Table | None, Any]],
    classes: NDArray[Any],
    kept: Sequence[str],
) -> int:
    """Write predictions to one Parquet file, as they come.

    Parameters
    ----------
    path : str or Path
        Where the file is, whole, at the end; after an error it is as it was before.
    batches : iterable of (pyarrow.Table or None, Predictions)
        The table has the columns to keep, if there are any.
    classes : array of shape (n_classes,)
    kept : sequence of str
        Columns of the input to copy.

    Returns
    -------
    int
        Rows written.
    """
    with needed("Writing Parquet files", "pyarrow", "cli"):
        import pyarrow as pa

        from setconv.io.writer import check_kept, open_writer, prediction_columns
    check_kept(kept, classes)
    with open_writer(path, format="parquet") as writer:
        for table, found in batches:
            copied = {} if table is None else {name: table[name] for name in kept}
            new = prediction_columns(classes, found, np.ones(len(found), dtype=np.bool_))
            writer.write(pa.table(copied | new))
    return writer.n_rows
