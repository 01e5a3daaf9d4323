"""Why the model says what it says: rows that are alike, features and words that count.

`nearest_rows` finds the training rows that lie closest in the learned space.
`feature_contributions` and `word_contributions` work by occlusion: a feature is replaced by its
usual value, or a word is left out, the model scores again, and the change of the score is the
contribution. No gradients are taken, so the model may be any that scores rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv.errors import DataError, DataTypeError, LabelError, ParameterError

__all__ = [
    "FeatureContributions",
    "Nearest",
    "WordContributions",
    "feature_contributions",
    "nearest_rows",
    "word_contributions",
]

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Span = tuple[int, int]

# Bounds of memory: so much goes through the model at a time.
_QUERIES = 4096  # the rows to search are embedded once for each such block
_BLOCK = 2048  # rows that are embedded
_CELLS = 4_000_000  # numbers that are scored
_CHARACTERS = 4_000_000  # of text that are scored


class Model(Protocol):
    """A fitted classifier with the interface of `setconv.SetConvClassifier`."""

    classes_: Any
    representatives_: Any

    def predict(self, X: Any) -> Any:
        """Return the class of each row."""

    def predictions(self, X: Any) -> Any:
        """Return what it says of rows; ``scores`` is (n_rows,) of the second class, or of each."""

    def transform(self, X: Any) -> Any:
        """Return the learned embedding of each row."""


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of each query, the nearest first.

    Attributes
    ----------
    indices : int64 array of shape (n_queries, k)
        Row numbers.
    similarities : float64 array of shape (n_queries, k)
        Mean cosine over members (and heads), from -1 to 1.
    """

    indices: NDArray[np.int64]
    similarities: Floats


def nearest_rows(model: Model, X: Any, train_X: Any, k: int = 5) -> Nearest:
    """Find the training rows that the model takes for most alike.

    Memory is bounded: rows go through in blocks.

    Parameters
    ----------
    model : fitted classifier
        With the interface of `setconv.SetConvClassifier`.
    X : array-like or list of str
        The queries, whatever the model takes.
    train_X : array-like or list of str
        The rows to search.
    k : int, default=5
        Rows a query; all of them if there are fewer.

    Returns
    -------
    Nearest
    """
    if k < 1:
        raise ParameterError(f"k={k!r}: ask for at least one row.")
    n_rows = count_rows(train_X)
    if n_rows == 0:
        raise DataError("train_X has no rows: pass the rows to search, at least one.")
    k = min(int(k), n_rows)
    found = [
        _search(model, unit_vectors(model, take_rows(X, part)), train_X, k)
        for part in _blocks(count_rows(X), _QUERIES)
    ]
    if not found:
        return Nearest(np.empty((0, k), np.int64), np.empty((0, k)))
    return Nearest(
        np.concatenate([one.indices for one in found]),
        np.concatenate([one.similarities for one in found]),
    )


def _search(model: Model, queries: Vectors, train_X: Any, k: int) -> Nearest:
    """Keep the k best of each query while the rows to search go by."""
    indices = np.empty((len(queries), 0), np.int64)
    similarities = np.empty((len(queries), 0))
    for part, vectors in unit_blocks(model, train_X):
        here = queries.astype(np.float64) @ vectors.T.astype(np.float64)
        indices = np.hstack([indices, np.broadcast_to(part, here.shape)])
        similarities = np.hstack([similarities, here])
        # The sort is stable: of equals the first row comes first.
        best = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        indices = np.take_along_axis(indices, best, axis=1)
        similarities = np.take_along_axis(similarities, best, axis=1)
    return Nearest(indices, similarities)


def unit_blocks(model: Model, X: Any) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """Yield row numbers and their `unit_vectors`, a block at a time."""
    for part in _blocks(count_rows(X), _BLOCK):
        yield part, unit_vectors(model, take_rows(X, part))


def unit_vectors(model: Model, X: Any) -> Vectors:
    """Return rows so that a dot product is the mean cosine over members and heads."""
    width = _part_width(model)
    return _unit_parts(np.asarray(model.transform(X), dtype=np.float32), width)


