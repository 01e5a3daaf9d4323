"""What the page can show of a row: its text, or its features; and where similar rows are sought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.errors import DataError
from setconv.explain.features import name_features
from setconv.explain.rows import are_texts, count_rows, take_rows, to_matrix
from setconv.report.evaluation import Codes, Evaluation, Floats, encode
from setconv.report.sampling import sample_rows

_SEARCHED = 10_000  # rows that are compared with the representatives
_CELLS = 20_000_000  # numbers that one explanation by features may cost


@dataclass(frozen=True)
class Source:
    """Rows that can be shown.

    Attributes
    ----------
    X : array-like or list of str
    codes : int64 array
        The true classes.
    numbers : int64 array
        The row numbers, as the user counts them.
    texts : list of str or None
    """

    X: Any
    codes: Codes
    numbers: Codes
    texts: list[str] | None

    def take(self, rows: Codes) -> Any:
        """Return some of the rows as the model takes them."""
        return take_rows(self.X, rows)


@dataclass(frozen=True)
class Sources:
    """The rows that are judged and those that are searched.

    Attributes
    ----------
    judged, searched : Source
    from_training : bool
        Whether those searched are training rows, or the judged ones again.
    sampled : bool
        Whether those searched are only a part.
    reads_texts : bool
        Whether the model takes texts.
    feature_names : tuple of str or None
        None if the features mean nothing by themselves, as embeddings of texts do.
    background : float64 array of shape (n_features,) or None
        The medians of the searched rows.
    """

    judged: Source
    searched: Source
    from_training: bool
    sampled: bool
    reads_texts: bool
    feature_names: tuple[str, ...] | None
    background: Floats | None

    def explainable(self, wanted: int) -> int:
        """Return how many rows can be explained by their features at a bearable cost."""
        if self.feature_names is None:
            return 0
        return min(wanted, _CELLS // len(self.feature_names) ** 2)


def gather(
    model: Any,
    X: Any,
    evaluation: Evaluation,
    *,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    train: tuple[Any, Any] | None,
    seed: int,
) -> Sources:
    """Check what the user gave and bring it into one form."""
    reads_texts = are_texts(X)
    shown = list(X) if texts is None and reads_texts else texts
    if shown is not None and len(shown) != evaluation.n_rows:
        raise DataError(
            f"texts has {len(shown)} entries but X has {evaluation.n_rows} rows: pass one text "
            "for each row."
        )
    judged = Source(
        X, evaluation.truth, np.arange(evaluation.n_rows), None if shown is None else list(shown)
    )
    everything = judged if train is None else _training_rows(train, evaluation)
    kept = sample_rows(everything.codes, _SEARCHED, seed)
    searched = everything
    if len(kept) < len(everything.codes):
        some = None if everything.texts is None else [everything.texts[i] for i in kept.tolist()]
        searched = Source(everything.take(kept), everything.codes[kept], kept, some)
    names, background = None, None
    if shown is None:
        matrix = to_matrix(searched.X)
        names = name_features(model, X, matrix.shape[1], feature_names)
        background = np.median(matrix, axis=0)
    return Sources(
        judged=judged,
        searched=searched,
        from_training=train is not None,
        sampled=searched is not everything,
        reads_texts=reads_texts,
        feature_names=names,
        background=background,
    )


def _training_rows(train: tuple[Any, Any], evaluation: Evaluation) -> Source:
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
    return Source(X, codes, np.arange(len(codes)), list(X) if are_texts(X) else None)
