"""The loss against hand-worked numbers and against heads computed one by one."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from setconv.episodes import EpisodeBatches, Layout, side_weights
from setconv.nn.network import SetConvNetwork
from setconv.training.loop import EpisodeLoss

LOG3 = math.log(3)
CPU = torch.device("cpu")

seeds = st.integers(0, 2**31)


def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_loss(counts, sharing="shared", class_weights=None, **options):
    codes = np.repeat(np.arange(len(counts)), counts)
    sizes = {"support_size": 12, "n_queries": 2, "n_episodes": 3, "query_source": "disjoint"}
    everything = {"members": [np.arange(len(codes))], "random_state": 0}
    episodes = EpisodeBatches(
        codes, len(counts), sharing=sharing, **{**everything, **sizes, **options}
    )
    weights = np.ones(len(counts)) if class_weights is None else np.array(class_weights)
    return episodes, EpisodeLoss(episodes.layout, side_weights(weights), CPU)


def head_loss(margin, on_side_one, weights=(0.5, 0.5), offset=0.0):
    """Cross-entropy of one head with softmax written out; margin and sides of the same shape."""
    probability = 1 / (1 + torch.exp(-(margin.double() + offset)))
    of_side = [
        -(1 - probability)[~on_side_one].log().mean(),
        -probability[on_side_one].log().mean(),
    ]
    return weights[0] * of_side[0] + weights[1] * of_side[1]


# ------------------------------------------------------------------------------- worked by hand


def test_the_two_sides_of_every_head_weigh_the_same_worked_by_hand():
    _, loss = make_loss([20, 10, 6])  # queries: classes 0 0 1 1 2 2
    margin = torch.zeros(3, 1, 6)  # log 2 for every query
    assert loss(margin, None).item() == pytest.approx(3 * math.log(2))
    # Odds of 3 to 1 for the right side cost log 4/3, for the wrong side log 4.
    margin[0, 0] = torch.tensor([LOG3, LOG3, -LOG3, -LOG3, -LOG3, -LOG3])  # all right
    margin[1, 0] = torch.tensor([LOG3, LOG3, LOG3, -LOG3, LOG3, LOG3])  # one right, five wrong
    right, wrong = math.log(4 / 3), math.log(4)
    first = 0.5 * right + 0.5 * right
    second = 0.5 * wrong + 0.5 * (right + wrong) / 2  # four queries of the rest count as one half
    assert loss(margin, None).item() == pytest.approx(first + second + math.log(2), rel=1e-6)


def test_a_side_with_fewer_queries_weighs_as_much_as_the_other():
    _, loss = make_loss([20, 1])  # two queries of class 0, the only row of class 1
    margin = torch.tensor([[[0.0, 0.0, LOG3]]])
    assert loss(margin, None).item() == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)


def test_class_weights_weigh_the_sides_and_move_the_margin_by_their_logarithm():
    _, loss = make_loss([20, 10], class_weights=[1.0, 3.0], n_queries=1)
    assert loss.offset.item() == pytest.approx(LOG3)
    # With the offset both margins are zero odds: log 2 each, and weights that sum to one.
    assert loss(torch.full((1, 1, 2), -LOG3), None).item() == pytest.approx(math.log(2), rel=1e-6)
    # Without a margin the offset stands alone: class 0 costs log 4, class 1 log 4/3.
    expected = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    assert loss(torch.zeros(1, 1, 2), None).item() == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=3), seeds)
def test_class_weights_in_each_of_three_heads(class_weights, seed):
    _, loss = make_loss([20, 10, 6], class_weights=class_weights)
    margin = noise(seed, 3, 4, 6)
    classes = torch.tensor([0, 0, 1, 1, 2, 2]).expand(4, 6)
    expected = 0.0
    for head, own in enumerate(class_weights):
        rest = (sum(class_weights) - own) / 2
        pair = (rest / (rest + own), own / (rest + own))
        expected += head_loss(margin[head], classes == head, pair, math.log(own / rest))
    assert loss(margin, None).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("class_weights", [[1.0, 1.0], [1.0, 5.0], [0.2, 0.1]])
def test_class_weights_do_not_change_what_the_network_has_to_learn(class_weights):
    # For queries that cannot be told apart the best margin is zero: the offset does the rest.
    _, loss = make_loss([20, 10], class_weights=class_weights)
    margin = torch.zeros(1, requires_grad=True)
    loss(margin.expand(1, 3, 4), None).backward()
    assert margin.grad.item() == pytest.approx(0, abs=1e-7)


# ------------------------------------------------------------------------------ weights of rows


@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_equal_row_weights_are_as_good_as_none(sharing):
    _, loss = make_loss([20, 5, 1], sharing)
    n_support, n_queries = loss.average.shape[-1], loss.target.shape[-1]
    margin = noise(0, 3, 4, n_queries)
    lead = (4,) if sharing == "shared" else (3, 4)
    plain = loss(margin, None)
    torch.testing.assert_close(loss(margin, torch.full((*lead, n_queries), 0.3)), plain)
    average = loss.support_average(torch.full((*lead, n_support), 0.3))
    torch.testing.assert_close(average, loss.average.expand(3, 4, 2, n_support))
    assert loss.support_average(None) is loss.average


@given(st.lists(st.integers(1, 4), min_size=12, max_size=12), seeds)
def test_a_query_of_weight_two_counts_twice_within_its_side(weights, seed):
    _, loss = make_loss([20, 10])  # queries: classes 0 0 1 1
    margin = noise(seed, 1, 3, 4)
    row_weights = torch.tensor(weights).float().view(3, 4)
    sides = torch.tensor([False, False, True, True]).expand(3, 4)
    times = torch.tensor(weights)
    repeated = margin[0].flatten().repeat_interleave(times)
    expected = head_loss(repeated, sides.flatten().repeat_interleave(times))
    assert loss(margin, row_weights).item() == pytest.approx(expected.item(), rel=1e-5)
    only_the_ratio = loss(margin, row_weights * torch.tensor([7.0, 7.0, 0.1, 0.1]))
    assert only_the_ratio.item() == pytest.approx(expected.item(), rel=1e-5)


@given(seeds)
def test_support_rows_of_unequal_weight_are_averaged_by_it(seed):
    _, loss = make_loss([20, 10, 6])
    n_support = loss.average.shape[-1]
    weights = noise(seed, 3, n_support).abs() + 0.1
    values = noise(seed + 1, 3, n_support)
    averaged = (loss.support_average(weights) * values[None, :, None]).sum(dim=-1)
    for head in range(3):
        for side in (0, 1):
            member = loss.average[head, 0, side] > 0
            expected = [
                np.average(value[member].numpy(), weights=weight[member].numpy())
                for value, weight in zip(values, weights, strict=True)
            ]
            np.testing.assert_allclose(averaged[head, :, side], expected, rtol=1e-4, atol=1e-5)


def test_heads_may_have_row_weights_of_their_own():
    _, loss = make_loss([20, 10, 6])
    margin, weights = noise(0, 3, 4, 6), noise(1, 3, 4, 6).abs() + 0.1
    classes = torch.tensor([0, 0, 1, 1, 2, 2]).expand(4, 6)
    apart = 0.0
    for head in range(3):
        losses = functional.softplus(torch.where(classes == head, -1, 1) * margin[head])
        for side in (classes == head, classes != head):
            apart += (weights[head] * losses)[side].sum() / weights[head][side].sum() / 2
    torch.testing.assert_close(loss(margin, weights), apart)


# -------------------------------------------------------------------------------- separate heads


COUNTS = [40, 5, 1]  # the heads' episodes have different lengths, so two of three are padded


def separate_case(seed, class_weights=None):
    episodes, loss = make_loss(
        COUNTS, "separate", class_weights, support_size=32, n_queries=4, n_episodes=3
    )
    network = SetConvNetwork(
        5,
        n_heads=3,
        encoder=(8,),
        out_features=4,
        share_encoder=False,
        generator=torch.Generator().manual_seed(seed),
    )
    rows, anchors = noise(seed + 1, sum(COUNTS), 5), noise(seed + 2, 3, 1, 5)
    return episodes, loss, network, rows, anchors


def total_loss(loss, network, rows, anchors, drawn):
    margin = network(rows[drawn], anchors, loss.support_average(None))
    return loss(margin, None)


@pytest.mark.parametrize("class_weights", [None, [1.0, 2.0, 5.0]])
def test_separate_heads_equal_the_heads_computed_one_by_one(class_weights):
    episodes, loss, network, rows, anchors = separate_case(3, class_weights)
    drawn = torch.from_numpy(episodes.draw())
    together = total_loss(loss, network, rows, anchors, drawn)
    padded = 0
    apart = 0.0
    for head in range(3):
        own = slice(head, head + 1)
        support = loss.average[head, 0].sum(dim=0) > 0
        query = torch.from_numpy(episodes.layout.query_sides[head]).sum(dim=0) > 0
        padded += int((~support).sum() + (~query).sum())
        single = SetConvNetwork(5, encoder=(8,), out_features=4, share_encoder=False)
        single.load_state_dict({k: value[own] for k, value in network.state_dict().items()})
        layout = Layout(
            episodes.layout.average[own][..., support.numpy()],
            episodes.layout.target[own][..., query.numpy()],
            episodes.layout.query_sides[own][..., query.numpy()],
        )
        weights = side_weights(np.array(class_weights or [1.0] * 3))[own]
        alone = EpisodeLoss(layout, weights, CPU)
        apart += total_loss(
            alone, single, rows, anchors[own], drawn[own][..., torch.cat([support, query])]
        )
    assert padded > 0
    torch.testing.assert_close(together, apart)


def test_the_rows_that_pad_an_episode_have_no_influence():
    episodes, loss, network, rows, anchors = separate_case(4)
    drawn = torch.from_numpy(episodes.draw())
    sides = torch.from_numpy(episodes.layout.query_sides).unsqueeze(1)
    used = torch.cat([loss.average.sum(dim=2), sides.sum(dim=2)], dim=-1).expand(drawn.shape)
    other = torch.where(used > 0, drawn, 17)
    assert not torch.equal(other, drawn)
    results = []
    for rows_drawn in (drawn, other):
        network.zero_grad()
        result = total_loss(loss, network, rows, anchors, rows_drawn)
        result.backward()
        results.append([result.detach(), *(p.grad.clone() for p in network.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_loss_stays_finite_for_margins_far_from_zero():
    _, loss = make_loss([20, 10], n_queries=1)
    margin = torch.tensor([[[1e4, -1e4]]], requires_grad=True)
    result = loss(margin, None)
    assert result.item() == pytest.approx(1e4)
    result.backward()
    assert torch.isfinite(margin.grad).all()


def test_the_loss_is_cross_entropy_over_the_two_similarities():
    _, loss = make_loss([20, 10], n_queries=1)
    similarities = noise(0, 4, 2, 2)  # episodes, queries (one a class), classes
    margin = (similarities[..., 1] - similarities[..., 0])[None]
    expected = functional.cross_entropy(similarities.flatten(0, 1), torch.tensor([0, 1] * 4))
    torch.testing.assert_close(loss(margin, None), expected)
