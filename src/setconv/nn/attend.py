"""Feature attention, ``rows @ softmax(W)``, at the cost of its products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setconv.nn.stacked import stacked_matmul


def attend(rows: Tensor, attention: Tensor) -> Tensor:
    """Return ``rows @ softmax(attention, dim=-2)``.

    With few rows the softmax of the whole matrix, forward and backward, costs as much as the
    products. Here the columns are normalised after the product, where they are short, and the
    gradient is written by hand, with one pass over the matrix. It can be taken once.

    Parameters
    ----------
    rows : Tensor of shape (..., n, in), or (n, in) shared by a stack
    attention : Tensor of shape ([stack,] in, out)

    Returns
    -------
    Tensor of shape (..., [stack,] n, out)
    """
    # torch leaves apply() without types.
    attended: Tensor = _Attend.apply(rows, attention)  # type: ignore[no-untyped-call]
    return attended


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, attention: Tensor) -> Tensor:
        powers = (attention - attention.amax(dim=-2, keepdim=True)).exp_()
        total = powers.sum(dim=-2, keepdim=True)
        attended = stacked_matmul(rows, powers) / total
        ctx.save_for_backward(rows, powers, total, attended)
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rows, powers, total, attended = ctx.saved_tensors
        scaled = gradient / total
        to_rows = to_attention = None
        if ctx.needs_input_grad[0]:
            to_rows = (scaled @ powers.mT).sum_to_size(rows.shape)
        if ctx.needs_input_grad[1]:
            # d/dW of sum_i x_i e^(W_i) / sum_i e^(W_i) is e^(W_i) (x_i - attended) / total.
            mean = (scaled * attended).sum(dim=-2, keepdim=True).sum_to_size(total.shape)
            to_attention = _weight_gradient(rows, scaled, powers).sub_(mean).mul_(powers)
        return to_rows, to_attention


def _weight_gradient(rows: Tensor, gradient: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient of ``stacked_matmul(rows, weight)`` with respect to ``weight``."""
    if weight.dim() == 2:
        return rows.reshape(-1, rows.shape[-1]).mT @ gradient.reshape(-1, gradient.shape[-1])
    return (rows.mT @ gradient).sum_to_size(weight.shape)
