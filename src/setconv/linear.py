"""The linear part of a member's scores, beside the network.

Dense rows have `Discriminants`: Fisher's, in closed form, from sums that are taken once over all
rows and from which a member takes away those of the rows that it leaves out.

Sparse rows have `SparseLines` over all columns: logistic regression in which both sides of a head
weigh the same, on columns that are weighed by their supports. All heads of all members are fitted
at once, by Newton's method: what a step needs of the rows is two sparse products with as many
columns as there are heads, so the cost grows with the non-zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit
from torch import Tensor

from setconv.data import BlockSums, Matrix, Part, count_heads
from setconv.episodes import head_sides
from setconv.sampling import Split

Float32Array: TypeAlias = NDArray[np.float32]
Float64Array: TypeAlias = NDArray[np.float64]
LinearPart: TypeAlias = "Discriminants | SparseLines"


@dataclass(frozen=True)
class Discriminants(Part):
    """A linear score for each head of each member: ``x @ weight + intercept``.

    Attributes
    ----------
    weights : float32 array of shape (n_stacked, n_inputs)
        For rows as the member sees them; the heads of the first member come first.
    intercepts : float32 array of shape (n_stacked,)
        Scores are 0 half-way between the means of a head's two sides.
    """

    kind: ClassVar[str] = "discriminants"
    weights: Float32Array
    intercepts: Float32Array

    def __call__(self, rows: Matrix, views: Tensor, n_members: int) -> NDArray[Any]:  # noqa: ARG002
        """Score rows by their views, (n_views, n_rows, n_inputs); the result (n_rows, n_stacked).

        It is the same call for `SparseLines`, which look at the rows themselves.
        """
        tensors = map(torch.from_numpy, (self.weights, self.intercepts))
        weights, intercepts = (one.to(views.device) for one in tensors)
        if len(views) == 1:
            products = weights @ views[0].T
        else:
            heads = len(weights) // n_members
            member = torch.arange(len(weights), device=views.device) // heads
            products = (views[member % len(views)] @ weights.unsqueeze(-1)).squeeze(-1)
        return np.asarray((products + intercepts.unsqueeze(-1)).T.cpu())

    def scaled(self, factors: Float64Array) -> Discriminants:
        """Return them with the scores of each multiplied by a factor."""
        by = factors.astype(np.float32)
        return Discriminants(self.weights * by[:, None], self.intercepts * by)

    def fits(self, n_stacked: int, n_features: int, n_inputs: int) -> bool:  # noqa: ARG002
        """Say whether the shapes go with heads, columns of the rows and inputs of the network."""
        return self.weights.shape == (n_stacked, n_inputs) and len(self.intercepts) == n_stacked


class DiscriminantSums:
    """Fisher's discriminant of each head of each member's own rows, from one pass over the rows.

    With the means ``m1``, ``m0`` of the head's sides and the covariance ``S`` within classes, drawn
    to the identity, the weights are ``S^-1 (m1 - m0)``.

    Parameters
    ----------
    codes : array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
    split : Split
        Which rows each member learns from.
    n_classes : int
    """

    def __init__(
        self, codes: NDArray[Any], row_weights: NDArray[Any], split: Split, n_classes: int
    ) -> None:
        self._codes, self._weights, self._split = codes, row_weights, split
        self._eye = np.eye(n_classes)
        self._sums = BlockSums(lambda: _SumsOfAll(len(split.left_out)))

    def add(self, part: slice, views: Tensor) -> None:
        """Add rows, which have these numbers, in all views: (n_views, rows, n_inputs).

        Member ``m`` takes view ``m`` modulo their number.
        """
        classes = self._eye[self._codes[part]] * self._weights[part][:, None]
        self._sums.add(part, views, torch.from_numpy(classes), self._split.left_out_of(part))

    def fit(self) -> Discriminants:
        """Return the discriminants."""
        sums = self._sums.total()
        own = map(_ClassSums.without, cycle(sums.everything), sums.missing)
        both = zip(*map(_ClassSums.discriminate, own), strict=True)
        return Discriminants(*(torch.cat(one).float().cpu().numpy() for one in both))


class _SumsOfAll:
    """The sums over all rows in each view, and over those that each member leaves out."""

    def __init__(self, n_members: int) -> None:
        self.everything: list[_ClassSums] = []
        self.missing: list[_ClassSums] = []
        self._n_members = n_members

    def add(self, views: Tensor, classes: Tensor, left_out: NDArray[np.bool_]) -> None:
        if not self.everything:
            shape = (classes.shape[1], views.shape[-1], views.device)
            self.everything = [_ClassSums.empty(*shape) for _ in views]
            self.missing = [_ClassSums.empty(*shape) for _ in range(self._n_members)]
        for view, sums in zip(views, self.everything, strict=True):
            sums.add(view, classes)
        for seen, sums, out in zip(cycle(views), self.missing, left_out, strict=False):
            chosen = torch.from_numpy(np.flatnonzero(out))
            sums.add(seen[chosen.to(seen.device)], classes[chosen])

    def merge(self, other: _SumsOfAll) -> None:
        mine, theirs = (one.everything + one.missing for one in (self, other))
        for sums, more in zip(mine, theirs, strict=True):
            sums.merge(more)


# How far the covariance is drawn to a multiple of the identity. Half or more holds better on rows
# from elsewhere than what is best for rows like those seen.
_SHRINKAGE = 0.6


class _ClassSums(NamedTuple):
    """What a discriminant is made from, in double precision; rows can be added."""

    mass: Tensor  # of each class
    totals: Tensor  # (n_classes, n_inputs)
    scatter: Tensor  # (n_inputs, n_inputs)

    @classmethod
    def empty(cls, n_classes: int, n_inputs: int, device: torch.device) -> _ClassSums:
        """Return the sums of no rows."""
        shapes = (n_classes,), (n_classes, n_inputs), (n_inputs, n_inputs)
        return cls(*(torch.zeros(*one, dtype=torch.float64, device=device) for one in shapes))

    def add(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (n, n_inputs) with their weight in each class, float64 (n, n_classes)."""
        if not len(rows):
            return
        theirs = classes.to(rows.device, torch.float32)
        self.mass.add_(classes.sum(dim=0).to(rows.device))
        self.totals.add_(theirs.T @ rows)
        self.scatter.add_((rows * theirs.sum(dim=1, keepdim=True)).T @ rows)

    def merge(self, other: _ClassSums) -> None:
        """Add the sums of other rows."""
        for mine, more in zip(self, other, strict=True):
            mine.add_(more)

    def without(self, other: _ClassSums) -> _ClassSums:
        """Take away the sums of some rows."""
        return _ClassSums(*map(torch.sub, self, other))

    def discriminate(self) -> tuple[Tensor, Tensor]:
        """Return the weights of each head, and its intercept: 0 is half-way between its sides."""
        means = self.totals / self.mass[:, None]
        within = (self.scatter - (means * self.mass[:, None]).T @ means) / self.mass.sum()
        level = within.diagonal().mean()
        if not level > 0:  # every class is one point, or all columns are constant
            within, level = torch.zeros_like(within), torch.ones_like(level)
        metric = (1 - _SHRINKAGE) * within
        metric.diagonal().add_(_SHRINKAGE * level)
        if count_heads(len(means)) == 1:
            ones, rest = means[1:], means[:1]
        else:
            others = self.totals.sum(dim=0) - self.totals
            ones, rest = means, others / (self.mass.sum() - self.mass)[:, None]
        weights = torch.linalg.solve(metric, (ones - rest).T).T
        return weights, -(weights * ((ones + rest) / 2)).sum(dim=1)


