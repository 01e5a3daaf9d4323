"""The prevalence of the classes where the model is used, as the user states it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.cuts import Floats
from setconv.errors import ParameterError


def parse_prior(prior: Any, classes: Any, positive: int) -> Floats | None:
    """Read a prevalence: None, a dictionary of label to share, or shares in class order.

    Parameters
    ----------
    prior : None, float, mapping or array-like of shape (n_classes,)
        Shares over 0 that sum to 1. A dictionary may leave out one class, which gets the rest. One
        number is the share of the class of interest of two.
    classes : array-like
        The labels, in the order of the class numbers.
    positive : int
        The class number of the class of interest.

    Returns
    -------
    float array of shape (n_classes,), or None
    """
    if prior is None:
        return None
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    given = _in_order(prior, labels) if isinstance(prior, Mapping) else prior
    if len(labels) == 2 and np.ndim(given) == 0:
        given = _with_rest(given, positive)
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"prior={prior!r} is not made of numbers ({error}): give the share of each class."
        ) from error
    if shares.shape != (len(labels),):
        raise ParameterError(
            f"prior={prior!r}: give one share for each of the {len(labels)} classes, in the order "
            f"{labels!r}, or a dictionary of label to share."
        )
    if not np.isfinite(shares).all() or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-6:
        raise ParameterError(
            f"prior={prior!r}: the shares of the classes {labels!r} must be over 0 and sum to 1 "
            f"(they are {shares.tolist()})."
        )
    return np.asarray(shares / shares.sum())


def weights_to_prior(codes: NDArray[np.int64], prior: Floats) -> Floats:
    """Return weights of rows that give the classes these shares, and 1 on average."""
    counts = np.bincount(codes, minlength=len(prior))
    return np.asarray((prior * len(codes) / np.maximum(counts, 1))[codes])


def _with_rest(share: Any, positive: int) -> Any:
    if not isinstance(share, (int, float, np.number)):
        return share
    both = [1 - float(share), float(share)]
    return both if positive == 1 else both[::-1]


def _in_order(prior: Mapping[Any, Any], labels: list[Any]) -> list[Any]:
    unknown = [label for label in prior if label not in labels]
    missing = [label for label in labels if label not in prior]
    if unknown or len(missing) > 1:
        raise ParameterError(
            f"prior={dict(prior)!r}: give the shares of the classes {labels!r}; one of them may "
            "be left out and gets the rest."
        )
    rest = 1 - sum(map(float, prior.values())) if missing else 0.0
    return [prior.get(label, rest) for label in labels]
