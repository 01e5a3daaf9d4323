"""Rows in, columns out, in bounded memory and with progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from setconv.cli.console import err

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from setconv.records import RecordReader

BATCH = 8192


def stream(
    reader: RecordReader,
    output: str,
    compute: Callable[[pa.Table, NDArray[np.int64]], Mapping[str, Any]],
    kept: Sequence[str],
    output_format: str | None = None,
) -> int:
    """Write the kept columns and the computed ones of all rows; return their number.

    Parameters
    ----------
    reader : RecordReader
    output : str
        File to write in one move, or "-".
    compute : callable
        From a batch and the file's numbers of its rows, counted from 1, to new columns.
    kept : sequence of str
    output_format : str, optional
    """
    import numpy as np
    import pyarrow as pa

    from setconv.records import open_writer

    done = 0
    columns = (TextColumn("{task.completed:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    with (
        open_writer(output, format=output_format) as writer,
        Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress,
    ):
        task = progress.add_task("rows", total=reader.n_rows)
        for batch in reader.batches(BATCH):
            new = compute(batch, np.arange(done + 1, done + batch.num_rows + 1))
            writer.write(pa.table({name: batch[name] for name in kept} | dict(new)))
            done += batch.num_rows
            share = reader.progress()
            total = reader.n_rows or (done / share if share else None)
            progress.update(task, completed=done, total=total)
    return done
