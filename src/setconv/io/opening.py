"""Numbers that may not fit into memory.

`open_source` makes the rows of a file available in passes, for a fit, and `read_batches` streams
them once, for a prediction; `write_predictions` streams back to Parquet. pyarrow is imported only
where the rows or the results need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError
from setconv.io.disk import Bar, Batch, StreamedRows, memmap_rows
from setconv.messages import needed, require_column

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.io.parquet import ColumnReader

Progress = Callable[[int, int], None]

_BATCH = 8192  # rows


@dataclass(frozen=True)
class Source:
    """What a fit needs of a source.

    Attributes
    ----------
    rows : StreamedRows
        float32 or float64; each pass over them checks all numbers.
    names : list of str or None
        Of the features; None if they have none.
    labels : callable
        Gives the distinct labels and the place of each row's among them, if a column was named.
    times : callable
        Gives those of all rows, as they are in the file, if a column was named.
    """

    rows: StreamedRows
    names: list[str] | None
    labels: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    times: Callable[[], NDArray[Any]]


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    time: str | None = None,
    bar: Bar = nullcontext,
) -> Source:
    """Make the rows of a source available in passes over them, in bounded memory.

    Nothing is read but what the columns are.

    Parameters
    ----------
    X : str, Path, pyarrow Dataset, Table or RecordBatch, reader of Parquet files, or memmap
        A path is a Parquet file, or a folder of them that are read in the order of their names. A
        memmap has float32 or float64 numbers in C order.
    columns : sequence of str or None, default=None
        The features, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists.
        None: all columns of numbers, truth values and lists of numbers, in the order of the file.
        A memmap has no names: it is taken whole.
    label, time : str or None, default=None
        The columns that have the labels, and when each row was: they are no features.
    bar : callable
        Gives what is told ``(done_rows, total_rows)`` in a pass, as a context.

    Returns
    -------
    Source
    """
    if isinstance(X, np.memmap):
        _refuse_names("label", label)
        _refuse_names("time", time)
        return Source(memmap_rows(X, bar), None, lambda: (np.empty(0),) * 2, lambda: np.empty(0))
    reader = _column_reader(X)
    from setconv.io.columns import CodedColumn, check_label_column, time_values

    if label is not None:
        check_label_column(reader.schema, label)
    if time is not None:
        require_column(time, reader.columns, "time")
    beside = dict.fromkeys(one for one in (label, time) if one is not None)
    plan = _plan(reader, columns, list(beside))

    def read() -> Iterator[NDArray[Any]]:
        for batch in _table_batches(reader, plan, ()):
            yield batch.rows
            del batch  # else it is held while the next one is read

    shape = (reader.n_rows, len(plan.names))
    rows = StreamedRows(read, shape, plan.dtype, bar)

    def labels() -> tuple[NDArray[Any], NDArray[Any]]:
        coded = CodedColumn.of(reader.tables([str(label)]), str(label), reader.n_rows)
        return coded.as_labels(str(label))

    def times() -> NDArray[Any]:
        return time_values(reader.tables([str(time)]), str(time))

    return Source(rows, plan.names, labels, times)


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
        return _told((Batch(block) for block in rows.blocks(size)), progress, rows.shape[0])
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
