"""A training step against the bare matrix products that it needs, and members together or in turn.

    python benchmarks/speed/step.py

The products are those of the encoder and of the set convolution, forward and backward, on the rows
of one step of all members, as plain ``torch.bmm`` into buffers that are there already. A step
cannot do without them, so the ratio is how far it is from the limit. Steps and products take turns
in one fit. "In turn" is the step of one member times the number of members.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise

import numpy as np
import torch

from setconv import SetConvClassifier
from setconv.parameters import FitParameters
from setconv.training import Callback, TrainingState

Product = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def list_products(widths: list[int], rows: int, members: int) -> list[Product]:
    """Return (a, b, buffer) of every product: values, weight gradients, input gradients."""
    found = []
    for depth, (n_in, n_out) in enumerate(pairwise(widths)):
        found.append(((rows, n_in), (n_in, n_out)))
        found.append(((n_in, rows), (rows, n_out)))
        if depth:  # the rows themselves need no gradient
            found.append(((rows, n_out), (n_out, n_in)))
    return [
        (
            torch.randn(members, *a),
            torch.randn(members, *b),
            torch.empty(members, a[0], b[1]),
        )
        for a, b in found
    ]


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


def measure(X: np.ndarray, y: np.ndarray, members: int, steps: int) -> tuple[float, float]:
    """Return the median seconds of a step, and of its products."""
    model = SetConvClassifier(n_members=members, max_steps=steps, progress=False, random_state=0)
    plan = FitParameters.of(model).settle(*X.shape)
    rows = plan.n_episodes * (model.support_size + 2 * model.n_queries)
    # The set convolution is one product for both factors of its kernel.
    widths = [X.shape[1], *plan.encoder, 2 * plan.out_features]
    watch = Stopwatch(list_products(widths, rows, members))
    model.set_params(callbacks=[watch]).fit(X, y)
    return statistics.median(watch.steps), statistics.median(watch.bare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="*", default=[384, 1024])
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{torch.get_num_threads()} threads, default parameters, two classes, 15 % minority")
    for features in arguments.features:
        X = rng.standard_normal((10_000, features), dtype=np.float32)
        y = rng.random(10_000) < 0.15
        step, bare = measure(X, y, arguments.members, arguments.steps)
        alone, _ = measure(X, y, 1, arguments.steps)
        in_turn = alone * arguments.members
        print(
            f"d={features}: {arguments.members} members, step {step * 1e3:.1f} ms, products "
            f"{bare * 1e3:.1f} ms, ratio {step / bare:.2f}; in turn {in_turn * 1e3:.1f} ms, "
            f"{in_turn / step:.2f} times as long"
        )


if __name__ == "__main__":
    main()
