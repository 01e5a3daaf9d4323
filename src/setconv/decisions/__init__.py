"""From out-of-fold scores to decisions that the user can state, and calibrated probabilities.

An objective says what a decision is to be good at; the out-of-fold scores say which threshold is
best for it, and which probability a score stands for. Nothing here knows the network.
"""

from __future__ import annotations

from setconv.decisions.calibration import Calibrator
from setconv.decisions.objective import Objective, parse_objective, parse_prior
from setconv.decisions.rule import DecisionRule, cross_fit, fit_rule, unproven_rule

__all__ = [
    "Calibrator",
    "DecisionRule",
    "Objective",
    "cross_fit",
    "fit_rule",
    "parse_objective",
    "parse_prior",
    "unproven_rule",
]
