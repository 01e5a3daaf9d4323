"""From the last hidden states of the tokens of a text to one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Pooling = Literal["cls", "mean", "max"]
POOLINGS: tuple[Pooling, ...] = ("cls", "mean", "max")


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return one vector a text, float32.

    Parameters
    ----------
    hidden : Tensor of shape (n_texts, n_tokens, width)
    mask : Tensor of shape (n_texts, n_tokens)
        1 for tokens, 0 for padding.
    pooling : {"cls", "mean", "max"}
        The first token's state, or the mean or the maximum over all tokens, special ones included.
    """
    states = hidden.float()
    if pooling == "cls":
        return states[:, 0]
    present = mask.unsqueeze(-1)
    if pooling == "mean":
        return (states * present).sum(dim=1) / present.sum(dim=1)
    return states.masked_fill(present == 0, float("-inf")).amax(dim=1)
