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

seeds = st.integers(0, 2**31)
HEADS, FEATURES = 3, 4


def make_rows(seed, n):
    """Embeddings (heads, n, features), sides (heads, n) and weights (n,)."""
    generator = torch.Generator().manual_seed(seed)
    embedded = torch.randn(HEADS, n, FEATURES, generator=generator)
    sides = torch.randint(2, (HEADS, n), generator=generator).to(torch.int8)
    sides[:, 0], sides[:, 1] = 0, 1  # no side is empty
    weights = torch.rand(n, generator=generator).double() + 0.1
    return embedded, sides, weights


def sums_over(embedded, sides, weights):
    sums = SideSums.empty(HEADS, FEATURES)
    sums.add(embedded, sides, weights)
    return sums


def assert_same(ours, theirs):
    torch.testing.assert_close(ours.total, theirs.total, **EXACT)
    torch.testing.assert_close(ours.weight, theirs.weight, **EXACT)


def make_network(**options):
    return SetConvNetwork(
        6,
        n_heads=HEADS,
        encoder=(8,),
        out_features=FEATURES,
        generator=torch.Generator().manual_seed(0),
        **options,
    )


@given(st.integers(2, 30), seeds)
def test_sums_are_weighted_sums_over_the_rows_of_each_side(n, seed):
    embedded, sides, weights = make_rows(seed, n)
    sums = sums_over(embedded, sides, weights)
    assert sums.total.dtype == sums.weight.dtype == torch.float64
    for head in range(HEADS):
        for side in (0, 1):
            member = sides[head] == side
            total = (embedded[head, member].double() * weights[member, None]).sum(dim=0)
            torch.testing.assert_close(sums.total[head, side], total, **EXACT)
            torch.testing.assert_close(sums.weight[head, side], weights[member].sum(), **EXACT)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), seeds)
def test_rows_added_by_parts_give_what_they_give_at_once(sizes, seed):
    embedded, sides, weights = make_rows(seed, sum(sizes) + 1)
    sizes = [*sizes, 1]
    by_parts = SideSums.empty(HEADS, FEATURES)
    parts = zip(
        embedded.split(sizes, dim=1), sides.split(sizes, dim=1), weights.split(sizes), strict=True
    )
    for part in parts:
        by_parts.add(*part)
    assert_same(by_parts, sums_over(embedded, sides, weights))


@given(st.integers(1, 20), st.integers(1, 20), st.integers(2, 20), seeds)
def test_merging_is_exact_and_its_order_does_not_matter(first, second, third, seed):
    embedded, sides, weights = make_rows(seed, first + second + third)
    sizes = [first, second, third]
    a, b, c = (
        sums_over(*part)
        for part in zip(
            embedded.split(sizes, dim=1),
            sides.split(sizes, dim=1),
            weights.split(sizes),
            strict=True,
        )
    )
    whole = sums_over(embedded, sides, weights)
    for merged in (a.merge(b).merge(c), c.merge(a.merge(b)), b.merge(c).merge(a)):
        assert_same(merged, whole)


def test_merging_leaves_its_parts_alone():
    a, b = (sums_over(*make_rows(seed, 5)) for seed in (1, 2))
    before = a.total.clone(), b.total.clone()
    merged = a.merge(b)
    merged.add(*make_rows(3, 5))
    assert torch.equal(a.total, before[0])
    assert torch.equal(b.total, before[1])


@given(st.integers(2, 20), seeds)
def test_the_order_of_the_rows_does_not_matter(n, seed):
    embedded, sides, weights = make_rows(seed, n)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    shuffled = sums_over(embedded[:, order], sides[:, order], weights[order])
    assert_same(shuffled, sums_over(embedded, sides, weights))


def test_rows_on_neither_side_do_not_count():
    embedded, sides, weights = make_rows(4, 12)
    absent = torch.zeros(HEADS, 12, dtype=torch.bool)
    absent[0, 2:5], absent[2, 7:] = True, True
    sums = sums_over(embedded, torch.where(absent, ABSENT, sides), weights)
    for head in range(HEADS):
        kept = ~absent[head]
        own = sums_over(embedded[:, kept], sides[:, kept], weights[kept])
        torch.testing.assert_close(sums.total[head], own.total[head], **EXACT)
        torch.testing.assert_close(sums.weight[head], own.weight[head], **EXACT)


def test_empty_sums_are_neutral():
    sums = sums_over(*make_rows(0, 9))
    assert_same(SideSums.empty(HEADS, FEATURES).merge(sums), sums)


@pytest.mark.parametrize(
    "options",
    [
        {"similarity": "dot"},
        {"similarity": "cosine"},
        {"similarity": "dot", "output": 5},
        {"similarity": "cosine", "output": 5, "share_encoder": False},
    ],
    ids=str,
)
def test_representatives_are_what_the_network_makes_of_the_whole_sets(options):
    network = make_network(**options)
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(40, 6, generator=generator)
    anchors = torch.randn(HEADS, 1, 6, generator=generator)
    _, sides, _ = make_rows(2, 40)
    with torch.no_grad():
        embedded = network.prepare(anchors)(network.encode(rows))
        sums = sums_over(embedded, sides, torch.ones(40).double())
        representatives = sums.representatives(network)
        # The margin of a query, compared with them, is the margin of the episode of all rows.
        member = torch.stack([sides == 0, sides == 1], dim=1).float()
        average = (member / member.sum(dim=-1, keepdim=True)).unsqueeze(1)
        queries = torch.randn(5, 6, generator=generator)
        margin = network(torch.cat([rows, queries])[None], anchors, average)[:, 0]
        compared = network.finish(network.prepare(anchors)(network.encode(queries)))
        difference = (representatives[:, 1] - representatives[:, 0]).unsqueeze(1)
        expected = (compared * difference).sum(dim=-1) * network.scale()
    assert representatives.dtype == torch.float32
    assert not representatives.requires_grad
    torch.testing.assert_close(expected, margin, rtol=1e-4, atol=1e-5)


def test_a_million_small_rows_lose_nothing_to_rounding():
    sums = SideSums.empty(1, 1)
    n = 100_000
    sides = (torch.arange(n) % 2).to(torch.int8)[None]
    for _ in range(10):
        sums.add(torch.full((1, n, 1), 0.1), sides, torch.ones(n).double())
    exact = float(np.float32(0.1))
    mean = sums.total / sums.weight.unsqueeze(-1)
    np.testing.assert_allclose(mean.numpy(), exact, rtol=1e-12)
    assert sums.weight.tolist() == [[500_000.0, 500_000.0]]


def test_post_training_on_the_training_rows_gives_the_representatives_of_the_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 4 == 0
    model = SetConvClassifier(n_members=1, objective=None, max_steps=5, random_state=0).fit(X, y)
    fitted, scores = model.representatives_.copy(), model.predictions(X).scores
    few = np.r_[0:20]
    model.post_train(X[few], y[few])
    assert not np.allclose(model.representatives_, fitted)
    assert model.class_counts_.tolist() == [15, 5]
    model.post_train(X, y)
    np.testing.assert_allclose(model.representatives_, fitted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predictions(X).scores, scores, rtol=1e-4, atol=1e-5)


def test_post_training_needs_rows_of_every_class_and_changes_nothing_without_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 4 == 0
    model = SetConvClassifier(n_members=1, objective=None, max_steps=5, random_state=0).fit(X, y)
    before = model.representatives_.copy()
    with pytest.raises(LabelError, match="no rows of class True"):
        model.post_train(X[~y], y[~y])
    assert np.array_equal(model.representatives_, before)
