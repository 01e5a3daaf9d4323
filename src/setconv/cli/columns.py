"""Which columns of a file a fitted model reads, and which are copied to the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.cli.data import find_text, has_text, takes_texts, texts_of
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
        self, batch: pa.Table, first: int, *, skip_empty: bool = False
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return what the model takes of a batch, and which rows have any of it.

        Parameters
        ----------
        batch : pyarrow.Table
        first : int
            Rows before the batch, for messages.
        skip_empty : bool, default=False
            Whether rows without a text are left out instead of refused.
        """
        present = np.ones(batch.num_rows, dtype=bool)
        if self.text is not None:
            if skip_empty:
                present = has_text(batch, self.text)
                batch = batch.filter(present)
            return texts_of(batch, self.text, first), present
        if hasattr(self.model, "encoder_"):
            return batch, present
        return _matrix(batch, self.features, first), present


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
    names = tuple(name.strip() for name in keep.split(","))
    unknown = [name for name in names if name not in reader.columns]
    if unknown:
        raise DataError(
            f"--keep: there is no column {unknown[0]!r}; the columns are "
            f"{', '.join(map(repr, reader.columns))}."
        )
    return names


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _matrix(batch: pa.Table, names: tuple[str, ...], first: int) -> NDArray[np.float32]:
    matrix = np.empty((batch.num_rows, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        column = np.asarray(batch[name].to_numpy(zero_copy_only=False))
        try:
            matrix[:, place] = column.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Column {name!r} has a value that is not a number in rows {first + 1} to "
                f"{first + batch.num_rows} ({error}): the model takes numbers."
            ) from error
    return matrix
