"""Rows explained by occlusion, each by the members that may speak of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.explain.features import feature_contributions
from setconv.explain.rows import count_rows, take_rows
from setconv.explain.scoring import plain_classes
from setconv.explain.words import WordContributions, contributions_of_texts
from setconv.report.evaluation import Codes, Evaluation, Flags, Floats
from setconv.report.sources import Sources


@dataclass(frozen=True)
class Question:
    """Rows, and the class whose score is to be explained for each.

    Attributes
    ----------
    X : rows
    classes : int64 array of shape (n_rows,)
    scores : float64 array of shape (n_rows,) or None
        Of the class, where they are known: then only copies of the row are scored.
    members : bool array of shape (n_members, n_rows) or None
        Those that are asked; None: all.
    """

    X: Any
    classes: Codes
    scores: Floats | None
    members: Flags | None


def ask(evaluation: Evaluation, X: Any, classes: Codes, places: Codes | None) -> Question:
    """Return the question for rows that are judged, in these places, or for others (None)."""
    if places is None:
        return Question(X, classes, None, None)
    scores = evaluation.scores[places, classes]
    return Question(X, classes, scores, evaluation.members_of(places))


def explain_features(model: Any, question: Question, sources: Sources) -> Floats:
    """Return what each feature adds to the score, (n_rows, n_features)."""
    assert sources.background is not None
    values = np.empty((count_rows(question.X), len(sources.background)))
    for part, label, here in _parts(model, question):
        values[here] = feature_contributions(
            part,
            take_rows(question.X, here),
            background=sources.background,
            class_=label,
            feature_names=sources.feature_names,
            scores=None if question.scores is None else question.scores[here],
        ).values
    return values


def explain_words(model: Any, question: Question, max_pieces: int) -> list[WordContributions]:
    """Return what the words of each text add to the score."""
    found: dict[int, WordContributions] = {}
    for part, label, here in _parts(model, question):
        of_part = contributions_of_texts(
            part,
            [question.X[place] for place in here.tolist()],
            label,
            max_pieces=max_pieces,
            scores=None if question.scores is None else question.scores[here],
        )
        found.update(zip(here.tolist(), of_part, strict=True))
    return [found[place] for place in range(len(found))]


def _parts(model: Any, question: Question) -> Iterator[tuple[Any, Any, Codes]]:
    """Yield who is asked, about which label, for which rows."""
    labels = plain_classes(model)
    asked = question.classes[:, None]
    if question.members is not None:
        asked = np.hstack([asked, question.members.T])
    kinds, number = np.unique(asked, axis=0, return_inverse=True)
    for kind, of in enumerate(kinds):
        part = model if question.members is None else model._only(of[1:].astype(np.bool_))
        yield part, labels[of[0]], np.flatnonzero(number.ravel() == kind)
