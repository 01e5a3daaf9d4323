"""Which rows of a file a command works on, and what they are for a model.

`load_rows` reads a whole file of rows with labels, for a fit or an evaluation. `column_plan` and
`stream` go through a file of any length batch by batch. `encoded` turns rows into what the
classifier `inside` a model takes. `warn_of_duplicates` finds the rows that two files share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from setconv.cli.options import err, note, say
from setconv.errors import DataError
from setconv.io.columns import (
    as_numbers,
    feature_columns,
    find_label_column,
    find_text_column,
    labels_of,
    plain,
)
from setconv.io.reading import open_records
from setconv.io.sources import RecordReader
from setconv.io.writer import open_writer
from setconv.messages import require_column
from setconv.sampling import text_keys

_BATCH = 8192  # rows


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


def row_name(number: int, name: str | None) -> str:
    """Return what a row is called: its number in the file, and its id if it has one."""
    return f"{name} (row {number})" if name else f"row {number}"


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
            rows, numbers = _keep_present(rows, numbers, _has_text(rows, column), "text")
        y, present = labels_of(rows[label], drop=True)
        rows, numbers = _keep_present(rows, numbers, present, "label")
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
        X = _select_features(rows, features, no_features, model)
    ids = None if id_column is None else ids_of(rows, id_column)
    groups = None if group is None else np.array([str(one) for one in rows[group].to_pylist()])
    return Loaded(X, y, source, numbers, ids, groups)


def _keep_present(
    rows: pa.Table, numbers: NDArray[np.int64], present: NDArray[np.bool_], what: str
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return the rows that have a text or label, and say how many have not."""
    if not present.all():
        say(f"note: {int((~present).sum())} rows without a {what} are left out")
    return rows.filter(present), numbers[present]


def _select_features(
    rows: pa.Table, features: str | None, exclude: list[str], model: Any
) -> pa.Table:
    if model is not None:
        names = getattr(getattr(model, "encoder_", model), "feature_names_in_", None)
        if names is None:
            return rows.select([name for name in rows.column_names if name not in exclude])
        # Of those that training left out again, some may be missing.
        return rows.select([name for name in names if name in rows.column_names])
    if features is not None and features != "all":
        names = _named_columns("--features", features, rows.column_names)
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
            present = _has_text(batch, self.text)
            batch, numbers = batch.filter(present), numbers[present]
        return texts_of(batch, self.text, numbers), present


def column_plan(model: Any, reader: RecordReader, text: str | None, keep: str | None) -> ColumnPlan:
    """Find the columns that a model needs in a file."""
    if takes_texts(model):
        column = find_text(reader, text, getattr(model, "source_", None) or {})
        return ColumnPlan(model, column, (), _kept(reader, keep, set()))
    features = _feature_names(model, reader)
    return ColumnPlan(model, None, features, _kept(reader, keep, set(features)))


def _feature_names(model: Any, reader: RecordReader) -> tuple[str, ...]:
    """Return the feature columns: those of the training file, else all that could be features."""
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


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _kept(reader: RecordReader, keep: str | None, used: set[str]) -> tuple[str, ...]:
    """Return the columns to copy, as ``--keep`` names them: all but those used if it does not."""
    if keep is None:
        return tuple(name for name in reader.columns if name not in used)
    if keep in ("all", "none"):
        return tuple(reader.columns) if keep == "all" else ()
    return tuple(_named_columns("--keep", keep, reader.columns))


