"""Rows on disk, from whatever holds them: the door through which the library opens them.

`open_source` makes the rows available in any order, for a fit; `read_batches` streams them in their
own, for prediction; `write_predictions` streams back to Parquet. pyarrow is imported only where the
rows or the results need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, DataTypeError, ParameterError
from setconv.io.disk import (
    Batch,
    DiskRows,
    Scratch,
    check_memmap,
    float_type,
    memmap_blocks,
    rows_in_place,
)
from setconv.messages import count_of, needed

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.io.matrix import LabelColumn, Tables

Progress = Callable[[int, int], None]

SMALL = 64 * 2**20  # bytes of a memmap that is rather held
_ARROW = frozenset({"Table", "RecordBatch", "RecordBatchReader", "Dataset"})


def is_stored(X: Any) -> bool:
    """Return whether X is a source of rows to stream rather than an array to hold.

    That is a path, a ``pyarrow.dataset.Dataset``, a ``pyarrow.Table`` or ``RecordBatch``, or a 2-D
    ``numpy.memmap`` of numbers with more than `SMALL` bytes.
    """
    if _is_memmap(X):
        return X.ndim == 2 and X.dtype.kind in "fiub" and X.nbytes > SMALL
    return _is_path(X) or _is_arrow(X)


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
    """

    rows: DiskRows
    names: list[str] | None
    labels: NDArray[Any] | None

    def close(self) -> None:
        """Close the rows; a scratch file is gone then."""
        self.rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    progress: Progress | None = None,
) -> Source:
    """Make the rows of a source available in any order, in bounded memory.

    One pass checks all numbers and writes them as plain rows to a scratch file, of four or eight
    bytes a number. It has no name and goes away with the rows, also if the process is killed. It
    lies in the system's folder for temporary files: where that is in memory, as /tmp on some
    systems, let TMPDIR name one on a disk. A C-ordered memmap of float32 or float64 is only
    checked, and then read where it lies.

    Parameters
    ----------
    X : str, Path, pyarrow Dataset, Table or RecordBatch, or memmap
        A path is a Parquet file, or a folder of them that are read in the order of their names.
    columns : sequence of str or None, default=None
        The features, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists.
        None: all columns of numbers, truth values and lists of numbers, in the order of the file.
        A memmap has no names: give None, or one for each column.
    label : str or None, default=None
        The column that has the labels.
    progress : callable or None, default=None
        Called as ``progress(done_rows, total_rows)``.

    Returns
    -------
    Source
    """
    if _is_memmap(X):
        return _open_memmap(X, columns, label, progress)
    tables = _tables_of(X)
    labels = None if label is None else _label_column(tables.schema, label)
    extra = [] if label is None else [label]
    plan = tables.plan(columns, without=extra)
    with Scratch(len(plan.names), plan.dtype, tables.n_rows) as file:
        done = 0
        with closing(tables.blocks(plan, extra)) as blocks:
            for block in blocks:
                file.append(block.rows)
                if labels is not None and block.extra is not None:
                    labels.append(block.extra)
                done += len(block.rows)
                del block  # else it is held while the next one is read
                if progress is not None:
                    progress(done, tables.n_rows)
        values = None if labels is None else labels.values()
        return Source(file.rows(), plan.names, values)


def _open_memmap(
    X: np.memmap[Any, Any],
    columns: Sequence[str] | None,
    label: str | None,
    progress: Progress | None,
) -> Source:
    names = _names_of_memmap(X, columns)
    if label is not None:
        raise ParameterError(
            f"label={label!r}: a memmap has no named columns. Give the labels as an array."
        )
    rows = rows_in_place(X)
    dtype, done = float_type(X.dtype), 0
    in_place = rows is not None
    with nullcontext() if in_place else Scratch(X.shape[1], dtype, len(X)) as file:
        for block in memmap_blocks(X):
            if file is not None:
                file.append(block)
            done += len(block)
            if progress is not None:
                progress(done, len(X))
        if file is not None:
            rows = file.rows()
    assert rows is not None
    return Source(rows, names, None)


