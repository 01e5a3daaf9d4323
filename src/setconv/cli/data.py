"""How a command gets its rows.

`load_rows` reads a file of rows with labels, for a fit or a report. `judge`, and `column_plan` with
`stream`, go through a file of any length batch by batch. `encoded` turns rows into what the
classifier `inside` a model takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from setconv.cli.options import err, note, say, stage, tell
from setconv.data import count_each, joined
from setconv.errors import DataError, LabelError, ParameterError, SetConvError
from setconv.io.columns import (
    CodedColumn,
    Columns,
    as_numpy,
    feature_columns,
    find_columns,
    find_text_column,
    has_label,
    has_text,
    is_number,
    is_text,
    labels_of,
    nothing_found,
    refuse_no_classes,
    time_values,
)
from setconv.io.parquet import ColumnReader
from setconv.io.records import open_records
from setconv.io.sources import RecordReader
from setconv.messages import count_of, listed, require_column
from setconv.validation import Labels, check_time, memory_limit

Array = NDArray[Any]

_BATCH = 8192  # rows


@dataclass(frozen=True)
class Reading:
    """How a file is to be read, as the user says; what is None is found out."""

    text: str | None = None
    id_column: str | None = None
    file_format: str | None = None
    encoding: str | None = None

    def open(self, data: str) -> RecordReader:
        """Open a file, or "-"."""
        return open_records(data, format=self.file_format, encoding=self.encoding)


@dataclass(frozen=True)
class Loaded:
    """Rows of a file, ready for a model.

    Attributes
    ----------
    X : list of str, pyarrow.Table, or a reader of columns that stay in their file
    labels : Labels
    source : dict of str to str
        Which columns they come from.
    numbers : int64 array or range of length n_rows
        Which rows of the file they are, counted from 1.
    ids : list of str or None
        What the user calls the rows; "" where the file has nothing.
    groups, time : array or None
    """

    X: Any
    labels: Labels
    source: dict[str, str]
    numbers: Any
    ids: list[str] | None = None
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None

    @property
    def y(self) -> NDArray[Any]:
        """The label of each row."""
        return np.asarray(self.labels.names[self.labels.codes])

    @property
    def is_text(self) -> bool:
        """Whether the rows are texts."""
        return isinstance(self.X, list)

    @property
    def on_disk(self) -> bool:
        """Whether the rows stay in their file."""
        return isinstance(self.X, RecordReader)

    @property
    def row_names(self) -> list[str]:
        """What each row is called where it is clear that it is a row."""
        ids = self.ids or [""] * len(self.numbers)
        return [
            row_name(number, one) if one else str(number)
            for number, one in zip(map(int, self.numbers), ids, strict=True)
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
    time: str | None = None,
    id_needed: bool = True,
    skip_empty: bool = False,
    join_labels: bool | None = None,
    stream: bool = False,
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
    label, features, group, time : str, optional
        Columns; label and features are found if not given.
    id_needed : bool, default=True
        Whether the file must have the column of ids: a training file need not have what another
        file has.
    skip_empty : bool, default=False
        Whether rows without text, label or group are left out instead of refused.
    join_labels : bool or None, default=None
        Whether labels that differ by case or by spaces only are joined or refused, as are labels
        that cannot be classes, or none of the model's; None: they are taken as they are.
    stream : bool, default=False
        Whether rows that are numbers only, and too large for memory, stay in their file.
    """
    named = None if features in (None, "all") else _names(features)
    is_table = features is not None or (model is not None and not takes_texts(model))
    id_column = reading.id_column
    with _opened(data, reading) as reader:
        columns = _find_columns(
            reader,
            model,
            text=None if is_table else reading.text,
            label=label,
            features=(named or []) if is_table else None,
            group=group,
            time=time,
            id=id_column if id_needed else _if_there(id_column, reader),
        )
        if stream and columns.text is None:
            numeric = _large_matrix(reader, named, columns)
            if numeric:
                return _left_in_file(reader, numeric, columns, join_labels)
        rows = reader.read()
    numbers = np.arange(1, rows.num_rows + 1)
    needed = {"text": columns.text, "label": columns.label, "group": columns.group}
    for what, name in needed.items():
        if name is not None:
            kept = _present(rows, numbers, what, name, skip=skip_empty)
            rows, numbers = rows.filter(kept), numbers[kept]
    classes = None if model is None else model.classes_.tolist()
    free = rows.select([one for one in rows.column_names if one != columns.text])
    coded = CodedColumn.of([rows], columns.label)
    labels = _labels(coded, columns.label, classes, free, join_labels)
    source = {"label": columns.label}
    if columns.text is not None:
        X: Any = rows[columns.text].to_pylist()
        source["text"] = columns.text
    else:
        X = rows.select(_features(rows, named, columns, model))
    ids = None if columns.id is None else ids_of(rows, columns.id)
    groups = None
    if columns.group is not None:
        groups = np.array([str(one) for one in rows[columns.group].to_pylist()])
    when = None if columns.time is None else time_values([rows], columns.time)
    moments = check_time(when, len(numbers), numbers)
    if join_labels is not None and classes is not None:
        _require_known(labels, classes, numbers, columns.label)
    return Loaded(X, labels, source, numbers, ids, groups, moments)


