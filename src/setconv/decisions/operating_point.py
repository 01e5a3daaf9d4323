"""The thresholds for an objective: which choice to make on which rows with which weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setconv.decisions.calibration import Calibrator
from setconv.decisions.cuts import Floats
from setconv.decisions.evidence import Evidence
from setconv.decisions.floors import precision_threshold, recall_threshold
from setconv.decisions.objective import Objective
from setconv.decisions.offsets import choose_offsets, margins_of
from setconv.decisions.threshold import choose_threshold

_STEADYING_ROWS = 20


class OperatingPoint(NamedTuple):
    """Thresholds (heads,), and whether a minimum is met; None where none was asked for."""

    thresholds: Floats
    met: bool | None = None


def choose_operating_point(
    evidence: Evidence | None,
    objective: Objective,
    *,
    calibrator: Calibrator,
    prior: Floats | None,
    positive: int,
    class_weights: Floats,
    seed: int,
) -> OperatingPoint:
    """Return the thresholds for an objective.

    Class weights say how much a class matters: they are the powers of the recalls in "balanced" and
    factors of the rows of a cost matrix, and change no other figure. A prior multiplies the weights
    of the rows by its ratio to the training data's, except where prevalence plays no part:
    "balanced" and a minimum recall.

    Without evidence, or of two classes of which one has no rows, nothing can be chosen: scores are
    cut at 0, where balanced episodes put the middle, and no minimum is met.
    """
    kind = objective.kind
    heads = len(calibrator.intercepts)
    if kind == "accuracy":
        return OperatingPoint(calibrator.thresholds(prior))
    if kind == "cost":
        cost = scaled_cost(objective, class_weights)
        if heads > 1:
            return OperatingPoint(np.zeros(heads))
        false_alarm, miss = cost[0, 1] - cost[0, 0], cost[1, 0] - cost[1, 1]
        odds = float(np.log(false_alarm) - np.log(miss))
        return OperatingPoint(np.array([calibrator.score_at(odds, prior)]))
    if kind == "paper" or evidence is None or (heads == 1 and not evidence.seen.all()):
        return OperatingPoint(np.zeros(heads), None if objective.level is None else False)
    rows = evidence
    if kind not in ("balanced", "recall") and prior is not None:
        rows = evidence.weighed(prior / np.asarray(calibrator.prior))
    if kind == "recall" or kind == "precision":
        return _floor(rows, objective, positive)
    powers = class_weights / class_weights.sum()
    if heads > 1:
        return OperatingPoint(choose_offsets(rows, kind, powers=powers, seed=seed))
    cut = choose_threshold(rows, kind, positive=positive, powers=powers, seed=seed)
    if kind == "balanced":
        cut = _steadied(cut, rows, calibrator, powers)
    return OperatingPoint(np.array([cut]))


def _steadied(cut: float, rows: Evidence, calibrator: Calibrator, powers: Floats) -> float:
    """Draw the best cut of few rows towards the one that the calibrated probabilities give.

    That is where both classes, weighed by their powers, are equally likely if they are equally
    frequent. It has two parameters instead of the whole distribution of the scores behind it, so
    it varies less; it counts like 20 rows of the rarer class. Where scores hardly tell the classes
    apart it can lie far beyond all of them, and is not followed there.
    """
    even = np.full(2, 0.5)
    probable = calibrator.score_at(float(np.log(powers[0]) - np.log(powers[1])), even)
    share = _STEADYING_ROWS / (_STEADYING_ROWS + int(np.bincount(rows.codes).min()))
    steadied = (1 - share) * cut + share * probable
    column = rows.scores[:, 0]
    # Outside of these all rows would be of one class: the worst decision for "balanced".
    return steadied if column.min() <= steadied < column.max() else cut


def scaled_cost(objective: Objective, class_weights: Floats) -> Floats:
    """Return cost[true, predicted], each row multiplied by the weight of its class."""
    return np.asarray(np.asarray(objective.cost) * class_weights[:, None])


def _floor(rows: Evidence, objective: Objective, positive: int) -> OperatingPoint:
    target = positive if objective.target is None else objective.target
    heads = rows.scores.shape[1]
    thresholds = np.zeros(heads)
    if not rows.seen[target]:
        return OperatingPoint(thresholds, met=False)
    assert objective.level is not None
    choose = recall_threshold if objective.kind == "recall" else precision_threshold
    member = rows.codes == target
    if heads > 1:
        margins = margins_of(rows.scores, target)
        thresholds[target], met = choose(margins, member, rows.weights, objective.level)
        # Alarms for rows of a class that has none here are not counted.
        everywhere = objective.kind == "recall" or bool(rows.seen.all())
        return OperatingPoint(thresholds, met and everywhere)
    column = rows.scores[:, 0]
    if target == 1:
        thresholds[0], met = choose(column, member, rows.weights, objective.level)
    else:
        # Class 0 is decided on at the threshold itself too, hence the next float below.
        mirrored, met = choose(-column, member, rows.weights, objective.level)
        thresholds[0] = np.nextafter(-mirrored, -np.inf)
    return OperatingPoint(thresholds, met)
