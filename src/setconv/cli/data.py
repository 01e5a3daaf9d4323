"""From a file to what a model takes: texts or a table of features, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.cli.console import err, say, table
from setconv.cli.encoding import takes_texts
from setconv.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.records import RecordReader


@dataclass(frozen=True)
class Reading:
    """How a file is to be read, as the user says; what is None is found out."""

    text: str | None = None
    id_column: str | None = None
    file_format: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Loaded:
    """Rows of a file, ready for a model.

    Attributes
    ----------
    X : list of str or pyarrow.Table
    y : array of labels
    source : dict of str to str
        Which columns they come from.
    numbers : int64 array of shape (n_rows,)
        Which rows of the file they are, counted from 1.
    ids : list of str or None
        What the user calls the rows; "" where the file has nothing.
    groups : array or None
    """

    X: Any
    y: NDArray[Any]
    source: dict[str, str]
    numbers: NDArray[np.int64]
    ids: list[str] | None = None
    groups: NDArray[Any] | None = None

    @property
    def is_text(self) -> bool:
        """Whether the rows are texts."""
        return isinstance(self.X, list)

    @property
    def row_names(self) -> list[str]:
        """What each row is called where it is clear that it is a row."""
        ids = self.ids or [""] * len(self.numbers)
        return [
            row_name(number, one) if one else str(number)
            for number, one in zip(self.numbers.tolist(), ids, strict=True)
        ]


def load_rows(
    data: str,
    reading: Reading,
    *,
    model: Any = None,
    label: str | None = None,
    features: str | None = None,
    group: str | None = None,
    id_needed: bool = True,
    skip_empty: bool = False,
) -> Loaded:
    """Read a file of rows with labels, for a new model or for one that is there.

    Parameters
    ----------
    data : str
        Path, or "-".
    reading : Reading
        Its column of ids is no feature.
    model : fitted estimator, optional
        Decides whether texts or features are read, and from which columns by default.
    label, features, group : str, optional
        Columns; found if not given.
    id_needed : bool, default=True
        Whether the file must have the column of ids: a training file need not have what another
        file has.
    skip_empty : bool, default=False
        Whether rows without text or label are left out instead of refused.
    """
    from setconv.names import require_column
    from setconv.records import find_label_column, labels_of, open_records

    known = getattr(model, "source_", None) or {}
    id_column = reading.id_column
    with open_records(data, format=reading.file_format, encoding=reading.encoding) as reader:
        if not id_needed:
            id_column = _if_there(id_column, reader)
        for option, name in (("--group", group), ("--id", id_column)):
            if name is not None:
                require_column(name, reader.columns, option)
        sample = reader.sample()
        column = None
        if features is None and (model is None or takes_texts(model)):
            column = find_text(reader, reading.text, known, needed=model is not None)
        label = label or _if_there(known.get("label"), reader)
        others = [name for name in (column, id_column) if name is not None]
        label = find_label_column(sample, label, exclude=others)
        rows = reader.read()
    numbers = np.arange(1, rows.num_rows + 1)
    if skip_empty:
        if column is not None:
            rows, numbers = _with(rows, numbers, has_text(rows, column), "text")
        y, present = labels_of(rows[label], drop=True)
        rows, numbers = _with(rows, numbers, present, "label")
        if not rows.num_rows:
            raise DataError(f"No row of {data} is left: all lack a label or a text.")
    else:
        y = labels_of(rows[label])
    source = {"label": label}
    if column is not None:
        X: Any = texts_of(rows, column, numbers)
        source["text"] = column
    else:
        no_features = [name for name in (label, group, id_column) if name is not None]
        X = _features(rows, features, no_features, model)
    ids = None if id_column is None else ids_of(rows, id_column)
    groups = None if group is None else np.array([str(one) for one in rows[group].to_pylist()])
    return Loaded(X, y, source, numbers, ids, groups)


def named_columns(option: str, given: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that an option names, "a,b,c"."""
    names = [name.strip() for name in given.split(",")]
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise DataError(
            f"{option}: there is no column {unknown[0]!r}; the columns are "
            f"{', '.join(map(repr, columns))}."
        )
    return names


def row_name(number: int, name: str | None) -> str:
    """Return what a row is called: its number in the file, and its id if it has one."""
    return f"{name} (row {number})" if name else f"row {number}"


def ids_of(rows: pa.Table, column: str) -> list[str]:
    """Return a column as names of the rows; "" for nothing."""
    return ["" if value is None else str(value) for value in rows[column].to_pylist()]


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


def texts_of(rows: pa.Table, column: str, numbers: NDArray[np.int64]) -> list[str]:
    """Return a column as texts; a missing or empty one is an error that names the row."""
    present = has_text(rows, column)
    if not present.all():
        missing = numbers[~present]
        raise DataError(
            f"The text in row {missing[0]}, column {column!r}, is missing or empty "
            f"({len(missing)} such rows among {len(present)}): give them a text, or run again with "
            "--empty skip."
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
    from setconv.cli.duplicates import find_duplicates

    train = known.X
    if not known.is_text:  # what one file lacks cannot tell, and the encoder misses it if it counts
        train = train.select([n for n in train.column_names if n in rows.X.column_names])
    found = find_duplicates(train, rows.X)
    if len(found):
        there, here = found[0]
        say(
            f"warning: {len(found)} of {len(rows.y)} rows are in the training file too (first: row "
            f"{rows.numbers[here]}, which is row {known.numbers[there]} there), so the figures are "
            "better than on new rows: remove them."
        )


def _if_there(column: str | None, reader: RecordReader) -> str | None:
    return column if column in reader.columns else None


def _with(
    rows: pa.Table, numbers: NDArray[np.int64], present: NDArray[np.bool_], what: str
) -> tuple[pa.Table, NDArray[np.int64]]:
    if not present.all():
        say(f"note: {int((~present).sum())} rows without a {what} are left out")
    return rows.filter(present), numbers[present]


def _features(rows: pa.Table, features: str | None, exclude: list[str], model: Any) -> pa.Table:
    from setconv.records import feature_columns

    if model is not None:
        names = getattr(getattr(model, "encoder_", model), "feature_names_in_", None)
        if names is None:
            return rows.select([name for name in rows.column_names if name not in exclude])
        # Of those that training left out again, some may be missing.
        return rows.select([name for name in names if name in rows.column_names])
    if features is not None and features != "all":
        names = named_columns("--features", features, rows.column_names)
        if not set(names).isdisjoint(exclude):
            raise DataError(
                f"--features: {min(set(names) & set(exclude))!r} is the column of labels, groups "
                "or ids, which is no feature."
            )
        return rows.select(names)
    names, notes = feature_columns(rows, exclude)
    note(notes)
    if not names:
        raise DataError("No column is left for features: name them with --features, or --text.")
    return rows.select(names)
