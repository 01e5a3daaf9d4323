"""What the representative of a class stands for: the rows next to it, the words that count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setconv.explain.features import feature_contributions
from setconv.explain.nearest import nearest_to_representatives
from setconv.explain.rows import to_matrix
from setconv.explain.words import contributions_of_texts
from setconv.report.evaluation import Codes, Evaluation
from setconv.report.highlights import Weight, feature_values, strongest_features, strongest_words
from setconv.report.mistakes import Shown, show
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


def explain_representatives(model: Any, evaluation: Evaluation, sources: Sources) -> list[Meaning]:
    """Return what the representatives of the rarest classes stand for."""
    searched = sources.searched
    found = nearest_to_representatives(model, searched.X, _LOOKED_AT)
    classes = evaluation.minority[:_CLASSES]
    n_texts = max(4, _TEXTS // len(classes))
    meanings = []
    for c in classes:
        near, similarities = found.indices[c], found.similarities[c]
        shown = _different(near, sources)
        of_class = near[searched.codes[near] == c]
        weights, n_explained = _weights(model, evaluation.labels[c], of_class, sources, n_texts)
        meanings.append(
            Meaning(
                class_number=c,
                nearest=[
                    _show(evaluation, sources, int(near[i]), similarities[i], weights)
                    for i in shown
                ],
                n_looked_at=len(near),
                n_of_class=len(of_class),
                weights=weights,
                n_explained=n_explained,
            )
        )
    return meanings


def _show(
    evaluation: Evaluation, sources: Sources, row: int, similarity: float, weights: list[Weight]
) -> Shown:
    """Return a row with its text, or else with the features that count most for the class."""
    shown = show(sources.searched, evaluation, row, similarity)
    columns = [one.column for one in weights[:_VALUES] if one.column is not None]
    if not columns or sources.feature_names is None:
        return shown
    values = to_matrix(sources.searched.take(np.array([row])))[0]
    return replace(shown, text=feature_values(sources.feature_names, values, columns))


def _different(near: Codes, sources: Sources) -> list[int]:
    """Return the first places of which no two have the same text."""
    texts = sources.searched.texts
    if texts is None:
        return list(range(min(_NEAREST, len(near))))
    seen: dict[str, int] = {}
    for place, row in enumerate(near.tolist()):
        seen.setdefault(texts[row].strip().lower(), place)
    return sorted(seen.values())[:_NEAREST]


def _short(texts: list[str]) -> list[str]:
    """Return the texts that are short enough to try every word, if there are any."""
    return [text for text in texts if len(text.split(maxsplit=_WORDS)) <= _WORDS] or texts


def _weights(
    model: Any, label: Any, rows: Codes, sources: Sources, n_texts: int
) -> tuple[list[Weight], int]:
    searched = sources.searched
    if searched.texts is not None and sources.reads_texts:
        texts = _short(list(dict.fromkeys(searched.texts[row] for row in rows.tolist())))[:n_texts]
        found = contributions_of_texts(model, texts, label, max_pieces=_WORDS)
        return strongest_words(found, _LISTED), len(found)
    explained = rows[: sources.explainable(_ROWS)]
    if not len(explained) or sources.background is None:
        return [], 0
    X = searched.take(explained)
    of = feature_contributions(
        model,
        X,
        background=sources.background,
        class_=label,
        feature_names=sources.feature_names,
    )
    weights = strongest_features(of.names, of.values, to_matrix(X), sources.background, _LISTED)
    return weights, len(explained)
