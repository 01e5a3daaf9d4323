"""Functions whose gradients are written by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def apply(function: type[Function], *arguments: Any) -> Any:
    """Compute a function that brings its own gradient; torch leaves its ``apply`` without types."""
    kind = arguments[0].device.type
    if not torch.is_autocast_enabled(kind):
        return function.apply(*arguments)
    # Autocast would round products here, but not those of the gradient.
    with torch.autocast(kind, enabled=False):
        return function.apply(*(_widened(one) for one in arguments))


def _widened(argument: Any) -> Any:
    low = isinstance(argument, Tensor) and argument.dtype in (torch.bfloat16, torch.float16)
    return argument.float() if low else argument


def accumulate(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left.mT @ right`` to ``total`` in place, for few rows."""
    if left.shape[-2] == 1:
        total.addcmul_(left.mT, right)
    else:
        total += left.mT @ right
