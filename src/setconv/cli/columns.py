"""Which columns of a file a fitted model reads, and which are copied to the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.cli.data import find_text, has_text, named_columns, texts_of
from setconv.cli.encoding import encoded, takes_texts
from setconv.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.records import RecordReader


@dataclass(frozen=True)
class ColumnPlan:
    """What to read and what to keep.

    Attributes
    ----------
    model : fitted estimator
    text : str or None
        The text column of a model of texts.
    features : tuple of str
        The feature columns of a model of numbers.
    kept : tuple of str
        Columns that are copied to the output.
    """

    model: Any
    text: str | None
    features: tuple[str, ...]
    kept: tuple[str, ...]

    def rows(
        self, batch: pa.Table, numbers: NDArray[np.int64], *, skip_empty: bool = False
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return a batch as the classifier inside takes it, and which rows have any of it.

        Parameters
        ----------
        batch : pyarrow.Table
        numbers : int64 array of shape (n_rows,)
            The row of the file that each row is, for messages.
        skip_empty : bool, default=False
            Whether rows without a text are left out instead of refused.
        """
        present = np.ones(batch.num_rows, dtype=bool)
        if self.text is None:
            # Of those that training left out again, some may be missing.
            used = [name for name in self.features if name in batch.column_names]
            return encoded(self.model, batch.select(used), numbers), present
        if skip_empty:
            present = has_text(batch, self.text)
            batch, numbers = batch.filter(present), numbers[present]
        return texts_of(batch, self.text, numbers), present


def column_plan(model: Any, reader: RecordReader, text: str | None, keep: str | None) -> ColumnPlan:
    """Find the columns that a model needs in a file."""
    column: str | None = None
    features: tuple[str, ...] = ()
    if takes_texts(model):
        column = find_text(reader, text, getattr(model, "source_", None) or {})
        used: set[str] = set()
    else:
        features = _feature_names(model, reader)
        used = set(features)
    return ColumnPlan(model, column, features, _kept(reader, keep, used))


def _feature_names(model: Any, reader: RecordReader) -> tuple[str, ...]:
    encoder = getattr(model, "encoder_", None)
    if encoder is not None:
        return tuple(map(str, encoder.feature_names_in_))
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [
            name
            for name, kind in zip(reader.columns, reader.schema.types, strict=True)
            if reader.format != "parquet" or _is_number(kind)
        ]
        if len(names) != model.n_features_in_:
            raise DataError(
                f"The model was fitted to {model.n_features_in_} features without names, and "
                f"{reader.name} has {len(names)} columns that could be them: give a file with "
                "exactly these columns, in their order."
            )
    missing = [name for name in names if name not in reader.columns]
    if missing:
        raise DataError(
            f"{reader.name} has no column {missing[0]!r}, which the model was trained with "
            f"({len(missing)} such columns)."
        )
    return tuple(map(str, names))


def _kept(reader: RecordReader, keep: str | None, used: set[str]) -> tuple[str, ...]:
    if keep is None:
        return tuple(name for name in reader.columns if name not in used)
    if keep in ("all", "none"):
        return tuple(reader.columns) if keep == "all" else ()
    return tuple(named_columns("--keep", keep, reader.columns))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))
