"""Members of an online ensemble, tested on a row and trained on it, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import sger
from scipy.special import expit
from sklearn.utils import check_random_state

from setconv.baselines.seeding import cloned

_FARTHEST = 5.0  # in standard deviations: no single value may undo what was learned


class Members(Protocol):
    """What an online ensemble asks of its members."""

    def test_then_train(self, row: np.ndarray, code: int, counts: np.ndarray) -> np.ndarray:
        """Return each member's probability of class 1, then train member m ``counts[m]`` times."""

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of class 1, of shape (n, members)."""


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


def _inputs(rows: np.ndarray) -> np.ndarray:
    """Return rows of a squared length of about 1, whatever their width, and a 1 for the bias."""
    width = rows.shape[-1]
    inputs = np.ones((*rows.shape[:-1], width + 1))
    inputs[..., :-1] = rows / np.sqrt(width)
    return inputs


class StackedLogistic:
    """Logistic regressions trained by gradient descent on the log-loss, from weights of 0.

    The weights of all members are one matrix: a row costs one product with it and one update of
    rank one. Training on a row again moves the members' scores along that row only, by its squared
    length, so any number of repetitions is exact without touching the matrix in between.

    Parameters
    ----------
    n_members : int
        Number of members.
    n_features : int
        Number of features.
    lr : float
        Step of the gradient descent.
    """

    def __init__(self, n_members: int, n_features: int, lr: float) -> None:
        self.lr = np.float32(lr)
        self.weights = np.zeros((n_members, n_features + 1), dtype=np.float32)

    def test_then_train(self, row: np.ndarray, code: int, counts: np.ndarray) -> np.ndarray:
        """Return each member's probability of class 1, then train member m ``counts[m]`` times."""
        row = _inputs(row).astype(np.float32)
        squared_length = row @ row
        scores = self.weights @ row
        moves = np.zeros_like(scores)
        before: np.ndarray = expit(scores)
        probability = before
        for repetition in range(counts.max()):
            step = self.lr * (code - probability) * (counts > repetition)
            moves += step
            scores += step * squared_length
            probability = expit(scores)
        self.weights = _rank_one_update(self.weights, moves, row)
        return before

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of class 1, of shape (n, members)."""
        return np.asarray(expit(_inputs(rows) @ self.weights.T.astype(np.float64)))


class StackedMLPs:
    """Perceptrons with one hidden layer of tanh units, trained by gradient descent on the log-loss.

    Stacked as `StackedLogistic` is: one product with all hidden weights and one update of rank one
    for a row, whatever the number of repetitions.

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
        self.weights = _rank_one_update(self.weights, moves.ravel(), row)
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


class ClonedMembers:
    """Members of a user's own kind: anything with ``partial_fit``, trained one by one.

    Parameters
    ----------
    estimator : classifier
        Cloned for each member.
    randoms : sequence of Generator
        One for each ensemble; its members' seeds are drawn from it.
    n_members : int
        Members of each ensemble.
    """

    def __init__(
        self, estimator: Any, randoms: Sequence[np.random.Generator], n_members: int
    ) -> None:
        self.members: list[Any] = []
        for random in randoms:
            seeds = check_random_state(int(random.integers(np.iinfo(np.int32).max)))
            self.members += [cloned(estimator, seeds) for _ in range(n_members)]
        self.trained = np.zeros(len(self.members), dtype=bool)

    def test_then_train(self, row: np.ndarray, code: int, counts: np.ndarray) -> np.ndarray:
        """Return each member's probability of class 1, then train member m ``counts[m]`` times."""
        rows = row[None]
        before: np.ndarray = self.probabilities(rows)[0]
        for member in np.flatnonzero(counts):
            for _ in range(counts[member]):
                self.members[member].partial_fit(rows, [code], classes=[0, 1])
        self.trained |= counts > 0
        return before

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of class 1; a half where a member has learned nothing yet."""
        chances = np.full((len(rows), len(self.members)), 0.5)
        for member in np.flatnonzero(self.trained):
            chances[:, member] = _chance(self.members[member], rows)
        return chances


def _chance(member: Any, rows: np.ndarray) -> np.ndarray:
    if hasattr(member, "predict_proba"):
        # Some classifiers give no number while they have seen a single row of a class.
        return np.asarray(np.nan_to_num(member.predict_proba(rows)[:, 1], nan=0.5))
    return np.asarray(member.predict(rows), dtype=np.float64)


def _rank_one_update(weights: np.ndarray, moves: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return ``weights + outer(moves, row)``, made in place (BLAS sees the transpose)."""
    return np.asarray(sger(1.0, row, moves, a=weights.T, overwrite_a=True).T)