def representative_points(model: Model) -> Vectors:
    """Return one point a class in the space of `unit_vectors`, (n_classes, n_embedding).

    In its own head a class is on its own side, in all others on that of the rest; of two classes,
    which have one head, each is on its side.
    """
    sides = _sides(model)
    n_heads, n_classes = sides.shape[1], len(model.classes_)
    if n_heads == 1:
        chosen = sides[:, 0].transpose(1, 0, 2)
    else:
        own = np.eye(n_classes, dtype=np.int64)
        chosen = np.stack([sides[:, np.arange(n_heads), side] for side in own])
    return _unit_parts(chosen.reshape(n_classes, -1), sides.shape[-1])


def representative_directions(model: Model) -> Vectors:
    """Return one vector a class, to be multiplied with `unit_vectors`.

    The product is the mean cosine, over members, of a row and the representative of the class, in
    the head of that class alone: what prediction compares.
    """
    sides = _sides(model)
    n_members, n_heads, _, width = sides.shape
    points = representative_points(model).reshape(-1, n_members, n_heads, width)
    if n_heads > 1:
        points = points * np.eye(n_heads, dtype=np.float32)[:, None, :, None] * n_heads
    return points.reshape(len(points), -1)


def _sides(model: Model) -> Vectors:
    """Return the representatives with all their axes: (members, heads, 2, width)."""
    width, n_classes = _part_width(model), len(model.classes_)
    heads = 1 if n_classes == 2 else n_classes
    return np.asarray(model.representatives_, dtype=np.float32).reshape(-1, heads, 2, width)


def _part_width(model: Model) -> int:
    """Return the number of columns of `transform` that belong to one head of one member."""
    if not hasattr(model, "representatives_") or not hasattr(model, "transform"):
        raise ParameterError(
            f"model: a {type(model).__name__} without transform and representatives_ has no "
            "learned space; pass a fitted SetConvClassifier or SetConvTextClassifier."
        )
    return int(np.shape(model.representatives_)[-1])


