"""What the kernel looks at: the anchor of each head, from the smaller of its two sides.

The paper leaves the anchor to the user and takes the mean of the minority class; for a large
minority it suggests a random subset (section 3.2). K-means centroids are several anchors, and the
embeddings for each are laid side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from setconv.errors import ParameterError
from setconv.rows import Matrix, weighted_mean

__all__ = ["AnchorRule", "KMeans", "Mean", "Subset", "compute_anchors"]

Array = NDArray[Any]


class AnchorRule(Protocol):
    """How to make anchors from the rows of the smaller side."""

    def pick(self, rows: Array, weights: Array, rng: np.random.Generator) -> Array:
        """Return anchors of shape (n_anchors, n_features)."""
        ...


@dataclass(frozen=True)
class Mean:
    """The (weighted) mean of all rows: the paper's choice; needs no random numbers."""

    def pick(self, rows: Matrix, weights: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return the mean, shape (1, n_features)."""
        return weighted_mean(rows, weights)[None]


@dataclass(frozen=True)
class Subset:
    """The mean of a random subset of the rows: the paper's footnote for a large minority.

    Parameters
    ----------
    size : int, default=100
        Rows in the subset; all rows where there are fewer.
    """

    size: int = 100

    def __post_init__(self) -> None:
        """Refuse a subset of no rows."""
        if self.size < 1:
            raise ParameterError(f"anchor: Subset(size={self.size!r}) needs at least 1 row.")

    def pick(self, rows: Array, weights: Array, rng: np.random.Generator) -> Array:
        """Return the mean of the subset, shape (1, n_features)."""
        chosen = rng.permutation(rows.shape[0])[: self.size]
        return weighted_mean(rows[chosen], weights[chosen])[None]


@dataclass(frozen=True)
class KMeans:
    """Several anchors: the centroids of the rows.

    Parameters
    ----------
    k : int, default=4
        Number of centroids; as many as there are distinct rows where there are fewer.
    """

    k: int = 4

    def __post_init__(self) -> None:
        """Refuse no centroids."""
        if self.k < 1:
            raise ParameterError(f"anchor: KMeans(k={self.k!r}) needs at least 1 centroid.")

    def pick(self, rows: Array, weights: Array, rng: np.random.Generator) -> Array:
        """Return the centroids, shape (k, n_features)."""
        from sklearn.cluster import KMeans as Clusters  # half of what importing setconv would take

        k = min(self.k, rows.shape[0] if issparse(rows) else len(np.unique(rows, axis=0)))
        model = Clusters(k, n_init=3, random_state=int(rng.integers(2**31)))
        centers: Array = model.fit(rows, sample_weight=weights).cluster_centers_
        return centers


_RULES: dict[str, AnchorRule] = {"mean": Mean(), "subset": Subset(), "kmeans": KMeans()}


Anchor = str | AnchorRule | Callable[[Array], ArrayLike] | ArrayLike


def compute_anchors(
    anchor: Anchor,
    rows: Matrix,
    sides: NDArray[np.int8],
    weights: Array,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Compute the anchors of every head.

    Parameters
    ----------
    anchor : {"mean", "subset", "kmeans"}, rule, callable or array
        A rule of this module; a function from the rows of the smaller side to one anchor (d,) or
        several (k, d); or the anchors themselves: (d,) or (k, d) for all heads, or (heads, k, d).
    rows : array, csr matrix or DiskRows of shape (n_rows, d)
    sides : int8 array of shape (heads, n_rows)
        Side of each row, `setconv.heads.ABSENT` for one that does not count. The smaller side of
        each head is the one the anchor is made from, and side 1 where both are equal.
    weights : array of shape (n_rows,)
        Weights of the rows.
    rng : numpy.random.Generator

    Returns
    -------
    float64 array of shape (heads, n_anchors, d)
        Where heads came to different numbers of anchors, the fewer are repeated in turn.
    """
    n_heads, width = len(sides), rows.shape[1]
    make = _maker(anchor, rng)
    if make is None:
        given = _as_anchors(anchor, width, "anchor")
        if given.shape[0] not in (1, n_heads):
            raise ParameterError(
                f"anchor has {given.shape[0]} heads, but the data has {n_heads}: give shape "
                f"({n_heads}, k, {width}), or (k, {width}) for all heads."
            )
        return np.broadcast_to(given, (n_heads, *given.shape[1:])).copy()
    made = []
    for side in sides:
        sizes = int((side == 0).sum()), int((side == 1).sum())
        smaller = side == (1 if sizes[1] <= sizes[0] else 0)
        picked = make(rows, smaller, weights)
        one = _as_anchors(picked, width, "the result of anchor(rows)")
        if len(one) != 1:
            raise ParameterError(
                f"the result of anchor(rows) has shape {one.shape}: it is called for each head, so "
                f"give ({width},) or (k, {width})."
            )
        made.append(one[0])
    count = max(len(one) for one in made)
    return np.stack([one[np.arange(count) % len(one)] for one in made])


def _maker(
    anchor: Any, rng: np.random.Generator
) -> Callable[[Matrix, NDArray[np.bool_], Array], ArrayLike] | None:
    """Return the function from rows, marks and weights to anchors; None for an array."""
    if isinstance(anchor, str):
        if anchor not in _RULES:
            raise ParameterError(
                f"anchor={anchor!r}: choose one of {', '.join(map(repr, _RULES))}, "
                "a rule of setconv.anchors, a callable or an array."
            )
        anchor = _RULES[anchor]
    if isinstance(anchor, Mean):
        # Row by row as they lie: no copy of the marked ones is made.
        return lambda rows, marked, weights: weighted_mean(rows, np.where(marked, weights, 0))
    if hasattr(anchor, "pick"):
        return lambda rows, marked, weights: anchor.pick(
            rows[np.flatnonzero(marked)], weights[marked], rng
        )
    if callable(anchor):
        return lambda rows, marked, _: anchor(rows[np.flatnonzero(marked)])
    return None


def _as_anchors(values: Any, width: int, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{name} must be numbers: {error}") from error
    if array.ndim not in (1, 2, 3) or array.shape[-1] != width or array.size == 0:
        raise ParameterError(
            f"{name} has shape {array.shape}: with {width} features give ({width},), "
            f"(k, {width}) or (heads, k, {width})."
        )
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} contains NaN or infinity: give finite numbers.")
    return array.reshape((1,) * (3 - array.ndim) + array.shape)
