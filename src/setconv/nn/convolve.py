"""Embeddings by the set convolution with a linear g1, at the cost of one product each way."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setconv.nn.gradients import accumulate, apply


def convolve(
    rows: Tensor, anchor: Tensor, attention: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    """Return ``((anchor - rows) weight + bias) * (rows softmax(attention))`` for each row.

    Both factors, for all heads that share rows, are columns of one product, and the gradient is
    written by hand, with few passes over each matrix. It can be taken once.

    Parameters
    ----------
    rows : Tensor of shape (groups, n, in)
        Each group's rows are shared by ``stack / groups`` heads that follow one another.
    anchor : Tensor of shape (stack, 1, in)
    attention, weight : Tensors of shape (stack, in, out)
    bias : Tensor of shape (stack, 1, out)

    Returns
    -------
    Tensor of shape (stack, n, out)
    """
    embedded: Tensor = apply(_Convolve, rows, anchor, attention, weight, bias)
    return embedded


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, anchor: Tensor, attention: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        groups, n_rows, n_in = rows.shape
        heads, n_out = len(attention) // groups, attention.shape[-1]
        wide = rows.new_empty(groups, n_in, heads, 2, n_out)
        shares, slopes = _by_head(wide)
        powers = (attention - attention.amax(dim=-2, keepdim=True)).exp_()
        total = powers.sum(dim=-2).view(groups, heads, 1, n_out)
        torch.div(powers.view(shares.shape), total, out=shares)
        torch.neg(weight.view(slopes.shape), out=slopes)
        product = (rows @ wide.flatten(2)).view(groups, n_rows, heads, 2, n_out)
        attended, weighing = _by_head(product)
        weighing.add_(torch.baddbmm(bias, anchor, weight).view(groups, heads, 1, n_out))
        embedded = rows.new_empty(groups, heads, n_rows, n_out)
        torch.mul(weighing, attended, out=embedded)
        ctx.save_for_backward(rows, anchor, weight, wide, product, embedded)
        return embedded.view(-1, n_rows, n_out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, anchor, weight, wide, product, embedded = ctx.saved_tensors
        stack = len(weight)
        gradient = gradient.view(embedded.shape)
        attended, weighing = _by_head(product)
        through = torch.empty_like(product)
        to_attended, to_weighing = _by_head(through)
        torch.mul(gradient, weighing, out=to_attended)
        torch.mul(gradient, attended, out=to_weighing)
        to_bias = to_weighing.sum(dim=-2).view(stack, 1, -1)
        # d/dW of x softmax(W) is softmax(W) (x - attended), and weighing * attended = embedded.
        mean = (gradient * embedded).sum(dim=-2, keepdim=True)
        through = through.flatten(2)
        to_wide = (rows.mT @ through).view(wide.shape)
        to_shares, to_slopes = _by_head(to_wide)
        to_attention, to_weight = torch.empty_like(weight), torch.empty_like(weight)
        torch.sub(to_shares, mean, out=to_attention.view(to_shares.shape))
        to_attention.view(to_shares.shape).mul_(_by_head(wide)[0])
        torch.neg(to_slopes, out=to_weight.view(to_slopes.shape))
        accumulate(to_weight, anchor, to_bias)
        to_rows = through @ wide.flatten(2).mT if ctx.needs_input_grad[0] else None
        to_anchor = to_bias @ weight.mT if ctx.needs_input_grad[1] else None
        return to_rows, to_anchor, to_attention, to_weight, to_bias


def _by_head(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Split (groups, n, heads, 2, out) into both factors, each (groups, heads, n, out)."""
    first, second = columns.transpose(1, 2).unbind(dim=-2)
    return first, second
