"""A column of labels, gathered block by block, as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import LabelError
from setconv.names import require_column
from setconv.storage.filling import numbers_of


class LabelColumn:
    """The labels of all rows.

    Parameters
    ----------
    schema : pyarrow.Schema
    name : str
        The column.
    """

    def __init__(self, schema: pa.Schema, name: str) -> None:
        self.name = require_column(name, schema.names, "y")
        kind = schema.field(name).type
        self._kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._chunks: list[pa.Array] = []
        self._n_rows = 0
        if not _can_be_labels(self._kind):
            raise LabelError(
                f"Column {name!r} is {kind}, which cannot be labels. Choose a column of words, "
                "whole numbers or truth values."
            )

    def append(self, table: pa.Table) -> None:
        """Take the labels of the next rows."""
        for chunk in table.column(self.name).chunks:
            if pa.types.is_dictionary(chunk.type):
                chunk = chunk.dictionary_decode()
            missing = chunk.is_null(nan_is_null=pa.types.is_floating(self._kind))
            if pc.any(missing).as_py():
                row = self._n_rows + pc.index(missing, True).as_py()
                raise LabelError(
                    f"Column {self.name!r} has no label in row {row} (counted from 0). Label such "
                    "rows, or remove them, first."
                )
            self._chunks.append(chunk)
            self._n_rows += len(chunk)

    def values(self) -> NDArray[Any]:
        """Return all labels: strings, integers, floats or bools."""
        if pa.types.is_boolean(self._kind):
            return self._numbers().astype(bool)
        if pa.types.is_integer(self._kind) or pa.types.is_floating(self._kind):
            return self._numbers()
        coded = pa.chunked_array(self._chunks, self._kind).dictionary_encode().unify_dictionaries()
        words = np.array(coded.chunk(0).dictionary.to_pylist(), dtype=str)
        codes = np.concatenate([numbers_of(chunk.indices) for chunk in coded.chunks])
        return np.take(words, codes)

    def _numbers(self) -> NDArray[Any]:
        return np.concatenate([numbers_of(chunk) for chunk in self._chunks])


def _can_be_labels(kind: pa.DataType) -> bool:
    types = pa.types
    words = types.is_string(kind) or types.is_large_string(kind)
    numbers = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return bool(words or numbers)
