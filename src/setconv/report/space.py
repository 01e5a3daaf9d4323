"""The learned space: how similar rows are to the representatives of the classes, and a map of it.

Rows are the unit vectors of `setconv.explain`, whose dot product is the mean cosine over members
and heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from setconv.explain import Codes, Flags, Floats, unit_blocks, unit_parts
from setconv.report.measure import Evaluation
from setconv.sampling import draw_by_class


def representatives(model: Any) -> tuple[Floats, Floats]:
    """Return a point and a direction for each class, two arrays of shape (n_classes, n_embedding).

    At its point a class is on its own side in its own head and on that of the rest in all others;
    of two classes, which have one head, each is on its side. A row times a direction is the mean
    cosine, over members, of the row and the representative of the class, in the head of that class
    alone: what prediction compares.
    """
    width, n_classes = np.shape(model.representatives_)[-1], len(model.classes_)
    n_heads = 1 if n_classes == 2 else n_classes
    sides = np.asarray(model.representatives_, dtype=np.float32).reshape(-1, n_heads, 2, width)
    own = np.arange(2)[:, None] if n_heads == 1 else np.eye(n_classes, dtype=np.int64)
    chosen = sides[:, np.arange(n_heads), own].swapaxes(0, 1)
    points = unit_parts(chosen.reshape(n_classes, -1), width)
    heads = np.ones((2, 1)) if n_heads == 1 else n_heads * np.eye(n_heads)
    directions = points.reshape(chosen.shape) * heads[:, None, :, None].astype(np.float32)
    return points.astype(np.float64), directions.reshape(points.shape).astype(np.float64)


def to_representatives(model: Any, X: Any, members: Flags | None) -> Floats:
    """Return the similarity of rows to each representative, (n_rows, n_classes).

    ``members``, of shape (n_members, n_rows), are those that may speak of a row; None: all.
    """
    model = with_all_members(model, members)
    _, directions = representatives(model)
    parts = [
        seen_by(vectors, None if members is None else members[:, part]) @ directions.T
        for part, vectors in unit_blocks(model, X)
    ]
    return np.concatenate(parts)


def with_all_members(model: Any, members: Flags | None) -> Any:
    """Return the model with the spaces of all members, if `members` are to speak of a row.

    Those that judge forward in time do not speak otherwise.
    """
    return model if members is None else model._only(np.ones(len(members), dtype=np.bool_))


def seen_by(vectors: Any, members: Flags | None) -> Floats:
    """Return vectors whose dot products are mean cosines over the members that may speak."""
    wide = np.asarray(vectors, dtype=np.float64)
    if members is None:
        return wide
    counted = (members / members.mean(axis=0)).T
    by_member = wide.reshape(*counted.shape, -1) * counted[:, :, None]
    return np.asarray(by_member.reshape(wide.shape))


def sample_rows(codes: Codes, limit: int, seed: int) -> Codes:
    """Return at most about ``limit`` row numbers, sorted; all rows if there are no more.

    Classes come in their shares, but the rare ones have up to half of an equal share.
    """
    if len(codes) <= limit:
        return np.arange(len(codes))
    counts = np.bincount(codes)
    floor = max(1, limit // (2 * len(counts)))
    wanted = np.minimum(counts, np.maximum(floor, counts * limit // len(codes)))
    largest = int(np.argmax(counts))
    wanted[largest] = max(floor, limit - wanted.sum() + wanted[largest])
    return draw_by_class(codes, wanted, np.random.default_rng(seed))


@dataclass(frozen=True)
class LearnedMap:
    """Rows and representatives in two dimensions.

    Attributes
    ----------
    points : float64 array of shape (n_shown, 2)
        Of two classes: the similarity to the main one and to the other.
    classes : int64 array of shape (n_shown,)
        The true classes of the points.
    representatives : float64 array of shape (n_classes, 2)
    explained : float or None
        Of more classes: the share of the variance that the two dimensions show.
    """

    points: Floats
    classes: Codes
    representatives: Floats
    explained: float | None


_MAP_ROWS = 1500


def draw_map(
    model: Any, evaluation: Evaluation, similarities: Floats, codes: Codes, seed: int
) -> LearnedMap:
    """Lay a sample of rows, by their similarities and classes, and the representatives on paper.

    Two classes have two similarities; of more, the first two principal components are shown.
    """
    shown = sample_rows(codes, _MAP_ROWS, seed)
    rows, classes = similarities[shown], codes[shown]
    points, directions = representatives(model)
    stars = points @ directions.T
    if evaluation.binary:
        axes = [evaluation.main, 1 - evaluation.main]
        return LearnedMap(rows[:, axes], classes, stars[:, axes], None)
    pca = PCA(2, svd_solver="full")
    flat = pca.fit_transform(np.vstack([rows, stars]))
    explained = float(np.nan_to_num(pca.explained_variance_ratio_).sum())
    return LearnedMap(flat[: len(rows)], classes, flat[len(rows) :], explained)
