"""What is asked of a fitted SetConv beyond its test rows: other post-training subsets."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.experiment.protocol.measuring import key, measure, read_key
from setconv.experiment.protocol.study import Probe

__all__ = ["BALANCED", "POST_SIZE", "probe_model"]

POST_SIZE = "post-training size"
BALANCED = "post-training size, balanced subsets"


def probe_model(
    model: Any,
    probe: Probe,
    train: tuple[Any, NDArray[Any]],
    test: tuple[Any, NDArray[Any]],
    reported: Sequence[str],
    seed: int,
) -> dict[str, float]:
    """Return the metrics along the sizes of the post-training subset.

    For each size, representatives are made anew from a random subset of the training rows and the
    test rows are measured; the network and the thresholds stay. With more than one draw there are
    two metrics more, once with subsets that keep the classes' shares and once with balanced ones:

    - ``movement``: how far a representative lies from the mean over the draws (root mean square),
      over the distance between the two representatives of its head, averaged over heads and
      members;
    - ``flips``: share of test rows whose predicted class is not the one with all training rows.
    """
    found: dict[str, float] = {}
    rng = np.random.default_rng(seed)
    moving = probe.draws > 1
    before = copy.deepcopy(model).post_train(*train).predict(test[0]) if moving else None
    for curve in (POST_SIZE, BALANCED) if moving else (POST_SIZE,):
        for size in probe.post_sizes:
            figures, places, flips = [], [], []
            for _ in range(probe.draws):
                rows = _draw(train[1], size, curve == BALANCED, rng)
                moved = copy.deepcopy(model).post_train(train[0][rows], train[1][rows])
                figures.append(measure(moved, *test, reported))
                if moving:
                    places.append(moved.representatives_)
                    flips.append(np.mean(moved.predict(test[0]) != before))
            found |= _along(curve, size, figures)
            if moving:
                for label in reported:
                    found[key("movement", label, curve, size)] = _movement(np.stack(places))
                    found[key("flips", label, curve, size)] = float(np.mean(flips))
    return found


def _along(curve: str, size: int, figures: list[dict[str, float]]) -> dict[str, float]:
    """Average over draws, under names that say where on the curve they are."""
    found = {}
    for name in figures[0]:
        parts = read_key(name)
        if parts is not None:
            mean = float(np.mean([one[name] for one in figures]))
            found[key(parts[0], parts[1], curve, size)] = mean
    return found


def _draw(
    labels: NDArray[Any], size: int, balanced: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random subset that has every class, at most all rows."""
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    shares = np.full(len(classes), 1 / len(classes)) if balanced else counts / len(labels)
    wanted = np.clip(np.round(size * shares).astype(int), 1, counts)
    drawn = [
        rng.choice(np.flatnonzero(codes == code), count, replace=False)
        for code, count in enumerate(wanted)
    ]
    return np.sort(np.concatenate(drawn))


def _movement(places: NDArray[np.floating[Any]]) -> float:
    """Return the relative movement of (draws, ..., 2, features) representatives."""
    mean = places.mean(axis=0)
    squared = ((places - mean) ** 2).sum(axis=-1).mean(axis=0)  # (..., 2)
    apart = np.linalg.norm(mean[..., 1, :] - mean[..., 0, :], axis=-1)
    moved = np.sqrt(squared.mean(axis=-1))
    return float(np.mean(moved[apart > 0] / apart[apart > 0])) if (apart > 0).any() else np.nan
