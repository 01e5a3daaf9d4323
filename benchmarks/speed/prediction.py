"""Prediction against the bare matrix products that it needs.

The products are those of the encoder and of the set convolution of all members, in the blocks in
which rows go through the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.speed.made import dense_rows
from benchmarks.speed.timing import medians
from setconv import SetConvClassifier
from setconv.model import BLOCK


def measure(rows: int, features: int, turns: int) -> dict[str, float]:
    """Return the median seconds of a prediction, and of its products.

    The model learns from a few of the rows in a few steps: neither its rows nor what it learned
    show in the time of a prediction.
    """
    X, y = dense_rows(rows, features)
    known = min(rows, 10_000)
    model = SetConvClassifier(max_steps=20, n_members=5, progress=False, random_state=0)
    model.fit(X[:known], y[:known])
    jobs = {"predict": lambda: model.predict(X), "products": bare_products(model, rows)}
    return medians(jobs, turns, warm_up=0)


def bare_products(model: SetConvClassifier, rows: int) -> Callable[[], None]:
    """Return a job that does nothing but the products of a prediction of so many rows."""
    shape: dict[str, Any] = model.network_.spec
    (width,) = shape["encoder"]
    members, out = shape["n_members"], 2 * shape["out_features"]
    block = torch.randn(BLOCK, shape["in_features"])
    wide = torch.randn(shape["in_features"], members * width)
    encoded, kernel = torch.randn(members, BLOCK, width), torch.randn(members, width, out)
    first, second = torch.empty(BLOCK, members * width), torch.empty(members, BLOCK, out)

    def products() -> None:
        for _ in range(-(-rows // BLOCK)):
            torch.mm(block, wide, out=first)
            torch.bmm(encoded, kernel, out=second)

    return products
