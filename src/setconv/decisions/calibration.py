"""Probabilities from scores: the calibrator, and how it is fitted to out-of-fold scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, log_softmax

from setconv.data import count_heads, from_plain
from setconv.decisions.objective import Codes, Floats, OutOfFoldScores

# A loss, its gradient and its curvature.
_Expansion = tuple[float, Floats, Floats]

# A slope stays over this share of one standard deviation of the scores, so that ranking is kept
# even when the scores say nothing, or the wrong thing.
_LEAST_SLOPE = 1e-3
_RIDGE = 1e-8
# Twice the log-likelihood gained; by chance alone that is chi-squared with one degree of freedom.
_BEND_GAIN = 10.0
_BEND_ROWS = 50
# Numbers, not rows, so that many classes take no longer than two.
_MOST_NUMBERS = 200_000


@dataclass(frozen=True)
class Calibrator:
    """Scores as log-odds of the training data's classes, strictly increasing in the score.

    With u = (score - centre) / scale, two classes have the log-odds ``slope * u + intercept``
    of class 1 (Platt), or, where two slopes differ, a smooth bend at u = 0 from ``slopes[0]`` below
    to ``slopes[1]`` above. More classes have softmax(slope * u + intercepts).

    Attributes
    ----------
    slopes : tuple of two floats
        Both positive.
    intercepts : tuple of floats
        One for two classes, else one a class.
    centre, scale : float
    prior : tuple of floats
        The share of each class in the training data.
    """

    slopes: tuple[float, float]
    intercepts: tuple[float, ...]
    centre: float
    scale: float
    prior: tuple[float, ...]

    def log_probabilities(self, scores: Floats, prior: Floats | None = None) -> Floats:
        """Return the logarithms of the probabilities, shape (n_rows, n_classes).

        Parameters
        ----------
        scores : float array of shape (n_rows, heads)
        prior : float array of shape (n_classes,), optional
            The prevalence that they are for, by default that of the training data: each class's
            probability is multiplied by the ratio of both and all are normalised again.
        """
        shift = self._shift(prior)
        if len(self.intercepts) == 1:
            u = (scores[:, 0] - self.centre) / self.scale
            low, high = self.slopes
            logits = low * u + self.intercepts[0] if low == high else self._bent(u)
            logits = logits + (shift[1] - shift[0])
            return np.stack([log_expit(-logits), log_expit(logits)], axis=1)
        logits = self.slopes[0] * ((scores - self.centre) / self.scale)
        return np.asarray(log_softmax(logits + (np.asarray(self.intercepts) + shift), axis=1))

    def probabilities(self, scores: Floats, prior: Floats | None = None) -> Floats:
        """Return the probabilities, shape (n_rows, n_classes); as `log_probabilities`."""
        return np.asarray(np.exp(self.log_probabilities(scores, prior)))

    def thresholds(self, prior: Floats | None = None) -> Floats:
        """Return what to take off the scores so that the largest probability decides, (heads,)."""
        if len(self.intercepts) == 1:
            return np.array([self.score_at(0.0, prior)])
        found = -(np.asarray(self.intercepts) + self._shift(prior)) * (self.scale / self.slopes[0])
        return np.asarray(found - found.mean())

    def score_at(self, log_odds: float, prior: Floats | None = None) -> float:
        """Return the score of two classes at which class 1 has these log-odds."""
        shift = self._shift(prior)
        wanted = log_odds - float(shift[1] - shift[0])
        low, high = self.slopes
        reach = (wanted - self.intercepts[0]) / low
        if low != high:
            # A bend takes off at most log 2 of the steeper slope.
            bound = (abs(wanted - self.intercepts[0]) + max(low, high)) / min(low, high) + 1.0
            reach = brentq(lambda u: float(self._bent(np.array(u))) - wanted, -bound, bound)
        return self.centre + self.scale * reach

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibrator:
        """Return the calibrator from its fields as plain data."""
        found = from_plain(cls, data)
        if len(found.intercepts) != count_heads(len(found.prior)):
            raise ValueError("wrong: intercepts")
        if min(*found.slopes, found.scale, *found.prior) <= 0:
            raise ValueError("wrong: calibrator")
        return found

    def _shift(self, prior: Floats | None) -> Floats:
        if prior is None:
            return np.zeros(len(self.prior))
        return np.asarray(np.log(prior) - np.log(self.prior))

    def _bent(self, u: Floats) -> Floats:
        low, high = self.slopes
        return np.asarray(low * log_expit(u) - high * log_expit(-u) + self.intercepts[0])


def fit_calibrator(evidence: OutOfFoldScores, prior: Floats, *, seed: int = 0) -> Calibrator:
    """Fit probabilities to the rows, for the prevalence of the training data.

    The targets are smoothed as Platt did: a row of a class with n rows counts as that class for
    (n + 1) / (n + n_classes), the remainder shared among the others. So the result is finite
    when the scores separate the classes. Two classes with at least 50 rows each get a bend where it
    raises the likelihood clearly. A class without rows is moved as the others are on average; if
    fewer than two classes have rows, scores are taken at their word.

    Parameters
    ----------
    evidence : OutOfFoldScores
        Beyond 200,000 scores a sample of the rows is used, drawn class by class, with at least
        a tenth of that from each class that has so many.
    prior : float array of shape (n_classes,)
        The share of each class in the training data.
    seed : int
        Of the sample.
    """
    seen = np.flatnonzero(evidence.seen)
    if len(seen) < 2:
        return natural_calibrator(prior)
    if not np.array_equal(prior, evidence.prior):
        evidence = evidence.weighed(prior / evidence.prior)
    most = _MOST_NUMBERS // evidence.scores.shape[1]
    part = evidence.thinned(most, most // 10, seed)
    if evidence.n_classes == 2:
        return _fit_two(part.scores[:, 0], part.codes, part.weights, prior)
    scores, codes = np.ascontiguousarray(part.scores[:, seen]), np.searchsorted(seen, part.codes)
    if len(seen) == evidence.n_classes:
        return _fit_many(scores, codes, part.weights, prior)
    found = _fit_many(scores, codes, part.weights, prior[seen] / prior[seen].sum())
    logs = np.log(prior)
    intercepts = logs + np.mean(found.intercepts - logs[seen])
    intercepts[seen] = found.intercepts
    return replace(found, intercepts=_floats(intercepts), prior=_floats(prior))


def natural_calibrator(prior: Floats) -> Calibrator:
    """Return the calibrator that takes scores at their word, where no row can tell better.

    Balanced episodes make scores the log-odds of equally frequent classes; they are shifted to
    the prevalence.
    """
    logs = np.log(prior)
    intercepts = (logs[1] - logs[0],) if len(prior) == 2 else logs
    return Calibrator((1.0, 1.0), _floats(intercepts), 0.0, 1.0, _floats(prior))


def _fit_two(scores: Floats, codes: Codes, weights: Floats, prior: Floats) -> Calibrator:
    """Fit the one curve of two classes, straight or with a bend."""
    own = _smoothed(codes, weights, 2)
    weights = weights / weights.sum()
    target = np.where(codes == 1, own[1], 1 - own[0])
    centre = float(np.mean([scores[codes == c].mean() for c in (0, 1)]))
    scale = _spread(scores - np.average(scores, weights=weights), weights)
    u = (scores - centre) / scale
    base = float(np.log(prior[1]) - np.log(prior[0]))

    def fit(*features: Floats) -> tuple[Floats, float]:
        columns = np.stack([*features, np.ones(len(u))])

        def loss(parameters: Floats) -> _Expansion:
            logits = parameters @ columns
            chance = expit(logits)
            value = -float(weights @ (log_expit(-logits) + target * logits))
            curvature = (columns * (weights * chance * (1 - chance))) @ columns.T
            return value, columns @ (weights * (chance - target)), curvature

        return _minimise(loss, np.array([1.0] * len(features) + [base]), len(features))

    straight, loss = fit(u)
    slopes, intercept = (float(straight[0]), float(straight[0])), float(straight[1])
    if np.bincount(codes, minlength=2).min() >= _BEND_ROWS:
        bent, bent_loss = fit(log_expit(u), -log_expit(-u))
        size = 1 / (weights**2).sum()
        if 2 * size * (loss - bent_loss) > _BEND_GAIN:
            slopes, intercept = (float(bent[0]), float(bent[1])), float(bent[2])
    return Calibrator(slopes, (intercept,), centre, scale, _floats(prior))


def _fit_many(scores: Floats, codes: Codes, weights: Floats, prior: Floats) -> Calibrator:
    """Fit one slope and an intercept a class."""
    n_classes = len(prior)
    own = _smoothed(codes, weights, n_classes)
    weights = weights / weights.sum()
    target = np.repeat(((1 - own) / (n_classes - 1))[codes, None], n_classes, axis=1)
    target[np.arange(len(codes)), codes] = own[codes]
    # Centred columns keep slope and intercepts apart while they are fitted.
    middle = np.average(scores, axis=0, weights=weights)
    scale = _spread(scores - middle, weights)
    u = (scores - middle) / scale

    def loss(parameters: Floats) -> _Expansion:
        logits = parameters[0] * u + parameters[1:]
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        sums = chance.sum(axis=1, keepdims=True)
        chance /= sums
        value = float(weights @ (np.log(sums[:, 0]) - (target * logits).sum(axis=1)))
        error = weights[:, None] * (chance - target)
        weighed = weights[:, None] * chance
        mean = (chance * u).sum(axis=1, keepdims=True)
        curvature = np.empty((n_classes + 1, n_classes + 1))
        curvature[0, 0] = (weighed * (u - mean) ** 2).sum()
        curvature[0, 1:] = curvature[1:, 0] = (weighed * (u - mean)).sum(axis=0)
        curvature[1:, 1:] = np.diag(weighed.sum(axis=0)) - weighed.T @ chance
        return value, np.append((error * u).sum(), error.sum(axis=0)), curvature

    found, _ = _minimise(loss, np.append(1.0, np.log(prior)), 1)
    slope = float(found[0])
    intercepts = found[1:] - slope * middle / scale
    return Calibrator((slope, slope), _floats(intercepts), 0.0, scale, _floats(prior))


def _smoothed(codes: Codes, weights: Floats, n_classes: int) -> Floats:
    """Return the share of a row's target that its own class has, one figure a class."""
    # Unequal weights count as so many rows as have the same effective size.
    sizes = np.bincount(codes, weights) ** 2 / np.bincount(codes, weights**2)
    return np.asarray((sizes + 1) / (sizes + n_classes))


