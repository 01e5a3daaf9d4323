"""A training step against the bare matrix products that it needs.

The products are those of the encoder and of the set convolution, forward and backward, on the rows
of one step of all members, as plain ``torch.bmm`` into buffers that are there already. A step
cannot do without them, so the ratio is how far it is from the limit. Steps and products take turns
in one fit.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from benchmarks.speed.made import dense_rows
from setconv.classifier import SetConvClassifier, check_parameters
from setconv.data import count_heads
from setconv.fitting import settle
from setconv.preprocessing import PreparedRows
from setconv.training import Callback, TrainingState

Product = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Stopwatch(Callback):
    """Time every step, and after it the bare products."""

    def __init__(self, products: list[Product]) -> None:
        self.products = products
        self.steps: list[float] = []
        self.bare: list[float] = []
        self._started = 0.0

    def on_fit_begin(self, state: TrainingState) -> None:  # noqa: ARG002
        self._started = time.perf_counter()

    def on_step_end(self, state: TrainingState) -> None:  # noqa: ARG002
        now = time.perf_counter()
        self.steps.append(now - self._started)
        for a, b, buffer in self.products:
            torch.bmm(a, b, out=buffer)
        self.bare.append(time.perf_counter() - now)
        self._started = time.perf_counter()


def measure(rows: int, features: int, classes: int, parameters: dict[str, Any]) -> dict[str, float]:
    """Return the median seconds of a step with these parameters, and of its products."""
    X, y = dense_rows(rows, features, [1 / (1 + c) for c in range(classes)])
    model = SetConvClassifier(**parameters, progress=False, random_state=0)
    watch = Stopwatch(list_products(*product_shape(model, rows, features, classes)))
    model.set_params(callbacks=[watch]).fit(X, y)
    return {
        "step": statistics.median(watch.steps),
        "products": statistics.median(watch.bare),
    }


def product_shape(
    model: SetConvClassifier, rows: int, features: int, classes: int
) -> tuple[list[int], int, int]:
    """Return the widths of a step's layers, its rows, and how many networks take their own rows."""
    prepared = PreparedRows(np.broadcast_to(0.0, (rows, features)))
    plan = settle(check_parameters(model), rows, prepared, n_classes=classes)
    heads, separate = count_heads(classes), model.heads == "separate"
    drawn = model.support_size + (2 if separate else classes) * model.n_queries
    # The set convolution is one product for both factors of its kernel and all heads that share
    # rows.
    last = 2 * plan.out_features * (1 if separate else heads)
    networks = plan.n_members * (heads if separate else 1)
    return [features, *plan.encoder, last], plan.n_episodes * drawn, networks


def list_products(widths: list[int], rows: int, networks: int) -> list[Product]:
    """Return (a, b, buffer) of every product: values, weight gradients, input gradients."""
    found = []
    for depth, (n_in, n_out) in enumerate(pairwise(widths)):
        found.append(((rows, n_in), (n_in, n_out)))
        found.append(((n_in, rows), (rows, n_out)))
        if depth:  # the rows themselves need no gradient
            found.append(((rows, n_out), (n_out, n_in)))
    return [
        (
            torch.randn(networks, *a),
            torch.randn(networks, *b),
            torch.empty(networks, a[0], b[1]),
        )
        for a, b in found
    ]
