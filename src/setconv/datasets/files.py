"""Any file with named columns as a data set."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setconv.datasets.dataset import Dataset, Problems
from setconv.errors import DataError, ParameterError
from setconv.io.columns import (
    feature_columns,
    find_label_column,
    find_text_column,
    is_text,
    labels_of,
    plain,
)
from setconv.io.encoder import FeatureEncoder
from setconv.io.reading import open_records
from setconv.messages import require_column

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
        raise ParameterError("text and features are both given: a data set has one or the other.")
    if isinstance(features, str):
        raise ParameterError(f"features={features!r}: give a list of columns.")
    with _parameters_for_options(), open_records(path, format=format, encoding=encoding) as reader:
        named = [("label", label), ("group", group), ("id", id)]
        for parameter, column in named + [("features", one) for one in features or ()]:
            if column is not None:
                require_column(column, reader.columns, f"{parameter}=")
        others = [one for one in (group, id) if one is not None]
        text, label = _find_columns(reader.sample(), text, label, features, others)
        rows, numbers, problems = _usable(path, reader.read(), text, label)
        labels = labels_of(rows[label])
    matrix, names = (None, None) if text is not None else _matrix(rows, features, [label, *others])
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


def _find_columns(
    sample: pa.Table,
    text: str | None,
    label: str | None,
    features: Sequence[str] | None,
    others: list[str],
) -> tuple[str | None, str]:
    """Return the columns of texts, if there is one, and of labels."""
    if features is None:
        taken = {label, *others} - {text}
        free = sample.select([one for one in sample.column_names if one not in taken])
        text = find_text_column(free if text is None else sample, text)
    rows = [*(features or ()), *([] if text is None else [text])]
    label = find_label_column(sample, label, exclude=[*others, *rows])
    if label in rows:
        raise ParameterError(f"The column {label!r} cannot hold the labels and the rows as well.")
    return text, label


def _usable(
    path: Path, rows: pa.Table, text: str | None, label: str
) -> tuple[pa.Table, NDArray[np.int64], Problems]:
    """Return the rows that have a label and a text, their numbers, and what the others lack."""
    labelled = labels_of(rows[label], drop=True)[1]
    written = np.ones_like(labelled)
    if text is not None:
        column = rows[text]
        if not is_text(plain(column).type):
            raise DataError(
                f"{path.name}: the column {text!r} holds {column.type}, not texts. Choose another "
                "with text=, or give the columns of features."
            )
        written = np.array([bool(one and one.strip()) for one in column.to_pylist()], dtype=bool)
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
        raise DataError(f"No column is left for features. {' '.join(notes)}".strip())
    encoder = FeatureEncoder().fit(rows.select(list(features)))
    for note in [*notes, *encoder.notes_]:
        logger.info("%s", note)
    return encoder.transform(rows), encoder.get_feature_names_out().tolist()


@contextmanager
def _parameters_for_options() -> Iterator[None]:
    """Name parameters where `setconv.io` names options of the command line."""
    try:
        yield
    except DataError as error:
        said = re.sub(r"--(text|label)\b", r"\1=", str(error))
        raise type(error)(said) from error
