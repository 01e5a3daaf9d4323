"""The set convolution, equations 2-4 of the paper, without its large tensor.

`SetConv` is the layer, and `Kernel` the layer made ready for one anchor. Both are made of
`StackedLinear`, many linear layers at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from setconv.errors import DataError, ParameterError
from setconv.nn.functional import convolve, embed_rows


class SetConv(nn.Module):
    r"""The set convolution: a set of rows in, one vector out, whatever their order and number.

    The kernel :math:`g(Y - X)` of equation 2 is the Khatri-Rao product of a data-sensitive weight
    :math:`g_1` and a feature attention :math:`g_2` (equation 4), and then

    .. math::

        h[Y] = \frac{1}{N} \sum_{i=1}^{N}
               \mathrm{MLP}(Y - x_i; \theta) \odot \bigl(x_i\,\mathrm{softmax}(W)\bigr)

    is the same sum term by term, so the ``N x d x d_o`` tensor of the printed form is never made:
    a row has an embedding of its own, and a set's representation is the mean of its rows'.

    Parameters
    ----------
    in_features : int
        Number of features of a row, ``d``.
    out_features : int
        Number of output features, ``d_o``.
    hidden : sequence of int, default=()
        Widths of the hidden layers (ReLU) of the MLP ``g1``; empty means one linear layer.
    stack : int or None, default=None
        Hold this many independent layers in one module (one-vs-all heads). Rows are then
        ``(stack, n, d)``, or ``(n, d)`` shared by all; results gain the stack axis before ``n``.
    generator : torch.Generator or None
        Source of the initial weights; the global one if None.

    Attributes
    ----------
    attention : Parameter of shape ([stack,] in_features, out_features)
        ``W``; starts at zero, so that the attention starts uniform.
    g1 : ModuleList of StackedLinear
        The MLP; starts by He's rule with biases of zero, as in the authors' code.

    References
    ----------
    Gao et al., "SetConv: A New Approach for Learning from Imbalanced Data", EMNLP 2020,
    section 3.2.

    Examples
    --------
    >>> import torch
    >>> from setconv.nn import SetConv
    >>> layer = SetConv(in_features=5, out_features=3)
    >>> sets = torch.randn(4, 7, 5)  # four sets of seven rows
    >>> layer(sets, anchor=torch.zeros(5)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: Sequence[int] = (),
        *,
        stack: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = (in_features, *hidden, out_features)
        if min(sizes) < 1:
            raise ParameterError(
                f"SetConv needs sizes of at least 1; got in_features={in_features}, "
                f"hidden={tuple(hidden)}, out_features={out_features}."
            )
        self.in_features = in_features
        self.out_features = out_features
        self.hidden = tuple(hidden)
        self.stack = stack
        lead = () if stack is None else (stack,)
        self.attention = nn.Parameter(torch.zeros(*lead, in_features, out_features))
        self.g1 = nn.ModuleList(
            StackedLinear(n_in, n_out, stack=stack, gain=math.sqrt(2), generator=generator)
            for n_in, n_out in pairwise(sizes)
        )

    def forward(
        self,
        rows: Tensor,
        anchor: Tensor,
        *,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        n_sets: int | None = None,
    ) -> Tensor:
        """Represent sets of rows, each by one vector.

        Parameters
        ----------
        rows : Tensor of shape (..., n, in_features)
            Each ``(n, in_features)`` slice is a set, unless ``segments`` says otherwise.
        anchor : Tensor of shape (..., in_features)
            ``Y``; its leading dimensions broadcast against those of ``rows``.
        mask : Tensor of shape (..., n), optional
            False (or 0) for padding. Non-negative floats weigh the rows.
        segments : integer Tensor of shape (n,), optional
            The set that each row belongs to, for sets of different sizes laid end to end.
        n_sets : int, optional
            Number of sets with ``segments``; by default the largest segment plus one.

        Returns
        -------
        Tensor of shape (..., out_features), or (..., n_sets, out_features) with ``segments``
        """
        embedded = self.embed(rows, anchor)
        weights = None if mask is None else mask.to(embedded.dtype)
        if segments is not None:
            return _segment_mean(embedded, weights, segments, n_sets)
        if weights is None:
            if embedded.shape[-2] == 0:
                raise DataError("SetConv got an empty set (0 rows): a set needs at least one row.")
            return embedded.mean(dim=-2)
        total = weights.sum(dim=-1, keepdim=True)
        _refuse_empty(total)
        return ((weights / total).unsqueeze(-2) @ embedded).squeeze(-2)

    def embed(self, rows: Tensor, anchor: Tensor) -> Tensor:
        """Embed each row as a set of one: rows (..., n, d), anchor (..., d) -> (..., n, d_o)."""
        self._check(rows, anchor)
        if anchor.dim() == 1 and self.stack is None and not self.hidden:
            embedded = embed_rows(rows.reshape(-1, self.in_features), anchor, *self._matrices())
            return embedded.view(*rows.shape[:-1], self.out_features)
        weight = anchor.unsqueeze(-2) - rows
        for depth, linear in enumerate(self.g1):
            weight = linear(torch.relu(weight) if depth else weight)
        return weight * stacked_matmul(rows, torch.softmax(self.attention, dim=-2))

    def prepare(self, anchor: Tensor) -> Kernel:
        """Fix the anchor (..., 1, d) for many rows: the same as `embed`, in one product.

        What depends on the anchor and the weights alone is computed once.
        """
        first, *deeper = cast("list[StackedLinear]", list(self.g1))
        matrix = torch.cat([torch.softmax(self.attention, dim=-2), first.weight], dim=-1)
        return Kernel(matrix, first(anchor), deeper, self.out_features)

    def embed_shared(self, rows: Tensor, anchor: Tensor) -> Tensor:
        """Embed rows that heads of a stack share: the same as `prepare`, to train a linear g1.

        Rows (groups, n, d), those of a group for ``stack / groups`` heads that follow one another;
        anchor (stack, 1, d) -> (stack, n, d_o).
        """
        return convolve(rows, anchor, *self._matrices())

    def extra_repr(self) -> str:
        """Describe the layer in the way torch modules do."""
        stack = "" if self.stack is None else f", stack={self.stack}"
        return f"{self.in_features}, {self.out_features}, hidden={self.hidden}{stack}"

    def _matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the attention, and the weight and the bias of a g1 of one layer."""
        (first,) = cast("list[StackedLinear]", list(self.g1))
        assert first.bias is not None
        return self.attention, first.weight, first.bias

    def _check(self, rows: Tensor, anchor: Tensor) -> None:
        for name, tensor in (("rows", rows), ("anchor", anchor)):
            if tensor.shape[-1:] != (self.in_features,):
                raise DataError(
                    f"SetConv(in_features={self.in_features}) got {name} of shape "
                    f"{tuple(tensor.shape)}: the last dimension must be {self.in_features}."
                )


def _segment_mean(
    embedded: Tensor, weights: Tensor | None, segments: Tensor, n_sets: int | None
) -> Tensor:
    if segments.dim() != 1 or len(segments) != embedded.shape[-2]:
        raise DataError(
            f"segments must name the set of each of the {embedded.shape[-2]} rows; "
            f"got shape {tuple(segments.shape)}."
        )
    size = (int(segments.max()) + 1 if len(segments) else 0) if n_sets is None else n_sets
    if weights is None:
        weights = embedded.new_ones(embedded.shape[-2])
    shape = (*embedded.shape[:-2], size, embedded.shape[-1])
    sums = embedded.new_zeros(shape).index_add(-2, segments, embedded * weights.unsqueeze(-1))
    total = weights.new_zeros((*weights.shape[:-1], size)).index_add(-1, segments, weights)
    _refuse_empty(total)
    return sums / total.unsqueeze(-1)


def _refuse_empty(total: Tensor) -> None:
    if bool((total <= 0).any()):
        where = (total.reshape(-1) <= 0).nonzero()[0].item()
        raise DataError(
            f"SetConv got an empty set (number {where}, counted from 0): every set needs at least "
            "one row with a positive weight."
        )


@dataclass(frozen=True)
class Kernel:
    """A `SetConv` layer made ready for one anchor: what is left to do is rows times a matrix.

    Attributes
    ----------
    matrix : Tensor of shape ([stack,] in_features, out_features + width)
        ``[softmax(W) | theta_1]``: both factors of the kernel share one product with the rows.
    anchor_part : Tensor of shape (..., 1, width)
        ``theta_1 Y + b_1``, the part of the first layer of g1 that does not depend on the row.
    deeper : sequence of StackedLinear
        The layers of g1 after its first.
    out_features : int
    """

    matrix: Tensor
    anchor_part: Tensor
    deeper: Sequence[StackedLinear]
    out_features: int

    def __call__(self, rows: Tensor) -> Tensor:
        """Embed every row: ``g1(Y - x) * (x softmax(W))``, shape (..., n, out_features)."""
        product = stacked_matmul(rows, self.matrix)
        attended = product[..., : self.out_features]
        weight = self.anchor_part - product[..., self.out_features :]
        for linear in self.deeper:
            weight = linear(torch.relu(weight))
        return weight.mul_(attended) if weight.is_inference() else weight * attended


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