@dataclass(frozen=True)
class SparseLines(Part):
    """A linear score for each head of each member: ``x @ weight + intercept``.

    Attributes
    ----------
    weights : float32 array of shape (n_features, n_stacked)
        The heads of the first member come first.
    intercepts : float32 array of shape (n_stacked,)
    """

    kind: ClassVar[str] = "lines"
    weights: Float32Array
    intercepts: Float32Array

    def __call__(self, rows: Matrix, views: Tensor, n_members: int) -> NDArray[Any]:  # noqa: ARG002
        """Score rows by all of their columns; the result is (n_rows, n_stacked)."""
        return np.asarray(sparse.csr_matrix(rows) @ self.weights + self.intercepts)

    def scaled(self, factors: Float64Array) -> SparseLines:
        """Return them with the scores of each multiplied by a factor."""
        by = factors.astype(np.float32)
        return SparseLines(self.weights * by, self.intercepts * by)

    def fits(self, n_stacked: int, n_features: int, n_inputs: int) -> bool:  # noqa: ARG002
        """Say whether the shapes go with heads, columns of the rows and inputs of the network."""
        return self.weights.shape == (n_features, n_stacked) and len(self.intercepts) == n_stacked


LINEAR_PARTS: dict[str, type[LinearPart]] = {one.kind: one for one in (Discriminants, SparseLines)}