def read_batches(
    X: Any,
    columns: Sequence[str] | None = None,
    size: int = 8192,
    extra: Sequence[str] = (),
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Stream the rows of a source in its order; nothing is written.

    Parameters
    ----------
    X : str, Path, pyarrow Dataset, Table or RecordBatch, or memmap
        As `open_source` takes it.
    columns : sequence of str or None, default=None
        The features, in this order, as `open_source` takes them. None: all columns of numbers that
        are not in ``extra``. A memmap has no names: give None, or one for each column.
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
    if size < 1:
        raise ParameterError(f"size={size!r}: a batch needs at least 1 row.")
    if _is_memmap(X):
        _names_of_memmap(X, columns)
        if extra:
            raise ParameterError(f"extra={list(extra)!r}: a memmap has no named columns.")
        batches: Iterator[Batch] = map(Batch, memmap_blocks(X, size))
        total = len(X)
    else:
        tables = _tables_of(X)
        tables.require(extra, "extra")
        plan = tables.plan(columns, without=extra if columns is None else ())
        batches = _cut(tables.blocks(plan, extra), size)
        total = tables.n_rows
    return batches if progress is None else _told(batches, progress, total)


def _cut(blocks: Generator[Batch], size: int) -> Iterator[Batch]:
    """Cut blocks of any height into batches of one."""
    waiting: list[Batch] = []
    n_waiting = 0
    with closing(blocks):
        for block in blocks:
            start = 0
            while start < len(block.rows):
                stop = start + size - n_waiting
                piece = Batch(
                    block.rows[start:stop].copy(),  # a view would hold the block
                    None if block.extra is None else block.extra.slice(start, stop - start),
                )
                waiting.append(piece)
                n_waiting += len(piece.rows)
                start = stop
                if n_waiting == size:
                    yield _joined(waiting)
                    waiting, n_waiting = [], 0
            del block  # else it is held while the next one is read
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    import pyarrow as pa

    tables = [piece.extra for piece in pieces if piece.extra is not None]
    return Batch(
        np.concatenate([piece.rows for piece in pieces]),
        pa.concat_tables(tables) if tables else None,
    )


def _told(batches: Iterator[Batch], progress: Progress, total: int) -> Iterator[Batch]:
    done = 0
    for batch in batches:
        yield batch
        done += len(batch.rows)
        progress(done, total)


def write_predictions(path: str | Path, batches: Iterable[pa.Table]) -> int:
    """Write tables to one Parquet file, as they come.

    Parameters
    ----------
    path : str or Path
        Where the file is, whole, at the end; after an error it is as it was before.
    batches : iterable of pyarrow.Table
        All with the same columns.

    Returns
    -------
    int
        Rows written.
    """
    with needed("Writing Parquet files", "pyarrow", "cli"):
        from setconv.io.writer import open_writer
    with open_writer(path, format="parquet") as writer:
        for batch in batches:
            writer.write(batch)
    return writer.n_rows


def _tables_of(X: Any) -> Tables:
    """Return the tables of a source that has columns."""
    if not (_is_path(X) or _is_arrow(X)):
        raise DataTypeError(
            f"{type(X).__name__} is no source of rows on disk: give the path of a Parquet file or "
            "folder, a pyarrow dataset or table, or a numpy memmap."
        )
    with needed("Reading rows from Parquet files or Arrow data", "pyarrow", "cli"):
        from setconv.io.reading import open_tables
    return open_tables(X)


def _label_column(schema: pa.Schema, name: str) -> LabelColumn:
    from setconv.io.matrix import LabelColumn

    return LabelColumn(schema, name)


def _names_of_memmap(X: np.memmap[Any, Any], columns: Sequence[str] | None) -> list[str] | None:
    """Return the names that the user gives to the columns of a memmap."""
    check_memmap(X)
    if columns is None:
        return None
    if len(columns) != X.shape[1]:
        raise DataError(
            f"The memmap has {count_of(X.shape[1], 'column')} without names, and "
            f"{count_of(len(columns), 'name')} were given: give it exactly the features, in order."
        )
    return list(map(str, columns))


def _is_path(X: Any) -> bool:
    """Return whether X is the path of a file or folder."""
    return isinstance(X, str | os.PathLike)


def _is_memmap(X: Any) -> TypeGuard[np.memmap[Any, Any]]:
    """Return whether X lies in a file; what is computed from a memmap is one by type only."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None


def _is_arrow(X: Any) -> bool:
    """Return whether X is a table, dataset or stream of pyarrow."""
    return any(
        kind.__name__ in _ARROW and kind.__module__.split(".")[0] == "pyarrow"
        for kind in type(X).__mro__
    )
