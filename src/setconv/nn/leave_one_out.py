"""Every row a query against the others: similarities with representatives that leave it out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setconv.nn.gradients import apply

_NEARLY_ALL = 0.99
_TINY = 1e-12  # the square of torch's own bound when it normalises a vector


def left_out_shares(average: Tensor) -> Tensor:
    """Return each row's share in the representative of its own side, (..., rows, 1).

    A row that is alone on its side has nobody to be compared with but itself: share 0. So has one
    with nearly all the weight: what the others leave would drown in rounding errors.
    """
    share = average.sum(dim=-2).unsqueeze(-1)
    return torch.where(share < _NEARLY_ALL, share, 0.0)


def pick_sides(average: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Split values (..., rows, 2) for the two sides into those of a row's own and the other."""
    on_one = (average[..., 1, :] > 0).to(values.dtype).unsqueeze(-1)
    zero, one = values[..., :1], values[..., 1:]
    return on_one * one + (1 - on_one) * zero, on_one * zero + (1 - on_one) * one


def signed(average: Tensor, margin: Tensor) -> Tensor:
    """Turn own minus other side (..., rows, 1) into side 1 minus side 0, (..., rows)."""
    on_one = (average[..., 1, :] > 0).to(margin.dtype)
    return margin.squeeze(-1) * (2 * on_one - 1)


def cosine_margin(embedded: Tensor, average: Tensor) -> Tensor:
    """Return the cosine with the own side's others minus that with the other side, signed.

    With ``a`` the share of row ``h`` in the mean ``m`` of its side, the mean of the others is
    ``(m - a h) / (1 - a)``; its products and length follow from those of ``h`` and ``m``, so that
    no embedding is made a second time. The gradient, with respect to the embeddings alone, is
    written by hand, with two passes over them. It can be taken once.

    Parameters
    ----------
    embedded : Tensor of shape (heads, episodes, rows, features)
    average : Tensor of shape (heads, episodes or 1, 2, rows)

    Returns
    -------
    Tensor of shape (heads, episodes, rows)
    """
    margin: Tensor = apply(_CosineMargin, embedded, average)
    return margin


class _CosineMargin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, embedded: Tensor, average: Tensor) -> Tensor:
        # What belongs to a row and a side is (..., rows, 2); a row has no share in the other side.
        share = torch.where(average < _NEARLY_ALL, average, 0).mT
        means = average @ embedded
        square = torch.linalg.vector_norm(embedded, dim=-1, keepdim=True).square_()
        shared = share * square
        products = embedded @ means.mT
        inner = products - shared
        rest = means.square().sum(dim=-1).unsqueeze(-2) - share * (products + inner)
        scale = (rest.clamp_min(_TINY) * square.clamp_min(_TINY)).rsqrt_()
        cosine = inner.mul_(scale)
        ctx.save_for_backward(embedded, average, share, means, square, rest, scale, cosine)
        # Where a row is hundreds of times as long as the others, what is left cancels to noise.
        zero, one = cosine.clamp(-1, 1).unbind(dim=-1)
        margin: Tensor = one - zero
        return margin

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        embedded, average, share, means, square, rest, scale, cosine = ctx.saved_tensors
        to_cosine = torch.stack([-gradient, gradient], dim=-1)
        to_cosine = torch.where(cosine.abs() <= 1, to_cosine, 0)
        to_inner = to_cosine * scale
        # inner / sqrt(rest * square) falls by half of itself over each of them.
        fall = to_cosine.mul_(cosine).mul_(-0.5)
        to_rest = torch.where(rest >= _TINY, fall / rest.clamp_min(_TINY), 0)
        to_square = torch.where(
            square >= _TINY, fall.sum(dim=-1, keepdim=True) / square.clamp_min(_TINY), 0
        )
        through = share * to_rest
        to_square = to_square + (share * (through - to_inner)).sum(dim=-1, keepdim=True)
        to_products = torch.sub(to_inner, through, alpha=2)
        to_mean_squares = to_rest.sum(dim=-2).unsqueeze(-1)
        to_means = torch.addcmul(to_products.mT @ embedded, to_mean_squares, means, value=2)
        # A row acts by its products with the means, and by its share in them: in one product.
        sides = average.expand(*embedded.shape[:2], -1, -1).mT
        acts = torch.cat([to_products, sides], dim=-1) @ torch.cat([means, to_means], dim=-2)
        return acts.addcmul_(embedded, to_square, value=2), None


def left_out_means(embedded: Tensor, average: Tensor) -> Tensor:
    """Return for each row the mean of the others on its side, the shape of ``embedded``."""
    share = left_out_shares(average)
    own_side = (average > 0).to(embedded.dtype).mT
    own = own_side @ (average @ embedded)
    return (own - share * embedded) / (1 - share)
