"""The SetConv layer against the literal form that builds the N x d x d_o tensor.

    python benchmarks/speed/layer.py

Forward and backward, float32, both in one run; the ratio is what counts, on an idle machine.
"""

from __future__ import annotations

import argparse

import torch
from timing import medians
from torch import Tensor

from setconv.nn import SetConv


def literal(layer: SetConv, rows: Tensor, anchor: Tensor) -> Tensor:
    """Equations 2-4 as printed: the Khatri-Rao kernel, made whole, then the sum over it."""
    (g1,) = layer.g1
    weight = (anchor - rows) @ g1.weight + g1.bias
    attention = torch.softmax(layer.attention, dim=0)
    kernel = weight.unsqueeze(1) * attention.unsqueeze(0)  # N x d x d_o
    return (rows.unsqueeze(-1) * kernel).sum(dim=(0, 1)) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--out", type=int, default=128)
    parser.add_argument("--turns", type=int, default=5)
    size = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    layer = SetConv(size.features, size.out, generator=generator)
    rows = torch.randn(size.rows, size.features, generator=generator)
    anchor = torch.randn(size.features, generator=generator)
    with torch.no_grad():
        gap = (layer(rows, anchor) - literal(layer, rows, anchor)).abs().max().item()

    def both_ways(form: object) -> None:
        layer.zero_grad()
        form(layer, rows, anchor).sum().backward()  # type: ignore[operator]

    seconds = medians(
        {
            "fast": lambda: both_ways(lambda layer, rows, anchor: layer(rows, anchor)),
            "literal": lambda: both_ways(literal),
        },
        size.turns,
    )
    print(f"N={size.rows}, d={size.features}, d_o={size.out}, {torch.get_num_threads()} threads")
    print(f"largest difference of the two results: {gap:.1e}")
    for name, value in seconds.items():
        print(f"{name:8} {value * 1e3:9.3f} ms forward and backward")
    print(f"literal / fast: {seconds['literal'] / seconds['fast']:.0f}x")


if __name__ == "__main__":
    main()
