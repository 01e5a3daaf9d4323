"""Which columns of a table are features, and what their numbers are stored as."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from setconv.errors import DataError
from setconv.names import listed, require_column

logger = logging.getLogger("setconv")

PART = 32
_EXACT_IN_FLOAT32 = 16  # bits of an integer


@dataclass(frozen=True)
class Piece:
    """A column of numbers, or neighbouring elements of a column of lists.

    Attributes
    ----------
    column : str
    place : int
        Which feature the first one is.
    width : int
        How many features it gives.
    first : int
        The first element of each list that is a feature.
    length : int or None
        Of each list; None for a column of numbers.
    """

    column: str
    place: int
    width: int = 1
    first: int = 0
    length: int | None = None


@dataclass(frozen=True)
class FeaturePlan:
    """The features of a table, in order.

    Attributes
    ----------
    names : list of str
    dtype : numpy.dtype
        float32 if it holds every number exactly that the columns can have, else float64.
    parts : list of list of Piece
        What is read and turned into rows at once: some columns, or one column of lists.
    """

    names: list[str]
    dtype: np.dtype[Any]
    parts: list[list[Piece]]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of features."""
        return len(self.names) * self.dtype.itemsize

    @property
    def columns(self) -> list[str]:
        """Columns to read, each once."""
        return list(dict.fromkeys(piece.column for part in self.parts for piece in part))


def plan_features(
    schema: pa.Schema,
    columns: Sequence[str] | None,
    *,
    without: Collection[str],
    list_length: Callable[[str], int],
) -> FeaturePlan:
    """Return which columns are features.

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : sequence of str or None
        Columns, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists. None for
        all columns of numbers, truth values, and lists of numbers.
    without : collection of str
        Columns that are no features, such as the labels.
    list_length : callable
        The length of the first list of a column.
    """
    chosen = _by_type(schema, without) if columns is None else list(map(str, columns))
    known = _Columns(schema, list_length)
    names: list[str] = []
    pieces: list[Piece] = []
    for name in chosen:
        piece = known.piece(name, place=len(names))
        names += feature_names(piece)
        if pieces and _follows(pieces[-1], piece):
            pieces[-1] = replace(pieces[-1], width=pieces[-1].width + piece.width)
        else:
            pieces.append(piece)
    _refuse_labels(pieces, without)
    _refuse_twins(names)
    wide = not all(_fits_float32(number_type(known.types[piece.column])) for piece in pieces)
    return FeaturePlan(names, np.dtype(np.float64 if wide else np.float32), _parts(pieces))


def number_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the numbers in a column, or in its lists; None if it has none."""
    types = pa.types
    if is_list(kind) or types.is_dictionary(kind):
        kind = kind.value_type
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return kind if numeric or types.is_boolean(kind) else None


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column holds lists, of one length or not."""
    types = pa.types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def feature_names(piece: Piece) -> list[str]:
    """Return the names of the features that a piece gives."""
    if piece.length is None:
        return [piece.column]
    return [f"{piece.column}_{piece.first + number}" for number in range(piece.width)]


def _by_type(schema: pa.Schema, without: Collection[str]) -> list[str]:
    candidates = [field for field in schema if field.name not in without]
    numeric = [number_type(field.type) is not None for field in candidates]
    chosen = [field.name for field, good in zip(candidates, numeric, strict=True) if good]
    others = [field.name for field, good in zip(candidates, numeric, strict=True) if not good]
    if not chosen:
        raise DataError(
            f"There is no column of numbers among {listed(schema.names)}. Encode the columns first."
        )
    if others:
        logger.warning("Columns that are not numbers are left out: %s.", listed(others))
    return chosen


class _Columns:
    """What can be said of a column by its name."""

    def __init__(self, schema: pa.Schema, list_length: Callable[[str], int]) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self._list_length = list_length
        self._lengths: dict[str, int] = {}

    def piece(self, name: str, place: int) -> Piece:
        """Return the features of this name, of which the first is at ``place``."""
        if name not in self.types and self._names_element(name):
            return self._element(name, place)
        if name not in self.types:
            require_column(name, list(self.types), "columns")
        kind = self.types[name]
        if number_type(kind) is None:
            raise DataError(
                f"Column {name!r} is {kind}, which is not numbers (from row 0 on). Encode it "
                "first, or leave it out of columns."
            )
        if not is_list(kind):
            return Piece(name, place)
        length = self._length(name)
        return Piece(name, place, length, 0, length)

    def _names_element(self, name: str) -> bool:
        base, _, number = name.rpartition("_")
        kind = self.types.get(base)
        lists = kind is not None and is_list(kind) and number_type(kind) is not None
        return lists and number.isdecimal() and number == str(int(number))

    def _element(self, name: str, place: int) -> Piece:
        base, _, number = name.rpartition("_")
        length = self._length(base)
        if int(number) >= length:
            raise DataError(
                f"There is no {name!r}: the lists of column {base!r} have {length} numbers, "
                f"{base}_0 to {base}_{length - 1}."
            )
        return Piece(base, place, 1, int(number), length)

    def _length(self, name: str) -> int:
        if name not in self._lengths:
            kind = self.types[name]
            fixed = pa.types.is_fixed_size_list(kind)
            self._lengths[name] = kind.list_size if fixed else self._list_length(name)
        if self._lengths[name] == 0:
            raise DataError(f"The first list of column {name!r} is empty. Leave it out of columns.")
        return self._lengths[name]


def _follows(before: Piece, piece: Piece) -> bool:
    one_list = piece.length is not None and piece.column == before.column
    return one_list and piece.first == before.first + before.width


def _refuse_labels(pieces: list[Piece], without: Collection[str]) -> None:
    for piece in pieces:
        if piece.column in without:
            raise DataError(
                f"Column {piece.column!r} is named both as a feature and as the label. Leave it "
                "out of columns."
            )


def _refuse_twins(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Two features are called {twin!r}. Rename a column, or choose others.")


def _fits_float32(kind: Any) -> bool:
    types = pa.types
    if types.is_integer(kind):
        return bool(kind.bit_width <= _EXACT_IN_FLOAT32)
    return bool(types.is_boolean(kind) or types.is_float16(kind) or types.is_float32(kind))


def _parts(pieces: list[Piece]) -> list[list[Piece]]:
    parts: list[list[Piece]] = []
    for piece in pieces:
        plain = piece.length is None
        if plain and parts and parts[-1][0].length is None and len(parts[-1]) < PART:
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return parts