def _spread(centred: Floats, weights: Floats) -> float:
    """Return the standard deviation, pooled over columns; 1 for constant scores."""
    columns = centred.reshape(len(weights), -1)
    spread = float(np.sqrt(weights @ (columns**2).mean(axis=1)))
    return spread if spread > 1e-12 * max(1.0, float(np.abs(columns).max())) else 1.0


def _minimise(
    loss: Callable[[Floats], _Expansion], start: Floats, slopes: int
) -> tuple[Floats, float]:
    """Minimise a convex loss by Newton's method, the first parameters being bounded slopes."""

    def with_ridge(point: Floats) -> _Expansion:
        value, gradient, curvature = loss(point)
        curvature = curvature + _RIDGE * np.eye(len(point))
        return value + 0.5 * _RIDGE * float(point @ point), gradient + _RIDGE * point, curvature

    least = np.full(len(start), -np.inf)
    least[:slopes] = _LEAST_SLOPE
    point = np.maximum(start, least)
    value, gradient, curvature = with_ridge(point)
    for _ in range(100):
        free = (point > least) | (gradient < 0)
        step = np.zeros_like(point)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        length = 1.0
        while length > 1e-10:
            moved = np.maximum(point - length * step, least)
            found = with_ridge(moved)
            if found[0] < value:
                break
            length /= 2
        else:
            break
        gain = value - found[0]
        point, (value, gradient, curvature) = moved, found
        if gain < 1e-14:
            break
    return point, value


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(map(float, values))
