"""Decisions and probabilities of the out-of-fold rows by rules that have not seen them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.cuts import Codes, Floats
from setconv.decisions.rule import DecisionRule, fit_rule, unproven_rule
from setconv.errors import DataError


class CrossFitted(NamedTuple):
    """What the rules of the other folds say of each row.

    Attributes
    ----------
    codes : int array of shape (n_rows,)
    probabilities : float array of shape (n_rows, n_classes)
    values : float array of shape (n_rows,) or (n_rows, n_classes)
        What decided, as `DecisionRule.decision_values`.
    """

    codes: NDArray[np.int64]
    probabilities: Floats
    values: Floats


def cross_fit(rule: DecisionRule, folds: Codes) -> CrossFitted:
    """Decide on the rows of each fold of a rule's evidence by the rule that the other folds give.

    A report on these decisions does not judge a threshold, or a calibrator, by the rows that it
    was chosen on. Where the other folds have no rows, nothing is chosen on any.

    Parameters
    ----------
    rule : DecisionRule
        With evidence; its objective, prior and class weights are those of the other rules too.
    folds : int array of shape (n_rows,)
        The fold of each row of the evidence.
    """
    evidence = rule.evidence
    if evidence is None or folds.shape != evidence.codes.shape:
        raise DataError(
            f"folds have shape {folds.shape}: pass the fold of each row of the rule's evidence."
        )
    scores = evidence.scores
    probabilities = np.empty((len(folds), len(rule.classes)))
    values = np.empty(len(folds) if scores.shape[1] == 1 else probabilities.shape)
    codes = np.empty(len(folds), dtype=np.int64)
    for fold in np.unique(folds):
        here = folds == fold
        other = _rule_of(rule, ~here)
        codes[here] = other.decide(scores[here])
        values[here] = other.decision_values(scores[here])
        probabilities[here] = other.probabilities(scores[here])
    return CrossFitted(codes, probabilities, values)


def _rule_of(rule: DecisionRule, rows: NDArray[np.bool_]) -> DecisionRule:
    """Return the rule that some rows of the evidence give."""
    evidence = rule.evidence
    assert evidence is not None
    if not rows.any():
        return unproven_rule(rule.classes, rule.train_prior, rule.class_weights, rule.objective)
    with warnings.catch_warnings():
        # The rule on all rows says the same once, with the figures that count.
        warnings.simplefilter("ignore", UserWarning)
        return fit_rule(
            evidence.scores[rows],
            evidence.codes[rows],
            evidence.weights[rows],
            rule.class_weights,
            rule.objective,
            classes=rule.classes,
            positive=rule.positive,
            prior=rule.prior,
            seed=rule.seed,
        )
