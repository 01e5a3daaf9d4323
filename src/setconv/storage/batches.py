"""Batches of a source in its own order, and predictions back to Parquet."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setconv.errors import ParameterError
from setconv.storage.arrow import parquet_writer, tables_of
from setconv.storage.batch import Batch
from setconv.storage.kinds import is_memmap
from setconv.storage.memmaps import memmap_blocks
from setconv.storage.opening import Progress, names_of_memmap

if TYPE_CHECKING:
    import pyarrow as pa


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
    if is_memmap(X):
        names_of_memmap(X, columns)
        if extra:
            raise ParameterError(f"extra={list(extra)!r}: a memmap has no named columns.")
        batches: Iterator[Batch] = map(Batch, memmap_blocks(X, size))
        total = len(X)
    else:
        tables = tables_of(X)
        tables.require(extra, "extra")
        plan = tables.plan(columns, without=extra if columns is None else ())
        batches = _cut(tables.blocks(plan, extra), size)
        total = tables.n_rows
    return batches if progress is None else _told(batches, progress, total)


def column_names(X: Any) -> list[str] | None:
    """Return the names of all columns of a source, in order; None for a memmap."""
    return None if is_memmap(X) else list(tables_of(X).schema.names)


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
    with parquet_writer(path) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.n_rows


def _told(batches: Iterator[Batch], progress: Progress, total: int) -> Iterator[Batch]:
    done = 0
    for batch in batches:
        yield batch
        done += len(batch.rows)
        progress(done, total)


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
