"""Every row a query against the others, checked by taking the row out and starting again."""

import pytest
import torch
from torch.nn import functional

from setconv.nn.functional import cosine_margin, left_out_means

HEADS, EPISODES, ROWS, FEATURES = 3, 2, 9, 5
# A side of each row in each head; ABSENT rows are padding, head 2 has a single row on side 1.
ABSENT = -1
SIDES = torch.tensor(
    [
        [0, 0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, ABSENT, ABSENT, ABSENT],
        [0, 0, 0, 0, 1, 0, 0, ABSENT, 0],
    ]
)


def embed(seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(HEADS, EPISODES, ROWS, FEATURES, generator=generator, dtype=dtype)


def averages(weights=None, dtype=torch.float64):
    """Shape (heads, episodes or 1, 2, rows): each side's rows sum to one, padding has nothing."""
    member = torch.stack([SIDES == 0, SIDES == 1], dim=1).to(dtype).unsqueeze(1)
    if weights is not None:
        member = member * weights.unsqueeze(-2)
    return member / member.sum(dim=-1, keepdim=True)


def uneven(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(HEADS, EPISODES, ROWS, generator=generator, dtype=torch.float64) + 0.1


def mean_of_others(embedded, average, head, episode, side, row):
    """The mean of a side's rows but one; that of all where it is the only one."""
    shares = average[head, episode % average.shape[1], side].clone()
    others = [i for i in range(ROWS) if i != row and float(shares[i]) > 0]
    if not others:
        others = [row]
    weights = torch.stack([shares[i] for i in others])
    rows = torch.stack([embedded[head, episode, i] for i in others])
    return (weights.unsqueeze(-1) * rows).sum(dim=0) / weights.sum()


def brute_force_margin(embedded, average):
    """The margins of all rows that take part, one at a time; 0 for padding."""
    heads = []
    for head in range(HEADS):
        for episode in range(EPISODES):
            for row in range(ROWS):
                own = int(SIDES[head, row])
                if own == ABSENT:
                    heads.append(embedded.new_zeros(()))
                    continue
                to_side = [
                    functional.cosine_similarity(
                        embedded[head, episode, row],
                        mean_of_others(embedded, average, head, episode, side, row),
                        dim=0,
                    )
                    for side in (0, 1)
                ]
                heads.append(to_side[1] - to_side[0])
    return torch.stack(heads).view(HEADS, EPISODES, ROWS)


TAKES_PART = (SIDES != ABSENT).unsqueeze(1).expand(HEADS, EPISODES, ROWS)


@pytest.mark.parametrize("weights", [None, uneven()], ids=["equal", "weighted"])
def test_margins_and_their_gradients_are_those_of_a_loop_that_removes_the_row(weights):
    factors = torch.randn(
        HEADS, EPISODES, ROWS, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    results = []
    for margin in (cosine_margin, brute_force_margin):
        embedded = embed().requires_grad_()
        found = margin(embedded, averages(weights))
        (found * factors * TAKES_PART).sum().backward()
        results.append((found.detach()[TAKES_PART], embedded.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("weights", [None, uneven()], ids=["equal", "weighted"])
def test_means_and_their_gradients_are_those_of_a_loop_that_removes_the_row(weights):
    embedded, average = embed().requires_grad_(), averages(weights)
    found = left_out_means(embedded, average)[TAKES_PART]
    places = TAKES_PART.nonzero().tolist()
    expected = torch.stack(
        [mean_of_others(embedded, average, h, e, int(SIDES[h, row]), row) for h, e, row in places]
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    ours, theirs = (
        torch.autograd.grad(one.square().sum(), embedded)[0] for one in (found, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def test_a_cosine_margin_stays_within_its_range_whatever_weights_and_lengths():
    weights = torch.ones(HEADS, EPISODES, ROWS)
    weights[:, :, [0, 5]] = 1e5
    for seed in range(20):
        margin = cosine_margin(embed(seed).float(), averages(weights, torch.float32))[TAKES_PART]
        assert float(margin.abs().max()) <= 2 + 1e-3
    rows = torch.randn(1, 200, 4, 8, generator=torch.Generator().manual_seed(0))
    rows[:, :, 0] *= 5000
    average = torch.tensor([[[[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]]])
    assert float(cosine_margin(rows, average).abs().max()) <= 2 + 1e-3
