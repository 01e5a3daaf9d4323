"""Open a source for a fit: its features as rows on disk, and its labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError
from setconv.names import count_of
from setconv.storage.arrow import label_column, tables_of
from setconv.storage.disk import DiskRows
from setconv.storage.kinds import is_memmap
from setconv.storage.memmaps import check_memmap, float_type, memmap_blocks, rows_in_place
from setconv.storage.scratch import Scratch

Progress = Callable[[int, int], None]


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
    scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> Source:
    """Make the rows of a source available in any order, in bounded memory.

    One pass checks all numbers and writes them as plain rows to a scratch file, of four or eight
    bytes a number. It has no name and goes away with the rows, also if the process is killed. A
    C-ordered memmap of float32 or float64 is only checked, and then read where it lies.

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
    scratch : str, Path or None, default=None
        The folder of the scratch file; None for the system's. Where that lies in memory, as /tmp
        does on some systems, give one on a disk.
    progress : callable or None, default=None
        Called as ``progress(done_rows, total_rows)``.

    Returns
    -------
    Source
    """
    if is_memmap(X):
        return _open_memmap(X, columns, label, scratch, progress)
    tables = tables_of(X)
    labels = label_column(tables.schema, label)
    extra = [] if label is None else [label]
    plan = tables.plan(columns, without=extra)
    with Scratch(scratch, len(plan.names), plan.dtype, tables.n_rows) as file:
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


def names_of_memmap(X: np.memmap[Any, Any], columns: Sequence[str] | None) -> list[str] | None:
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


def _open_memmap(
    X: np.memmap[Any, Any],
    columns: Sequence[str] | None,
    label: str | None,
    scratch: str | Path | None,
    progress: Progress | None,
) -> Source:
    names = names_of_memmap(X, columns)
    if label is not None:
        raise ParameterError(
            f"label={label!r}: a memmap has no named columns. Give the labels as an array."
        )
    rows = rows_in_place(X)
    dtype, done = float_type(X.dtype), 0
    in_place = rows is not None
    with nullcontext() if in_place else Scratch(scratch, X.shape[1], dtype, len(X)) as file:
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