def fit_lines(
    rows: sparse.csr_matrix,
    codes: NDArray[np.int64],
    row_weights: NDArray[Any],
    left_out: NDArray[np.bool_],
    n_classes: int,
) -> SparseLines:
    """Fit a line for each head to each member's own rows.

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    codes : array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
    left_out : bool array of shape (n_members, n_rows)
        Rows that a member does not learn from.
    n_classes : int
    """
    n_features = rows.shape[1]
    rows, occurring = _occurring(rows)
    row_weights = row_weights / row_weights[row_weights > 0].mean()  # only ratios count
    everything = count_supports(rows, codes, row_weights, n_classes)
    sides = head_sides(codes, n_classes)
    scales, masses, penalties = [], [], []
    for out in left_out:
        taken = count_supports(rows[out], codes[out], row_weights[out], n_classes)
        weights = np.where(out, 0.0, row_weights)
        scales.append(everything.without(taken).column_weights())
        masses += [_balance(side, weights) for side in sides]
        penalties += [1 / max(int((weights > 0).sum()), 1)] * len(sides)
    scale, mass = np.concatenate(scales, axis=1), np.stack(masses, axis=1).astype(np.float32)
    # In double precision: squares of large or tiny numbers leave the range of float32.
    squares = rows.astype(np.float64).power(2)
    lengths = np.sqrt(((squares @ np.square(scale)) * mass).sum(axis=0, dtype=np.float64))
    scale /= np.where(lengths > 0, lengths, 1).astype(np.float32)
    signs = np.tile(np.where(sides == 1, 1, -1), (len(left_out), 1)).T.astype(np.float32)
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array(penalties))
    everywhere = np.zeros((n_features, weights.shape[1]), dtype=np.float32)
    everywhere[occurring] = weights
    return SparseLines(everywhere, intercepts)


def _occurring(rows: sparse.csr_matrix) -> tuple[sparse.csr_matrix, NDArray[Any]]:
    """Return the rows with the columns alone that occur, and which these are.

    There are no more of them than non-zeros, however many columns there are.
    """
    seen = np.zeros(rows.shape[1], dtype=bool)
    seen[rows.indices] = True
    columns = np.flatnonzero(seen)
    places = np.cumsum(seen, dtype=rows.indices.dtype) - 1
    shape = (rows.shape[0], len(columns))
    return sparse.csr_matrix((rows.data, places[rows.indices], rows.indptr), shape), columns


def _balance(side: NDArray[np.int8], weights: Float64Array) -> Float64Array:
    """Return weights that sum to one half on each side."""
    sums = np.array([weights[side == which].sum() for which in (0, 1)])
    return np.asarray(weights / (2 * sums)[side])


def count_supports(
    rows: sparse.csr_matrix, codes: NDArray[np.int64], row_weights: NDArray[Any], n_classes: int
) -> Supports:
    """Count in how many rows of each class every column occurs."""
    classes = np.eye(n_classes)[codes] * row_weights[:, None]
    present = rows.astype(np.bool_).astype(np.float64)
    return Supports(np.asarray(present.T @ classes), classes.sum(axis=0))


@dataclass(frozen=True)
class Supports:
    """In how many rows of each class a column is not zero, by weight.

    Attributes
    ----------
    occurring : float64 array of shape (n_features, n_classes)
    mass : float64 array of shape (n_classes,)
        All rows of each class.
    """

    occurring: Float64Array
    mass: Float64Array

    def without(self, other: Supports) -> Supports:
        """Take some rows away."""
        return Supports(np.maximum(self.occurring - other.occurring, 0), self.mass - other.mass)

    def column_weights(self) -> Float32Array:
        """Return the weight of each column for each head, (n_features, heads)."""
        first = 1 if count_heads(len(self.mass)) == 1 else 0
        occurring, mass, total = self.occurring[:, first:], self.mass[first:], self.mass.sum()
        elsewhere, rest = self.occurring.sum(axis=1, keepdims=True) - occurring, total - mass
        inside = _frequency(occurring, mass, mass / total)
        outside = _frequency(elsewhere, rest, rest / total)
        weights = np.sqrt(np.abs(np.log(inside / outside)))
        return np.where(weights.any(axis=0), weights, 1).astype(np.float32)


_PRIOR = 2.0  # rows that every column is taken to have occurred in beforehand


def _frequency(occurring: Float64Array, mass: Float64Array, share: Float64Array) -> Float64Array:
    """Return how often a column occurs, smoothed as if it had been seen before, in the ratio."""
    return (occurring + _PRIOR * share) / (mass + _PRIOR * share)


