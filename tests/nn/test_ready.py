"""Tests of `setconv.nn.ready`."""

from __future__ import annotations

import pytest
import torch

from setconv.nn.network import ReadyEncoder, SetConvNetwork

SHAPES = {
    "members": {"n_members": 3, "encoder": (5, 4)},
    "one member": {"n_members": 1, "encoder": (5,)},
    "separate heads": {"n_members": 1, "n_heads": 3, "share_encoder": False, "encoder": (5,)},
    "no encoder": {"n_members": 2, "encoder": ()},
}


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_ready_encoder_does_what_the_network_does(
    shape: dict[str, object], own_rows: bool
) -> None:
    generator = torch.Generator().manual_seed(3)
    network = SetConvNetwork(7, out_features=4, generator=generator, **shape)  # type: ignore[arg-type]
    for linear in network.layers:
        assert linear.bias is not None
        torch.nn.init.normal_(linear.bias, generator=generator)
    stack = network.layers[0].weight.shape[:-2] if network.layers else ()
    rows = torch.randn(*(stack if own_rows else ()), 6, 7, generator=generator)
    before = rows.clone()
    with torch.inference_mode():
        encoded = ReadyEncoder(network.layers)(rows)
        expected = network.encode(rows)
    assert isinstance(encoded, torch.Tensor)
    torch.testing.assert_close(encoded, expected)
    torch.testing.assert_close(rows, before, rtol=0, atol=0)
