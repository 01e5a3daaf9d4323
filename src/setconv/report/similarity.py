"""How alike rows are, and how like the representatives: cosines of the members that may speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.explain.rows import count_rows
from setconv.explain.space import representative_directions, unit_blocks, unit_vectors
from setconv.report.evaluation import Codes, Evaluation, Flags, Floats
from setconv.report.sampling import sample_rows
from setconv.report.sources import LOOKED_AT, Source, Sources


@dataclass(frozen=True)
class Compared:
    """Rows and how similar they are to the representative of each class.

    Attributes
    ----------
    source : Source
        Where the rows are.
    rows : int64 array of shape (n_compared,)
        Which of its rows they are.
    similarities : float64 array of shape (n_compared, n_classes)
    places : int64 array of shape (n_compared,) or None
        Where they stand among the rows that are judged; None for other rows.
    """

    source: Source
    rows: Codes
    similarities: Floats
    places: Codes | None

    @property
    def codes(self) -> Codes:
        """The true classes."""
        return self.source.codes[self.rows]


def compare_judged(model: Any, evaluation: Evaluation, sources: Sources, seed: int) -> Compared:
    """Compare a sample of the judged rows with the representatives."""
    places = sample_rows(evaluation.truth, LOOKED_AT, seed)
    rows = evaluation.rows[places]
    found = _to_classes(model, sources.here.take(rows), evaluation.members_of(places))
    return Compared(sources.here, rows, found, places)


def compare_training(model: Any, sources: Sources) -> Compared:
    """Compare the training rows that were given with the representatives."""
    rows = sources.searched
    return Compared(sources.there, rows, _to_classes(model, sources.there.take(rows), None), None)


def nearest_other(
    model: Any, X: Any, members: Flags | None, searched: Any, barred: Flags
) -> tuple[Codes, Floats]:
    """Return for each row the most similar of others, -1 if all are barred, and the similarity.

    Parameters
    ----------
    model : fitted classifier
    X : rows
    members : bool array of shape (n_members, n_rows) or None
        The members that compare a row; None: all.
    searched : rows
    barred : bool array of shape (n_rows, n_searched)
        Which are not to be found.
    """
    queries = _seen_by(model, unit_vectors(model, X).astype(np.float64), members)
    found = np.empty((count_rows(X), count_rows(searched)))
    for part, vectors in unit_blocks(model, searched):
        found[:, part] = queries @ vectors.T
    found[barred] = -np.inf
    best = np.argmax(found, axis=1)
    similarities = found[np.arange(len(found)), best]
    return np.where(np.isfinite(similarities), best, -1), similarities


def _to_classes(model: Any, X: Any, members: Flags | None) -> Floats:
    """Return the mean cosine of rows with each representative, in the head of its class."""
    directions = representative_directions(model).astype(np.float64)
    parts = [
        _seen_by(model, vectors, None if members is None else members[:, part]) @ directions.T
        for part, vectors in unit_blocks(model, X)
    ]
    return np.concatenate(parts)


def _seen_by(model: Any, vectors: Any, members: Flags | None) -> Floats:
    """Return vectors whose dot products are mean cosines over the members that count for a row."""
    if members is None:
        return np.asarray(vectors, dtype=np.float64)
    counted = members / members.mean(axis=0)
    n_members = len(model.representatives_)
    by_member = vectors.reshape(len(vectors), n_members, -1) * counted.T[:, :, None]
    return np.asarray(by_member.reshape(len(vectors), -1), dtype=np.float64)
