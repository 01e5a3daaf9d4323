"""The rows that the model gets wrong and is surest of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.explain.rows import to_matrix
from setconv.report.evaluation import Codes, Evaluation, Floats
from setconv.report.explaining import Question, ask, explain_features, explain_words
from setconv.report.highlights import (
    Piece,
    Weight,
    marked_pieces,
    plain_pieces,
    strongest_features,
)
from setconv.report.similarity import nearest_other
from setconv.report.sources import Source, Sources

_SHOWN = 10
_WORDS = 24  # at most so many pieces of a text are left out in turn
_FEATURES = 4


@dataclass(frozen=True)
class Shown:
    """A row on the page: what it is called, its class, and its text if it has one."""

    name: str
    class_name: str
    text: list[Piece] | None
    similarity: float


@dataclass(frozen=True)
class Mistake:
    """A wrong decision.

    Attributes
    ----------
    row : int
        Among the rows that were given.
    name : str
        What the row is called.
    truth, predicted : str
    probability : float
        Of the predicted class.
    margin : float
        How far the decision is from the other one, in units of the score.
    text : list of Piece or None
        Words marked by what they add to the score of the predicted class.
    features : list of Weight
        The features that add most to it.
    nearest : Shown or None
        The most similar other row of those searched.
    """

    row: int
    name: str
    truth: str
    predicted: str
    probability: float
    margin: float
    text: list[Piece] | None
    features: list[Weight]
    nearest: Shown | None


def find_mistakes(model: Any, evaluation: Evaluation, sources: Sources) -> list[Mistake]:
    """Return the mistakes with the largest margins, of every kind some."""
    places, margins = _surest(evaluation)
    if not len(places):
        return []
    here, rows = sources.here, evaluation.rows[places]
    question = ask(evaluation, here.take(rows), evaluation.predicted[places], places)
    nearest = _nearest(model, question, rows, evaluation, sources)
    texts = _texts(model, question, rows, sources)
    features = _features(model, evaluation, places, sources)
    names, truth, predicted = evaluation.names, evaluation.truth, evaluation.predicted
    return [
        Mistake(
            row=row,
            name=here.name(row),
            truth=names[truth[place]],
            predicted=names[predicted[place]],
            probability=float(evaluation.probabilities[place, predicted[place]]),
            margin=float(margins[i]),
            text=texts[i],
            features=features[i],
            nearest=nearest[i],
        )
        for i, (row, place) in enumerate(zip(rows.tolist(), places.tolist(), strict=True))
    ]


def show(source: Source, evaluation: Evaluation, row: int, similarity: float) -> Shown:
    """Return what the page shows of a row beside another, or beside a representative."""
    text = None if source.texts is None else plain_pieces(source.texts[row])
    return Shown(source.name(row), evaluation.names[source.codes[row]], text, float(similarity))


def _surest(evaluation: Evaluation) -> tuple[Codes, Floats]:
    """Return places and margins of mistakes: half of them rows of the main class, if there are."""
    wrong = np.flatnonzero(evaluation.truth != evaluation.predicted)
    truth, predicted = evaluation.truth[wrong], evaluation.predicted[wrong]
    margins = evaluation.values[wrong, predicted]
    if not evaluation.binary:
        margins = margins - evaluation.values[wrong, truth]
    order = np.argsort(-margins, kind="stable")
    missed = truth[order] == evaluation.main
    first, second = order[missed], order[~missed]
    half = _SHOWN // 2
    n_first = min(len(first), max(half, _SHOWN - len(second)))
    chosen = np.r_[first[:n_first], second[: _SHOWN - n_first]]
    return wrong[chosen], margins[chosen]


def _nearest(
    model: Any, question: Question, rows: Codes, evaluation: Evaluation, sources: Sources
) -> list[Shown | None]:
    """Return the most similar row for each, which is not the row itself."""
    barred = sources.barred(rows, copies=evaluation.out_of_fold)
    there, searched = sources.there, sources.searched
    found, similarities = nearest_other(
        model, question.X, question.members, there.take(searched), barred
    )
    return [
        None if one < 0 else show(there, evaluation, int(searched[one]), similarity)
        for one, similarity in zip(found.tolist(), similarities.tolist(), strict=True)
    ]


def _texts(
    model: Any, question: Question, rows: Codes, sources: Sources
) -> list[list[Piece] | None]:
    if sources.here.texts is None:
        return [None] * len(rows)
    texts = [sources.here.texts[row] for row in rows.tolist()]
    if not sources.reads_texts:
        return [plain_pieces(text) for text in texts]
    found = explain_words(model, question, _WORDS)
    return [marked_pieces(text, of) for text, of in zip(texts, found, strict=True)]


def _features(
    model: Any, evaluation: Evaluation, places: Codes, sources: Sources
) -> list[list[Weight]]:
    explained = places[: sources.explainable(len(places))]
    weights: list[list[Weight]] = [[] for _ in places]
    if not len(explained) or sources.background is None or sources.feature_names is None:
        return weights
    X = sources.here.take(evaluation.rows[explained])
    question = ask(evaluation, X, evaluation.predicted[explained], explained)
    values, rows = explain_features(model, question, sources), to_matrix(X)
    for i in range(len(explained)):
        weights[i] = strongest_features(
            sources.feature_names, values[i : i + 1], rows[i : i + 1], sources.background, _FEATURES
        )
    return weights
