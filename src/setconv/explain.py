"""Why the model says what it says: rows that are alike, features and words that count.

`nearest_rows` finds the training rows that lie closest in the learned space, `explain_rows` puts
all that is known of a row together.
`feature_contributions` and `word_contributions` work by occlusion: a feature is replaced by its
usual value, or a word is left out, the model scores again, and the change of the score is the
contribution. No gradients are taken, so the model may be any that scores rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from setconv.errors import DataError, DataTypeError, LabelError, ParameterError
from setconv.messages import check_integer, listed

__all__ = [
    "FeatureContributions",
    "Nearest",
    "WordContributions",
    "feature_contributions",
    "nearest_rows",
    "word_contributions",
]

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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

    def predictions(self, X: Any) -> Any:
        """Return the ``labels`` of rows and their ``scores``, of the second class or of each."""

    def transform(self, X: Any) -> Any:
        """Return the learned embedding of each row."""


class Nearest(NamedTuple):
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
    check_integer("k", k, least=1)
    if count_rows(train_X) == 0:
        raise DataError("train_X has no rows.", parameter="train_X", hint="Pass rows to search.")
    n_rows, k = count_rows(X), min(int(k), count_rows(train_X))
    indices, similarities = np.empty((n_rows, k), np.int64), np.empty((n_rows, k))
    for part in gen_batches(n_rows, _QUERIES) if n_rows else ():
        queries = unit_vectors(model, take_rows(X, part))
        blocks = unit_blocks(model, train_X)
        indices[part], similarities[part] = search(queries, blocks, k)
    return Nearest(indices, similarities)


def search(
    queries: NDArray[np.floating],
    blocks: Iterable[tuple[slice, Vectors]],
    k: int,
    barred: Flags | None = None,
) -> Nearest:
    """Keep the k best of each query while the rows to search go by.

    Parameters
    ----------
    queries : array of shape (n_queries, n_embedding)
        As `unit_vectors` gives them.
    blocks : iterable of (slice, array)
        As `unit_blocks` gives them.
    k : int
    barred : bool array of shape (n_queries, n_rows), optional
        Rows that are not to be found; where no other is left their similarity is minus infinity.
    """
    indices = np.empty((len(queries), 0), np.int64)
    similarities = np.empty((len(queries), 0))
    for part, vectors in blocks:
        here = queries.astype(np.float64) @ vectors.T.astype(np.float64)
        if barred is not None:
            here[barred[:, part]] = -np.inf
        numbers = np.arange(part.start, part.stop)
        indices = np.hstack([indices, np.broadcast_to(numbers, here.shape)])
        similarities = np.hstack([similarities, here])
        # The sort is stable: of equals the first row comes first.
        best = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        indices = np.take_along_axis(indices, best, axis=1)
        similarities = np.take_along_axis(similarities, best, axis=1)
    return Nearest(indices, similarities)


def unit_blocks(model: Model, X: Any) -> Iterator[tuple[slice, Vectors]]:
    """Yield the places of rows and their `unit_vectors`, a block at a time."""
    for part in gen_batches(count_rows(X), _BLOCK):
        yield part, unit_vectors(model, take_rows(X, part))


def unit_vectors(model: Model, X: Any) -> Vectors:
    """Return rows so that a dot product is the mean cosine over members and heads."""
    if not hasattr(model, "representatives_") or not hasattr(model, "transform"):
        raise ParameterError(
            f"model: a {type(model).__name__} without transform and representatives_ has no "
            "learned space; pass a fitted SetConvClassifier or SetConvTextClassifier.",
            parameter="model",
        )
    width = np.shape(model.representatives_)[-1]
    return unit_parts(np.asarray(model.transform(X), dtype=np.float32), width)


def unit_parts(vectors: Vectors, width: int) -> Vectors:
    """Bring the part of each head of each member to the same length, and all together to 1."""
    parts = vectors.reshape(len(vectors), vectors.shape[1] // width, width)
    length = np.linalg.norm(parts, axis=-1, keepdims=True)
    unit = parts / np.where(length > 0, length, 1) / np.sqrt(np.float32(parts.shape[1]))
    return np.asarray(unit.reshape(vectors.shape), dtype=np.float32)


class Explanation(NamedTuple):
    """Why the model says what it says of a row.

    Attributes
    ----------
    class_ : label
        The class asked about.
    contributions : list of (str, float)
        Words or features, and what they add to its score; the strongest first.
    nearest : list of (int, float)
        Training rows, if there are any, and how similar they are; the nearest first.
    """

    class_: Any
    contributions: list[tuple[str, float]]
    nearest: list[tuple[int, float]]


def explain_rows(
    model: Model,
    X: Any,
    names: Sequence[str] | None,
    *,
    class_: Any = None,
    usual: Floats | None = None,
    blocks: Iterable[tuple[slice, Vectors]] | None = None,
    top: int = 8,
) -> list[Explanation]:
    """Explain rows one by one.

    Parameters
    ----------
    model : fitted classifier
        What takes texts, or encoded rows.
    X : list of str, or array of shape (n_rows, n_features)
    names : sequence of str or None
        Of the features; None of texts.
    class_ : label, optional
        The class whose score is explained; by default the predicted one.
    usual : array of shape (n_features,), optional
        The usual value of each feature; by default the mean anchor, which the model keeps.
    blocks : iterable of (slice, array), optional
        The training rows as `unit_blocks` gives them, of which the nearest are sought.
    top : int, default=8
        How many contributions, and how many rows.
    """
    nearest: list[list[tuple[int, float]]] = [[] for _ in range(len(X))]
    if blocks is not None:
        found = search(unit_vectors(model, X), blocks, top)
        pairs = zip(found.indices.tolist(), found.similarities.tolist(), strict=True)
        nearest = [list(zip(*pair, strict=True)) for pair in pairs]
    moved = _contributions(model, X, names, class_, usual)
    return [
        Explanation(of, sorted(values, key=lambda one: -abs(one[1]))[:top], near)
        for (of, values), near in zip(moved, nearest, strict=True)
    ]


def _contributions(
    model: Any, X: Any, names: Sequence[str] | None, label: Any, usual: Floats | None
) -> list[tuple[Any, Iterable[tuple[str, float]]]]:
    """Return of each row the class that is explained, and what moved its score by how much."""
    if names is None:
        texts = [word_contributions(model, text, label) for text in X]
        return [(one.class_, zip(one.words, one.values.tolist(), strict=True)) for one in texts]
    if usual is None:
        usual = usual_values(model)
    found = feature_contributions(model, X, background=usual, class_=label, feature_names=names)
    rows = zip(found.classes, found.values.tolist(), strict=True)
    return [(of, zip(found.names, values, strict=True)) for of, values in rows]


def usual_values(model: Any) -> Floats:
    """Return the mean anchor: what is usual of a feature, as far as a model knows."""
    anchors = np.asarray(model.anchor_, dtype=np.float64)
    return np.asarray(anchors.reshape(-1, anchors.shape[-1]).mean(axis=0))


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

    Returns
    -------
    FeatureContributions
    """
    rows = np.asarray(x_rows, dtype=np.float64)
    usual = np.asarray(background, dtype=np.float64)
    if rows.ndim != 2:
        why = f"x_rows has shape {rows.shape}: pass rows of features, (n, n_features)."
        raise DataError(why, parameter="x_rows")
    if usual.shape != rows.shape[1:]:
        raise DataError(
            f"background has shape {usual.shape} but there are {rows.shape[1]} features: pass one "
            "value for each, for example np.median(X_train, axis=0).",
            parameter="background",
        )
    names = name_features(model, x_rows, rows.shape[1], feature_names)
    if not len(rows):
        return FeatureContributions((), names, np.empty(0), np.empty(rows.shape))
    asked, scores = _ask(model, x_rows, class_)
    values = occlude_features(model, x_rows, usual, asked, scores)
    return FeatureContributions(tuple(model.classes_[asked].tolist()), names, scores, values)


