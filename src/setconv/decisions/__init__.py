"""From out-of-fold scores to decisions that the user can state, and calibrated probabilities.

An objective says what a decision is to be good at; the out-of-fold scores say which threshold is
best for it, and which probability a score stands for. Nothing here knows the network.
"""

from __future__ import annotations

from setconv.decisions.minimums import Promises, promises
from setconv.decisions.objective import Objective, parse_objective, parse_prior
from setconv.decisions.rule import DecisionRule, Predictions

__all__ = [
    "DecisionRule",
    "Objective",
    "Predictions",
    "Promises",
    "parse_objective",
    "parse_prior",
    "promises",
]
