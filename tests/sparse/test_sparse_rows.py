"""Products of sparse episodes, and their gradients, are those of dense ones."""

import numpy as np
import pytest
import torch
from scipy import sparse

from setconv.nn import SetConvNetwork
from setconv.nn.sparse_rows import gather_sparse, sparse_block
from setconv.nn.stacked import stacked_matmul

CPU = torch.device("cpu")
WIDTH = 30


@pytest.fixture
def rows(rng):
    return sparse.csr_matrix(rng.poisson(0.2, (40, WIDTH)), dtype=np.float32)


def drawn(rng, *shape):
    return rng.integers(0, 40, shape)


def drawn_weight(rng, *stack):
    return torch.from_numpy(rng.standard_normal((*stack, WIDTH, 6))).float()


def both(rows, numbers):
    """The drawn rows, sparse and dense."""
    dense = torch.from_numpy(rows.toarray()[numbers])
    return gather_sparse(rows, numbers, CPU), dense


def assert_same_product(given, dense, weight, lead):
    """Compare products, and what a loss of them gives back to the weights."""
    one, other = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    found = stacked_matmul(given, one)
    expected = stacked_matmul(dense, other).reshape(found.shape)
    assert found.shape == (*lead, weight.shape[-1])
    torch.testing.assert_close(found, expected)
    loss = torch.linspace(-1, 1, found.numel()).view(found.shape)
    (found * loss).sum().backward()
    (expected * loss).sum().backward()
    torch.testing.assert_close(one.grad, other.grad)
    assert one.grad.abs().sum() > 0


@pytest.mark.parametrize("stack", [None, 1, 4])
def test_rows_for_all_are_multiplied_with_one_matrix_or_a_stack(rows, rng, stack):
    given, dense = both(rows, drawn(rng, 3, 5))
    weight = drawn_weight(rng, *(() if stack is None else (stack,)))
    lead = (15,) if stack is None else (stack, 15)
    assert_same_product(given.flatten(-3, -2), dense.flatten(-3, -2), weight, lead)


@pytest.mark.parametrize(("groups", "stack"), [(2, 2), (2, 6), (4, 4), (1, 3)])
def test_rows_of_groups_are_multiplied_with_the_matrices_of_their_own(rows, rng, groups, stack):
    given, dense = both(rows, drawn(rng, groups, 3, 5))
    assert given.shape == (groups, 3, 5, WIDTH)
    weight = drawn_weight(rng, stack)
    assert_same_product(given.flatten(-3, -2), dense.flatten(-3, -2), weight, (stack, 15))


@pytest.mark.parametrize("groups", [None, 3])
def test_a_mask_hides_columns_of_all_rows_of_an_episode(rows, rng, groups):
    lead = (4, 5) if groups is None else (groups, 4, 5)
    given, dense = both(rows, drawn(rng, *lead))
    mask = torch.from_numpy(rng.integers(0, 3, (*lead[:-1], 1, WIDTH)).astype(np.float32))
    hidden = given.masked(mask)
    assert hidden.shape == given.shape
    for group, expected in zip(hidden.groups, (dense * mask).view(-1, 20, WIDTH), strict=True):
        torch.testing.assert_close(group.to_dense(), expected)
    for before, expected in zip(given.groups, dense.view(-1, 20, WIDTH), strict=True):
        torch.testing.assert_close(before.to_dense(), expected)


@pytest.mark.parametrize("size", [5, 8])
def test_a_block_is_padded_with_rows_of_zeros(rows, size):
    block = sparse_block(rows[:5], size, CPU)
    assert block.shape == (size, WIDTH)
    (only,) = block.groups
    expected = np.zeros((size, WIDTH), np.float32)
    expected[:5] = rows[:5].toarray()
    assert np.array_equal(only.to_dense().numpy(), expected)


def test_axes_other_than_episodes_and_rows_are_not_joined(rows, rng):
    given, _ = both(rows, drawn(rng, 3, 5))
    with pytest.raises(ValueError, match="episodes"):
        given.flatten(0, 1)


@pytest.mark.parametrize("encoder", [(), (7,), (7, 5)], ids=str)
@pytest.mark.parametrize(
    ("members", "heads", "share"),
    [(1, 1, True), (3, 1, True), (2, 3, True), (1, 3, False), (2, 3, False)],
)
def test_a_network_learns_from_sparse_episodes_what_it_learns_from_dense(
    rows, rng, encoder, members, heads, share
):
    network = SetConvNetwork(
        WIDTH,
        n_heads=heads,
        n_members=members,
        encoder=encoder,
        out_features=4,
        share_encoder=share,
        similarity="dot",  # a cosine of what nearly cancels would tell rounding errors
        dropout=0.2,
        input_dropout=0.5,
        generator=torch.Generator().manual_seed(0),
    )
    groups = members if share else members * heads
    given, dense = both(rows, drawn(rng, *(() if groups == 1 else (groups,)), 2, 8))
    anchors = torch.from_numpy(rng.standard_normal((members * heads, 1, WIDTH))).float()
    average = torch.tensor([[0.25] * 4 + [0.0] * 4, [0.0] * 4 + [0.25] * 4])
    average = average.expand(members * heads, 1, 2, 8)
    found = []
    for one in (given, dense):
        network.zero_grad()
        margin = network(one, anchors, average, torch.Generator().manual_seed(1), 0.3)
        margin.square().sum().backward()
        found.append((margin.detach(), {n: p.grad for n, p in network.named_parameters()}))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-3, atol=1e-3)
    for name, gradient in found[0][1].items():
        expected = found[1][1][name]
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4 * expected.abs().max())