def _unit_parts(vectors: Vectors, width: int) -> Vectors:
    """Bring the part of each head of each member to the same length, and all together to 1."""
    parts = vectors.reshape(len(vectors), vectors.shape[1] // width, width)
    length = np.linalg.norm(parts, axis=-1, keepdims=True)
    unit = parts / np.where(length > 0, length, 1) / np.sqrt(np.float32(parts.shape[1]))
    return np.asarray(unit.reshape(vectors.shape), dtype=np.float32)


@dataclass(frozen=True)
class FeatureContributions:
    """What each feature adds to the score of a class, row by row.

    Attributes
    ----------
    classes : tuple
        The class asked about, one a row.
    names : tuple of str
        The features.
    scores : float64 array of shape (n_rows,)
        The score of the class.
    values : float64 array of shape (n_rows, n_features)
        The score minus the score with the feature at its background value: positive where the
        feature speaks for the class. They need not add up to the score.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]
    scores: Floats
    values: Floats


def feature_contributions(
    model: Model,
    x_rows: Any,
    *,
    background: ArrayLike,
    class_: Any = None,
    feature_names: Sequence[Any] | None = None,
    scores: ArrayLike | None = None,
) -> FeatureContributions:
    """Measure by occlusion what each feature adds to the score of a class.

    One feature at a time is replaced by its background value, and the row is scored again.

    Parameters
    ----------
    model : fitted classifier
        With the interface of `setconv.SetConvClassifier`.
    x_rows : array-like of shape (n_rows, n_features)
    background : array-like of shape (n_features,)
        The usual value of each feature: its mean or median over the training rows.
    class_ : label, optional
        The class whose score is explained, against the rest; by default the one that the model
        predicts for the row.
    feature_names : sequence of str, optional
        By default the columns of ``x_rows``, else ``feature_names_in_`` of the model, else
        "feature 0" and so on.
    scores : array-like of shape (n_rows,), optional
        The scores of the class, if they are known: then only the changed rows are scored.

    Returns
    -------
    FeatureContributions
    """
    rows = to_matrix(x_rows)
    usual = np.asarray(background, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"x_rows has shape {rows.shape}: pass rows of features, (n, n_features).")
    if usual.shape != rows.shape[1:]:
        raise DataError(
            f"background has shape {usual.shape} but there are {rows.shape[1]} features: pass one "
            "value for each, for example np.median(X_train, axis=0)."
        )
    names = name_features(model, x_rows, rows.shape[1], feature_names)
    if not len(rows):
        return FeatureContributions((), names, np.empty(0), np.empty(rows.shape))
    asked = _asked_classes(model, x_rows, len(rows), class_)
    if scores is None:
        scores = _class_scores(model, x_rows)[np.arange(len(rows)), asked]
    whole = np.asarray(scores, dtype=np.float64)
    values = np.empty(rows.shape)
    for columns in _blocks(rows.shape[1], max(1, _CELLS // rows.size)):
        # The rows once for each of the columns, that column at its usual value.
        occluded = np.repeat(rows[None], len(columns), axis=0)
        occluded[np.arange(len(columns)), :, columns] = usual[columns, None]
        changed = _class_scores(model, _like(x_rows, occluded.reshape(-1, rows.shape[1])))
        changed = changed.reshape(len(columns), len(rows), -1)
        values[:, columns] = whole[:, None] - changed[:, np.arange(len(rows)), asked].T
    classes = plain_classes(model)
    return FeatureContributions(tuple(classes[one] for one in asked), names, whole, values)


def name_features(
    model: Model, X: Any, n_features: int, given: Sequence[Any] | None
) -> tuple[str, ...]:
    """Return the names of the features: given, of the frame, of the model, or numbers."""
    known = [given, getattr(X, "columns", None), getattr(model, "feature_names_in_", None)]
    names = next((names for names in known if names is not None), None)
    if names is None:
        return tuple(f"feature {number}" for number in range(n_features))
    if len(names) != n_features:
        raise DataError(
            f"feature_names has {len(names)} names but there are {n_features} features: pass "
            "one for each column."
        )
    return tuple(map(str, names))


def _like(X: Any, values: NDArray[Any]) -> Any:
    """Return a matrix as the kind of frame that ``X`` is, so that a model sees its columns."""
    if hasattr(X, "iloc"):
        return type(X)(values, columns=X.columns)
    if hasattr(X, "schema"):
        return type(X)(values, schema=list(X.columns))
    return values


@dataclass(frozen=True)
class WordContributions:
    """What the words of a text add to the score of a class.

    Attributes
    ----------
    class_ : label
        The class asked about.
    score : float
        Its score for the whole text.
    words : tuple of str
        The words; of a very long text, pieces of several words.
    spans : tuple of (int, int)
        Where each starts and ends in the text.
    values : float64 array of shape (n_words,)
        The score minus the score without the word: positive where it speaks for the class.
    words_per_piece : int
        1, but for a text of more words than were to be left out one by one.
    """

    class_: Any
    score: float
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    values: Floats
    words_per_piece: int


def word_contributions(
    model: Model, text: str, class_: Any = None, *, max_pieces: int = 200
) -> WordContributions:
    """Measure by occlusion what each word adds to the score of a class.

    A word is what stands between white space. Each is left out in turn and the text is scored
    again. A text of more than ``max_pieces`` words is cut into at most that many pieces of equally
    many words, and pieces are left out instead.

    Parameters
    ----------
    model : fitted text classifier
        Its ``predictions`` takes a list of str.
    text : str
    class_ : label, optional
        The class whose score is explained, against the rest; by default the predicted one.
    max_pieces : int, default=200

    Returns
    -------
    WordContributions
    """
    return contributions_of_texts(model, [text], class_, max_pieces=max_pieces)[0]


def contributions_of_texts(
    model: Model,
    texts: Sequence[str],
    class_: Any = None,
    *,
    max_pieces: int = 200,
    scores: Floats | None = None,
) -> list[WordContributions]:
    """Return `word_contributions` of several texts, scored together.

    ``scores`` are those of the class for the whole texts, where they are known.
    """
    if max_pieces < 1:
        raise ParameterError(f"max_pieces={max_pieces!r}: give at least 1.")
    for text in texts:
        if not isinstance(text, str):
            raise DataTypeError(
                f"text is a {type(text).__name__}: pass a string, or use feature_contributions "
                "for rows of features."
            )
    if not texts:
        return []
    texts = list(texts)
    pieces = [_pieces(text, max_pieces) for text in texts]
    asked = _asked_classes(model, texts, len(texts), class_)
    if scores is None:
        scores = _class_scores(model, texts)[np.arange(len(texts)), asked]
    owner = np.repeat(np.arange(len(texts)), [len(spans) for spans, _ in pieces])
    without = _scores_without(model, texts, [spans for spans, _ in pieces])
    values = scores[owner] - without[np.arange(len(owner)), asked[owner]]
    classes = plain_classes(model)
    return [
        WordContributions(
            class_=classes[asked[number]],
            score=float(scores[number]),
            words=tuple(text[start:end] for start, end in spans),
            spans=tuple(spans),
            values=values[owner == number],
            words_per_piece=size,
        )
        for number, (text, (spans, size)) in enumerate(zip(texts, pieces, strict=True))
    ]


def _pieces(text: str, max_pieces: int) -> tuple[list[Span], int]:
    """Return the spans that are left out in turn, and how many words each has at most."""
    words = [found.span() for found in re.finditer(r"\S+", text)]
    size = max(1, -(-len(words) // max_pieces))
    firsts = range(0, len(words), size)
    return [(words[i][0], words[min(i + size, len(words)) - 1][1]) for i in firsts], size


def _scores_without(model: Model, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Floats:
    """Score each text without each of its spans, (n_spans, n_classes)."""
    scores = [np.empty((0, len(model.classes_)))]
    waiting: list[str] = []
    length = 0
    for text, of_text in zip(texts, spans, strict=True):
        for start, end in of_text:
            rest = text[:start] + text[end:]
            # Models may refuse a text of which nothing is left.
            waiting.append(rest if rest.strip() else ".")
            length += len(rest)
            if length > _CHARACTERS:
                scores.append(_class_scores(model, waiting))
                waiting, length = [], 0
    if waiting:
        scores.append(_class_scores(model, waiting))
    return np.concatenate(scores)


def _class_scores(model: Model, X: Any) -> Floats:
    """Return the score of each class against the rest, (n_rows, n_classes)."""
    return by_class(np.asarray(model.predictions(X).scores, dtype=np.float64))


def by_class(scores: Floats) -> Floats:
    """Return a column of scores for each class.

    Of two classes the first one's score is minus that of the second.
    """
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def _asked_classes(model: Model, X: Any, n_rows: int, class_: Any) -> NDArray[np.int64]:
    """Return for each row the column of the class that is asked about, by default the predicted."""
    classes = plain_classes(model)
    if class_ is None:
        number = {label: column for column, label in enumerate(classes)}
        predicted = np.asarray(model.predict(X)).tolist()
        return np.array([number[label] for label in predicted], dtype=np.int64)
    label = class_.item() if isinstance(class_, np.generic) else class_
    if label not in classes:
        raise LabelError(
            f"class_={label!r} is not one of the model's classes {classes[:8]!r}: name one of "
            "them (the type counts: '1' is not 1), or leave class_ out for the predicted one."
        )
    return np.full(n_rows, classes.index(label))


def plain_classes(model: Model) -> list[Any]:
    """Return the labels as plain Python values."""
    return list(np.asarray(model.classes_).tolist())


def count_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, indices: NDArray[np.integer]) -> Any:
    """Return some rows, of the same kind as ``X``."""
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if isinstance(X, (list, tuple)):
        return [X[index] for index in indices.tolist()]
    return X[indices]


def _blocks(n_rows: int, size: int) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers, at most ``size`` at a time."""
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def to_matrix(X: Any) -> Floats:
    """Return rows of numbers as a plain array."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    return np.asarray(values, dtype=np.float64)


def are_texts(X: Any) -> bool:
    """Whether the rows are texts: a list or column of strings."""
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "schema") or not count_rows(X):
        return False
    return isinstance(next(iter(X)), str)