def stream(
    reader: RecordReader,
    output: str,
    compute: Callable[[pa.Table, NDArray[np.int64]], Mapping[str, Any]],
    kept: Sequence[str],
    output_format: str | None = None,
) -> int:
    """Write the kept columns and the computed ones of all rows; return their number.

    Parameters
    ----------
    reader : RecordReader
    output : str
        File to write in one move, or "-".
    compute : callable
        From a batch and the file's numbers of its rows, counted from 1, to new columns.
    kept : sequence of str
    output_format : str, optional
    """
    done = 0
    columns = (TextColumn("{task.completed:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    with (
        open_writer(output, format=output_format) as writer,
        Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress,
    ):
        task = progress.add_task("rows", total=reader.n_rows)
        for batch in reader.batches(_BATCH):
            new = compute(batch, np.arange(done + 1, done + batch.num_rows + 1))
            writer.write(pa.table({name: batch[name] for name in kept} | dict(new)))
            done += batch.num_rows
            share = reader.progress()
            total = reader.n_rows or (done / share if share else None)
            progress.update(task, completed=done, total=total)
    return done


def find_text(
    reader: RecordReader, given: str | None, known: dict[str, str], *, needed: bool = True
) -> str | None:
    """Return the text column of a file: given, that of the training file, or found."""
    column = find_text_column(reader.sample(), given or _if_there(known.get("text"), reader))
    if column is None and needed:
        raise DataError(
            f"No column of {reader.name} looks like texts; there are "
            f"{', '.join(map(repr, reader.columns))}: give one with --text."
        )
    return column


def _if_there(column: str | None, reader: RecordReader) -> str | None:
    return column if column in reader.columns else None


def texts_of(rows: pa.Table, column: str, numbers: NDArray[np.int64]) -> list[str]:
    """Return a column as texts; a missing or empty one is an error that names the row."""
    present = _has_text(rows, column)
    if not present.all():
        missing = numbers[~present]
        raise DataError(
            f"The text in row {missing[0]}, column {column!r}, is missing or empty "
            f"({len(missing)} such rows among {len(present)}): give them a text, or run again with "
            "--empty skip."
        )
    texts: list[str] = rows[column].to_pylist()
    return texts


def _has_text(rows: pa.Table, column: str) -> NDArray[np.bool_]:
    """Return which rows have a text."""
    texts = rows[column].to_pylist()
    return np.array([isinstance(text, str) and bool(text.strip()) for text in texts], dtype=bool)


def ids_of(rows: pa.Table, column: str) -> list[str]:
    """Return a column as names of the rows; "" for nothing."""
    return ["" if value is None else str(value) for value in rows[column].to_pylist()]


def _named_columns(option: str, given: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that an option names, "a,b,c"."""
    names = [name.strip() for name in given.split(",")]
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise DataError(
            f"{option}: there is no column {unknown[0]!r}; the columns are "
            f"{', '.join(map(repr, columns))}."
        )
    return names


def load_model(
    folder: Path, device: str, objective: str | None = None, prior: float | None = None
) -> Any:
    """Return a saved model, set for another objective or prevalence where one is given."""
    from setconv.pipelines import load

    model = load(folder, device=device)
    if objective is not None:
        model.set_objective(objective)
    if prior is not None:
        model.set_prior(prior)
    return model


def takes_texts(model: Any) -> bool:
    """Whether a model takes texts, not features."""
    return getattr(model, "takes", None) == "texts"


def inside(model: Any) -> Any:
    """Return what is judged and explained: of a model of tables the classifier of encoded rows."""
    return model if takes_texts(model) else getattr(model, "classifier_", model)


def encoded(model: Any, X: Any, numbers: NDArray[np.int64]) -> Any:
    """Return rows as `inside` takes them: texts as they are, a table as a matrix."""
    if takes_texts(model):
        return X
    encoder = getattr(model, "encoder_", None)
    return encode_rows(_matrix if encoder is None else encoder.transform, X, numbers)


def _matrix(table: pa.Table, *, first_row: int) -> NDArray[np.float32]:
    matrix = np.empty((table.num_rows, table.num_columns), dtype=np.float32)
    for place, name in enumerate(table.column_names):
        column = plain(table[name].combine_chunks())
        with np.errstate(over="ignore"):  # found just below, with its row
            matrix[:, place] = as_numbers(column, "number", name, first_row)
        bad = np.flatnonzero(~np.isfinite(matrix[:, place]))
        if len(bad):
            raise DataError(
                f"The column {name!r} has no number, or one too large, in row "
                f"{first_row + int(bad[0])}: the model takes numbers, without gaps."
            )
    return matrix


def encode_rows(
    encode: Callable[..., NDArray[Any]], table: pa.Table, numbers: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the matrix of a table; a value that cannot be used is named by its row of the file.

    Parameters
    ----------
    encode : callable
        From a table and its ``first_row`` to a matrix.
    table : pyarrow.Table
    numbers : int64 array of shape (n_rows,)
        The row of the file that each row is, counted from 1.
    """
    try:
        return encode(table, first_row=int(numbers[0]))
    except DataError:
        # The message counts on from the first row. If rows were left out, it is wrong: say it of
        # the part in sequence that fails. There may be many parts, so never without need.
        starts = np.flatnonzero(np.diff(numbers, prepend=-1) != 1)
        for start, size in zip(starts, np.diff(starts, append=len(numbers)), strict=True):
            encode(table.slice(start, size), first_row=int(numbers[start]))
        raise


def feature_names(model: Any, columns: Sequence[str]) -> list[str] | None:
    """Return the names of what `encoded` makes of columns; None of texts."""
    if takes_texts(model):
        return None
    encoder = getattr(model, "encoder_", None)
    return list(columns if encoder is None else encoder.get_feature_names_out())


def warn_of_duplicates(known: Loaded, rows: Loaded) -> None:
    """Say how many rows the two files share: figures on them are too good."""
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


def find_duplicates(train: Any, test: Any) -> NDArray[np.int64]:
    """Return which rows of the test data are in the training data too.

    Parameters
    ----------
    train, test : list of str, or pyarrow.Table
        Texts, which are alike as the copies in a fit are: case, white space, links and mentions
        make no difference. Or whole rows, which are compared exactly, by the columns of the first
        table.

    Returns
    -------
    int64 array of shape (n_found, 2)
        The first such row of the training data, and the row of the test data, counted from 0.
    """
    keys = text_keys(train + test) if isinstance(train, list) else _row_keys(train, test)
    known, new = keys[: len(train)], keys[len(train) :]
    distinct, first = np.unique(known, return_index=True)
    found = np.flatnonzero(np.isin(new, distinct))
    return np.column_stack([first[np.searchsorted(distinct, new[found])], found])


def _row_keys(train: pa.Table, test: pa.Table) -> NDArray[np.int64]:
    """Return a number for each row of both tables, the same for the same row."""
    n_rows = len(train) + len(test)
    keys = np.arange(n_rows) if not train.num_columns else np.zeros(n_rows, dtype=np.int64)
    for name in train.column_names:
        codes = _codes(train[name], test[name])
        keys = _numbered(pa.chunked_array([keys * (codes.max(initial=0) + 1) + codes]))
        if len(keys) and keys.max() + 1 == len(keys):
            break  # no two rows are alike: other columns cannot change that
    return keys


def _codes(train: pa.ChunkedArray, test: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each value of a column in both files, the same for the same value."""
    if train.type != test.type or pa.types.is_nested(train.type):
        train, test = _as_text(train), _as_text(test)
    return _numbered(pa.chunked_array([*train.chunks, *test.chunks], type=train.type))


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array(map(str, column.to_pylist()), pa.large_string())])
    return pc.cast(column, pa.large_string())


def _numbered(values: pa.ChunkedArray) -> NDArray[np.int64]:
    found = pc.index_in(values, value_set=pc.unique(values))
    codes: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return codes
