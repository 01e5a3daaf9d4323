"""Any file with named columns as a data set."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setconv.datasets.dataset import Dataset, Problems
from setconv.errors import DataError, ParameterError
from setconv.io.columns import (
    feature_columns,
    find_columns,
    has_label,
    has_text,
    is_text,
    labels_of,
    plain,
)
from setconv.io.encoder import FeatureEncoder
from setconv.io.records import open_records

logger = logging.getLogger("setconv")


def load_file(
    path: str | Path,
    text: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    group: str | None = None,
    id: str | None = None,
    *,
    name: str | None = None,
    licence: str = "not stated",
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
    if text is not None and features is not None:
        raise ParameterError("A data set has texts or features, not both.", parameter="features")
    if isinstance(features, str):
        raise ParameterError(f"features={features!r}: give a list.", parameter="features")
    with open_records(path, format=format, encoding=encoding) as reader:
        columns = find_columns(
            reader.sample(), text=text, label=label, features=features, group=group, id=id
        )
        text, label = columns.text, columns.label
        rows, numbers, problems = _usable(path, reader.read(), text, label)
        labels = labels_of(rows[label])
    matrix, names = _matrix(rows, features, columns.no_features) if text is None else (None, None)
    what = "features" if text is None else f"texts from column {text!r}"
    return Dataset(
        name=name or path.name.split(".")[0],
        texts=None if text is None else rows[text].to_pylist(),
        features=matrix,
        labels=labels,
        ids=None if id is None else _strings(path, rows, numbers, id),
        groups=None if group is None else np.array(_strings(path, rows, numbers, group)),
        feature_names=names,
        provenance=f"{path}: {what}, labels from column {label!r}.",
        licence=licence,
        problems=problems,
    )


def _usable(
    path: Path, rows: pa.Table, text: str | None, label: str
) -> tuple[pa.Table, NDArray[np.int64], Problems]:
    """Return the rows that have a label and a text, their numbers, and what the others lack."""
    labelled = has_label(rows[label])
    written = np.ones_like(labelled)
    if text is not None:
        column = rows[text]
        if not is_text(plain(column).type):
            raise DataError(
                f"{path.name}: the column {text!r} holds {column.type}, not texts. Choose another, "
                "or give the columns of features.",
                parameter="text",
                column=text,
            )
        written = has_text(column)
    kept = labelled & written
    if not kept.any():
        raise DataError(
            f"None of the {len(kept)} rows of {path.name} can be used: each lacks a label (column "
            f"{label!r}) or a text. Check which columns are meant."
        )
    problems = Problems()
    for row in np.flatnonzero(~kept).tolist():
        lacks = "text" if labelled[row] else "label"
        problems.add(f"no {lacks}: left out", path.name, row + 1, "row")
    problems.warn(str(path))
    return rows.filter(pa.array(kept)), np.flatnonzero(kept) + 1, problems


def _strings(path: Path, rows: pa.Table, numbers: NDArray[np.int64], column: str) -> list[str]:
    """Return a column as strings; none may be missing."""
    found = rows[column].to_pylist()
    for number, value in zip(numbers, found, strict=True):
        if value is None or value == "":
            raise DataError(
                f"{path.name}, row {number}: the column {column!r} is empty. Fill it in, or do "
                "without this column."
            )
    return [str(value) for value in found]


def _matrix(
    rows: pa.Table, features: Sequence[str] | None, exclude: list[str]
) -> tuple[NDArray[Any], list[str]]:
    """Return the features as numbers, and the names of their columns."""
    notes: list[str] = []
    if features is None:
        features, notes = feature_columns(rows, exclude)
    if not features:
        said = f"No column is left for features. {' '.join(notes)}".strip()
        raise DataError(said, parameter="features")
    encoder = FeatureEncoder().fit(rows.select(list(features)))
    for note in [*notes, *encoder.notes_]:
        logger.info("%s", note)
    return encoder.transform(rows), encoder.get_feature_names_out().tolist()
