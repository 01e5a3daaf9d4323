"""The network around the layer: encoder, set convolution, output, similarity.

`SetConvNetwork` holds all heads of all members and is what is trained; `resolve_device` says where.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from setconv.errors import ParameterError
from setconv.nn.functional import cosine_margin, drop, left_out_means, relu_layer
from setconv.nn.layer import Kernel, SetConv, StackedLinear, side_by_side

Similarity = Literal["cosine", "dot"]
_TEMPERATURE = 5.0  # start of the learned factor on the cosine


class SetConvNetwork(nn.Module):
    """Members, each of one or more one-vs-all heads: encoder, set convolution and similarity.

    A head tells one class (side 1) from the rest (side 0); a binary problem has one head. Members
    are independent networks of the same shape. All heads of all members are computed in the same
    products; where a tensor has an axis of heads, those of the first member come first. Dropout is
    active exactly when a ``generator`` is passed, so results never depend on the global random
    state or on a train/eval flag.

    Parameters
    ----------
    in_features : int
    n_heads : int, default=1
        Heads of a member.
    n_members : int, default=1
    encoder : sequence of int, default=(256,)
        Widths of the ReLU layers before the set convolution; empty for none (the paper).
    out_features : int, default=128
        ``d_o`` of the set convolution.
    output : int or None, default=None
        Width of a bias-free ReLU layer after the set convolution (the authors' code).
    similarity : {"cosine", "dot"}, default="cosine"
        How an embedding is compared with a representative; "dot" is equation 5 of the paper.
    dropout : float, default=0.0
        Share of encoder outputs zeroed in training.
    input_dropout : float, default=0.0
        Share of input features zeroed in training: the same for all rows of an episode, so that
        support and queries stay comparable, and falling to half of it towards the end, so that
        training ends close to what prediction sees.
    share_encoder : bool, default=True
        Whether the heads of a member share the encoder or are wholly separate models.
    generator : torch.Generator or None
        Source of the initial weights.

    Attributes
    ----------
    spec : dict
        The arguments that make a network of the same shape.
    n_stacked : int
        All heads of all members.
    n_encoders : int
        One a member or, if encoders are not shared, one a head of each member.
    encoder : ModuleList of StackedLinear
        Weights of shape (n_encoders, in, out), or (in, out) if one member's heads share one.
    setconv : SetConv
        ``attention`` of shape (n_stacked, in, out); ``g1[k].weight`` likewise.
    output : StackedLinear or None
        Weight of shape (n_stacked, d_o, output).
    log_temperature : Parameter of shape (n_stacked,), or None for the dot product
    """

    def __init__(
        self,
        in_features: int,
        *,
        n_heads: int = 1,
        n_members: int = 1,
        encoder: Sequence[int] = (256,),
        out_features: int = 128,
        output: int | None = None,
        similarity: Similarity = "cosine",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        share_encoder: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            why = f'similarity={similarity!r}: choose "cosine" or "dot".'
            raise ParameterError(why, parameter="similarity")
        self.spec: dict[str, Any] = {
            "in_features": in_features,
            "n_heads": n_heads,
            "n_members": n_members,
            "encoder": tuple(encoder),
            "out_features": out_features,
            "output": output,
            "similarity": similarity,
            "dropout": dropout,
            "input_dropout": input_dropout,
            "share_encoder": share_encoder,
        }
        self.n_heads = n_heads
        self.n_members = n_members
        self.n_stacked = n_heads * n_members
        self.dropout = dropout
        self.input_dropout = input_dropout
        sizes = (in_features, *encoder)
        self.n_encoders = n_members if share_encoder else self.n_stacked
        stack = None if share_encoder and n_members == 1 else self.n_encoders
        linear = partial(StackedLinear, generator=generator)
        self.encoder = nn.ModuleList(
            linear(n_in, n_out, stack=stack, gain=math.sqrt(2)) for n_in, n_out in pairwise(sizes)
        )
        self.setconv = SetConv(sizes[-1], out_features, stack=self.n_stacked, generator=generator)
        self.output = None
        if output is not None:
            gain = math.sqrt(2 * out_features / (out_features + output))  # Xavier's
            self.output = linear(out_features, output, stack=self.n_stacked, bias=False, gain=gain)
        self.log_temperature = None
        if similarity == "cosine":
            start = torch.full((self.n_stacked,), math.log(_TEMPERATURE))
            self.log_temperature = nn.Parameter(start)

    @property
    def layers(self) -> list[StackedLinear]:
        """The layers of the encoder."""
        return cast("list[StackedLinear]", list(self.encoder))

    def forward(
        self,
        rows: Tensor,
        anchors: Tensor,
        average: Tensor,
        generator: torch.Generator | None = None,
        progress: float = 0.0,
    ) -> Tensor:
        """Score the queries of a batch of episodes.

        Parameters
        ----------
        rows : Tensor of shape (n_encoders, episodes, rows, d)
            The support rows of each episode, then its queries.
        anchors : Tensor of shape (heads, n_anchors, d)
        average : Tensor of shape (heads, episodes or 1, 2, support)
            Weights that average the support rows of each side; each row of it sums to one. If
            they cover all rows, each row is a query too, and is left out of its own side.
        generator : torch.Generator, optional
            Turns dropout on and drives it.
        progress : float, default=0.0
            How much of training is done, from 0 to 1; input dropout falls with it.

        Returns
        -------
        Tensor of shape (heads, episodes, queries)
            The margin: log-odds of side 1 under equations 5-6.
        """
        if generator is not None and self.input_dropout:
            share = self.input_dropout * (1 - progress / 2)
            kept = drop(anchors.new_ones(*rows.shape[:-2], 1, rows.shape[-1]), share, generator)
            rows = rows * kept
        embedded = self._embed_episodes(rows.flatten(1, 2), anchors, generator)
        embedded = embedded.reshape(self.n_stacked, *rows.shape[1:3], -1)
        if average.shape[-1] == rows.shape[-2]:
            margin = self._leave_one_out(embedded, average)
        else:
            margin = self._compare(embedded, average)
        scale = self.scale()
        return margin * (scale.unsqueeze(-1) if isinstance(scale, Tensor) else scale)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Run rows through the encoder.

        They are (n, d), for all encoders, or (n_encoders, n, d). Without an encoder rows come back
        as they are.
        """
        for linear in self.encoder:
            rows = drop(torch.relu(linear(rows)), self.dropout, generator)
        return rows

    def ready_encoder(self) -> Callable[[Tensor], Tensor]:
        """Return `encode` without dropout for many rows, under ``torch.inference_mode``.

        The first layer's weights for all members are laid side by side once, not at every call,
        and results are changed in place.
        """
        layers: list[Callable[[Tensor], Tensor]] = list(self.layers)
        if layers and self.layers[0].weight.dim() == 3:
            layers[0] = _beside(self.layers[0])

        def encode(rows: Tensor) -> Tensor:
            for layer in layers:
                rows = layer(rows).relu_()
            return rows

        return encode

    def prepare(self, anchors: Tensor) -> Callable[[Tensor], Tensor]:
        """Fix the anchors; returns the map from encoded rows to their embeddings ``h(x)``.

        Parameters
        ----------
        anchors : Tensor of shape (heads, n_anchors, d)
            With several anchors a head, the embeddings for each are laid side by side.
        """
        kernels = self.kernels(anchors)
        if len(kernels) == 1:
            return kernels[0]
        return lambda rows: torch.cat([kernel(rows) for kernel in kernels], dim=-1)

    def kernels(self, anchors: Tensor) -> list[Kernel]:
        """Return the kernels of all heads for each of their anchors (heads, n_anchors, d)."""
        stack = self.layers[0].weight.shape[:-2] if self.layers else ()
        encoded = self.encode(anchors.reshape(*stack, -1, anchors.shape[-1]))
        encoded = encoded.view(*anchors.shape[:-1], -1)
        return [self.setconv.prepare(one) for one in encoded.split(1, dim=-2)]

    def finish(self, embedded: Tensor) -> Tensor:
        """Turn the mean ``h`` of a set, or of a row, into what is compared; (heads, ..., d_o).

        Nothing for the paper's form, the output layer for the authors'; unit length for the
        cosine.
        """
        if self.output is not None:
            flat = embedded.reshape(self.n_stacked, -1, self.output.weight.shape[-2])
            embedded = torch.relu(self.output(flat)).view(*embedded.shape[:-1], -1)
        if self.log_temperature is None:
            return embedded
        return functional.normalize(embedded, dim=-1)

    def scale(self) -> Tensor | float:
        """Return the factor (heads, 1) on a difference of similarities."""
        return 1.0 if self.log_temperature is None else self.log_temperature.exp().unsqueeze(-1)

    def _embed_episodes(
        self, rows: Tensor, anchors: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """Return the embeddings ``h(x)`` of rows (n_encoders, n, d), in few passes over weights."""
        centres = anchors.reshape(self.n_encoders, -1, anchors.shape[-1])
        for linear in self.layers:
            assert linear.bias is not None
            weight = linear.weight.view(self.n_encoders, *linear.weight.shape[-2:])
            bias = linear.bias.view(self.n_encoders, 1, -1)
            rows, centres = relu_layer(rows, centres, weight, bias, self.dropout, generator)
        each = centres.reshape(*anchors.shape[:-1], -1).split(1, dim=-2)
        embedded = [self.setconv.embed_shared(rows, centre) for centre in each]
        return embedded[0] if len(embedded) == 1 else torch.cat(embedded, dim=-1)

    def _compare(self, embedded: Tensor, average: Tensor) -> Tensor:
        """Return the margin of the queries, which follow the support rows."""
        support = average.shape[-1]
        sides = self.finish(average @ embedded[:, :, :support])
        queries = self.finish(embedded[:, :, support:])
        # softmax over two similarities is the logistic function of their difference.
        difference = (sides[:, :, 1] - sides[:, :, 0]).unsqueeze(-1)
        return (queries @ difference).squeeze(-1)

    def _leave_one_out(self, embedded: Tensor, average: Tensor) -> Tensor:
        """Return the margin of every row, the representative of its own side made without it."""
        if self.output is None and self.log_temperature is not None:
            return cosine_margin(embedded, average)
        finished = self.finish(embedded)
        own = (finished * self.finish(left_out_means(embedded, average))).sum(-1)
        sides = finished @ self.finish(average @ embedded).mT
        on_one = (average[..., 1, :] > 0).to(sides.dtype)
        other = on_one * sides[..., 0] + (1 - on_one) * sides[..., 1]
        return (own - other) * (2 * on_one - 1)


def _beside(linear: StackedLinear) -> Callable[[Tensor], Tensor]:
    """Return a layer for rows that all of its stack share, with its weights laid side by side."""
    stack, _, n_out = linear.weight.shape
    wide, bias = side_by_side(linear.weight), linear.bias

    def forward(rows: Tensor) -> Tensor:
        if rows.dim() != 2 or bias is None:
            plain: Tensor = linear(rows)
            return plain
        return torch.addmm(bias.view(-1), rows, wide).view(-1, stack, n_out).transpose(0, 1)

    return forward


def resolve_device(device: str) -> torch.device:
    """Return the device; "auto" is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        why = f"device={device!r} cannot be used here: {error}"
        raise ParameterError(why, parameter="device") from error
    return resolved
