"""The SetConv layer against literal forms that build the N x d x d_o tensor.

"printed" multiplies the factors of the Khatri-Rao kernel by broadcasting; "authors" makes the
kernel as one outer product an output feature, as the authors' code does. Forward and backward,
float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.speed.timing import medians
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


def ours(layer: SetConv, rows: Tensor, anchor: Tensor) -> Tensor:
    return layer.forward(rows, anchor)


FORMS: dict[str, Form] = {"ours": ours, "printed": printed, "authors": authors}


def measure(rows: int, features: int, out: int, turns: int) -> dict[str, float]:
    """Return the median seconds of each form, and the largest difference of their results."""
    generator = torch.Generator().manual_seed(0)
    layer = SetConv(features, out, generator=generator)
    drawn = torch.randn(rows, features, generator=generator)
    anchor = torch.randn(features, generator=generator)
    with torch.no_grad():
        results = [form(layer, drawn, anchor) for form in FORMS.values()]

    def both_ways(form: Form) -> None:
        layer.zero_grad()
        form(layer, drawn, anchor).sum().backward()

    seconds = medians({name: partial(both_ways, form) for name, form in FORMS.items()}, turns)
    difference = max((result - results[0]).abs().max().item() for result in results)
    return {**seconds, "difference": difference}
