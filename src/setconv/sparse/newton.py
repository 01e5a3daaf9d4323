"""Logistic regressions on the same sparse rows, all at once, by truncated Newton steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit

Floats = NDArray[np.float32]
_STEPS = 6
_INNER = 8  # conjugate-gradient steps for one Newton step
_ACCURACY = 5e-3  # of the gradient, relative to where it starts
_HALVINGS = 10


def minimise_logistic(
    rows: sparse.csr_matrix,
    scale: Floats,
    signs: Floats,
    mass: Floats,
    penalties: NDArray[np.float64],
) -> tuple[Floats, Floats]:
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
        step = _solve(problem, margin, gradient)
        place, margin = _descend(problem, place, margin, step)
    return place[:-1] * scale, place[-1].copy()


class _Logistic:
    """The losses: values, gradients and curvature; the last row of a place is the intercepts."""

    def __init__(
        self, rows: sparse.csr_matrix, scale: Floats, signs: Floats, mass: Floats, penalty: Floats
    ) -> None:
        self.rows, self.columns = rows, rows.T
        self.scale, self.signs, self.mass, self.penalty = scale, signs, mass, penalty

    def scores(self, place: Floats) -> Floats:
        product: Floats = np.asarray(self.rows @ (self.scale * place[:-1]), dtype=np.float32)
        product += place[-1]
        return product

    def value(self, place: Floats, margin: Floats) -> NDArray[Any]:
        loss = -(self.mass * log_expit(self.signs * margin)).sum(axis=0, dtype=np.float64)
        return np.asarray(loss + self.penalty * np.square(place[:-1]).sum(axis=0) / 2)

    def gradient(self, place: Floats, margin: Floats) -> Floats:
        return self._back(-self.mass * self.signs * expit(-self.signs * margin), place)

    def curvature(self, margin: Floats) -> Floats:
        share = expit(margin)
        bends: Floats = self.mass * share * (1 - share)
        return bends

    def bend(self, curvature: Floats, direction: Floats) -> Floats:
        return self._back(curvature * self.scores(direction), direction)

    def _back(self, by_row: Floats, place: Floats) -> Floats:
        columns = np.asarray(self.columns @ by_row, dtype=np.float32)
        inner = self.scale * columns + self.penalty * place[:-1]
        return np.concatenate([inner, by_row.sum(axis=0, keepdims=True)])


def _solve(problem: _Logistic, margin: Floats, gradient: Floats) -> Floats:
    """Return about ``-H^-1 gradient`` by conjugate gradients, each column by itself."""
    curvature = problem.curvature(margin)
    step = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    size = np.square(residual).sum(axis=0)
    enough = 0.01 * size
    for _ in range(_INNER):
        bent = problem.bend(curvature, direction)
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
    problem: _Logistic, place: Floats, margin: Floats, step: Floats
) -> tuple[Floats, Floats]:
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
