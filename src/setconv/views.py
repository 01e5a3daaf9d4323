"""Three ways to look at a column: standardised, by its quantiles, cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from setconv.errors import DataError
from setconv.rows import Matrix, row_slices

Floats = NDArray[np.float64]
_CHUNK = 4096  # rows at a time, so that no float64 copy of all rows is made
_KNOTS = 500  # points that a column's distribution is kept at
_PIECES = 8
_LEAST_RANK = 1e-12  # a weight may be too small to show in a sum, and rank 1 is at infinity


@dataclass(frozen=True)
class Standard:
    """Centre, scale and clip the columns.

    Attributes
    ----------
    mean, scale : float64 arrays of shape (n_features,)
    clip : float or None
        Bound on the absolute scaled value.
    """

    kind: ClassVar[str] = "standard"
    mean: Floats
    scale: Floats
    clip: float | None = None

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.mean)

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the scaled rows, float32 if the rows are."""
        # Rows that are float32 already stay so: half the memory traffic, and the network is too.
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        scaled = (rows - self.mean.astype(dtype)) / self.scale.astype(dtype)
        if self.clip is not None:
            np.clip(scaled, -self.clip, self.clip, out=scaled)
        return np.asarray(scaled)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a model file keeps."""
        return {"mean": self.mean, "scale": self.scale}


@dataclass(frozen=True)
class Normal:
    """Map each column to a normal distribution by its quantiles, linear in between.

    Attributes
    ----------
    knots, values : float64 arrays
        Where the map of each column bends and what it is there, all columns one after the other.
    starts : int64 array of shape (n_features + 1,)
        Where each column's part begins, and the end.
    """

    kind: ClassVar[str] = "normal"
    knots: Floats
    values: Floats
    starts: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.starts) - 1

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the mapped rows as float32."""
        mapped = np.empty(rows.shape, dtype=np.float32)
        for column, (start, end) in enumerate(pairwise(self.starts)):
            mapped[:, column] = np.interp(
                rows[:, column], self.knots[start:end], self.values[start:end]
            )
        return mapped

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a model file keeps."""
        return {"knots": self.knots, "values": self.values, "starts": self.starts}


@dataclass(frozen=True)
class Pieces:
    """Cut each column at its quantiles; each piece is an input that fills from 0 to 1.

    The piecewise-linear encoding of Gorishniy et al., "On Embeddings for Numerical Features in
    Tabular Deep Learning", 2022, standardised.

    Attributes
    ----------
    low, high : float64 arrays of shape (width,)
        The ends of each piece.
    column : int64 array of shape (width,)
        The column that it is a piece of.
    standard : Standard
    """

    kind: ClassVar[str] = "pieces"
    low: Floats
    high: Floats
    column: NDArray[np.int64]
    standard: Standard

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.low)

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the inputs."""
        return self.standard(_fill(rows, self.low, self.high, self.column))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a model file keeps."""
        ends = {"low": self.low, "high": self.high, "column": self.column}
        return {**ends, **self.standard.arrays()}


View = Standard | Normal | Pieces


def _fill(
    rows: NDArray[Any], low: Floats, high: Floats, column: NDArray[np.int64]
) -> NDArray[np.float32]:
    filled = (rows[:, column] - low) / (high - low)
    return np.asarray(np.clip(filled, 0, 1, out=filled), dtype=np.float32)


def fit_standard(rows: Matrix, weights: NDArray[Any], clip: float | None) -> Standard:
    """Learn means and standard deviations; a constant column is centred and left at scale 1."""
    shares = weights / weights.sum()
    mean = np.zeros(rows.shape[1])
    variance = np.zeros(rows.shape[1])
    seen = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in row_slices(rows.shape[0], _CHUNK):
            # One pass: what a part adds to the squares around a mean that moves (Chan et al.).
            values, share = rows[part].astype(np.float64), shares[part]
            mass = share.sum()
            centre = share @ values / mass
            apart = centre - mean
            variance += share @ np.square(values - centre)
            variance += np.square(apart) * (mass * seen / (mass + seen))
            mean += apart * (mass / (mass + seen))
            seen += mass
    if not np.isfinite(variance).all():
        column = int(np.flatnonzero(~np.isfinite(variance))[0])
        raise DataError(f"Column {column} of X has values too large to standardise: rescale it.")
    # A constant column has a variance of rounding errors only (scikit-learn's bound).
    error = rows.shape[0] * np.finfo(np.float64).eps
    constant = variance <= error * variance + (error * mean) ** 2
    return Standard(mean, np.where(constant, 1.0, np.sqrt(variance)), clip)


def fit_normal(rows: NDArray[Any], weights: NDArray[Any]) -> Normal:
    """Learn the quantiles of each column; equal values share the middle of their ranks."""
    shares = weights / weights.sum()
    knots, values = [], []
    for column in rows.T:
        found, place = np.unique(np.asarray(column, dtype=np.float64), return_inverse=True)
        mass = np.bincount(place, weights=shares)
        rank = np.cumsum(mass) - mass / 2
        normal = ndtri(rank.clip(_LEAST_RANK, 1 - _LEAST_RANK))
        centre = mass @ normal
        spread = np.sqrt(mass @ np.square(normal - centre))
        normal = (normal - centre) / spread if len(found) > 1 else np.zeros(1)
        kept = np.arange(len(found))
        if len(found) > _KNOTS:
            # Even steps of rank, and both ends.
            kept = np.unique(np.searchsorted(rank, np.linspace(rank[0], rank[-1], _KNOTS)))
        knots.append(found[kept])
        values.append(normal[kept])
    starts = np.cumsum([0, *map(len, knots)])
    return Normal(np.concatenate(knots), np.concatenate(values), np.asarray(starts, np.int64))


def _quantiles(column: Floats, weights: NDArray[Any]) -> Floats:
    """Return the ends of eight parts of equal weight; of equal weights, as numpy's quantiles."""
    steps = np.linspace(0, 1, _PIECES + 1)
    if (weights == weights[0]).all():
        return np.asarray(np.quantile(column, steps))
    order = np.argsort(column, kind="stable")
    rank = np.cumsum(weights[order]) - weights[order] / 2
    rank = (rank - rank[0]) / max(rank[-1] - rank[0], np.finfo(np.float64).tiny)
    return np.asarray(np.interp(steps, rank, column[order]))


def fit_pieces(rows: NDArray[Any], weights: NDArray[Any], clip: float | None) -> Pieces:
    """Learn the pieces of each column, at most eight of about equally many rows.

    A constant column keeps one piece that no row enters.
    """
    low, high, columns = [], [], []
    for number, column in enumerate(rows.T):
        edges = np.unique(_quantiles(column.astype(np.float64), weights))
        with np.errstate(over="ignore"):
            if not np.isfinite(edges).all() or np.isinf(edges[-1] - edges[0]):
                raise DataError(
                    f"Column {number} of X has values too large to cut into pieces: rescale it."
                )
        if len(edges) == 1:
            edges = np.array([edges[0], np.inf])
        low.append(edges[:-1])
        high.append(edges[1:])
        columns.append(np.full(len(edges) - 1, number))
    ends = np.concatenate(low), np.concatenate(high), np.concatenate(columns).astype(np.int64)
    return Pieces(*ends, fit_standard(_fill(rows, *ends), weights, clip))
