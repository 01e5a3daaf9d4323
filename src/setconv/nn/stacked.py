"""Linear maps that exist several times over and are applied in one product."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def stacked_matmul(rows: Tensor, weight: Tensor) -> Tensor:
    """Multiply rows by one matrix, or by a stack of matrices at once.

    Parameters
    ----------
    rows : Tensor of shape (..., n, in)
        With a stack also (n, in), shared by the whole stack, or (groups, n, in), each shared by
        ``stack / groups`` matrices that follow one another (the heads of one member).
    weight : Tensor of shape (in, out) or (stack, in, out)

    Returns
    -------
    Tensor of shape (..., n, out) or (..., stack, n, out)
    """
    if weight.dim() == 2 or rows.dim() > 3 or rows.shape[:-2] == weight.shape[:1]:
        return rows @ weight
    # Shared rows: one wide product instead of several narrow ones.
    stack, n_in, n_out = weight.shape
    if rows.dim() == 2 or len(rows) == 1:
        product = rows.reshape(-1, n_in) @ side_by_side(weight)
        return product.view(-1, stack, n_out).transpose(0, 1)
    groups = len(rows)
    wide = weight.view(groups, -1, n_in, n_out).transpose(1, 2).reshape(groups, n_in, -1)
    product = (rows @ wide).view(groups, rows.shape[1], -1, n_out)
    return product.transpose(1, 2).reshape(stack, -1, n_out)


def side_by_side(weight: Tensor) -> Tensor:
    """Lay the matrices (stack, in, out) of a stack beside each other: (in, stack * out)."""
    return weight.transpose(0, 1).reshape(weight.shape[1], -1)


class StackedLinear(nn.Module):
    """``stack`` independent linear layers held in one tensor.

    Parameters
    ----------
    in_features, out_features : int
    stack : int or None
        How many layers; ``None`` is a single one without a stack axis.
    bias : bool, default=True
    gain : float, default=1.0
        Weights start uniform with standard deviation ``gain / sqrt(in_features)``; ``sqrt(2)`` is
        He's rule for a layer before a ReLU. Biases start at zero.
    generator : torch.Generator or None
        Source of the initial weights.

    Attributes
    ----------
    weight : Parameter of shape ([stack,] in_features, out_features)
    bias : Parameter of shape (out_features,) or (stack, 1, out_features), or None
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        stack: int | None = None,
        bias: bool = True,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        lead = () if stack is None else (stack,)
        self.weight = nn.Parameter(torch.empty(*lead, in_features, out_features))
        bound = gain * math.sqrt(3 / in_features)
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        shape = (out_features,) if stack is None else (stack, 1, out_features)
        self.bias = nn.Parameter(torch.zeros(shape)) if bias else None

    def forward(self, rows: Tensor) -> Tensor:
        """Apply every layer of the stack to ``rows`` (see `stacked_matmul`)."""
        if self.weight.dim() == 2:
            return functional.linear(rows, self.weight.mT, self.bias)
        product = stacked_matmul(rows, self.weight)
        return product if self.bias is None else product + self.bias
