"""Every row a query against the others: similarities with representatives that leave it out."""

from __future__ import annotations

import torch
from torch import Tensor

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
    no embedding is made a second time.

    Parameters
    ----------
    embedded : Tensor of shape (heads, episodes, rows, features)
    average : Tensor of shape (heads, episodes or 1, 2, rows)

    Returns
    -------
    Tensor of shape (heads, episodes, rows)
    """
    means = average @ embedded
    products = embedded @ means.mT
    squares = embedded.square().sum(dim=-1, keepdim=True)
    mean_squares = means.square().sum(dim=-1).unsqueeze(-2).expand_as(products)
    share = left_out_shares(average)
    own, other = pick_sides(average, products)
    own_square, other_square = pick_sides(average, mean_squares)
    rest_square = own_square - 2 * share * own + share.square() * squares
    length = squares.clamp_min(_TINY)
    to_own = (own - share * squares) * (rest_square.clamp_min(_TINY) * length).rsqrt()
    to_other = other * (other_square.clamp_min(_TINY) * length).rsqrt()
    # Where a row is hundreds of times as long as the others, what is left cancels to noise.
    return signed(average, to_own.clamp(-1, 1) - to_other)


def left_out_means(embedded: Tensor, average: Tensor) -> Tensor:
    """Return for each row the mean of the others on its side, the shape of ``embedded``."""
    share = left_out_shares(average)
    own_side = (average > 0).to(embedded.dtype).mT
    own = own_side @ (average @ embedded)
    return (own - share * embedded) / (1 - share)
