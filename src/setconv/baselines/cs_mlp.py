"""CS-MLP: a perceptron with one hidden layer, one cost parameter, and Levenberg-Marquardt steps.

After C. L. Castro and A. P. Braga, "Novel cost-sensitive approach to improve the multilayer
perceptron performance on imbalanced data", IEEE TNNLS 24(6), 2013. Original are the joint objective
with one cost parameter and the extended Levenberg-Marquardt rule; decided here are the number of
hidden units, principal components where features are many, and early stopping. The class says it in
full. Below it stand its parts: the weights of the rows, the descent by Levenberg-Marquardt steps,
the weighted errors that it lowers, and the network that makes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from setconv.baselines.base import BinaryClassifier, EarlyStoppingMixin, Random, parameter
from setconv.validation import at_least, between, one_of

CHUNK = 4096  # rows whose Jacobian is held at once
_LEAST_VARIANCE = 1e-6  # of the first component's; less is rounding
_MOST_DAMPING = 1e10  # a step is then shorter than any that changes the objective


@dataclass(kw_only=True, eq=False, repr=False)
class CostSensitiveMLPClassifier(EarlyStoppingMixin, BinaryClassifier):
    r"""A perceptron with tanh units that weighs the squared errors of the two classes.

    With targets -1 and +1 and errors e, it minimises

    .. math:: J = \lambda \sum_{majority} e^2 + (1 - \lambda) \sum_{minority} e^2

    by the steps ``(lam Z1'Z1 + (1 - lam) Z2'Z2 + mu I)^-1 (lam Z1'e1 + (1 - lam) Z2'e2)``, Z1 and
    Z2 the derivatives of the outputs for the rows of the majority and the minority. The output,
    from -1 to 1, is the score; two classes only.

    What is original and what is not. The joint objective with one cost parameter, which the priors
    set, and the extended Levenberg-Marquardt rule are the paper's. The formulas, tanh at the
    output, the first ``mu``, ``beta``, ``tol`` and ``max_iter`` come from a public implementation,
    not from the paper, of which only the abstract could be read. Reconstructed here: all weights
    move in one step, and a step that raises J is rejected; J is divided by the sum of its weights,
    so that ``mu`` and ``tol`` mean the same for any number of rows; the number of hidden units;
    features are standardised, and if there are more than ``n_components``, replaced by so many
    principal components of variance 1, as the step solves for ``(d + 2) hidden + 1`` unknowns. So
    is early stopping: the steps drive J to near 0 where rows are few, long after the error on other
    rows has begun to rise. ``early_stopping=False`` leaves it out.

    Parameters
    ----------
    hidden : int, default=10
        Hidden units.
    lam : "prior" or float, default="prior"
        The cost parameter, the weight of an error on the majority; that on the minority has
        1 - lam. "prior" is the minority's share of the rows, which gives both classes the same
        weight in all. Of two classes of one size the first in ``classes_`` counts as the majority,
        which matters only where lam is a number: "prior" is then 1/2 for both.
    mu : float, default=0.1
        The first damping of a step.
    beta : float, default=10
        The damping is divided by it after a step that lowers J, multiplied after one that does not.
    max_iter : int, default=500
        Steps tried at most.
    tol : float, default=1e-4
        Training ends when a step lowers J by less.
    n_components : int, default=50
        Most features; if there are more they are replaced by principal components. The cost of a
        step grows with the square of their number.
    early_stopping : bool, default=True
        Whether a stratified share of the rows is set aside, training stops when J on them has not
        fallen for ``patience`` accepted steps, and the best step is kept.
    validation_fraction : float, default=0.2
        Share of the rows of each class set aside for early stopping.
    patience : int, default=10
        Accepted steps without a better one before training stops.
    random_state : int, RandomState instance or None, default=None
        Seeds the first weights, the rows set aside, and the principal components.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted; the output is +1 for the second.
    lam_ : float
        The cost parameter in use.
    network_ : TanhPerceptron
        Gives the output for the parameters and a row.
    parameters_ : ndarray of shape ((k + 2) * hidden + 1,)
        Hidden weights, hidden biases, output weights and output bias, k the number of inputs.
    objective_curve_ : list of float
        J on the training rows after each accepted step; it only falls.
    n_iter_ : int
        Steps tried.
    scaler_ : StandardScaler
        The fitted standardisation.
    pca_ : PCA or None
        The fitted principal components, where they were needed.
    fallbacks_ : list of str
        What could not be done and what was done instead, such as a class with too few rows to set
        some aside.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    C. L. Castro and A. P. Braga. Novel cost-sensitive approach to improve the multilayer perceptron
    performance on imbalanced data. IEEE Transactions on Neural Networks and Learning Systems
    24(6):888-899, 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.cs_mlp import CostSensitiveMLPClassifier
    >>> X, y = make_classification(300, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = CostSensitiveMLPClassifier(hidden=3, random_state=0).fit(X, y)
    >>> clf.decision_function(X).shape
    (300,)
    """

    hidden: int = parameter(10, at_least(1))
    lam: Any = parameter("prior", one_of("prior"), between(0, 1))
    mu: float = parameter(0.1, between(0, None))
    beta: float = parameter(10, between(1, None))
    max_iter: int = parameter(500, at_least(1))
    tol: float = parameter(1e-4, between(0, None))
    n_components: int = parameter(50, at_least(1))
    early_stopping: bool = parameter(True, "boolean")
    validation_fraction: float = parameter(0.2, between(0, 1))
    patience: int = parameter(10, at_least(1))
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train the perceptron.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self : CostSensitiveMLPClassifier
            Fitted.
        """
        rows, codes, random = self._check_training(X, y)
        held_out = self._held_out(codes, random)
        self.scaler_ = StandardScaler().fit(rows)
        self.pca_ = None
        if rows.shape[1] > self.n_components:
            kept = min(self.n_components, len(rows))
            self.pca_ = PCA(kept, random_state=random).fit(self.scaler_.transform(rows))
        inputs = self._inputs(rows)
        targets = 2.0 * codes - 1.0
        self.lam_, weights = cost_weights(self.lam, codes)
        self.network_ = TanhPerceptron(inputs.shape[1], self.hidden)
        training, validation = (
            WeightedErrors(self.network_, inputs[part], targets[part], weights[part])
            for part in (~held_out, held_out)
        )
        self._train(training, validation, self.network_.first_parameters(random))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the output of the perceptron.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n,)
            From -1 to 1, larger for the second class.
        """
        inputs = self._inputs(self._check_rows(X))
        return self.network_.outputs(self.parameters_, inputs)

    def _second_class(self, X: Any) -> np.ndarray:
        return (1 + self.decision_function(X)) / 2

    def _inputs(self, rows: np.ndarray) -> np.ndarray:
        """Return what the perceptron sees, in double precision whatever the rows are."""
        parts = gen_batches(len(rows), CHUNK)
        scaled = (self.scaler_.transform(rows[part].astype(np.float64)) for part in parts)
        if self.pca_ is None:
            return np.concatenate(list(scaled))
        variance = self.pca_.explained_variance_.astype(np.float64)
        factor = np.zeros_like(variance)
        np.divide(1, np.sqrt(variance), out=factor, where=variance > _LEAST_VARIANCE * variance[0])
        return np.concatenate([self.pca_.transform(part) * factor for part in scaled])

    def _train(
        self, training: WeightedErrors, validation: WeightedErrors, best: np.ndarray
    ) -> None:
        steps = descend(
            training, best, damping=self.mu, factor=self.beta, max_iter=self.max_iter, tol=self.tol
        )
        self.objective_curve_: list[float] = []
        least, least_at, judged = np.inf, 0, len(validation.rows) > 0
        for self.n_iter_, trial in enumerate(steps, start=1):
            if not trial.accepted:
                continue
            self.objective_curve_.append(trial.objective)
            value = validation.objective(trial.parameters) if judged else trial.objective
            if value < least:
                least, least_at, best = value, len(self.objective_curve_), trial.parameters
            if len(self.objective_curve_) - least_at >= self.patience:
                break
        self.parameters_ = best


def cost_weights(lam: Any, codes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the cost parameter and the weight of each row's squared error.

    Parameters
    ----------
    lam : "prior" or float
        As in `CostSensitiveMLPClassifier`.
    codes : ndarray of shape (n,)
        The class of each row, 0 or 1.

    Returns
    -------
    lam : float
        The weight of a row of the majority.
    weights : ndarray of shape (n,)
        ``lam`` or ``1 - lam``.
    """
    counts = np.bincount(codes, minlength=2)
    if isinstance(lam, str):  # "prior"
        lam = counts.min() / len(codes)
    return float(lam), np.where(codes == counts.argmax(), lam, 1 - lam)


class _Trial(NamedTuple):
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
) -> Iterator[_Trial]:
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
    trial : _Trial
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
        yield _Trial(parameters, objective, accepted)
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

    def first_parameters(self, random: Random) -> np.ndarray:
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
        to_outer = to_output[:, None] * units
        parts = [to_inner.reshape(len(rows), -1), to_units, to_outer, to_output[:, None]]
        return outputs, np.concatenate(parts, axis=1)

    def _forward(self, parameters: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inner_size = self.n_inputs * self.hidden
        inner = parameters[:inner_size].reshape(self.hidden, self.n_inputs)
        bias, outer = np.split(parameters[inner_size:-1], 2)
        units = np.tanh(rows @ inner.T + bias)
        return units, np.tanh(units @ outer + parameters[-1])
