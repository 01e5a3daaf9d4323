"""Layers whose gradients are written by hand, against automatic differentiation of plain forms."""

import pytest
import torch

from setconv.nn.functional import convolve, drop, embed_rows, relu_layer

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def noise(seed, *shape):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values.requires_grad_()


def assert_same(found, expected, inputs):
    """Values, and gradients of a sum with uneven factors, must agree."""
    torch.testing.assert_close(found, expected, **EXACT)
    factors = noise(99, *found.shape).detach()
    gradients = [torch.autograd.grad((one * factors).sum(), inputs) for one in (found, expected)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, **EXACT)


# ----------------------------------------------------------------------------- set convolution


def convolution_inputs(groups, heads):
    stack = groups * heads
    shapes = [(groups, 6, 4), (stack, 1, 4), (stack, 4, 3), (stack, 4, 3), (stack, 1, 3)]
    return [noise(seed, *shape) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize(("groups", "heads"), [(1, 1), (3, 1), (1, 4), (2, 3)])
def test_a_convolution_is_that_of_each_head_by_itself(groups, heads):
    inputs = convolution_inputs(groups, heads)
    rows, anchor, attention, weight, bias = inputs
    expected = [
        ((anchor[h] - rows[h // heads]) @ weight[h] + bias[h])
        * (rows[h // heads] @ attention[h].softmax(dim=0))
        for h in range(groups * heads)
    ]
    assert_same(convolve(*inputs), torch.stack(expected), inputs)
    assert torch.autograd.gradcheck(convolve, inputs)


def test_rows_embedded_by_one_layer_are_those_of_the_formula():
    shapes = [(6, 4), (4,), (4, 3), (4, 3), (3,)]
    inputs = [noise(seed, *shape) for seed, shape in enumerate(shapes)]
    rows, anchor, attention, weight, bias = inputs
    expected = ((anchor - rows) @ weight + bias) * (rows @ attention.softmax(dim=0))
    assert_same(embed_rows(*inputs), expected, inputs)
    assert torch.autograd.gradcheck(embed_rows, inputs)


# ---------------------------------------------------------------------------------- ReLU layer


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("n_others", [1, 2])
def test_a_relu_layer_is_that_of_plain_operations(share, n_others):
    shapes = [(3, 5, 4), (3, n_others, 4), (3, 4, 6), (3, 1, 6)]
    inputs = [noise(seed, *shape) for seed, shape in enumerate(shapes)]
    rows, others, weight, bias = inputs

    def generator():
        return torch.Generator().manual_seed(7)

    found = relu_layer(*inputs, share, generator())
    dropped = drop(torch.relu(rows @ weight + bias), share, generator())
    expected = dropped, torch.relu(others @ weight + bias)
    assert_same(*(torch.cat(pair, dim=-2) for pair in (found, expected)), inputs)
