"""A training step against the bare matrix products that it needs.

    python benchmarks/speed/step.py

The products are those of the encoder and of the set convolution, forward and backward, on the rows
of one step, as plain ``torch.mm`` into buffers that are there already. A step cannot do without
them, so the ratio is how far it is from the limit. Steps and products take turns in one fit.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise

import numpy as np
import torch

from setconv import SetConvClassifier
from setconv.training import Callback, TrainingState

Product = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def list_products(widths: list[int], rows: int) -> list[Product]:
    """Return (a, b, buffer) of every product: values, weight gradients, input gradients."""
    found = []
    for depth, (n_in, n_out) in enumerate(pairwise(widths)):
        found.append((torch.randn(rows, n_in), torch.randn(n_in, n_out)))
        found.append((torch.randn(n_in, rows), torch.randn(rows, n_out)))
        if depth:  # the rows themselves need no gradient
            found.append((torch.randn(rows, n_out), torch.randn(n_out, n_in)))
    return [(a, b, torch.empty(a.shape[0], b.shape[1])) for a, b in found]


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
            torch.mm(a, b, out=buffer)
        self.bare.append(time.perf_counter() - now)
        self._started = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="*", default=[384, 1024])
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{torch.get_num_threads()} threads, default parameters, two classes, 15 % minority")
    for features in arguments.features:
        X = rng.standard_normal((10_000, features), dtype=np.float32)
        y = rng.random(10_000) < 0.15
        model = SetConvClassifier(max_steps=arguments.steps, progress=False, random_state=0)
        rows = model.n_episodes * (model.support_size + 2 * model.n_queries)
        # The set convolution is one product for both factors of its kernel.
        watch = Stopwatch(list_products([features, *model.encoder, 2 * model.out_features], rows))
        model.set_params(callbacks=[watch]).fit(X, y)
        step, bare = statistics.median(watch.steps), statistics.median(watch.bare)
        print(
            f"d={features}: {rows} rows, step {step * 1e3:.1f} ms, products {bare * 1e3:.1f} ms, "
            f"ratio {step / bare:.2f}"
        )


if __name__ == "__main__":
    main()
