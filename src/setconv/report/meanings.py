"""What the representative of a class stands for: the rows next to it, the words that count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setconv.explain.rows import to_matrix
from setconv.report.evaluation import Codes, Evaluation
from setconv.report.explaining import ask, explain_features, explain_words
from setconv.report.highlights import Weight, feature_values, strongest_features, strongest_words
from setconv.report.mistakes import Shown, show
from setconv.report.similarity import Compared
from setconv.report.sources import Sources

_CLASSES = 6  # in detail
_NEAREST = 5
_LOOKED_AT = 60  # nearest rows, from which those shown and explained are taken
_TEXTS = 16  # whose words are left out in turn, over all classes
_WORDS = 24  # in the longest text for which that is done word by word
_ROWS = 20  # whose features are, for a class
_LISTED = 10
_VALUES = 4  # features of a row


@dataclass(frozen=True)
class Meaning:
    """What a representative stands for.

    Attributes
    ----------
    class_number : int
    nearest : list of Shown
    n_looked_at, n_of_class : int
        The nearest rows looked at, and how many of them are of the class.
    weights : list of Weight
        The words or features that add most to the score of the class in its rows nearby.
    n_explained : int
        Rows that the weights come from.
    """

    class_number: int
    nearest: list[Shown]
    n_looked_at: int
    n_of_class: int
    weights: list[Weight]
    n_explained: int


def explain_representatives(
    model: Any, evaluation: Evaluation, sources: Sources, compared: Compared
) -> list[Meaning]:
    """Return what the representatives of the rarest classes stand for."""
    classes = evaluation.minority[:_CLASSES]
    n_texts = max(4, _TEXTS // len(classes))
    meanings = []
    for c in classes:
        near = np.argsort(-compared.similarities[:, c], kind="stable")[:_LOOKED_AT]
        of_class = near[compared.codes[near] == c]
        weights, n_explained = _weights(model, evaluation, c, of_class, sources, compared, n_texts)
        meanings.append(
            Meaning(
                class_number=c,
                nearest=[
                    _show(evaluation, sources, compared, i, c, weights)
                    for i in _different(near, compared)
                ],
                n_looked_at=len(near),
                n_of_class=len(of_class),
                weights=weights,
                n_explained=n_explained,
            )
        )
    return meanings


def _show(
    evaluation: Evaluation,
    sources: Sources,
    compared: Compared,
    i: int,
    c: int,
    weights: list[Weight],
) -> Shown:
    """Return a row with its text, or else with the features that count most for the class."""
    row = int(compared.rows[i])
    shown = show(compared.source, evaluation, row, compared.similarities[i, c])
    columns = [one.column for one in weights[:_VALUES] if one.column is not None]
    if not columns or sources.feature_names is None:
        return shown
    values = to_matrix(compared.source.take(np.array([row])))[0]
    return replace(shown, text=feature_values(sources.feature_names, values, columns))


def _different(near: Codes, compared: Compared) -> list[int]:
    """Return the first of the nearest rows of which no two have the same text."""
    texts = compared.source.texts
    if texts is None:
        return [int(i) for i in near[:_NEAREST]]
    seen: dict[str, int] = {}
    for i in near.tolist():
        seen.setdefault(texts[compared.rows[i]].strip().lower(), i)
    return list(seen.values())[:_NEAREST]


def _weights(
    model: Any,
    evaluation: Evaluation,
    c: int,
    of_class: Codes,
    sources: Sources,
    compared: Compared,
    n_texts: int,
) -> tuple[list[Weight], int]:
    texts = compared.source.texts
    by_words = texts is not None and sources.reads_texts
    if by_words:
        chosen = _short(of_class, compared)[:n_texts]
    else:
        chosen = of_class[: sources.explainable(_ROWS)]
    if not len(chosen) or not (by_words or sources.background is not None):
        return [], 0
    places = None if compared.places is None else compared.places[chosen]
    X = compared.source.take(compared.rows[chosen])
    question = ask(evaluation, X, np.full(len(chosen), c), places)
    if by_words:
        return strongest_words(explain_words(model, question, _WORDS), _LISTED), len(chosen)
    assert sources.feature_names is not None
    assert sources.background is not None
    values = explain_features(model, question, sources)
    weights = strongest_features(
        sources.feature_names, values, to_matrix(X), sources.background, _LISTED
    )
    return weights, len(chosen)


def _short(of_class: Codes, compared: Compared) -> Codes:
    """Return rows of different texts, if there are any then short ones: every word is tried."""
    texts = compared.source.texts
    assert texts is not None
    seen: dict[str, int] = {}
    for i in of_class.tolist():
        seen.setdefault(texts[compared.rows[i]], i)
    short = [i for text, i in seen.items() if len(text.split(maxsplit=_WORDS)) <= _WORDS]
    return np.array(short or list(seen.values()), dtype=np.int64)