_STEPS = 6  # of Newton's method
_INNER = 8  # conjugate-gradient steps for one Newton step
_ACCURACY = 5e-3  # of the gradient, relative to where it starts
_HALVINGS = 10


def minimise_logistic(
    rows: sparse.csr_matrix,
    scale: Float32Array,
    signs: Float32Array,
    mass: Float32Array,
    penalties: Float64Array,
) -> tuple[Float32Array, Float32Array]:
    r"""Minimise several penalised logistic losses, one a column ``k`` of the arguments.

    .. math::

        \sum_i m_{ik} \log(1 + e^{-s_{ik} (x_i (c_k \circ w_k) + b_k)}) + p_k \|w_k\|^2 / 2

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    scale : array of shape (n_features, k)
        ``c``, the weights of the columns.
    signs, mass : arrays of shape (n_rows, k)
        ``s``, the side of a row, and ``m``, its weight.
    penalties : array of shape (k,)

    Returns
    -------
    weights : float32 array of shape (n_features, k)
        ``c * w``.
    intercepts : float32 array of shape (k,)
    """
    problem = _Logistic(rows, scale, signs, mass, penalties.astype(np.float32))
    place = np.zeros((rows.shape[1] + 1, scale.shape[1]), dtype=np.float32)
    margin = problem.scores(place)
    start = None
    for _ in range(_STEPS):
        gradient = problem.gradient(place, margin)
        size = np.linalg.norm(gradient, axis=0)
        start = size if start is None else start
        if (size <= _ACCURACY * start).all():
            break
        place, margin = _descend(problem, place, margin, _solve(problem, margin, gradient))
    return place[:-1] * scale, place[-1].copy()


@dataclass(frozen=True)
class _Logistic:
    """The losses: values and gradients; the last row of a place is the intercepts."""

    rows: sparse.csr_matrix
    scale: Float32Array
    signs: Float32Array
    mass: Float32Array
    penalty: Float32Array

    def scores(self, place: Float32Array) -> Float32Array:
        product: Float32Array = np.asarray(self.rows @ (self.scale * place[:-1]), dtype=np.float32)
        product += place[-1]
        return product

    def value(self, place: Float32Array, margin: Float32Array) -> NDArray[Any]:
        loss = -(self.mass * log_expit(self.signs * margin)).sum(axis=0, dtype=np.float64)
        return np.asarray(loss + self.penalty * np.square(place[:-1]).sum(axis=0) / 2)

    def gradient(self, place: Float32Array, margin: Float32Array) -> Float32Array:
        return self.back(-self.mass * self.signs * expit(-self.signs * margin), place)

    def back(self, by_row: Float32Array, place: Float32Array) -> Float32Array:
        columns = np.asarray(self.rows.T @ by_row, dtype=np.float32)
        inner = self.scale * columns + self.penalty * place[:-1]
        return np.concatenate([inner, by_row.sum(axis=0, keepdims=True)])


def _solve(problem: _Logistic, margin: Float32Array, gradient: Float32Array) -> Float32Array:
    """Return about ``-H^-1 gradient`` by conjugate gradients, each column by itself."""
    share = expit(margin)
    curvature = problem.mass * share * (1 - share)
    step = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    size = np.square(residual).sum(axis=0)
    enough = 0.01 * size
    for _ in range(_INNER):
        bent = problem.back(curvature * problem.scores(direction), direction)
        along = (direction * bent).sum(axis=0)
        active = (size > enough) & (along > 0)
        if not active.any():
            break
        length = np.where(active, size / np.where(along > 0, along, 1), 0).astype(np.float32)
        step += length * direction
        residual -= length * bent
        new = np.square(residual).sum(axis=0)
        turn = np.where(size > 0, new / np.where(size > 0, size, 1), 0).astype(np.float32)
        direction = residual + turn * direction
        size = np.where(active, new, 0).astype(np.float32)
    return step


def _descend(
    problem: _Logistic, place: Float32Array, margin: Float32Array, step: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """Take the step; where the loss would rise, a half of it, and so on."""
    change = problem.scores(step)
    before = problem.value(place, margin)
    length = np.ones(step.shape[1], dtype=np.float32)
    for _ in range(_HALVINGS):
        moved, there = place + length * step, margin + length * change
        rises = problem.value(moved, there) > before
        if not rises.any():
            return moved, there
        length = np.where(rises, length / 2, length).astype(np.float32)
    length = np.where(rises, 0, length).astype(np.float32)
    return place + length * step, margin + length * change
