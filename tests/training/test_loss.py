"""The loss against the formula, computed head by head and side by side."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setconv.episodes import EpisodeBatches, side_weights
from setconv.nn.network import SetConvNetwork
from setconv.sampling import Split
from setconv.training.loop import EpisodeLoss

THREE = np.array([0, 0, 1, 1, 2, 2])  # the classes of the queries of three classes


def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_loss(counts, sharing="shared", class_weights=None, **options):
    codes = np.repeat(np.arange(len(counts)), counts)
    sizes = {"support_size": 12, "n_queries": 2, "n_episodes": 3, "query_source": "disjoint"}
    nobody = np.zeros((1, len(codes)), bool)
    split = Split.of(codes, nobody, nobody, np.ones(1, bool))
    known = {"sharing": sharing, "random_state": 0}
    episodes = EpisodeBatches(split, len(counts), **{**known, **sizes, **options})
    weights = side_weights(np.array(class_weights or [1.0] * len(counts)))
    return episodes, EpisodeLoss(episodes.layout, weights, torch.device("cpu"))


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=3), st.booleans(), st.integers(0, 2**31))
def test_heads_with_weights_of_classes_and_rows_are_those_of_a_loop(class_weights, weighted, seed):
    _, loss = make_loss([20, 10, 6], class_weights=class_weights)
    margin = noise(seed, 3, 4, 6)
    weights = noise(seed + 1, 3, 4, 6).abs() + 0.1 if weighted else torch.ones(3, 4, 6)
    expected = 0.0
    for head, (rest, own) in enumerate(side_weights(np.array(class_weights))):
        moved = margin[head].double().numpy() + math.log(own / rest)
        for side, share in ((0, rest), (1, own)):
            mine = (head == THREE) == side
            losses = np.logaddexp(0, moved * (1 - 2 * side))[:, mine]
            expected += share * np.average(losses, weights=weights[head].numpy()[:, mine])
    found = loss(margin, weights if weighted else None)
    assert found.item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(loss(margin, 0.3 * weights), found)  # only ratios matter
    support = noise(seed + 2, 3, 4, loss.average.shape[-1]).abs() + 0.1
    average = loss.support_average(support)
    torch.testing.assert_close(average.sum(dim=-1), torch.ones(3, 4, 2))
    ratio = average / support.unsqueeze(-2)  # the same for all rows of a side, 0 for others
    torch.testing.assert_close(
        ratio, ratio.amax(dim=-1, keepdim=True) * (loss.average > 0), rtol=1e-4, atol=1e-6
    )
    assert loss.support_average(None) is loss.average


def test_the_rows_that_pad_an_episode_have_no_influence():
    # The heads' episodes have different lengths, so two of three are padded.
    episodes, loss = make_loss([40, 5, 1], "separate", support_size=32, n_queries=4)
    generator = torch.Generator().manual_seed(4)
    network = SetConvNetwork(
        5, n_heads=3, encoder=(8,), out_features=4, share_encoder=False, generator=generator
    )
    rows, anchors = noise(5, 46, 5), noise(6, 3, 1, 5)
    drawn = torch.from_numpy(episodes.draw())
    sides = torch.from_numpy(episodes.layout.query_sides).unsqueeze(1)
    used = torch.cat([loss.average.sum(dim=2), sides.sum(dim=2)], dim=-1).expand(drawn.shape)
    other = torch.where(used > 0, drawn, 17)
    assert not torch.equal(other, drawn)
    results = []
    for rows_drawn in (drawn, other):
        network.zero_grad()
        result = loss(network(rows[rows_drawn], anchors, loss.support_average(None)), None)
        result.backward()
        results.append([result.detach(), *(p.grad.clone() for p in network.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
