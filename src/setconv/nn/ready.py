"""An encoder made ready for many blocks of rows: what does not depend on the rows is done once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from setconv.nn.stacked import StackedLinear, side_by_side


class ReadyEncoder:
    """Dense ReLU layers without dropout, for prediction under ``torch.inference_mode``.

    The first layer's weights for all members are laid side by side once, not at every block, and
    results are changed in place. `SetConvNetwork.encode` is the same for training.

    Parameters
    ----------
    layers : sequence of StackedLinear
    """

    def __init__(self, layers: Sequence[StackedLinear]) -> None:
        self._layers: list[Callable[[Tensor], Tensor]] = list(layers)
        if layers and layers[0].weight.dim() == 3:
            self._layers[0] = _FirstLayer(layers[0])

    def __call__(self, rows: Tensor) -> Tensor:
        """Encode rows, (n, d) for all members or with an axis in front; the same without layers."""
        for layer in self._layers:
            rows = layer(rows).relu_()
        return rows


class _FirstLayer:
    def __init__(self, linear: StackedLinear) -> None:
        self.linear = linear
        stack, _, n_out = linear.weight.shape
        self.shape = (-1, stack, n_out)
        self.wide = side_by_side(linear.weight)

    def __call__(self, rows: Tensor) -> Tensor:
        bias = self.linear.bias
        if rows.dim() != 2 or bias is None:
            plain: Tensor = self.linear(rows)
            return plain
        product = torch.addmm(bias.view(-1), rows, self.wide)
        return product.view(self.shape).transpose(0, 1)
