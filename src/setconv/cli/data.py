"""From a file to what a model takes: texts or a table of features, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.cli.console import err, say, table
from setconv.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.records import RecordReader


@dataclass(frozen=True)
class Loaded:
    """Rows of a file, ready for a model.

    Attributes
    ----------
    X : list of str or pyarrow.Table
    y : array of labels
    source : dict of str to str
        Which columns they come from.
    groups : array or None
    """

    X: Any
    y: NDArray[Any]
    source: dict[str, str]
    groups: NDArray[Any] | None = None

    @property
    def is_text(self) -> bool:
        """Whether the rows are texts."""
        return isinstance(self.X, list)


def load_rows(
    data: str,
    *,
    model: Any = None,
    text: str | None = None,
    label: str | None = None,
    features: str | None = None,
    group: str | None = None,
    skip_empty: bool = False,
    file_format: str | None = None,
    encoding: str | None = None,
) -> Loaded:
    """Read a file of rows with labels, for a new model or for one that is there.

    Parameters
    ----------
    data : str
        Path, or "-".
    model : fitted estimator, optional
        Decides whether texts or features are read, and from which columns by default.
    text, label, features, group : str, optional
        Columns; found if not given.
    skip_empty : bool, default=False
        Whether rows without text or label are left out instead of refused.
    file_format, encoding : str, optional
    """
    from setconv.records import find_label_column, labels_of, open_records

    known = getattr(model, "source_", None) or {}
    with open_records(data, format=file_format, encoding=encoding) as reader:
        sample = reader.sample()
        column = None
        if features is None and (model is None or takes_texts(model)):
            column = find_text(reader, text, known, needed=model is not None)
        label = label or _if_there(known.get("label"), reader)
        label = find_label_column(sample, label, exclude=[] if column is None else [column])
        rows = reader.read()
    rows = _with_labels(rows, label, skip_empty)
    source = {"label": label}
    if column is not None:
        rows = _with_texts(rows, column, skip_empty)
        X: Any = texts_of(rows, column)
        source["text"] = column
    else:
        X = _features(rows, features, [label] if group is None else [label, group], model)
    return Loaded(X, labels_of(rows[label]), source, _groups(rows, group))


def takes_texts(model: Any) -> bool:
    """Whether a model takes texts, not features."""
    return getattr(model, "takes", None) == "texts"


def find_text(
    reader: RecordReader, given: str | None, known: dict[str, str], *, needed: bool = True
) -> str | None:
    """Return the text column of a file: given, that of the training file, or found."""
    from setconv.records import find_text_column

    column = find_text_column(reader.sample(), given or _if_there(known.get("text"), reader))
    if column is None and needed:
        raise DataError(
            f"No column of {reader.name} looks like texts; there are "
            f"{', '.join(map(repr, reader.columns))}: give one with --text."
        )
    return column


def texts_of(rows: pa.Table, column: str, first: int = 0) -> list[str]:
    """Return a column as texts; a missing or empty one is an error that names the row."""
    present = has_text(rows, column)
    if not present.all():
        missing = np.flatnonzero(~present)
        raise DataError(
            f"The text in row {first + int(missing[0]) + 1}, column {column!r}, is missing or "
            f"empty ({len(missing)} such rows among {len(present)}): give them a text, or run "
            "again with --empty skip."
        )
    texts: list[str] = rows[column].to_pylist()
    return texts


def has_text(rows: pa.Table, column: str) -> NDArray[np.bool_]:
    """Return which rows have a text."""
    texts = rows[column].to_pylist()
    return np.array([isinstance(text, str) and bool(text.strip()) for text in texts], dtype=bool)


def show_classes(y: NDArray[Any]) -> None:
    """Show how many rows each class has, the rarest first."""
    labels, counts = np.unique(y, return_counts=True)
    order = np.argsort(counts, kind="stable")
    rows = [[labels[i], f"{counts[i]:,}", f"{counts[i] / len(y):.1%}"] for i in order]
    err.print(table(f"{len(y):,} rows", ["class", "rows", "share"], rows))


def note(sentences: Sequence[str]) -> None:
    """Tell what was done to the features."""
    for sentence in sentences:
        say(f"note: {sentence}")


def warn_of_duplicates(known: Loaded, rows: Loaded) -> None:
    """Say how many rows the two files share: figures on them are too good."""
    from setconv.records import find_duplicates

    found = find_duplicates(known.X, rows.X)
    if found.count:
        say(
            f"warning: {found.count} of {len(rows.y)} rows are in the training file too (first: "
            f"row {found.rows[0][1]}), so the figures are better than on new rows: remove them."
        )


def _if_there(column: str | None, reader: RecordReader) -> str | None:
    return column if column in reader.columns else None


def _with_labels(rows: pa.Table, label: str, skip: bool) -> pa.Table:
    from setconv.records import labels_of

    if not skip:
        return rows
    present = labels_of(rows[label], drop=True)[1]
    return _kept(rows, present, "label")


def _with_texts(rows: pa.Table, column: str, skip: bool) -> pa.Table:
    return _kept(rows, has_text(rows, column), "text") if skip else rows


def _kept(rows: pa.Table, present: NDArray[np.bool_], what: str) -> pa.Table:
    if not present.all():
        say(f"note: {int((~present).sum())} rows without a {what} are left out")
        rows = rows.filter(present)
    return rows


def _features(rows: pa.Table, features: str | None, exclude: list[str], model: Any) -> pa.Table:
    from setconv.records import feature_columns

    if model is not None:
        return rows
    if features is not None and features != "all":
        names = [name.strip() for name in features.split(",")]
        unknown = [name for name in names if name not in rows.column_names]
        if unknown:
            raise DataError(
                f"--features: there is no column {unknown[0]!r}; the columns are "
                f"{', '.join(map(repr, rows.column_names))}."
            )
        return rows.select(names)
    names, notes = feature_columns(rows, exclude)
    note(notes)
    if not names:
        raise DataError("No column is left for features: name them with --features, or --text.")
    return rows.select(names)


def _groups(rows: pa.Table, group: str | None) -> NDArray[Any] | None:
    if group is None:
        return None
    if group not in rows.column_names:
        raise DataError(
            f"--group: there is no column {group!r}; the columns are "
            f"{', '.join(map(repr, rows.column_names))}."
        )
    return np.array([str(value) for value in rows[group].to_pylist()])
