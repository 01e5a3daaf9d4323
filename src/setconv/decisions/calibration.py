"""From scores to probabilities for the prevalence of the training data, or for another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, log_softmax

from setconv.decisions.cuts import Floats


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
            logits = self._log_odds(scores[:, 0]) + (shift[1] - shift[0])
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

    def to_dict(self) -> dict[str, Any]:
        """Return the calibrator as plain data for JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibrator:
        """Return the calibrator that `to_dict` described."""
        low, high = map(float, data["slopes"])
        intercepts, prior = (tuple(map(float, data[name])) for name in ("intercepts", "prior"))
        return cls((low, high), intercepts, float(data["centre"]), float(data["scale"]), prior)

    def _shift(self, prior: Floats | None) -> Floats:
        if prior is None:
            return np.zeros(len(self.prior))
        return np.asarray(np.log(prior) - np.log(self.prior))

    def _log_odds(self, scores: Floats) -> Floats:
        u = (scores - self.centre) / self.scale
        low, high = self.slopes
        return low * u + self.intercepts[0] if low == high else self._bent(u)

    def _bent(self, u: Floats) -> Floats:
        low, high = self.slopes
        return np.asarray(low * log_expit(u) - high * log_expit(-u) + self.intercepts[0])


def natural_calibrator(prior: Floats) -> Calibrator:
    """Return the calibrator that takes scores at their word, where no row can tell better.

    Balanced episodes make scores the log-odds of equally frequent classes; they are shifted to
    the prevalence.
    """
    logs = np.log(prior)
    intercepts = (logs[1] - logs[0],) if len(prior) == 2 else logs
    return Calibrator((1.0, 1.0), tuple(map(float, intercepts)), 0.0, 1.0, tuple(map(float, prior)))
