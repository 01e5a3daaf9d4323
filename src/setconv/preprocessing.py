"""Rows as the network sees them.

`prepare_rows` comes first: it makes dense rows of sparse ones, by a projection where there are many
columns. A `Scaler` follows, with one or more views of the columns: standardised, mapped to a normal
distribution, or cut into pieces. Members take the views in turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.utils import gen_batches

from setconv.data import BlockSums, Features, Part, Rows, StoredRows, row_blocks
from setconv.errors import DataError, ParameterError

Floats: TypeAlias = NDArray[np.float64]
SparseFront: TypeAlias = "SparseProjection | Densify"
View: TypeAlias = "Standard | Normal | Pieces"
Scaling = Literal["auto", "standard", "normal", "pieces"]
# Up to so many columns each is taken to mean something by itself, so that quantiles and pieces of
# it help and its loss hurts; the columns of an embedding mean something together.
FEW_COLUMNS = 100
NARROW = 512  # columns up to which a dense row is no larger than what the network makes of it
CLIP = 5.0  # bound on the absolute value of a standardised feature
_CHUNK = 4096  # rows at a time, so that no float64 copy of all rows is made
_MOST_VALUES = 20_000_000  # three views of a larger table would take too much memory


@dataclass(frozen=True)
class PreparedRows:
    """Rows as scaler and network see them, and how they came to be so.

    Attributes
    ----------
    features : Matrix
        Sparse still where all of many columns are looked at: they are made dense by blocks.
    front : SparseProjection, Densify or None
        What makes dense rows of sparse ones.
    """

    features: Features
    front: SparseFront | None = None

    @property
    def has_lines(self) -> bool:
        """Whether the linear part is to see the sparse columns."""
        return self.front is not None and self.front.n_features > NARROW

    @property
    def kind_of_width(self) -> int:
        """The number of columns, for choices that depend on what kind of columns they are."""
        width = int(self.features.shape[1])
        return max(width, FEW_COLUMNS + 1) if self.has_lines else width

    def choose_views(self, scaling: Any, n_members: int) -> tuple[str, ...]:
        """Return the names of the views; "auto" follows the shape of the data.

        All three for tables of up to 100 columns, the standardised one alone for wider data, such
        as embeddings, and for rows on disk. There are never more views than members.
        """
        if scaling is None:
            return ()
        known, stored = tuple(VIEWS), isinstance(self.features, StoredRows)
        if isinstance(scaling, str) and scaling == "auto":
            few = self.kind_of_width <= FEW_COLUMNS
            small = few and self.features.shape[0] * self.kind_of_width <= _MOST_VALUES
            return known[: n_members if small and not stored else 1]
        names = (scaling,) if isinstance(scaling, str) else scaling
        if not isinstance(names, Sequence) or not names or any(name not in known for name in names):
            raise ParameterError(
                f"scaling={scaling!r}: choose "
                f'"auto", {", ".join(map(repr, known))}, a list of the last three, or None.',
                parameter="scaling",
            )
        if stored and set(names) != {"standard"}:
            raise ParameterError(
                f"scaling={scaling!r} sorts whole columns, which rows on disk do not allow: choose "
                '"standard", "auto" or None.',
                parameter="scaling",
            )
        return tuple(names)[:n_members]


def prepare_rows(scaling: Any, train: Rows, seed: int) -> PreparedRows:
    """Project sparse rows of many columns, unless they are to stay as they are (no scaling)."""
    rows = train.features
    if not sparse.issparse(rows):
        return PreparedRows(rows)
    if scaling is not None and rows.shape[1] > NARROW:
        projection = SparseProjection.fit(rows, train.weights_once, seed)
        return PreparedRows(projection(rows), projection)
    front = Densify(int(rows.shape[1]))
    if front.width <= NARROW:
        return PreparedRows(front(rows), front)
    warnings.warn(
        f"With scaling=None the network looks at all {front.width} columns of the sparse rows, "
        "made dense block by block, which costs time and weights as so many dense columns do: "
        'scaling="auto" projects them to a few.',
        UserWarning,
        stacklevel=2,
    )
    return PreparedRows(rows, front)


@dataclass(frozen=True)
class Densify(Part):
    """Rows are given their zeros, a batch at a time."""

    kind: ClassVar[str] = "dense"
    n_features: int

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return self.n_features

    def __call__(self, rows: sparse.csr_matrix) -> NDArray[Any]:
        """Return dense rows."""
        return np.asarray(rows.toarray())

    def fits(self, n_features: int) -> bool:
        """Say whether it takes rows of so many columns."""
        return self.n_features == n_features


_ROWS = 20_480  # rows that the projection is learned from
_COLUMNS = 1 << 16  # columns that take part; the line sees all of them
_WIDTH = 128
_LEAST_WIDTH = 16
_FEWEST_ROWS_A_COLUMN = 4  # the last columns of many are noise that new rows do not share


@dataclass(frozen=True)
class SparseProjection(Part):
    """Coordinates of rows of unit length along orthogonal directions.

    Attributes
    ----------
    columns : int64 array of shape (n_kept,)
        The columns that take part.
    directions : float32 array of shape (n_kept, width)
    n_features : int
    """

    kind: ClassVar[str] = "projection"
    columns: NDArray[np.int64]
    directions: NDArray[np.float32]
    n_features: int

    @classmethod
    def fit(cls, rows: sparse.csr_matrix, weights: NDArray[Any], seed: int) -> Self:
        """Learn the projection from rows, or from a random part of them where there are many.

        It has 128 columns, or a quarter of the rows' number if that is less.

        Parameters
        ----------
        rows : csr matrix of shape (n_rows, n_features)
        weights : array of shape (n_rows,)
            Of the rows; only their ratios matter.
        seed : int
        """
        rng = np.random.default_rng(seed)
        n_rows, n_features = rows.shape
        width = min(_WIDTH, max(_LEAST_WIDTH, n_rows // _FEWEST_ROWS_A_COLUMN))
        if n_rows > _ROWS:
            some = np.sort(rng.choice(n_rows, _ROWS, replace=False))
            rows, weights = rows[some], weights[some]
        columns = np.arange(n_features)
        if n_features > _COLUMNS:
            heaviest = np.argsort(-_sums_of_squares(rows, rows.indices, n_features), kind="stable")
            columns = np.sort(heaviest[:_COLUMNS])
        kept = unit_rows(_keep(rows, columns))
        scaled = sparse.diags_array(np.sqrt(weights / weights.mean())) @ kept
        narrow = sparse.csr_matrix(scaled, dtype=np.float32)
        return cls(columns, leading_directions(narrow, min(width, *narrow.shape), rng), n_features)

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return int(self.directions.shape[1])

    def __call__(self, rows: sparse.csr_matrix) -> NDArray[np.float32]:
        """Return dense rows, float32 of shape (n_rows, width); each depends on its row alone."""
        projected = np.empty((rows.shape[0], self.width), dtype=np.float32)
        for part in gen_batches(rows.shape[0], _CHUNK):
            projected[part] = unit_rows(_keep(rows[part], self.columns)) @ self.directions
        return projected

    def fits(self, n_features: int) -> bool:
        """Say whether it takes rows of so many columns, and its parts go together."""
        inside = len(self.columns) and 0 <= self.columns.min() <= self.columns.max() < n_features
        shape = (len(self.columns), self.width)
        return bool(inside and self.directions.shape == shape and self.n_features == n_features)


FRONTS: dict[str, type[SparseFront]] = {front.kind: front for front in (Densify, SparseProjection)}


def _sums_of_squares(rows: sparse.csr_matrix, places: NDArray[Any], size: int) -> Floats:
    # In double precision: squares of large or tiny numbers leave the range of float32.
    squares = np.square(rows.data, dtype=np.float64)
    return np.asarray(np.bincount(places, squares, minlength=size), dtype=np.float64)


def _keep(rows: sparse.csr_matrix, columns: NDArray[np.int64]) -> sparse.csr_matrix:
    return rows if len(columns) == rows.shape[1] else rows[:, columns]


def unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return rows of length one; a row of zeros stays."""
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    squares = _sums_of_squares(rows, numbers, rows.shape[0])
    factors = 1 / np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled = (rows.data * factors[numbers]).astype(np.float32)
    return sparse.csr_matrix((scaled, rows.indices, rows.indptr), shape=rows.shape)


