"""From scores to decisions: probabilities and the class of a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit


def probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn the log-odds of the heads (n_rows, heads) into probabilities (n_rows, n_classes).

    One head gives the two-class softmax of equations 5-6. With several, P(y=c|x) of each head
    (equation 7) is divided by their sum, which leaves the argmax as it is.
    """
    if scores.shape[1] == 1:
        return np.concatenate([expit(-scores), expit(scores)], axis=1)
    logs = log_expit(scores)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def decide(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class number of each row: the sign of one head, the argmax of several."""
    if scores.shape[1] == 1:
        return np.asarray(scores[:, 0] > 0, dtype=np.int64)
    return np.asarray(np.argmax(scores, axis=1))
