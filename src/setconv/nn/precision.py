"""Products in the precision that autocast asks for, for gradients that are written by hand."""

from __future__ import annotations

import torch
from torch import Tensor


def product_dtype(values: Tensor) -> torch.dtype | None:
    """Return what products of these values are computed in under autocast; None: their own."""
    kind = values.device.type
    if values.dtype == torch.float32 and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return None


def full_precision(values: Tensor) -> torch.autocast:
    """Return a context in which autocast is off."""
    return torch.autocast(values.device.type, enabled=False)


def multiply(left: Tensor, right: Tensor, low: torch.dtype | None) -> Tensor:
    """Multiply matrices, or stacks; factors in precision ``low``, the result as they were."""
    if low is None:
        return left @ right
    return (left.to(low) @ right.to(low)).to(left.dtype)


def add_product(
    total: Tensor, left: Tensor, right: Tensor, low: torch.dtype | None, scale: float = 1.0
) -> Tensor:
    """Return ``total + scale * left @ right``; see `multiply`."""
    if low is None:
        return torch.baddbmm(total, left, right, alpha=scale)
    return total + scale * multiply(left, right, low)


def accumulate(total: Tensor, left: Tensor, right: Tensor, low: torch.dtype | None) -> None:
    """Add ``left.mT @ right`` to ``total`` in place, for few rows; see `multiply`."""
    if left.shape[-2] == 1:
        total.addcmul_(left.mT, right)
    else:
        total += multiply(left.mT, right, low)
