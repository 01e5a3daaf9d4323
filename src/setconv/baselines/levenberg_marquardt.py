"""Weighted least squares for a perceptron with one output, by Levenberg and Marquardt's method."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

CHUNK = 4096
_MOST_DAMPING = 1e10  # a step is then shorter than any that changes the objective


@dataclass(frozen=True)
class TanhPerceptron:
    """One hidden layer of tanh units and one tanh output.

    ``o(x) = tanh(v . tanh(A x + b) + c)``; its parameters are one vector, ``[A, b, v, c]``.

    Attributes
    ----------
    n_inputs : int
        Number of features.
    hidden : int
        Number of hidden units.
    """

    n_inputs: int
    hidden: int

    @property
    def size(self) -> int:
        """Number of parameters, ``(d + 2) h + 1``."""
        return (self.n_inputs + 2) * self.hidden + 1

    def first_parameters(self, random: np.random.RandomState) -> np.ndarray:
        """Draw weights whose sums have a variance of about 1, with biases of 0."""
        inner = random.standard_normal((self.hidden, self.n_inputs)) / np.sqrt(self.n_inputs)
        outer = random.standard_normal(self.hidden) / np.sqrt(self.hidden)
        return np.concatenate([inner.ravel(), np.zeros(self.hidden), outer, [0.0]])

    def outputs(self, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the output for each row."""
        return self._forward(parameters, rows)[1]

    def jacobian(self, parameters: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs and their derivatives, of shape (n, size), in closed form."""
        units, outputs = self._forward(parameters, rows)
        to_output = 1 - outputs**2
        outer = parameters[-self.hidden - 1 : -1]
        to_units = to_output[:, None] * outer * (1 - units**2)
        to_inner = to_units[:, :, None] * rows[:, None, :]
        parts = [
            to_inner.reshape(len(rows), -1),
            to_units,
            to_output[:, None] * units,
            to_output[:, None],
        ]
        return outputs, np.concatenate(parts, axis=1)

    def _forward(self, parameters: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inner_size = self.n_inputs * self.hidden
        inner = parameters[:inner_size].reshape(self.hidden, self.n_inputs)
        bias, outer = np.split(parameters[inner_size:-1], 2)
        units = np.tanh(rows @ inner.T + bias)
        return units, np.tanh(units @ outer + parameters[-1])


@dataclass(frozen=True)
class WeightedErrors:
    """The weighted mean of squared errors, computed in chunks of rows.

    ``J = sum_i s_i (t_i - o(x_i))^2``, the weights s divided by their sum.

    Attributes
    ----------
    network : TanhPerceptron
        What gives the outputs.
    rows : ndarray of shape (n, d)
        Rows, in double precision.
    targets : ndarray of shape (n,)
        Wanted outputs.
    weights : ndarray of shape (n,)
        Positive weights, of any sum.
    """

    network: TanhPerceptron
    rows: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def objective(self, parameters: np.ndarray) -> float:
        """Return J."""
        total = 0.0
        for part in gen_batches(len(self.rows), CHUNK):
            errors = self.targets[part] - self.network.outputs(parameters, self.rows[part])
            total += float(self.weights[part] @ errors**2)
        return total / float(self.weights.sum())

    def normal_equations(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``Z' S Z`` and ``Z' S e``.

        Z is the Jacobian, S the weights over their sum, e the errors. The Jacobian of all rows is
        never held; of the symmetric ``Z' S Z`` only the upper triangle is filled.
        """
        size = self.network.size
        curvature = np.zeros((size, size), order="F")
        descent = np.zeros(size)
        weights = self.weights / self.weights.sum()
        for part in gen_batches(len(self.rows), CHUNK):
            outputs, jacobian = self.network.jacobian(parameters, self.rows[part])
            roots = np.sqrt(weights[part])
            jacobian *= roots[:, None]
            curvature = dsyrk(1.0, jacobian.T, beta=1.0, c=curvature, overwrite_c=True)
            descent += jacobian.T @ (roots * (self.targets[part] - outputs))
        return curvature, descent


@dataclass(frozen=True)
class Trial:
    """Where the search stands after trying a step.

    Attributes
    ----------
    parameters : ndarray of shape (size,)
        The parameters, as they were if the step was rejected.
    objective : float
        Their objective, which never rises.
    accepted : bool
        Whether the step was taken.
    """

    parameters: np.ndarray
    objective: float
    accepted: bool


def descend(
    problem: WeightedErrors,
    parameters: np.ndarray,
    *,
    damping: float,
    factor: float,
    max_iter: int,
    tol: float,
) -> Iterator[Trial]:
    """Try the steps ``(Z'SZ + mu I)^-1 Z'S e``, one after another.

    A step that lowers the objective is taken and mu divided by ``factor``; one that does not is
    rejected and mu multiplied by it.

    Parameters
    ----------
    problem : WeightedErrors
        What to minimise.
    parameters : ndarray of shape (size,)
        Where to begin.
    damping : float
        The first mu.
    factor : float
        By how much mu changes.
    max_iter : int
        Most steps tried, rejected ones included; a ConvergenceWarning says that it was not enough.
    tol : float
        The search ends when a step that is taken lowers the objective by less, or when mu is so
        large that no step can lower it.

    Yields
    ------
    trial : Trial
        Each step tried.
    """
    objective = problem.objective(parameters)
    curvature, descent = problem.normal_equations(parameters)
    for _ in range(max_iter):
        there = parameters + _step(curvature, descent, damping)
        objective_there = problem.objective(there)
        fall = objective - objective_there
        accepted = fall > 0
        if accepted:
            parameters, objective = there, objective_there
        damping *= 1 / factor if accepted else factor
        yield Trial(parameters, objective, accepted)
        if damping > _MOST_DAMPING or (accepted and fall < tol):
            return
        if accepted:
            curvature, descent = problem.normal_equations(parameters)
    warnings.warn(
        f"the objective still falls by {tol:g} or more after max_iter={max_iter} steps; give a "
        f"larger max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _step(curvature: np.ndarray, descent: np.ndarray, damping: float) -> np.ndarray:
    damped = curvature.copy(order="F")
    np.fill_diagonal(damped, damped.diagonal() + damping)
    try:
        return np.asarray(cho_solve(cho_factor(damped, overwrite_a=True), descent))
    except LinAlgError:  # too little damping: a step of 0 is rejected
        return np.zeros_like(descent)
