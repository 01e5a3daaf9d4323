"""The learned space: rows and representatives as vectors whose dot products are mean cosines.

`transform` lays the embeddings of all heads of all members side by side. Each head of each member
compares by the cosine on its own part, so every part is brought to unit length here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import ParameterError
from setconv.explain.rows import blocks, count_rows, take_rows
from setconv.explain.scoring import Model

Vectors = NDArray[np.float32]

_BLOCK = 2048  # rows that are embedded at a time


def part_width(model: Model) -> int:
    """Return the number of columns of `transform` that belong to one head of one member."""
    if not hasattr(model, "representatives_") or not hasattr(model, "transform"):
        raise ParameterError(
            f"model: a {type(model).__name__} without transform and representatives_ has no "
            "learned space; pass a fitted SetConvClassifier or SetConvTextClassifier."
        )
    return int(np.shape(model.representatives_)[-1])


def unit_vectors(model: Model, X: Any) -> Vectors:
    """Return rows so that a dot product is the mean cosine over members and heads."""
    width = part_width(model)
    return _unit_parts(np.asarray(model.transform(X), dtype=np.float32), width)


def unit_blocks(model: Model, X: Any) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """Yield row numbers and their `unit_vectors`, a block at a time."""
    for part in blocks(count_rows(X), _BLOCK):
        yield part, unit_vectors(model, take_rows(X, part))


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
    width = part_width(model)
    n_classes = len(model.classes_)
    heads = 1 if n_classes == 2 else n_classes
    return np.asarray(model.representatives_, dtype=np.float32).reshape(-1, heads, 2, width)


def _unit_parts(vectors: Vectors, width: int) -> Vectors:
    parts = vectors.reshape(len(vectors), vectors.shape[1] // width, width)
    length = np.linalg.norm(parts, axis=-1, keepdims=True)
    unit = parts / np.where(length > 0, length, 1) / np.sqrt(np.float32(parts.shape[1]))
    return np.asarray(unit.reshape(vectors.shape), dtype=np.float32)
