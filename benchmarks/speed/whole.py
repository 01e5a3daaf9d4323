"""A whole default fit, and prediction against the bare matrix products that it needs.

    python benchmarks/speed/whole.py [--rows N] [--features D]

The products of a prediction are those of the encoder and of the set convolution of all members, in
the blocks in which rows go through the network.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from timing import medians

from setconv import SetConvClassifier
from setconv.model import BLOCK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=16_800)
    parser.add_argument("--features", type=int, default=384)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.rows, arguments.features), dtype=np.float32)
    y = rng.random(arguments.rows) < 0.15
    started = time.perf_counter()
    model = SetConvClassifier(progress=False, random_state=0).fit(X, y)
    print(
        f"{torch.get_num_threads()} threads; fit of {arguments.rows} x {arguments.features}: "
        f"{time.perf_counter() - started:.1f} s ({model.network_.n_members} members, "
        f"{model.n_steps_} steps)"
    )
    shape = model.network_.spec
    members, width, out = shape["n_members"], shape["encoder"][0], 2 * shape["out_features"]
    block = torch.randn(BLOCK, arguments.features)
    wide = torch.randn(arguments.features, members * width)
    encoded, kernel = torch.randn(members, BLOCK, width), torch.randn(members, width, out)
    first, second = torch.empty(BLOCK, members * width), torch.empty(members, BLOCK, out)

    def products() -> None:
        for _ in range(-(-arguments.rows // BLOCK)):
            torch.mm(block, wide, out=first)
            torch.bmm(encoded, kernel, out=second)

    found = medians({"predict": lambda: model.predict(X), "products": products}, turns=5)
    print(
        f"prediction {found['predict'] * 1e3:.0f} ms, products {found['products'] * 1e3:.0f} ms, "
        f"ratio {found['predict'] / found['products']:.2f}"
    )


if __name__ == "__main__":
    main()
