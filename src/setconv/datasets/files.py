"""Any file with named columns as a data set."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setconv.datasets.dataset import Dataset
from setconv.datasets.left_out import report_left_out
from setconv.errors import DataError, ParameterError
from setconv.names import did_you_mean, listed
from setconv.records import (
    FeatureEncoder,
    RecordReader,
    feature_columns,
    find_label_column,
    find_text_column,
    labels_of,
    open_records,
)
from setconv.records.values import is_text, plain

logger = logging.getLogger("setconv")

UNKNOWN_LICENCE = "not stated"


def load_file(
    path: str | Path,
    text: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    group: str | None = None,
    id: str | None = None,
    *,
    name: str | None = None,
    licence: str = UNKNOWN_LICENCE,
    format: str | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Load a CSV, TSV, JSONL or Parquet file with named columns, compressed with gzip or not.

    Rows without a label or a text are left out, warned of, and counted in ``problems``. A line
    that cannot be read is a `DataError` with its number.

    Parameters
    ----------
    path : str or Path
    text : str or None, default=None
        The column of texts. None: the one that looks like it; if none does, and with ``features``,
        the rows are features.
    label : str or None, default=None
        The column of labels. None: the one that looks like it; if several do, an error lists them.
    features : sequence of str or None, default=None
        The columns of features. None: all that are left, but for those that only number or name
        the rows.
    group : str or None, default=None
        The column that says which rows belong together.
    id : str or None, default=None
        The column that names the rows.
    name : str or None, default=None
        Of the data set. None: that of the file.
    licence : str, default="not stated"
        What the owner allows.
    format : {"csv", "tsv", "jsonl", "parquet"} or None, default=None
        None: by the extension.
    encoding : str or None, default=None
        Of a text file. None: found.

    Returns
    -------
    Dataset
        Features are a float32 matrix: categories have a column each, and gaps are filled with the
        median over all rows of the file.
    """
    path = Path(path)
    with _parameters_for_options(), open_records(path, format=format, encoding=encoding) as reader:
        columns = _find_columns(reader, text, label, features, group, id)
        rows = reader.read()
        used = _Usable(path.name, rows, columns)
        labels = labels_of(used.rows[columns.label])
    texts, matrix, names = None, None, None
    if columns.text is not None:
        texts = used.rows[columns.text].to_pylist()
    else:
        matrix, names = _matrix(used.rows, columns)
    return Dataset(
        name=name or path.name.split(".")[0],
        texts=texts,
        features=matrix,
        labels=labels,
        ids=None if id is None else used.words(id),
        groups=None if group is None else np.array(used.words(group)),
        feature_names=names,
        provenance=f"{path}: {columns}.",
        licence=licence,
        problems=report_left_out(str(path), used.left_out),
    )


@dataclass(frozen=True)
class _Columns:
    """Which column is what; without a text column the rows are features."""

    label: str
    text: str | None
    features: list[str] | None
    others: list[str]

    def __str__(self) -> str:
        rows = "features" if self.text is None else f"texts from column {self.text!r}"
        return f"{rows}, labels from column {self.label!r}"


def _find_columns(
    reader: RecordReader,
    text: str | None,
    label: str | None,
    features: Sequence[str] | None,
    group: str | None,
    id: str | None,
) -> _Columns:
    if text is not None and features is not None:
        raise ParameterError("text and features are both given: a data set has one or the other.")
    if isinstance(features, str):
        raise ParameterError(f"features={features!r}: give a list of columns.")
    _require(reader, [("label", label), ("group", group), ("id", id)])
    _require(reader, [("features", one) for one in features or ()])
    others = [one for one in (group, id) if one is not None]
    sample = reader.sample()
    known = {label, *others} - {text}
    if features is None:
        candidates = sample.select([one for one in reader.columns if one not in known])
        text = find_text_column(candidates if text is None else sample, text)
    found = find_label_column(
        sample, label, exclude=[*others, *(features or ()), *([] if text is None else [text])]
    )
    if found == text or found in (features or ()):
        raise ParameterError(f"The column {found!r} cannot hold the labels and the rows as well.")
    return _Columns(found, text, None if features is None else list(features), others)


def _require(reader: RecordReader, given: list[tuple[str, str | None]]) -> None:
    for parameter, column in given:
        if column is not None and column not in reader.columns:
            raise DataError(
                f"{reader.name} has no column {column!r}.{did_you_mean(column, reader.columns)} "
                f"The columns are {listed(reader.columns)}: give one of them with {parameter}=."
            )


class _Usable:
    """The rows that have a label and a text, and which others there were."""

    def __init__(self, file: str, rows: pa.Table, columns: _Columns) -> None:
        self.file = file
        labelled = labels_of(rows[columns.label], drop=True)[1]
        written = np.ones(len(labelled), dtype=bool)
        if columns.text is not None:
            written = _has_text(file, rows[columns.text], columns.text)
        kept = labelled & written
        if not kept.any():
            raise DataError(
                f"None of the {len(kept)} rows of {file} can be used: each lacks a label (column "
                f"{columns.label!r}) or a text. Check which columns are meant."
            )
        self.left_out = {
            "no label: left out": self._places(~labelled),
            "no text: left out": self._places(labelled & ~written),
        }
        self._numbers = np.flatnonzero(kept)
        self.rows = rows.filter(pa.array(kept))

    def words(self, column: str) -> list[str]:
        """Return a column as strings; none may be missing."""
        found = self.rows[column].to_pylist()
        for number, value in zip(self._numbers, found, strict=True):
            if value is None or value == "":
                raise DataError(
                    f"{self.file}, row {number + 1}: the column {column!r} is empty. Fill it in, "
                    "or do without this column."
                )
        return [str(value) for value in found]

    def _places(self, rows: NDArray[np.bool_]) -> list[str]:
        return [f"{self.file}, row {row + 1}" for row in np.flatnonzero(rows)]


def _has_text(file: str, column: pa.ChunkedArray, name: str) -> NDArray[np.bool_]:
    if not is_text(plain(column).type):
        raise DataError(
            f"{file}: the column {name!r} holds {column.type}, not texts. Choose another with "
            "text=, or give the columns of features."
        )
    return np.array([bool(one and one.strip()) for one in column.to_pylist()], dtype=bool)


def _matrix(rows: pa.Table, columns: _Columns) -> tuple[NDArray[Any], list[str]]:
    chosen = columns.features
    notes: list[str] = []
    if chosen is None:
        chosen, notes = feature_columns(rows, [columns.label, *columns.others])
    if not chosen:
        raise DataError(f"No column is left for features. {' '.join(notes)}".strip())
    encoder = FeatureEncoder().fit(rows.select(chosen))
    for note in [*notes, *encoder.notes_]:
        logger.info("%s", note)
    return encoder.transform(rows), encoder.get_feature_names_out().tolist()


@contextmanager
def _parameters_for_options() -> Iterator[None]:
    """Name parameters where `setconv.records` names options of the command line."""
    try:
        yield
    except DataError as error:
        said = re.sub(r"--(text|label)\b", r"\1=", str(error))
        raise type(error)(said) from error