def occlude_features(
    model: Model, x_rows: Any, usual: Floats, asked: Codes, scores: Floats | None = None
) -> Floats:
    """Return what each feature adds to the score of the class asked about, (n_rows, n_features).

    ``asked`` has a class number for each row, and ``scores`` its scores, where they are known.
    """
    rows = np.asarray(x_rows, dtype=np.float64)
    if scores is None:
        scores = _scores_of(model, x_rows, asked)
    values = np.empty(rows.shape)
    for part in gen_batches(rows.shape[1], max(1, _CELLS // rows.size)):
        # The rows once for each of the columns, that column at its usual value.
        columns = np.arange(part.start, part.stop)
        occluded = np.repeat(rows[None], len(columns), axis=0)
        occluded[np.arange(len(columns)), :, columns] = usual[columns, None]
        copies = _like(x_rows, occluded.reshape(-1, rows.shape[1]))
        changed = _scores_of(model, copies, np.tile(asked, len(columns)))
        values[:, part] = scores[:, None] - changed.reshape(len(columns), -1).T
    return values


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
            "one for each column.",
            parameter="feature_names",
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
    if not isinstance(text, str):
        raise DataTypeError(
            f"text is a {type(text).__name__}: pass a string, or use feature_contributions for "
            "rows of features.",
            parameter="text",
        )
    check_integer("max_pieces", max_pieces, least=1)
    return occlude_words(model, [text], *_ask(model, [text], class_), max_pieces=max_pieces)[0]


def occlude_words(
    model: Model, texts: Sequence[str], asked: Codes, scores: Floats | None, *, max_pieces: int
) -> list[WordContributions]:
    """Return `word_contributions` of several texts, scored together.

    ``asked`` has a class number for each text, and ``scores`` its scores, where they are known.
    """
    if scores is None:
        scores = _scores_of(model, texts, asked)
    pieces = [_pieces(text, max_pieces) for text in texts]
    cuts = [(n, start, end) for n, (spans, _) in enumerate(pieces) for start, end in spans]
    owner = np.array([number for number, _, _ in cuts], dtype=np.int64)
    values = np.empty(len(cuts))
    batch = max(1, _CHARACTERS // max(1, *map(len, texts)))
    for part in gen_batches(len(cuts), batch) if cuts else ():
        rests = [texts[number][:start] + texts[number][end:] for number, start, end in cuts[part]]
        # Models may refuse a text of which nothing is left.
        rests = [rest if rest.strip() else "." for rest in rests]
        values[part] = scores[owner[part]] - _scores_of(model, rests, asked[owner[part]])
    found = []
    for number, (text, (spans, size)) in enumerate(zip(texts, pieces, strict=True)):
        words = tuple(text[start:end] for start, end in spans)
        of = model.classes_.tolist()[asked[number]], float(scores[number]), words, tuple(spans)
        found.append(WordContributions(*of, values[owner == number], words_per_piece=size))
    return found


def _pieces(text: str, max_pieces: int) -> tuple[list[Span], int]:
    """Return the spans that are left out in turn, and how many words each has at most."""
    words = [found.span() for found in re.finditer(r"\S+", text)]
    size = max(1, -(-len(words) // max_pieces))
    firsts = range(0, len(words), size)
    return [(words[i][0], words[min(i + size, len(words)) - 1][1]) for i in firsts], size


def _ask(model: Model, X: Any, class_: Any) -> tuple[Codes, Floats]:
    """Return the class number that is asked about, by default the predicted one, and its score.

    Both are of each row.
    """
    classes = model.classes_.tolist()
    if class_ is not None and class_ not in classes:
        raise LabelError(
            f"class_={class_!r} is not one of the model's classes {listed(classes)}: name one of "
            "them (the type counts: '1' is not 1), or leave class_ out for the predicted one.",
            parameter="class_",
        )
    found = model.predictions(X)
    if class_ is None:
        asked = np.searchsorted(model.classes_, found.labels)
    else:
        asked = np.full(len(found.scores), classes.index(class_))
    return asked, by_class(found.scores)[np.arange(len(asked)), asked]


def _scores_of(model: Model, X: Any, asked: Codes) -> Floats:
    """Return for each row the score of one class, by its number, against the rest."""
    return by_class(model.predictions(X).scores)[np.arange(len(asked)), asked]


def by_class(scores: Floats) -> Floats:
    """Return a column of scores for each class.

    Of two classes the first one's score is minus that of the second.
    """
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def count_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: slice | Codes) -> Any:
    """Return some rows, of the same kind as ``X``."""
    if isinstance(X, (list, tuple)):
        return X[rows] if isinstance(rows, slice) else [X[row] for row in rows.tolist()]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