_SPARE = 10  # more vectors than are asked for: the last ones are found less well
_ITERATIONS = 3
_SMALLEST = 1e-6  # of the largest singular value; below it there is only rounding


def leading_directions(
    rows: sparse.csr_matrix, width: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return about the leading right singular vectors, found by subspace iteration.

    Vectors are made orthogonal as combinations of rows, of which there are few. Along the columns
    there are sparse products and one small dense one, so that a million columns cost little more
    than ten thousand with as many non-zeros.

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    width : int
    rng : numpy Generator

    Returns
    -------
    float32 array of shape (n_features, width)
        Orthonormal columns, those beyond the rank of the rows zero; the largest number of each is
        positive.
    """
    size = min(width + _SPARE, *rows.shape)
    basis = rows @ rng.standard_normal((rows.shape[1], size), dtype=np.float32)
    for _ in range(_ITERATIONS):
        basis = rows @ (rows.T @ _orthonormal(basis))
    narrow = np.asarray(rows.T @ _orthonormal(basis))
    squares, turns = np.linalg.eigh(narrow.T.astype(np.float64) @ narrow)
    squares, turns = squares[::-1][:width], turns[:, ::-1][:, :width]
    known = squares > _SMALLEST**2 * max(squares[0], np.finfo(np.float64).tiny)
    factors = np.where(known, 1 / np.sqrt(np.where(known, squares, 1)), 0)
    directions = narrow @ (turns * factors).astype(np.float32)
    largest = np.abs(directions).argmax(axis=0)
    return np.ascontiguousarray(directions * np.sign(directions[largest, np.arange(width)]))


def _orthonormal(vectors: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(np.linalg.qr(vectors)[0], dtype=np.float32)


@dataclass(frozen=True)
class Scaler:
    """Rows as the members see them; the identity without any view.

    Attributes
    ----------
    views : tuple of View
        Member ``m`` takes view ``m`` modulo their number.
    """

    views: tuple[View, ...] = ()

    def width(self, n_features: int) -> int:
        """Return the number of inputs of the network; narrower views are padded with zeros."""
        return max((view.width for view in self.views), default=n_features)

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scaled rows as float32, shape (views, n_rows, width)."""
        if not self.views:
            return _narrow(rows)[None]
        if len(self.views) == 1:
            return _narrow(self.views[0](rows))[None]
        scaled = np.zeros((len(self.views), len(rows), self.width(rows.shape[1])), np.float32)
        for place, view in zip(scaled, self.views, strict=True):
            place[:, : view.width] = _narrow(view(rows))
        return scaled

    def fits(self, n_features: int) -> bool:
        """Say whether the arrays of every view have the shapes that go with so many columns."""
        return all(view.fits(n_features) for view in self.views)


def _narrow(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return rows as float32, which the network takes."""
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(rows, dtype=np.float32)
    if narrow is not rows and not np.isfinite(narrow).all():
        raise _too_large(~np.isfinite(narrow).all(axis=0), 'float32 (or use scaling="auto")')
    return narrow


def _too_large(columns: Any, what: str) -> DataError:
    """Return the error that names the first of some columns."""
    column = int(np.flatnonzero(columns)[0])
    message = f"Column {column} of X has values too large for {what}: rescale it."
    return DataError(message, column=column)


def fit_scaler(names: Sequence[str], rows: Features, weights: NDArray[Any]) -> Scaler:
    """Learn the views of the columns.

    Parameters
    ----------
    names : sequence of {"standard", "normal", "pieces"}
    rows : array of shape (n_rows, n_features), or on disk
    weights : array of shape (n_rows,)
    """
    return Scaler(tuple(VIEWS[name].fit(rows, weights) for name in names))


@dataclass
class _Moments:
    """The mass of rows, their mean, and the squares around it (Chan et al., 1979)."""

    mass: float
    mean: Floats
    squares: Floats

    def add(self, rows: NDArray[Any], shares: Floats) -> None:
        for part in gen_batches(len(rows), _CHUNK):
            values, share = rows[part].astype(np.float64), shares[part]
            mass = share.sum()
            centre = share @ values / mass
            self.merge(_Moments(mass, centre, share @ np.square(values - centre)))

    def merge(self, other: _Moments) -> None:
        apart, whole = other.mean - self.mean, other.mass + self.mass
        self.squares += other.squares
        self.squares += np.square(apart) * (other.mass * self.mass / whole)
        self.mean += apart * (other.mass / whole)
        self.mass = whole


class Spread:
    """What standardises the columns, learned in one pass over the rows.

    Parameters
    ----------
    n_features : int
    weights : array of shape (n_rows,)
    """

    def __init__(self, n_features: int, weights: NDArray[Any]) -> None:
        self._weights, self._total = weights, weights.sum()
        self._sums = BlockSums(lambda: _Moments(0.0, *np.zeros((2, n_features))))

    def add(self, part: slice, rows: NDArray[Any]) -> None:
        """Look at rows, which have these numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._sums.add(part, rows, self._weights[part] / self._total)

    def standard(self) -> Standard:
        """Return the view; a constant column is centred and left at scale 1."""
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self._sums.total()
        if not np.isfinite(sums.squares).all():
            raise _too_large(~np.isfinite(sums.squares), "a standard deviation")
        # A constant column has a variance of rounding errors only (scikit-learn's bound).
        error = len(self._weights) * np.finfo(np.float64).eps
        constant = sums.squares <= error * sums.squares + (error * sums.mean) ** 2
        return Standard(sums.mean, np.where(constant, 1.0, np.sqrt(sums.squares)))


@dataclass(frozen=True)
class Standard(Part):
    """Centre, scale and clip the columns.

    Attributes
    ----------
    mean, scale : float64 arrays of shape (n_features,)
    """

    kind: ClassVar[str] = "standard"
    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, rows: Features, weights: NDArray[Any]) -> Standard:
        """Learn means and standard deviations; a constant column is centred and left at scale 1."""
        spread = Spread(rows.shape[1], weights)
        for part, some in row_blocks(rows):
            spread.add(part, some)
        return spread.standard()

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.mean)

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the scaled rows, float32 if the rows are."""
        # Rows that are float32 already stay so: half the memory traffic, and the network is too.
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        scaled = (rows - self.mean.astype(dtype)) / self.scale.astype(dtype)
        return np.asarray(np.clip(scaled, -CLIP, CLIP, out=scaled))

    def fits(self, n_features: int) -> bool:
        """Say whether the arrays have the shapes that go with so many columns."""
        return self.mean.shape == self.scale.shape == (n_features,) and bool((self.scale > 0).all())


_KNOTS = 500  # points that a column's distribution is kept at
_LEAST_RANK = 1e-12  # a weight may be too small to show in a sum, and rank 1 is at infinity


@dataclass(frozen=True)
class Normal(Part):
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

    @classmethod
    def fit(cls, rows: Features, weights: NDArray[Any]) -> Normal:
        """Learn the quantiles of each column; equal values share the middle of their ranks."""
        shares = weights / weights.sum()
        knots, values = [], []
        for column in np.asarray(rows).T:
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
        return cls(np.concatenate(knots), np.concatenate(values), np.cumsum([0, *map(len, knots)]))

    @property
    def width(self) -> int:
        """Number of outputs."""
        return len(self.starts) - 1

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the mapped rows as float32."""
        mapped = np.empty(rows.shape, dtype=np.float32)
        for column, ends in enumerate(pairwise(self.starts)):
            own = slice(*ends)
            mapped[:, column] = np.interp(rows[:, column], self.knots[own], self.values[own])
        return mapped

    def fits(self, n_features: int) -> bool:
        """Say whether the arrays have the shapes that go with so many columns."""
        ends = self.starts.shape == (n_features + 1,) and self.starts[-1] == len(self.knots)
        some = self.starts[0] == 0 and (np.diff(self.starts) > 0).all()
        return bool(ends and some and self.knots.shape == self.values.shape)


