"""What the page can show of a row: its text, or its features; and where similar rows are sought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.copies import row_keys, text_keys
from setconv.errors import DataError
from setconv.explain.features import name_features
from setconv.explain.rows import are_texts, count_rows, take_rows, to_matrix
from setconv.report.evaluation import Codes, Evaluation, Flags, Floats, encode
from setconv.report.sampling import sample_rows
from setconv.report.wording import readable

LOOKED_AT = 10_000  # rows that are compared with representatives, or with a mistake
_CELLS = 20_000_000  # numbers that one explanation by features may cost


@dataclass(frozen=True)
class Source:
    """Rows that can be shown.

    Attributes
    ----------
    X : array-like or list of str
    codes : int64 array
        The true classes.
    texts : list of str or None
    names : sequence or None
        What rows are called; None: by their numbers, from 0.
    """

    X: Any
    codes: Codes
    texts: list[str] | None
    names: Sequence[Any] | None

    def take(self, rows: Codes) -> Any:
        """Return some of the rows as the model takes them."""
        return take_rows(self.X, rows)

    def name(self, row: int) -> str:
        """Return what the page calls a row: a number is that of a row, a name says it all."""
        name = str(row) if self.names is None else readable(self.names[row], 60)
        return f"row {name}" if name.isdecimal() else name


@dataclass(frozen=True)
class Sources:
    """The rows that were given and those that are searched.

    Attributes
    ----------
    here : Source
        The rows that were given; those that are judged are among them.
    there : Source
        Where similar rows are sought: training rows if there are any, else here.
    searched : int64 array
        Which rows of ``there`` are.
    gave_training : bool
        Whether training rows were given beside those that are judged.
    reads_texts : bool
        Whether the model takes texts.
    feature_names : tuple of str or None
        None if the features mean nothing by themselves, as embeddings of texts do.
    background : float64 array of shape (n_features,) or None
        The medians of the searched rows.
    """

    here: Source
    there: Source
    searched: Codes
    gave_training: bool
    reads_texts: bool
    feature_names: tuple[str, ...] | None
    background: Floats | None

    def explainable(self, wanted: int) -> int:
        """Return how many rows can be explained by their features at a bearable cost."""
        if self.feature_names is None:
            return 0
        return min(wanted, _CELLS // len(self.feature_names) ** 2)

    def barred(self, rows: Codes, *, copies: bool) -> Flags:
        """Return which searched rows a row must not be likened to, (n_rows, n_searched).

        That is the row itself, and where they are asked for all copies of it.
        """
        if self.there.X is not self.here.X:
            return np.zeros((len(rows), len(self.searched)), dtype=np.bool_)
        if not copies:
            return np.asarray(rows[:, None] == self.searched)
        both = self.here.take(np.r_[rows, self.searched])
        keys = text_keys(both) if self.reads_texts else row_keys(to_matrix(both))
        return np.asarray(keys[: len(rows), None] == keys[None, len(rows) :])


def gather(
    model: Any,
    X: Any,
    evaluation: Evaluation,
    *,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    train: tuple[Any, Any] | None,
    row_names: Sequence[Any] | None,
    train_row_names: Sequence[Any] | None,
    seed: int,
) -> Sources:
    """Check what the user gave and bring it into one form."""
    reads_texts = are_texts(X)
    shown = list(X) if texts is None and reads_texts else texts
    for what, given in (("texts", shown), ("row_names", row_names)):
        _check_length(what, given, "X", len(evaluation.codes))
    here = Source(X, evaluation.codes, None if shown is None else list(shown), row_names)
    there = here
    if train is not None and not evaluation.out_of_fold:
        there = _training_rows(train, evaluation, train_row_names)
    searched = sample_rows(there.codes, LOOKED_AT, seed)
    names, background = None, None
    if shown is None:
        matrix = to_matrix(there.take(searched))
        names = name_features(model, X, matrix.shape[1], feature_names)
        background = np.median(matrix, axis=0)
    return Sources(
        here=here,
        there=there,
        searched=searched,
        gave_training=there is not here,
        reads_texts=reads_texts,
        feature_names=names,
        background=background,
    )


def _check_length(what: str, given: Sequence[Any] | None, where: str, n_rows: int) -> None:
    if given is not None and len(given) != n_rows:
        raise DataError(
            f"{what} has {len(given)} entries but {where} has {n_rows} rows: pass one for each row."
        )


def _training_rows(
    train: tuple[Any, Any], evaluation: Evaluation, names: Sequence[Any] | None
) -> Source:
    try:
        X, y = train
    except (TypeError, ValueError) as error:
        raise DataError("train: pass a pair, (X_train, y_train).") from error
    codes = encode(y, evaluation.labels, "y_train")
    if not len(codes) or len(codes) != count_rows(X):
        raise DataError(
            f"train has {count_rows(X)} rows and {len(codes)} labels: pass as many labels as "
            "rows, and at least one."
        )
    _check_length("train_row_names", names, "train", len(codes))
    return Source(X, codes, list(X) if are_texts(X) else None, names)
