"""A ReLU layer with dropout, at the cost of its products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setconv.nn.dropout import draw_mask, dropout_scale
from setconv.nn.gradients import accumulate, apply
from setconv.nn.stacked import StackedLinear


def relu_layer(
    linear: StackedLinear,
    rows: Tensor,
    others: Tensor,
    share: float = 0.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``relu(linear(...))`` of rows, with dropout, and of other rows without.

    Both go through at once because they share a gradient as large as the weights: it is made in
    one pass, where automatic differentiation makes two and adds them. The gradient can be taken
    once.

    Parameters
    ----------
    linear : StackedLinear
    rows : Tensor of shape ([stack,] n, in)
    others : Tensor of shape ([stack,] n_others, in)
    share : float
        Of the dropout.
    generator : torch.Generator or None
        Turns dropout on.

    Returns
    -------
    rows, others : Tensors of shape ([stack,] n, out) and ([stack,] n_others, out)
    """
    weight, bias = linear.weight, linear.bias
    if bias is None:
        raise RuntimeError("a ReLU layer has a bias")
    mask = draw_mask((*rows.shape[:-1], weight.shape[-1]), rows, share, generator)
    scale = 1.0 if mask is None else dropout_scale(share)
    pair: tuple[Tensor, Tensor] = apply(
        _ReluLayer,
        *(_stacked(tensor) for tensor in (rows, others, weight)),
        bias.view(-1, 1, weight.shape[-1]),
        None if mask is None else _stacked(mask),
        scale,
    )
    if weight.dim() == 2:
        return pair[0].squeeze(0), pair[1].squeeze(0)
    return pair


def _stacked(tensor: Tensor) -> Tensor:
    return tensor.unsqueeze(0) if tensor.dim() == 2 else tensor


class _ReluLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        others: Tensor,
        weight: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        scale: float,
    ) -> tuple[Tensor, Tensor]:
        # What is kept is scaled up by the product itself: relu(s x) = s relu(x).
        active = torch.baddbmm(bias * scale, rows, weight, alpha=scale).clamp_min_(0)
        if mask is not None:
            active.mul_(mask)
        plain = torch.baddbmm(bias, others, weight).clamp_min_(0)
        ctx.save_for_backward(rows, others, weight, active, plain)
        ctx.scale = scale
        return active, plain

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, to_active: Tensor, to_plain: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor, None, None]:
        rows, others, weight, active, plain = ctx.saved_tensors
        # What is 0 was negative or dropped: no gradient either way.
        inner = torch.ops.aten.threshold_backward(to_active, active, 0)
        inner = inner if ctx.scale == 1 else inner.mul_(ctx.scale)
        outer = torch.ops.aten.threshold_backward(to_plain, plain, 0)
        to_rows = to_others = None
        if ctx.needs_input_grad[0]:
            to_rows = inner @ weight.mT
        if ctx.needs_input_grad[1]:
            to_others = outer @ weight.mT
        to_weight = rows.mT @ inner
        accumulate(to_weight, others, outer)
        to_bias = inner.sum(dim=-2, keepdim=True) + outer.sum(dim=-2, keepdim=True)
        return to_rows, to_others, to_weight, to_bias, None, None
