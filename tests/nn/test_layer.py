"""The layer against the printed equations, which build every tensor that the layer avoids."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from setconv.errors import DataError
from setconv.nn.layer import SetConv

EXACT = {"rtol": 1e-10, "atol": 1e-12}

seeds = st.integers(0, 2**31)
widths = st.integers(1, 6)
depths = st.lists(st.integers(1, 4), max_size=2)
leads = st.sampled_from([(), (1,), (3,), (2, 3)])


def noise(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_layer(d, d_o, hidden=(), stack=None, seed=0):
    """A float64 layer in which no weight and no bias is at its (special) initial value."""
    layer = SetConv(d, d_o, hidden, stack=stack).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(noise(seed + 7919 * number, *parameter.shape))
    return layer


def khatri_rao(left, right):
    """Column-wise Kronecker product of (N, d_o) and (d, d_o): (N * d, d_o)."""
    columns = [torch.kron(left[:, o], right[:, o]) for o in range(left.shape[1])]
    return torch.stack(columns, dim=1)


def literal(rows, anchor, attention, g1):
    """Equations 2-4 as printed for one set: rows (N, d) and anchor (d,) -> (d_o,)."""
    n, d = rows.shape
    data_sensitive = anchor.reshape(1, d) - rows
    for depth, linear in enumerate(g1):
        if depth:
            data_sensitive = data_sensitive.clamp(min=0)
        data_sensitive = data_sensitive @ linear.weight + linear.bias
    feature_attention = attention.exp() / attention.exp().sum(dim=0, keepdim=True)
    kernel = khatri_rao(data_sensitive, feature_attention)
    assert kernel.shape == (n * d, attention.shape[1])
    concatenated = rows.reshape(1, n * d)
    return (concatenated @ kernel / n).squeeze(0)


def literal_sets(layer, rows, anchor):
    """The literal form for every set of a batch, one after another."""
    lead = rows.shape[:-2]
    anchors = anchor.expand(*lead, anchor.shape[-1])
    results = [
        literal(rows[place], anchors[place], layer.attention, layer.g1)
        for place in itertools.product(*map(range, lead))
    ]
    return torch.stack(results).reshape(*lead, -1)


def gradients(result, *inputs):
    """Gradients of a scalar in which every output has a weight of its own."""
    weights = torch.linspace(-1, 2, result.numel(), dtype=result.dtype).view(result.shape)
    return torch.autograd.grad((result * weights).sum(), inputs, retain_graph=True)


def every_way(layer, rows, anchor):
    """The sets' representations: directly, of rows in another order, and prepared for an anchor."""
    yield layer(rows, anchor)
    yield layer(rows.flip(-2), anchor)
    yield layer.prepare(anchor.unsqueeze(-2))(rows).mean(dim=-2)


# ------------------------------------------------------------------------- the printed equations


@given(st.integers(1, 7), widths, widths, depths, leads, st.booleans(), seeds)
def test_values_and_gradients_are_those_of_the_printed_equations(
    n, d, d_o, hidden, lead, anchor_a_set, seed
):
    layer = make_layer(d, d_o, hidden, seed=seed)
    rows = noise(seed + 1, *lead, n, d).requires_grad_()
    anchor = noise(seed + 2, *(lead if anchor_a_set else ()), d).requires_grad_()
    inputs = (rows, anchor, *layer.parameters())
    slow = literal_sets(layer, rows, anchor)
    for fast in every_way(layer, rows, anchor):
        assert fast.shape == (*lead, d_o)
        torch.testing.assert_close(fast, slow, **EXACT)
        for ours, theirs in zip(gradients(fast, *inputs), gradients(slow, *inputs), strict=True):
            torch.testing.assert_close(ours, theirs, **EXACT)


