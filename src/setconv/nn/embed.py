"""Embeddings by one set convolution with a linear g1, in the fewest passes over its matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setconv.nn.gradients import apply


def embed_rows(
    rows: Tensor, anchor: Tensor, attention: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    """Return ``((anchor - rows) weight + bias) * (rows softmax(attention))``.

    With few rows the softmax of the whole matrix, forward and backward, costs as much as the
    products. Here the columns are normalised after the product, where they are short, and the
    gradient is written by hand, with one pass over the matrix. It can be taken once.

    Parameters
    ----------
    rows : Tensor of shape (n, in)
    anchor : Tensor of shape (in,)
    attention, weight : Tensors of shape (in, out)
    bias : Tensor of shape (out,)

    Returns
    -------
    Tensor of shape (n, out)
    """
    embedded: Tensor = apply(_Embed, rows, anchor, attention, weight, bias)
    return embedded


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, anchor: Tensor, attention: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        gaps = anchor - rows
        powers = (attention - attention.amax(dim=0)).exp_()
        total = powers.sum(dim=0)
        attended = (rows @ powers).div_(total)
        weighing = (gaps @ weight).add_(bias)
        ctx.save_for_backward(rows, gaps, powers, total, weight, attended, weighing)
        return weighing * attended

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, gaps, powers, total, weight, attended, weighing = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        to_attended = (gradient * weighing).div_(total)
        to_weighing = gradient * attended
        to_rows = to_anchor = to_attention = to_weight = None
        if wanted[2]:
            # d/dW of sum_i x_i e^(W_i) / sum_i e^(W_i) is e^(W_i) (x_i - attended) / total.
            mean = (to_attended * attended).sum(dim=0)
            to_attention = (rows.mT @ to_attended).sub_(mean).mul_(powers)
        if wanted[3]:
            to_weight = gaps.mT @ to_weighing
        if wanted[0] or wanted[1]:
            to_gaps = to_weighing @ weight.mT
            to_rows = (to_attended @ powers.mT).sub_(to_gaps)
            to_anchor = to_gaps.sum(dim=0)
        return to_rows, to_anchor, to_attention, to_weight, to_weighing.sum(dim=0)
