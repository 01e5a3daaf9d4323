"""Members of an online ensemble, tested on a row and trained on it, all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import sger
from scipy.special import expit

_FARTHEST = 5.0  # in standard deviations: no single value may undo what was learned


class RunningScaler:
    """Standardises by the mean and variance of the rows seen so far (Welford's recurrence).

    A constant feature becomes 0, and values beyond five standard deviations are cut off.

    Parameters
    ----------
    n_features : int
        Number of features, d.
    """

    def __init__(self, n_features: int) -> None:
        self.n_rows = 0
        self.mean = np.zeros(n_features)
        self.squares = np.zeros(n_features)

    def update(self, row: np.ndarray) -> None:
        """Count a row."""
        self.n_rows += 1
        distance = row - self.mean
        self.mean += distance / self.n_rows
        self.squares += distance * (row - self.mean)

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Return the standardised rows, of shape (..., d)."""
        deviation = np.sqrt(self.squares / max(self.n_rows, 1))
        varies = deviation > 0
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        scaled = (rows - self.mean) * factor
        return np.asarray(scaled.clip(-_FARTHEST, _FARTHEST))


class StackedMLPs:
    """Perceptrons with one hidden layer of tanh units, trained by gradient descent on the log-loss.

    The hidden weights of all members are one matrix: a row costs one product with it and one update
    of rank one. Training on a row again moves the inputs of the hidden units along that row only,
    by its squared length, so any number of repetitions is exact without touching the matrix in
    between.

    Parameters
    ----------
    randoms : sequence of Generator
        One for each ensemble; its members' first weights are drawn from it.
    n_members : int
        Members of each ensemble.
    n_features : int
        Number of features.
    hidden : int
        Hidden units of each member.
    lr : float
        Step of the gradient descent.
    """

    def __init__(
        self,
        randoms: Sequence[np.random.Generator],
        n_members: int,
        n_features: int,
        hidden: int,
        lr: float,
    ) -> None:
        self.lr = np.float32(lr)
        shape = (n_members * hidden, n_features + 1)
        inner = [random.standard_normal(shape, dtype=np.float32) for random in randoms]
        shape = (n_members, hidden)
        outer = [random.standard_normal(shape, dtype=np.float32) for random in randoms]
        self.weights = np.concatenate(inner)
        self.output_weights = np.concatenate(outer) / np.float32(np.sqrt(hidden))
        self.output_bias = np.zeros(len(self.output_weights), dtype=np.float32)

    def test_then_train(self, row: np.ndarray, code: int, counts: np.ndarray) -> np.ndarray:
        """Return each member's probability of class 1, then train member m ``counts[m]`` times."""
        row = _inputs(row).astype(np.float32)
        squared_length = row @ row
        inputs = (self.weights @ row).reshape(self.output_weights.shape)
        moves = np.zeros_like(inputs)
        units, before = self._forward(inputs)
        probability = before
        for repetition in range(counts.max()):
            step = self.lr * (code - probability) * (counts > repetition)
            push = step[:, None] * self.output_weights * (1 - units * units)
            self.output_weights += step[:, None] * units
            self.output_bias += step
            moves += push
            inputs += push * squared_length
            units, probability = self._forward(inputs)
        # weights + outer(moves, row), in place: BLAS sees the transpose.
        updated = sger(1.0, row, moves.ravel(), a=self.weights.T, overwrite_a=True)
        self.weights = np.asarray(updated.T)
        return before

    def _forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        units = np.tanh(inputs)
        scores = np.einsum("mh,mh->m", units, self.output_weights) + self.output_bias
        return units, expit(scores)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of class 1, of shape (n, members)."""
        inputs = _inputs(rows) @ self.weights.T.astype(np.float64)
        units = np.tanh(inputs).reshape(len(rows), *self.output_weights.shape)
        scores = np.einsum("nmh,mh->nm", units, self.output_weights.astype(np.float64))
        return np.asarray(expit(scores + self.output_bias))


def _inputs(rows: np.ndarray) -> np.ndarray:
    """Return rows of a squared length of about 1, whatever their width, and a 1 for the bias."""
    width = rows.shape[-1]
    inputs = np.ones((*rows.shape[:-1], width + 1))
    inputs[..., :-1] = rows / np.sqrt(width)
    return inputs