class LargestStorage(TorchDispatchMode):
    """Remembers the largest tensor that any operation, forward or backward, has made."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in result if isinstance(result, tuple | list) else (result,):
            if isinstance(leaf, torch.Tensor):
                size = leaf.untyped_storage().nbytes() // leaf.element_size()
                self.elements = max(self.elements, size)
        return result


def test_no_tensor_as_large_as_the_kernel_is_ever_made():
    n, d, d_o = 64, 512, 64
    layer = make_layer(d, d_o)
    rows, anchor = noise(1, n, d).requires_grad_(), noise(2, d).requires_grad_()
    inputs = (rows, anchor, *layer.parameters())
    with LargestStorage() as fast:
        for result in every_way(layer, rows, anchor):
            gradients(result, *inputs)
    with LargestStorage() as slow:
        gradients(literal(rows, anchor, layer.attention, layer.g1), *inputs)
    assert slow.elements >= n * d * d_o  # the measure sees such a tensor where there is one
    assert fast.elements <= 2 * d * d_o  # the two weight matrices, side by side


# ---------------------------------------------------------------------------------- sets of rows


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any), seeds)
def test_a_row_of_weight_two_is_the_row_twice(weights, seed):
    layer = make_layer(5, 4, (3,), seed=seed)
    rows, anchor = noise(seed + 1, len(weights), 5), noise(seed + 2, 5)
    repeated = rows.repeat_interleave(torch.tensor(weights), dim=0)
    weighted = layer(rows, anchor, mask=torch.tensor(weights))
    torch.testing.assert_close(weighted, layer(repeated, anchor), **EXACT)
    only_the_ratio = layer(rows, anchor, mask=torch.tensor(weights) * 0.37)
    torch.testing.assert_close(only_the_ratio, weighted, rtol=1e-6, atol=1e-6)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), seeds)
def test_sets_laid_end_to_end_in_any_order_equal_the_sets_one_by_one(sizes, seed):
    layer = make_layer(5, 4, (3,), seed=seed)
    rows, anchor = noise(seed, 2, sum(sizes), 5), noise(seed + 3, 5)
    mask = noise(seed + 4, 2, sum(sizes)).abs() + 0.1
    generator = torch.Generator().manual_seed(seed)
    segments = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    segments = segments[torch.randperm(sum(sizes), generator=generator)]
    result = layer(rows, anchor, segments=segments, mask=mask)
    assert result.shape == (2, len(sizes), 4)
    for one, number in itertools.product(range(2), range(len(sizes))):
        member = segments == number
        expected = layer(rows[one, member], anchor, mask=mask[one, member])
        torch.testing.assert_close(result[one, number], expected, **EXACT)


# --------------------------------------------------------------------------------------- stacks


def unstack(layer):
    """The layers of a stack as layers of their own."""
    single = []
    for number in range(layer.stack):
        one = SetConv(layer.in_features, layer.out_features, layer.hidden).double()
        own = one.state_dict()
        state = layer.state_dict()
        one.load_state_dict({name: state[name][number].view_as(own[name]) for name in own})
        single.append(one)
    return single


@given(st.integers(1, 4), depths, st.booleans(), st.booleans(), seeds)
def test_a_stack_of_layers_equals_the_layers_one_by_one(
    stack, hidden, rows_shared, anchor_shared, seed
):
    layer = make_layer(5, 4, hidden, stack=stack, seed=seed)
    rows = noise(seed + 1, *(() if rows_shared else (stack,)), 6, 5).requires_grad_()
    anchor = noise(seed + 2, *(() if anchor_shared else (stack,)), 5).requires_grad_()
    segments = torch.tensor([1, 0, 2, 1, 1, 0])
    mask = noise(seed + 3, 6).abs()
    every_rows, every_anchor = rows.expand(stack, 6, 5), anchor.expand(stack, 5)
    singles = unstack(layer)
    for options in ({}, {"mask": mask}, {"segments": segments}):
        together = layer(rows, anchor, **options)
        one_by_one = torch.stack(
            [one(every_rows[k], every_anchor[k], **options) for k, one in enumerate(singles)]
        )
        torch.testing.assert_close(together, one_by_one, **EXACT)
        ours = gradients(together, rows, anchor, *layer.parameters())
        theirs = list(gradients(one_by_one, rows, anchor))
        by_layer = [gradients(one_by_one, *one.parameters()) for one in singles]
        theirs += [torch.stack(parts) for parts in zip(*by_layer, strict=True)]
        for our, their in zip(ours, theirs, strict=True):
            torch.testing.assert_close(our, their.view_as(our), **EXACT)
    prepared = layer.prepare(anchor.unsqueeze(-2))(rows)
    torch.testing.assert_close(prepared, layer.embed(rows, anchor), **EXACT)


def test_initial_weights_come_from_the_generator_and_from_nowhere_else():
    before = torch.get_rng_state()
    first, again, other = (
        SetConv(5, 4, (3,), generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.g1, again.g1, strict=True):
        assert torch.equal(a.weight, b.weight)
    assert not torch.equal(first.g1[0].weight, other.g1[0].weight)


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((0, 3), {}),
        ((2, 2, 3), {"mask": torch.tensor([[1.0, 1.0], [0.0, 0.0]])}),
        ((4, 3), {"segments": torch.tensor([0, 0, 2, 2])}),
        ((2, 3), {"segments": torch.tensor([0, 1]), "mask": torch.tensor([0.0, 1.0])}),
        ((4, 3), {"segments": torch.tensor([0, 0, 1])}),  # not one for each row
        ((4, 5), {}),  # not as wide as the layer
    ],
)
def test_empty_sets_and_sets_of_other_shapes_are_refused(shape, options):
    with pytest.raises(DataError):
        make_layer(3, 2)(torch.zeros(*shape).double(), torch.zeros(3).double(), **options)
