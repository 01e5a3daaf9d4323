"""Representatives from sums: the same by parts, in any order, and as the network's own mean."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setconv.classifier import SetConvClassifier
from setconv.episodes import ABSENT
from setconv.errors import LabelError
from setconv.model import SideSums
from setconv.nn.network import SetConvNetwork

EXACT = {"rtol": 1e-12, "atol": 1e-12}
HEADS, FEATURES = 3, 4


def make_rows(seed, n):
    """Embeddings (heads, n, features), sides (heads, n) and weights (n,)."""
    generator = torch.Generator().manual_seed(seed)
    embedded = torch.randn(HEADS, n, FEATURES, generator=generator)
    sides = torch.randint(ABSENT, 2, (HEADS, n), generator=generator).to(torch.int8)
    sides[:, 0], sides[:, 1] = 0, 1  # no side is empty
    weights = torch.rand(n, generator=generator).double() + 0.1
    return embedded, sides, weights


def sums_over(embedded, sides, weights):
    sums = SideSums.empty(HEADS, FEATURES)
    sums.add(embedded, sides, weights)
    return sums


@given(st.lists(st.integers(2, 12), min_size=1, max_size=5), st.integers(0, 2**31))
def test_sums_are_those_of_each_side_by_parts_and_in_any_order(sizes, seed):
    embedded, sides, weights = make_rows(seed, sum(sizes))
    sums = sums_over(embedded, sides, weights)
    assert sums.total.dtype == sums.weight.dtype == torch.float64
    for head in range(HEADS):
        for side in (0, 1):  # rows on neither do not count
            member = sides[head] == side
            total = (embedded[head, member].double() * weights[member, None]).sum(dim=0)
            torch.testing.assert_close(sums.total[head, side], total, **EXACT)
            torch.testing.assert_close(sums.weight[head, side], weights[member].sum(), **EXACT)
    order = torch.randperm(sum(sizes), generator=torch.Generator().manual_seed(seed)).split(sizes)
    by_parts, merged = SideSums.empty(HEADS, FEATURES), SideSums.empty(HEADS, FEATURES)
    for part in order:
        rows = embedded[:, part], sides[:, part], weights[part]
        by_parts.add(*rows)
        merged.merge(sums_over(*rows))
    for found in (by_parts, merged):
        torch.testing.assert_close(found.total, sums.total, **EXACT)
        torch.testing.assert_close(found.weight, sums.weight, **EXACT)


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("output", [None, 5])
def test_representatives_are_what_the_network_makes_of_the_whole_sets(similarity, output):
    generator = torch.Generator().manual_seed(0)
    sizes = {"n_heads": HEADS, "encoder": (8,), "out_features": FEATURES, "output": output}
    network = SetConvNetwork(6, **sizes, similarity=similarity, generator=generator)
    rows, queries = torch.randn(40, 6, generator=generator), torch.randn(5, 6, generator=generator)
    anchors = torch.randn(HEADS, 1, 6, generator=generator)
    _, sides, _ = make_rows(2, 40)
    with torch.no_grad():
        embedded = network.prepare(anchors)(network.encode(rows))
        sums = sums_over(embedded, sides, torch.ones(40).double())
        representatives = sums.representatives(network)
        # The margin of a query, compared with them, is the margin of the episode of all rows.
        member = torch.stack([sides == 0, sides == 1], dim=1).float()
        average = (member / member.sum(dim=-1, keepdim=True)).unsqueeze(1)
        margin = network(torch.cat([rows, queries])[None, None], anchors, average)[:, 0]
        compared = network.finish(network.prepare(anchors)(network.encode(queries)))
        difference = (representatives[:, 1] - representatives[:, 0]).unsqueeze(1)
        expected = (compared * difference).sum(dim=-1) * network.scale()
    assert representatives.dtype == torch.float32
    torch.testing.assert_close(expected, margin, rtol=1e-4, atol=1e-5)


def test_post_training_makes_the_representatives_anew_or_changes_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 4 == 0
    model = SetConvClassifier(n_members=1, objective=None, max_steps=5, random_state=0).fit(X, y)
    fitted, scores = model.representatives_.copy(), model.predictions(X).scores
    with pytest.raises(LabelError):
        model.post_train(X[~y], y[~y])  # a class without rows
    assert np.array_equal(model.representatives_, fitted)
    model.post_train(X[:20], y[:20])
    assert not np.allclose(model.representatives_, fitted)
    assert model.class_counts_.tolist() == [15, 5]
    model.post_train(X, y)
    np.testing.assert_allclose(model.representatives_, fitted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predictions(X).scores, scores, rtol=1e-4, atol=1e-5)