@contextmanager
def _opened(data: str, reading: Reading) -> Iterator[RecordReader]:
    stage(f"reading {'standard input' if data == '-' else data}")
    with reading.open(data) as reader:
        yield reader


def _find_columns(reader: RecordReader, model: Any, **given: Any) -> Columns:
    """Find the columns that are not named, by default those that the model was fitted on."""
    known = getattr(model, "source_", None) or {}
    for name in ("text", "label"):
        if name == "label" or given["features"] is None:
            given[name] = given[name] or _if_there(known.get(name), reader)
    columns = find_columns(reader.sample(), **given)
    if columns.text is None and model is not None and takes_texts(model):
        nothing_found("text", reader.columns)
    return columns


def _large_matrix(reader: Any, named: list[str] | None, columns: Columns) -> list[str]:
    """Return the features that stay in their file; none if they are to be held.

    That is, if they are not all numbers of a Parquet file, or fit in memory. Which columns only
    number the rows is seen from the first of them.
    """
    names, notes = (named, []) if named else feature_columns(reader.sample(), columns.no_features)
    kinds = [reader.schema.field(name).type for name in names]
    if reader.format != "parquet" or not all(map(is_number, kinds)):
        return []
    if reader.n_rows * sum(kind.bit_width // 8 for kind in kinds) <= memory_limit():
        return []
    note([*notes, "the file is larger than what is held in memory: rows are read when needed"])
    return names


def _left_in_file(reader: Any, names: list[str], columns: Columns, join: bool | None) -> Loaded:
    """Return rows that stay in their file: of what belongs to them little more than a byte each."""
    numbers = range(1, reader.n_rows + 1)
    first = reader.sample().select(columns.no_features)
    coded = _coded(reader.tables([columns.label]), "label", columns.label, reader.n_rows)
    labels, groups = _labels(coded, columns.label, None, first, join), None
    if columns.group is not None:
        coded = _coded(reader.tables([columns.group]), "group", columns.group, reader.n_rows)
        spelled = [str(one) for one in coded.values.to_pylist()]
        groups = np.unique(spelled, return_inverse=True)[1][coded.codes]
    when = columns.time and time_values(reader.tables([columns.time]), columns.time)
    moments = check_time(when, len(numbers), numbers)
    source = {"label": columns.label}
    return Loaded(reader.select(names), labels, source, numbers, None, groups, moments)


def _coded(tables: Iterable[pa.Table], what: str, name: str, n_rows: int) -> CodedColumn:
    """Read a column of labels or groups, of which none may be missing."""
    coded = CodedColumn.of(tables, name, n_rows)
    absent = ~has_label(coded.values)[coded.codes]
    _refuse_missing(np.flatnonzero(absent) + 1, len(absent), what, name)
    return coded


def _labels(
    column: CodedColumn, name: str, classes: list[Any] | None, others: pa.Table, join: bool | None
) -> Labels:
    """Return a column as labels, those that cannot be classes refused: see `load_rows`.

    ``others`` has the columns that could hold the labels of a new model instead.
    """
    values, codes = column
    counts = count_each(codes, len(values))
    if join is not None:
        again = _spelled_once(values, counts, classes, join=join).dictionary_encode()
        values, codes = again.dictionary, as_numpy(again.indices).astype(codes.dtype)[codes]
        counts = count_each(codes, len(values))
        if classes is None:
            refuse_no_classes(counts, name, others)
    return Labels.of(labels_of(values, counts), codes)


def _present(
    rows: pa.Table, numbers: NDArray[np.int64], what: str, column: str, *, skip: bool
) -> NDArray[np.bool_]:
    """Return which rows have a text, label or group; refuse the others, or say how many."""
    present = (has_text if what == "text" else has_label)(rows[column])
    missing = numbers[~present]
    if not (skip and present.any()):
        _refuse_missing(missing, len(present), what, column)
    elif len(missing):
        say(f"note: {count_of(len(missing), 'row')} without a {what} left out")
    return present


def _refuse_missing(missing: Sequence[Any] | Array, n_rows: int, what: str, column: str) -> None:
    """Refuse rows, by their numbers in the file, that have no text, label or group."""
    if len(missing):
        raise DataError(
            f"The {what} in row {missing[0]}, column {column!r}, is missing or empty "
            f"({count_of(len(missing), 'such row')} of {n_rows}): give it one, or leave such "
            "rows out with --empty skip.",
            row=int(missing[0]),
            column=column,
        )


def _spelled_once(values: Any, often: Array, classes: list[Any] | None, *, join: bool) -> Any:
    """Return labels of which none differ by case or spaces only: these are joined, or refused.

    Joined labels have the spelling of the model's class or, in a new model, the most frequent one
    without spaces at its ends. The labels are distinct, and ``often`` says how many rows have each.
    """
    if not is_text(values.type):
        return values
    counts = dict(zip(values.to_pylist(), often.tolist(), strict=True))
    bare: Counter[str] = Counter()
    for label, count in counts.items():
        bare[label.strip()] += count
    frequent = sorted(bare, key=lambda one: (-bare[one], one))
    spelled: dict[str, str] = {}
    for label in map(str, classes or frequent):
        spelled.setdefault(label.strip().casefold(), label)
    alike: dict[str, list[str]] = defaultdict(list)
    exact = set(map(str, classes or ()))
    for label in sorted(counts):
        if label not in exact and label.strip().casefold() in spelled:
            alike[spelled[label.strip().casefold()]].append(label)
    if classes is None:
        alike = {label: found for label, found in alike.items() if len(found) > 1}
    if join:
        new = {one: label for label, found in alike.items() for one in found}
        return pa.array([new.get(one, one.strip()) for one in values.to_pylist()], values.type)
    if not alike:
        return values
    shown = [
        ", ".join(f"{one!r} ({count_of(counts[one], 'row')})" for one in found)
        + ("" if classes is None else f" of {label!r}")
        for label, found in alike.items()
    ]
    than = "" if classes is None else " from the model's classes"
    raise LabelError(
        f"Labels differ by case or spaces only{than}: {'; '.join(shown[:10])}. Join them with "
        "--strip-labels; if they are different classes, rename them in the file."
    )


def _require_known(
    labels: Labels, classes: list[Any], numbers: Sequence[int] | Array, column: str
) -> None:
    known = set(classes)
    unknown = np.array([name not in known for name in labels.names.tolist()])
    wrong = np.flatnonzero(unknown[labels.codes])
    if len(wrong):
        first = labels.names[labels.codes[wrong[0]]].item()
        raise LabelError(
            f"The label {first!r} in row {numbers[wrong[0]]} is none of the model's "
            f"classes {listed(classes)} ({count_of(len(wrong), 'such row')} of {len(labels)}).",
            parameter="label",
            row=int(numbers[wrong[0]]),
            column=column,
        )


def _features(rows: pa.Table, named: list[str] | None, columns: Columns, model: Any) -> list[str]:
    """Return the columns of features: named, those that the model knows, or found."""
    if named is not None:
        return named
    if model is not None:
        free = [one for one in rows.column_names if one not in columns.no_features]
        return [one for one in _model_features(model, free) if one in rows.column_names]
    found, notes = feature_columns(rows, columns.no_features)
    note(notes)
    if not found:
        raise DataError("No column is left for features: name them with --features, or --text.")
    return found


def _model_features(model: Any, candidates: list[str]) -> list[str]:
    """Return the feature columns of a model, of which some may be missing if it left them out."""
    names = getattr(getattr(model, "encoder_", model), "feature_names_in_", None)
    if names is None and len(candidates) != model.n_features_in_:
        raise DataError(
            f"The model was fitted to {model.n_features_in_} features without names, and "
            f"{len(candidates)} columns could be them: give a file with exactly these columns, in "
            "their order."
        )
    return candidates if names is None else list(map(str, names))


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
        if self.text is None:
            # Of those that training left out again, some may be missing.
            used = [name for name in self.features if name in batch.column_names]
            rows = batch.select(used or batch.column_names)  # where none is, messages list all
            return encoded(self.model, rows, numbers), np.ones(len(batch), bool)
        present = has_text(batch[self.text])
        if not skip_empty:
            return texts_of(batch, self.text, numbers), present
        return batch[self.text].filter(present).to_pylist(), present


def column_plan(model: Any, reader: RecordReader, text: str | None, keep: str | None) -> ColumnPlan:
    """Find the columns that a model needs in a file, and those that ``--keep`` names."""
    if takes_texts(model):
        column, features = find_text(reader, text, model), []
    else:
        untyped, types = reader.format != "parquet", pa.types
        candidates = [
            one.name
            for one in reader.schema
            if untyped or is_number(one.type) or types.is_boolean(one.type)
        ]
        column, features = None, _model_features(model, candidates)
    if keep is None:
        kept = [name for name in reader.columns if name not in features]
    elif keep in ("all", "none"):
        kept = reader.columns if keep == "all" else []
    else:
        kept = [require_column(name, reader.columns, "keep") for name in _names(keep)]
    return ColumnPlan(model, column, tuple(features), tuple(kept))


def _names(given: str) -> list[str]:
    """Return the columns that an option names, each once."""
    return list(dict.fromkeys(name.strip() for name in given.split(",")))


def stream(
    reader: RecordReader,
    output: str,
    compute: Callable[[pa.Table, NDArray[np.int64]], Mapping[str, Any]],
    kept: Sequence[str],
    output_format: str | None = None,
    *,
    escape_formulas: bool = False,
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
    escape_formulas : bool, default=False
    """
    from setconv.io.writer import open_writer, writer_format

    try:
        made = writer_format(output, output_format)
    except SetConvError as error:
        error.parameter = "output_format"  # --format is that of the input
        raise
    done = 0
    with (
        open_writer(output, format=made, escape_formulas=escape_formulas) as writer,
        _progress(reader) as moved,
    ):
        try:
            for batch in reader.batches(_BATCH):
                new = compute(batch, np.arange(done + 1, done + batch.num_rows + 1))
                writer.write(pa.table({name: batch[name] for name in kept} | dict(new)))
                done += batch.num_rows
                moved(done)
        except KeyboardInterrupt:
            kept_back = "" if output == "-" else f"; nothing was written to {output}"
            say(f"interrupted after {done:,} rows{kept_back}: run the command again")
            raise
    return done


@contextmanager
def _progress(reader: RecordReader) -> Iterator[Callable[[int], None]]:
    """Give what tells the user how many rows of a file are done."""
    columns = (TextColumn("{task.completed:,.0f} rows"), BarColumn(), TimeRemainingColumn())
    hidden = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=hidden) as progress:
        task = progress.add_task("rows", total=reader.n_rows)

        def moved(done: int) -> None:
            share = reader.progress()
            total = reader.n_rows or (done / share if share else None)
            progress.update(task, completed=done, total=total)
            tell(f"{done:,} rows" + (f" of {max(done, total):,.0f}" if total else ""))

        yield moved


class Judged(NamedTuple):
    """Rows with labels, and what a model says of them; of each no more than its figures take.

    Attributes
    ----------
    truth, decided : int array of shape (n_rows,)
        Class numbers.
    scores, probabilities : float64 array
        As in `setconv.decisions.rule.Predictions`.
    """

    truth: NDArray[np.int64]
    decided: NDArray[np.int64]
    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @classmethod
    def of(cls, model: Any, labels: Labels, found: Any) -> Judged:
        """Return what the predictions of a model say of rows."""
        decided = np.searchsorted(model.classes_, found.labels)
        return cls(labels.encoded(model.classes_), decided, found.scores, found.probabilities)


def judge(
    data: str, reading: Reading, model: Any, label: str | None, *, join_labels: bool
) -> Judged:
    """Let a model predict a file of rows with labels, batch by batch; the labels are read first.

    Parameters
    ----------
    data : str
        Path: it is opened twice.
    reading, model, label, join_labels : as for `load_rows`
    """
    texts, classes = takes_texts(model), model.classes_.tolist()
    with _opened(data, reading) as reader:
        given: Any = {"text": reading.text if texts else None, "features": None if texts else []}
        columns = _find_columns(reader, model, **given, label=label, id=reading.id_column)
        labels = _read_labels(reader, columns, classes, join_labels)
    with reading.open(data) as reader, _progress(reader) as moved:
        free = [one for one in reader.columns if one not in columns.no_features]
        features = () if texts else tuple(_model_features(model, free))
        plan = ColumnPlan(model, columns.text, features, ())
        kept = joined(_answers(reader, plan, moved), len(labels))
    # One column of scores for two classes, else one a class.
    heads = kept.shape[1] - 1 - len(classes)
    scores = kept[:, 0] if heads == 1 else kept[:, :heads]
    truth, decided = labels.encoded(model.classes_), kept[:, -1].astype(np.int64)
    return Judged(truth, decided, scores, kept[:, heads:-1])


def _read_labels(
    reader: RecordReader, columns: Columns, classes: list[Any], join: bool | None
) -> Labels:
    """Read the labels for a model of these classes; rows without label or text are refused."""
    absent: list[int] = []

    def tables() -> Iterator[pa.Table]:
        done, named = 0, [one for one in (columns.label, columns.text) if one is not None]
        # Only of a Parquet file can columns be read alone.
        some: Any = reader.select(named) if isinstance(reader, ColumnReader) else reader
        for table in some.batches(_BATCH):
            if columns.text is not None:
                absent.extend((np.flatnonzero(~has_text(table[columns.text])) + done + 1).tolist())
            done += len(table)
            yield table

    coded = _coded(tables(), "label", columns.label, reader.n_rows or 0)
    _refuse_missing(absent, len(coded.codes), "text", columns.text or "")
    labels = _labels(coded, columns.label, classes, None, join)
    _require_known(labels, classes, range(1, len(labels) + 1), columns.label)
    return labels


def _answers(
    reader: RecordReader, plan: ColumnPlan, moved: Callable[[int], None]
) -> Iterator[NDArray[np.float64]]:
    """Yield scores, probabilities and class numbers, side by side, of one batch after another."""
    done = 0
    for batch in reader.batches(_BATCH):
        rows, _ = plan.rows(batch, np.arange(done + 1, done + len(batch) + 1))
        found = inside(plan.model).predictions(rows)
        decided = np.searchsorted(plan.model.classes_, found.labels)
        yield np.column_stack([found.scores, found.probabilities, decided])
        done += len(batch)
        moved(done)


def find_text(reader: RecordReader, given: str | None, model: Any = None) -> str:
    """Return the text column of a file: given, that of the training file, or found."""
    if given is not None:
        return require_column(given, reader.columns, "text")
    known = (getattr(model, "source_", None) or {}).get("text")
    found = _if_there(known, reader) or find_text_column(reader.sample())
    return found or nothing_found("text", reader.columns)


def _if_there(column: str | None, reader: RecordReader) -> str | None:
    return column if column in reader.columns else None


def texts_of(rows: pa.Table, column: str, numbers: NDArray[np.int64]) -> list[str]:
    """Return a column as texts; a missing or empty one is an error that names the row."""
    _present(rows, numbers, "text", column, skip=False)
    texts: list[str] = rows[column].to_pylist()
    return texts


def ids_of(rows: pa.Table, column: str) -> list[str]:
    """Return a column as names of the rows; "" for nothing."""
    return ["" if value is None else str(value) for value in rows[column].to_pylist()]


def load_model(
    folder: Path, device: str, objective: str | None = None, prior: float | None = None
) -> Any:
    """Return a saved model, set for another objective or prevalence where one is given."""
    from setconv.pipelines import load

    model = load(folder, device=device)
    if hasattr(getattr(model, "encoder_", None), "progress"):
        model.encoder_.progress = True
    if objective is not None:
        model.set_objective(objective)
    if prior is not None:
        if len(model.classes_) > 2 or not 0 < prior < 1:
            raise ParameterError(
                f"--prior {prior:g}: give the share of the rarer of two classes, over 0 and under "
                f"1, such as 0.02; the model has {len(model.classes_)} classes."
            )
        model.set_prior(prior)
    return model


def takes_texts(model: Any) -> bool:
    """Whether a model takes texts, not features."""
    return getattr(model, "takes", None) == "texts"


def inside(model: Any) -> Any:
    """Return what is judged and explained: of a model of tables the classifier of encoded rows."""
    return model if takes_texts(model) else getattr(model, "classifier_", model)


def encoded(model: Any, X: Any, numbers: NDArray[np.int64]) -> Any:
    """Return rows as `inside` takes them: texts as they are, a table as a matrix.

    Parameters
    ----------
    model : fitted estimator
    X : list of str or pyarrow.Table
    numbers : int64 array of shape (n_rows,)
        The row of the file that each row is, counted from 1, for messages.
    """
    if takes_texts(model):
        return X
    return _encoder(model, X.column_names).transform(X, rows=numbers)


def feature_names(model: Any, columns: Sequence[str]) -> list[str] | None:
    """Return the names of what `encoded` makes of columns; None of texts."""
    if takes_texts(model):
        return None
    return list(_encoder(model, columns).get_feature_names_out())


def _encoder(model: Any, columns: Sequence[str]) -> Any:
    """Return the encoder of a model; one of plain numbers for a classifier alone."""
    from setconv.io.encoder import FeatureEncoder

    plain = FeatureEncoder.of_numbers(getattr(model, "feature_names_in_", columns))
    return getattr(model, "encoder_", plain)
