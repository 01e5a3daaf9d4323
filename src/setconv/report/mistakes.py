"""The rows that the model gets wrong and is surest of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.explain.features import feature_contributions
from setconv.explain.nearest import nearest_rows
from setconv.explain.rows import count_rows, take_rows, to_matrix
from setconv.explain.words import contributions_of_texts
from setconv.report.evaluation import Codes, Evaluation, Floats
from setconv.report.highlights import (
    Piece,
    Weight,
    marked_pieces,
    plain_pieces,
    strongest_features,
)
from setconv.report.sampling import sample_rows
from setconv.report.sources import Source, Sources

_SHOWN = 10
_LOOKED_AT = 20_000
_WORDS = 24  # at most so many pieces of a text are left out in turn
_FEATURES = 4


@dataclass(frozen=True)
class Shown:
    """A row on the page: its number, its class, and its text if it has one."""

    number: int
    class_name: str
    text: list[Piece] | None
    similarity: float


@dataclass(frozen=True)
class Mistake:
    """A wrong decision.

    Attributes
    ----------
    row : int
    truth, predicted : str
    probability : float
        Of the predicted class.
    margin : float
        How far the decision is from the other one, in units of the score.
    text : list of Piece or None
        Words marked by what they add to the score of the predicted class.
    features : list of Weight
        The features that add most to it.
    nearest : Shown
        The most similar row of those searched.
    """

    row: int
    truth: str
    predicted: str
    probability: float
    margin: float
    text: list[Piece] | None
    features: list[Weight]
    nearest: Shown


def find_mistakes(model: Any, evaluation: Evaluation, sources: Sources, seed: int) -> list[Mistake]:
    """Return the mistakes with the largest margins, of every kind some."""
    rows, margins = _surest(model, evaluation, sources, seed)
    if not len(rows):
        return []
    judged = sources.judged
    X = judged.take(rows)
    nearest = _nearest(model, X, rows, sources)
    texts = _texts(model, judged, rows, sources)
    features = _features(model, X, sources)
    names, truth, predicted = evaluation.names, evaluation.truth, evaluation.predicted
    return [
        Mistake(
            row=int(row),
            truth=names[truth[row]],
            predicted=names[predicted[row]],
            probability=float(evaluation.probabilities[row, predicted[row]]),
            margin=float(margins[place]),
            text=texts[place],
            features=features[place],
            nearest=show(sources.searched, evaluation, int(nearest[0][place]), nearest[1][place]),
        )
        for place, row in enumerate(rows.tolist())
    ]


def show(source: Source, evaluation: Evaluation, place: int, similarity: float) -> Shown:
    """Return what the page shows of a row that was searched."""
    text = None if source.texts is None else plain_pieces(source.texts[place])
    name = evaluation.names[source.codes[place]]
    return Shown(int(source.numbers[place]), name, text, float(similarity))


def _surest(
    model: Any, evaluation: Evaluation, sources: Sources, seed: int
) -> tuple[Codes, Floats]:
    """Return wrong rows and their margins: half of them rows of the main class, if there are."""
    wrong = np.flatnonzero(evaluation.truth != evaluation.predicted)
    if not len(wrong):
        return wrong, np.empty(0)
    wrong = wrong[sample_rows(evaluation.truth[wrong], _LOOKED_AT, seed)]
    values = np.asarray(model.decision_function(sources.judged.take(wrong)), dtype=np.float64)
    if values.ndim == 1:
        margins = np.abs(values)
    else:
        here = np.arange(len(wrong))
        margins = values[here, evaluation.predicted[wrong]] - values[here, evaluation.truth[wrong]]
    order = np.argsort(-margins, kind="stable")
    missed = evaluation.truth[wrong[order]] == evaluation.main
    first, second = order[missed], order[~missed]
    half = _SHOWN // 2
    n_first = min(len(first), max(half, _SHOWN - len(second)))
    chosen = np.r_[first[:n_first], second[: _SHOWN - n_first]]
    return wrong[chosen], margins[chosen]


def _nearest(model: Any, X: Any, rows: Codes, sources: Sources) -> tuple[Codes, Floats]:
    """Return the most similar row for each, which is not the row itself."""
    found = nearest_rows(model, X, sources.searched.X, k=2)
    itself = np.zeros(len(rows), dtype=bool)
    if not sources.from_training:
        itself = sources.searched.numbers[found.indices[:, 0]] == rows
    second = np.where(itself, found.indices.shape[1] - 1, 0)
    here = np.arange(len(rows))
    return found.indices[here, second], found.similarities[here, second]


def _texts(model: Any, judged: Source, rows: Codes, sources: Sources) -> list[list[Piece] | None]:
    if judged.texts is None:
        return [None] * len(rows)
    texts = [judged.texts[row] for row in rows.tolist()]
    if not sources.reads_texts:
        return [plain_pieces(text) for text in texts]
    found = contributions_of_texts(model, texts, max_pieces=_WORDS)
    return [marked_pieces(text, of) for text, of in zip(texts, found, strict=True)]


def _features(model: Any, X: Any, sources: Sources) -> list[list[Weight]]:
    weights: list[list[Weight]] = [[] for _ in range(count_rows(X))]
    n_explained = sources.explainable(len(weights))
    if not n_explained or sources.background is None:
        return weights
    some = take_rows(X, np.arange(n_explained))
    of = feature_contributions(
        model, some, background=sources.background, feature_names=sources.feature_names
    )
    rows = to_matrix(some)
    for place in range(n_explained):
        one = slice(place, place + 1)
        weights[place] = strongest_features(
            of.names, of.values[one], rows[one], sources.background, _FEATURES
        )
    return weights
