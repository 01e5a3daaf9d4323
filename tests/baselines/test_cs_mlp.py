"""CS-MLP: the Jacobian, the weighted normal equations, steps that only lower, and the cost."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from setconv.baselines import cs_mlp
from setconv.baselines.cs_mlp import (
    CostSensitiveMLPClassifier,
    TanhPerceptron,
    WeightedErrors,
    cost_weights,
    descend,
)
from setconv.sampling import draw_by_class

SMALL = {"hidden": 3, "random_state": 0}


def rows_of(majority, minority, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [majority, minority])
    rng.shuffle(y)
    return rng.standard_normal((len(y), d)) + 1.5 * y[:, None], y


def problem(n=60, d=3, hidden=4, seed=0):
    X, y = rows_of(n - n // 4, n // 4, d, seed)
    network = TanhPerceptron(d, hidden)
    errors = WeightedErrors(network, X, 2.0 * y - 1, np.where(y == 1, 0.75, 0.25))
    return errors, network.first_parameters(np.random.RandomState(seed)), y


# --------------------------------------------------------------------------- Levenberg-Marquardt


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 1000))
def test_the_jacobian_equals_autograd(n_inputs, hidden, seed):
    rng = np.random.default_rng(seed)
    network = TanhPerceptron(n_inputs, hidden)
    parameters, rows = rng.standard_normal(network.size), rng.standard_normal((7, n_inputs))

    def outputs(vector):
        inner = vector[: n_inputs * hidden].reshape(hidden, n_inputs)
        bias, outer = vector[n_inputs * hidden : -1].reshape(2, hidden)
        units = torch.tanh(torch.tensor(rows) @ inner.T + bias)
        return torch.tanh(units @ outer + vector[-1])

    wanted = torch.autograd.functional.jacobian(outputs, torch.tensor(parameters))
    values, jacobian = network.jacobian(parameters, rows)
    assert network.size == (n_inputs + 2) * hidden + 1
    assert np.allclose(jacobian, wanted.numpy(), rtol=0, atol=1e-12)
    assert np.allclose(values, outputs(torch.tensor(parameters)).numpy(), rtol=0, atol=1e-12)
    assert np.array_equal(values, network.outputs(parameters, rows))


def test_normal_equations_in_chunks_equal_those_of_the_two_classes_at_once(monkeypatch):
    monkeypatch.setattr(cs_mlp, "CHUNK", 7)
    errors, parameters, y = problem()
    outputs, jacobian = errors.network.jacobian(parameters, errors.rows)
    missing = 2.0 * y - 1 - outputs
    (major, minor), lam = (y == 0, y == 1), 0.25
    total = lam * major.sum() + (1 - lam) * minor.sum()
    curvature = lam * jacobian[major].T @ jacobian[major]
    curvature += (1 - lam) * jacobian[minor].T @ jacobian[minor]
    descent = lam * jacobian[major].T @ missing[major]
    descent += (1 - lam) * jacobian[minor].T @ missing[minor]
    upper, got = errors.normal_equations(parameters)
    assert np.allclose(np.triu(upper), np.triu(curvature) / total)
    assert np.allclose(got, descent / total)
    objective = lam * (missing[major] ** 2).sum() + (1 - lam) * (missing[minor] ** 2).sum()
    assert errors.objective(parameters) == pytest.approx(objective / total)


def test_the_first_step_solves_the_damped_normal_equations():
    errors, parameters, _ = problem()
    upper, descent = errors.normal_equations(parameters)
    curvature = np.triu(upper) + np.triu(upper, 1).T
    wanted = np.linalg.solve(curvature + 0.1 * np.eye(len(parameters)), descent)
    settings = {"damping": 0.1, "factor": 10, "max_iter": 5, "tol": 1e-4}
    trial = next(descend(errors, parameters, **settings))
    assert trial.accepted
    assert np.allclose(trial.parameters - parameters, wanted)


@pytest.mark.parametrize("seed", range(5))
def test_bad_steps_are_rejected_the_objective_only_falls_and_too_few_steps_are_said(seed):
    errors, parameters, _ = problem(seed=seed)
    objective, rejected = errors.objective(parameters), 0
    with pytest.warns(ConvergenceWarning):
        steps = list(descend(errors, parameters, damping=1e-9, factor=10, max_iter=20, tol=0))
    for trial in steps:
        if trial.accepted:
            assert trial.objective < objective
        else:
            rejected += 1
            assert np.array_equal(trial.parameters, parameters)
            assert trial.objective == objective
        parameters, objective = trial.parameters, trial.objective
        assert objective == pytest.approx(errors.objective(parameters))
    assert rejected > 0


# ------------------------------------------------------------------------------------- the cost


@pytest.mark.parametrize("minority", [0, 1])
def test_the_prior_gives_both_classes_the_same_weight_in_all(minority):
    codes = np.where(np.arange(50) < 8, minority, 1 - minority)
    lam, weights = cost_weights("prior", codes)
    assert lam == 8 / 50
    assert np.allclose(weights[codes == minority], 42 / 50)
    assert weights[codes == 0].sum() == pytest.approx(weights[codes == 1].sum())


def test_of_classes_of_one_size_the_first_counts_as_the_majority():
    codes = np.array([1, 0, 1, 0])
    assert cost_weights(0.3, codes)[1].tolist() == [0.7, 0.3, 0.7, 0.3]
    assert cost_weights("prior", codes)[1].tolist() == [0.5] * 4


# ------------------------------------------------------------------------------------ the whole


def test_principal_components_are_standardised_and_those_without_variance_are_0():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 60))  # of rank 3
    clf = CostSensitiveMLPClassifier(**SMALL).fit(X, np.arange(100) % 2)
    inputs = clf._inputs(X)
    assert inputs.shape == (100, 50)
    assert np.allclose(inputs[:, :3].std(axis=0, ddof=1), 1)
    assert np.all(inputs[:, 3:] == 0)


def test_early_stopping_keeps_the_step_with_the_least_error_on_the_rows_set_aside():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 10)), np.arange(300) % 3 // 2  # nothing to learn
    clf = CostSensitiveMLPClassifier(hidden=5, patience=3, random_state=0).fit(X, y)
    random = np.random.RandomState(0)
    aside = np.isin(np.arange(300), draw_by_class(y, [40, 20], random))
    inputs = (X - X.mean(axis=0)) / X.std(axis=0)
    targets, weights = 2.0 * y - 1, np.where(y == 1, 2 / 3, 1 / 3)
    training = WeightedErrors(clf.network_, inputs[~aside], targets[~aside], weights[~aside])
    start = clf.network_.first_parameters(random)
    steps = descend(training, start, damping=0.1, factor=10, max_iter=500, tol=1e-4)
    path = [trial.parameters for trial in steps if trial.accepted]
    missing = [targets[aside] - clf.network_.outputs(one, inputs[aside]) for one in path]
    errors = [(weights[aside] * one**2).sum() for one in missing]
    best = next(k for k in range(len(path)) if errors[k] < min(errors[k + 1 : k + 4]))
    assert len(clf.objective_curve_) == best + 1 + 3 < len(path)
    assert np.allclose(clf.parameters_, path[best])
