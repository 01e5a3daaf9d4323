"""What the layers compute, as functions of tensors, with gradients that are written by hand.

Dropout comes first, then a layer of the encoder (`relu_layer`), the set convolution for many heads
at once (`convolve`) and for one (`embed_rows`), and the comparison in which every row is a query
against the others (`cosine_margin`, `left_out_means`). Functions with a gradient of their own are
called by `apply`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_LEVELS = 256  # of a random byte


def drop(values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Set a share of the values to zero and scale the others up; the identity without generator."""
    kept = draw_mask(values.shape, values, share, generator)
    return values if kept is None else values * kept.mul_(dropout_scale(share))


def draw_mask(
    shape: Sequence[int], like: Tensor, share: float, generator: torch.Generator | None
) -> Tensor | None:
    """Return 1 for each value to keep and 0 for others, or None where nothing is dropped.

    On the device and of the type of ``like``.
    The share is taken to the nearest 1/256, and something is always kept: one random byte a value
    costs a tenth of a Bernoulli draw, and masks are a large part of a training step.
    """
    threshold = _threshold(share)
    if generator is None or threshold == 0:
        return None
    # Eight bytes at a time.
    size = math.prod(shape)
    words = torch.empty(-(-size // 8), dtype=torch.int64, device=like.device)
    noise = words.random_(-(2**63), None, generator=generator).view(torch.uint8)
    # Comparing in place stays with floats: torch is slow at making booleans.
    return noise[:size].view(shape).to(like.dtype).ge_(threshold)


def dropout_scale(share: float) -> float:
    """Return the factor on what is kept, so that the mean stays."""
    return _LEVELS / (_LEVELS - _threshold(share))


def _threshold(share: float) -> int:
    return min(round(share * _LEVELS), _LEVELS - 1)


def relu_layer(
    rows: Tensor,
    others: Tensor,
    weight: Tensor,
    bias: Tensor,
    share: float = 0.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``relu(x weight + bias)`` of rows, with dropout, and of other rows without.

    Both go through at once because they share a gradient as large as the weights: it is made in
    one pass, where automatic differentiation makes two and adds them. The gradient can be taken
    once.

    Parameters
    ----------
    rows : Tensor of shape (stack, n, in)
    others : Tensor of shape (stack, n_others, in)
    weight : Tensor of shape (stack, in, out)
    bias : Tensor of shape (stack, 1, out)
    share : float
        Of the dropout.
    generator : torch.Generator or None
        Turns dropout on.

    Returns
    -------
    rows, others : Tensors of shape (stack, n, out) and (stack, n_others, out)
    """
    mask = draw_mask((*rows.shape[:-1], weight.shape[-1]), rows, share, generator)
    scale = 1.0 if mask is None else dropout_scale(share)
    pair: tuple[Tensor, Tensor] = apply(_ReluLayer, rows, others, weight, bias, mask, scale)
    return pair


class _ReluLayer(Function):
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
        if others.shape[-2] == 1:
            to_weight.addcmul_(others.mT, outer)
        else:
            to_weight += others.mT @ outer
        to_bias = inner.sum(dim=-2, keepdim=True) + outer.sum(dim=-2, keepdim=True)
        return to_rows, to_others, to_weight, to_bias, None, None


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


class _Convolve(Function):
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
        to_weight.addcmul_(anchor.mT, to_bias)
        to_rows = through @ wide.flatten(2).mT if ctx.needs_input_grad[0] else None
        to_anchor = to_bias @ weight.mT if ctx.needs_input_grad[1] else None
        return to_rows, to_anchor, to_attention, to_weight, to_bias


def _by_head(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Split (groups, n, heads, 2, out) into both factors, each (groups, heads, n, out)."""
    first, second = columns.transpose(1, 2).unbind(dim=-2)
    return first, second


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


class _Embed(Function):
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


_NEARLY_ALL = 0.99
_TINY = 1e-12  # the square of torch's own bound when it normalises a vector


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


class _CosineMargin(Function):
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
        to_square = fall.sum(dim=-1, keepdim=True) / square.clamp_min(_TINY)
        to_square = torch.where(square >= _TINY, to_square, 0)
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
    """Return for each row the mean of the others on its side, the shape of ``embedded``.

    A row that is alone on its side has nobody to be compared with but itself, and so has one with
    nearly all the weight: what the others leave would drown in rounding errors.
    """
    share = average.sum(dim=-2).unsqueeze(-1)  # of each row in its own side, (..., rows, 1)
    share = torch.where(share < _NEARLY_ALL, share, 0.0)
    own = (average > 0).to(embedded.dtype).mT @ (average @ embedded)
    return (own - share * embedded) / (1 - share)


def apply(function: type[Function], *arguments: Any) -> Any:
    """Compute a function that brings its own gradient; torch leaves its ``apply`` without types."""
    kind = arguments[0].device.type
    if not torch.is_autocast_enabled(kind):
        return function.apply(*arguments)
    # Autocast would round products here, but not those of the gradient.
    low = (torch.bfloat16, torch.float16)
    full = (a.float() if isinstance(a, Tensor) and a.dtype in low else a for a in arguments)
    with torch.autocast(kind, enabled=False):
        return function.apply(*full)
