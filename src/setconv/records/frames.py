"""Tables of any make as pyarrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from setconv.errors import DataError, DataTypeError


def as_table(X: Any) -> pa.Table:
    """Return a pyarrow table, a pandas or polars frame, or a dict of columns as a pyarrow table."""
    if isinstance(X, pa.Table):
        return X
    try:
        if isinstance(X, pa.RecordBatch):
            return pa.Table.from_batches([X])
        if isinstance(X, Mapping):
            return pa.table({str(name): _column(values) for name, values in X.items()})
        if hasattr(X, "iloc"):
            return pa.Table.from_pandas(X, preserve_index=False).replace_schema_metadata(None)
        if hasattr(X, "__arrow_c_stream__"):
            return pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be read: {error}. Each column needs values of one type, and all "
            "columns the same length."
        ) from error
    raise DataTypeError(
        f"A table is expected, not {type(X).__name__}: give a pyarrow table, a pandas or polars "
        "frame, or a dict of columns by name."
    )


def _column(values: Any) -> Any:
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return values
    return pa.array(values)
