"""The SetConv layer against literal forms that build the N x d x d_o tensor.

    python benchmarks/speed/layer.py

"printed" multiplies the factors of the Khatri-Rao kernel by broadcasting; "authors" makes the
kernel as one outer product an output feature, as the authors' code does. Forward and backward,
float32, all in one run; the ratios are what counts, on an idle machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from timing import medians
from torch import Tensor

from setconv.nn import SetConv

Form = Callable[[SetConv, Tensor, Tensor], Tensor]


def factors(layer: SetConv, rows: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor]:
    """Return g1 (N x d_o) and the attention (d x d_o)."""
    (g1,) = layer.g1
    return g1(anchor - rows), torch.softmax(layer.attention, dim=0)


def printed(layer: SetConv, rows: Tensor, anchor: Tensor) -> Tensor:
    """Equations 2-4 as printed: the kernel made whole, then the sum over it."""
    weight, attention = factors(layer, rows, anchor)
    kernel = weight.unsqueeze(1) * attention.unsqueeze(0)
    return (rows.unsqueeze(-1) * kernel).sum(dim=(0, 1)) / len(rows)


def authors(layer: SetConv, rows: Tensor, anchor: Tensor) -> Tensor:
    """Do the same with the kernel as a batch of outer products."""
    weight, attention = factors(layer, rows, anchor)
    outer = torch.bmm(weight.T.unsqueeze(2), attention.T.unsqueeze(1))  # d_o x N x d
    return (outer.permute(1, 2, 0) * rows.unsqueeze(-1)).sum(dim=(0, 1)) / len(rows)


def fast(layer: SetConv, rows: Tensor, anchor: Tensor) -> Tensor:
    return layer(rows, anchor)


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
    forms = {form.__name__: form for form in (fast, printed, authors)}
    with torch.no_grad():
        results = [form(layer, rows, anchor) for form in forms.values()]
    gap = max((result - results[0]).abs().max().item() for result in results)

    def both_ways(form: Form) -> None:
        layer.zero_grad()
        form(layer, rows, anchor).sum().backward()

    seconds = medians({n: partial(both_ways, form) for n, form in forms.items()}, size.turns)
    print(f"N={size.rows}, d={size.features}, d_o={size.out}, {torch.get_num_threads()} threads")
    print(f"largest difference of the results: {gap:.1e}")
    for name, value in seconds.items():
        ratio = value / seconds["fast"]
        print(f"{name:8} {value * 1e3:9.3f} ms forward and backward, {ratio:6.1f}x the fast layer")


if __name__ == "__main__":
    main()
