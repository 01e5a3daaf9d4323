"""Probabilities as the paper prints them, equations 5-7."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

from setconv.decisions.cuts import Floats


def paper_probabilities(scores: Floats) -> Floats:
    """Turn the log-odds of the heads (n_rows, heads) into probabilities (n_rows, n_classes).

    One head gives the two-class softmax of equations 5-6. With several, P(y=c|x) of each head
    (equation 7) is divided by their sum, which leaves the argmax as it is.
    """
    if scores.shape[1] == 1:
        return np.concatenate([expit(-scores), expit(scores)], axis=1)
    logs = log_expit(scores)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