_PIECES = 8


@dataclass(frozen=True)
class Pieces(Standard):
    """Cut each column at its quantiles; each piece is an input that fills from 0 to 1.

    The piecewise-linear encoding of Gorishniy et al., "On Embeddings for Numerical Features in
    Tabular Deep Learning", 2022, standardised.

    Attributes
    ----------
    mean, scale : float64 arrays of shape (width,)
        Of the pieces as they are filled.
    low, high : float64 arrays of shape (width,)
        The ends of each piece.
    column : int64 array of shape (width,)
        The column that it is a piece of.
    """

    kind: ClassVar[str] = "pieces"
    low: Floats
    high: Floats
    column: NDArray[np.int64]

    @classmethod
    def fit(cls, rows: Features, weights: NDArray[Any]) -> Pieces:
        """Learn the pieces of each column, at most eight of about equally many rows.

        A constant column keeps one piece that no row enters.
        """
        low, high, columns = [], [], []
        table = np.asarray(rows)
        for number, column in enumerate(table.T):
            edges = np.unique(_quantiles(column.astype(np.float64), weights))
            with np.errstate(over="ignore"):
                if not np.isfinite(edges[-1] - edges[0]):
                    raise _too_large(np.arange(table.shape[1]) == number, "pieces")
            if len(edges) == 1:
                edges = np.array([edges[0], np.inf])
            low.append(edges[:-1])
            high.append(edges[1:])
            columns.append(np.full(len(edges) - 1, number))
        ends = np.concatenate(low), np.concatenate(high), np.concatenate(columns)
        filled = Standard.fit(_fill(table, *ends), weights)
        return cls(filled.mean, filled.scale, *ends)

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the inputs."""
        return super().__call__(_fill(rows, self.low, self.high, self.column))

    def fits(self, n_features: int) -> bool:
        """Say whether the arrays have the shapes that go with so many columns."""
        alike = {one.shape for one in (self.low, self.high, self.column)} == {(self.width,)}
        inside = (self.column >= 0) & (self.column < n_features)
        return super().fits(self.width) and alike and bool(inside.all())


VIEWS: dict[str, type[View]] = {view.kind: view for view in (Standard, Normal, Pieces)}


def _quantiles(column: Floats, weights: NDArray[Any]) -> Floats:
    """Return the ends of eight parts of equal weight; of equal weights, as numpy's quantiles."""
    steps = np.linspace(0, 1, _PIECES + 1)
    if (weights == weights[0]).all():
        return np.asarray(np.quantile(column, steps))
    order = np.argsort(column, kind="stable")
    rank = np.cumsum(weights[order]) - weights[order] / 2
    rank = (rank - rank[0]) / max(rank[-1] - rank[0], np.finfo(np.float64).tiny)
    return np.asarray(np.interp(steps, rank, column[order]))


def _fill(
    rows: NDArray[Any], low: Floats, high: Floats, column: NDArray[np.int64]
) -> NDArray[np.float32]:
    filled = (rows[:, column] - low) / (high - low)
    return np.asarray(np.clip(filled, 0, 1, out=filled), dtype=np.float32)
