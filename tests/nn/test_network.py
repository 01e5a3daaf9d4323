"""The network against written-out models: equations 5-6, and the authors' own forward pass."""

import itertools

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch.nn import functional

from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.errors import ParameterError
from setconv.nn.network import SetConvNetwork

EXACT = {"rtol": 1e-9, "atol": 1e-11}
D, SUPPORT, QUERIES, EPISODES = 6, 5, 3, 2
SIDES = torch.tensor([[0, 0, 1, 0, 1], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]])  # of each head


def noise(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_network(seed=0, **options):
    """A float64 network in which no weight and no bias is at its (special) initial value."""
    small = {"encoder": (16,), "out_features": 4}
    network = SetConvNetwork(D, **{**small, **options}).double()
    with torch.no_grad():
        for number, parameter in enumerate(network.parameters()):
            parameter.copy_(0.4 * noise(seed + 7919 * number, *parameter.shape) + 0.1)
    return network


def averages(sides):
    """Weights (heads, 1, 2, support) that average the support rows of each side."""
    member = torch.stack([sides == 0, sides == 1], dim=1).double()
    return (member / member.sum(dim=-1, keepdim=True)).unsqueeze(1)


def of_head(tensor, head, *, stacked=True):
    return tensor[head] if stacked else tensor


def literal_embedding(network, head, rows, anchors):
    """What is compared for a set of rows (n, d): encoder, layer, mean, output, by the book."""

    def encode(values):
        for linear in network.encoder:
            weight = of_head(linear.weight, head, stacked=not network.share_encoder)
            bias = of_head(linear.bias, head, stacked=not network.share_encoder)
            values = (values @ weight + bias).clamp(min=0)
        return values

    layer = network.setconv
    rows = encode(rows)
    side_by_side = []
    for anchor in encode(anchors):
        weight = anchor - rows
        for depth, linear in enumerate(layer.g1):
            weight = weight.clamp(min=0) if depth else weight
            weight = weight @ linear.weight[head] + linear.bias[head]
        mean = (weight * (rows @ layer.attention[head].softmax(dim=0))).mean(dim=0)
        if network.output is not None:
            mean = (mean @ network.output.weight[head]).clamp(min=0)
        side_by_side.append(mean)
    return torch.cat(side_by_side)


def literal_log_odds(network, head, sets, query, anchors):
    """log P(1|x) - log P(0|x) of equations 5-6, with a dot product or a scaled cosine."""
    x = literal_embedding(network, head, query.unsqueeze(0), anchors)
    similarities = []
    for rows in sets:
        representative = literal_embedding(network, head, rows, anchors)
        if network.log_temperature is None:
            similarities.append(x @ representative)
        else:
            cosine = x @ representative / (x.norm() * representative.norm())
            similarities.append(network.log_temperature[head].exp() * cosine)
    chances = torch.softmax(torch.stack(similarities), dim=0)
    return chances[1].log() - chances[0].log()


ALL_FORMS = [
    {"share_encoder": shared, "similarity": similarity, "output": output, **more}
    for shared, similarity, output, more in itertools.product(
        [True, False], ["cosine", "dot"], [None, 8], [{}, {"encoder": (), "hidden": (3,)}]
    )
]


@pytest.mark.parametrize("n_anchors", [1, 2])
@pytest.mark.parametrize("rows_by_head", [False, True])
@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_the_margin_is_the_log_odds_of_the_two_class_softmax(options, rows_by_head, n_anchors):
    network = make_network(n_heads=3, **options)
    rows = noise(1, *((3,) if rows_by_head else ()), EPISODES, SUPPORT + QUERIES, D)
    anchors = noise(2, 3, n_anchors, D)
    margin = network(rows, anchors, averages(SIDES))
    assert margin.shape == (3, EPISODES, QUERIES)
    every_head = rows.expand(3, *rows.shape[-3:])
    for head, episode, query in itertools.product(range(3), range(EPISODES), range(QUERIES)):
        own = every_head[head, episode]
        sets = [own[:SUPPORT][SIDES[head] == side] for side in (0, 1)]
        expected = literal_log_odds(network, head, sets, own[SUPPORT + query], anchors[head])
        torch.testing.assert_close(margin[head, episode, query], expected, **EXACT)


def single_heads(network, **options):
    """The heads of a network as networks of one head."""
    singles = []
    for head in range(network.n_heads):
        state = {
            name: value
            if name.startswith("encoder") and network.share_encoder
            else value[head : head + 1]
            for name, value in network.state_dict().items()
        }
        one = make_network(**options)
        one.load_state_dict(state)
        singles.append(one)
    return singles


@pytest.mark.parametrize("rows_by_head", [False, True])
@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_several_heads_equal_the_heads_one_by_one(options, rows_by_head):
    network = make_network(n_heads=3, **options)
    rows = noise(1, *((3,) if rows_by_head else ()), EPISODES, SUPPORT + QUERIES, D)
    anchors, average = noise(2, 3, 2, D), averages(SIDES)
    together = network(rows, anchors, average)
    for head, one in enumerate(single_heads(network, **options)):
        own = slice(head, head + 1)
        alone = one(rows[own] if rows_by_head else rows, anchors[own], average[own])
        torch.testing.assert_close(together[own], alone, **EXACT)


@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_every_weight_of_every_head_is_trained(options):
    network = make_network(n_heads=3, **options)
    rows = noise(1, EPISODES, SUPPORT + QUERIES, D)
    network(rows, noise(2, 3, 1, D), averages(SIDES)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        heads = [parameter.grad] if "encoder" in name and network.share_encoder else parameter.grad
        assert all(grad.abs().sum() > 0 for grad in heads), name


# --------------------------------------------------------------------------------------- members


def single_members(network, **options):
    """The members of a network as networks of one member."""
    singles = []
    heads, bare = network.n_heads, network.share_encoder
    for member in range(network.n_members):
        own = slice(member * heads, (member + 1) * heads)
        state = {}
        for name, value in network.state_dict().items():
            if name.startswith("encoder") and bare:
                # The bias of a single encoder is (out,), that of a stack (stack, 1, out).
                state[name] = value[member].squeeze(0) if name.endswith("bias") else value[member]
            else:
                state[name] = value[own]
        one = make_network(n_heads=heads, **options)
        one.load_state_dict(state)
        singles.append(one)
    return singles


def member_rows(options, n_heads, seed=1):
    """Rows of two members, each with episodes of its own; of every head if these are separate."""
    groups = 2 if options.get("share_encoder", True) else 2 * n_heads
    return noise(seed, groups, EPISODES, SUPPORT + QUERIES, D)


def of_member(rows, member):
    """The rows of one member as a network of one member takes them."""
    size = len(rows) // 2
    own = rows[member * size : (member + 1) * size]
    return own[0] if size == 1 else own


@pytest.mark.parametrize("all_query", [False, True], ids=["queries", "leave one out"])
@pytest.mark.parametrize("n_heads", [1, 3])
@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_members_equal_the_members_one_by_one_and_so_do_their_gradients(
    options, n_heads, all_query
):
    network = make_network(n_heads=n_heads, n_members=2, **options)
    assert network.n_stacked == 2 * n_heads
    rows, anchors = member_rows(options, n_heads), noise(2, 2 * n_heads, 2, D)
    sides = torch.cat([SIDES[:n_heads], 1 - SIDES[:n_heads]])
    if all_query:
        sides = torch.cat([sides, 1 - sides[:, :QUERIES]], dim=1)
    average = averages(sides)
    together = network(rows, anchors, average)
    factors = noise(3, *together.shape)
    (together * factors).sum().backward()
    for member, one in enumerate(single_members(network, **options)):
        own = slice(member * n_heads, (member + 1) * n_heads)
        alone = one(of_member(rows, member), anchors[own], average[own])
        torch.testing.assert_close(together[own], alone, **EXACT)
        (alone * factors[own]).sum().backward()
        for name, parameter in one.named_parameters():
            grad = network.get_parameter(name).grad
            encoder = name.startswith("encoder") and network.share_encoder
            found = grad[member].view_as(parameter) if encoder else grad[own]
            torch.testing.assert_close(found, parameter.grad, **EXACT)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_members_trained_together_are_the_members_trained_alone(kind):
    options = {"n_heads": 3}
    network = make_network(n_members=2, **options)
    anchors, average = noise(2, 6, 1, D), averages(torch.cat([SIDES, 1 - SIDES]))
    targets = noise(4, 6, 1, QUERIES).sign()
    singles = single_members(network)
    optimizers = [kind(one.parameters(), lr=0.01, weight_decay=0.01) for one in (network, *singles)]
    for step in range(5):
        rows = noise(10 + step, 2, EPISODES, SUPPORT + QUERIES, D)
        losses = [functional.softplus(-targets * network(rows, anchors, average)).sum()]
        for member, one in enumerate(singles):
            own = slice(3 * member, 3 * member + 3)
            margin = one(rows[member], anchors[own], average[own])
            losses.append(functional.softplus(-targets[own] * margin).sum())
        for loss, optimizer in zip(losses, optimizers, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for one, again in zip(singles, single_members(network), strict=True):
        for name, value in again.state_dict().items():
            torch.testing.assert_close(one.state_dict()[name], value, rtol=1e-6, atol=1e-8)


def test_members_start_from_weights_of_their_own():
    network = SetConvNetwork(D, n_members=2, generator=torch.Generator().manual_seed(0))
    for name, value in network.named_parameters():
        if name.endswith("weight"):
            assert not torch.equal(value[0], value[1]), name


@pytest.mark.parametrize("shares", [{"dropout": 0.5}, {"input_dropout": 0.5}], ids=str)
def test_members_drop_out_independently_of_each_other(shares):
    network = make_network(n_members=2, **shares)
    with torch.no_grad():
        for value in network.parameters():
            value[1] = value[0]
    rows = noise(1, 1, EPISODES, SUPPORT + QUERIES, D).expand(2, -1, -1, -1)
    anchors, average = noise(2, 1, 1, D).expand(2, -1, -1), averages(SIDES[:1].expand(2, -1))
    same, other = network(rows, anchors, average), drop_members(network, rows, anchors, average)
    torch.testing.assert_close(same[0], same[1], **EXACT)
    assert not torch.allclose(other[0], other[1])


def drop_members(network, rows, anchors, average):
    return network(rows, anchors, average, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_shared_rows_are_embedded_by_every_member_as_by_itself(options):
    network = make_network(n_heads=3, n_members=2, **options)
    rows, anchors = noise(1, 7, D), noise(2, 6, 1, D)
    together = network.finish(network.prepare(anchors)(network.encode(rows)))
    for member, one in enumerate(single_members(network, **options)):
        own = slice(3 * member, 3 * member + 3)
        alone = one.finish(one.prepare(anchors[own])(one.encode(rows)))
        torch.testing.assert_close(together[own], alone, **EXACT)


def test_each_episode_may_have_side_averages_of_its_own():
    network = make_network(n_heads=3)
    rows, anchors = noise(1, EPISODES, SUPPORT + QUERIES, D), noise(2, 3, 1, D)
    average = noise(3, 3, EPISODES, 2, SUPPORT).softmax(dim=-1)
    together = network(rows, anchors, average)
    for episode in range(EPISODES):
        own = slice(episode, episode + 1)
        alone = network(rows[own], anchors, average[:, own])
        torch.testing.assert_close(together[:, own], alone, **EXACT)


# --------------------------------------------------------------------------------------- anchors


@pytest.mark.parametrize("shared", [True, False])
def test_the_embeddings_for_several_anchors_lie_side_by_side(shared):
    network = make_network(n_heads=3, share_encoder=shared, hidden=(3,))
    rows, anchors = noise(1, 7, D), noise(2, 3, 4, D)
    encoded = network.encode(rows)
    together = network.prepare(anchors)(encoded)
    apart = [network.prepare(anchors[:, k : k + 1])(encoded) for k in range(4)]
    assert together.shape == (3, 7, 4 * 4)
    torch.testing.assert_close(together, torch.cat(apart, dim=-1), **EXACT)


def test_with_dot_products_the_margins_of_several_anchors_add_up():
    network = make_network(n_heads=3, similarity="dot", output=3)
    rows, anchors, average = noise(1, 2, SUPPORT + 2, D), noise(2, 3, 3, D), averages(SIDES)
    together = network(rows, anchors, average)
    apart = sum(network(rows, anchors[:, k : k + 1], average) for k in range(3))
    torch.testing.assert_close(together, apart, **EXACT)


def test_repeating_an_anchor_does_not_change_the_cosine():
    network = make_network(n_heads=3)
    rows, anchors, average = noise(1, 2, SUPPORT + 2, D), noise(2, 3, 1, D), averages(SIDES)
    once, thrice = (network(rows, anchors.repeat(1, k, 1), average) for k in (1, 3))
    torch.testing.assert_close(once, thrice, **EXACT)


# --------------------------------------------------------------------------------------- dropout


def drop_out(network, seed):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    rows, anchors = noise(1, EPISODES, SUPPORT + QUERIES, D), noise(2, network.n_heads, 1, D)
    return network(rows, anchors, averages(SIDES[: network.n_heads]), generator)


@pytest.mark.parametrize("shares", [{"dropout": 0.4}, {"input_dropout": 0.4}], ids=str)
def test_dropout_is_active_exactly_when_there_is_a_generator(shares):
    network, plain = make_network(n_heads=3, **shares), make_network(n_heads=3)
    for flag in (True, False):
        network.train(flag)
        assert torch.equal(drop_out(network, None), drop_out(plain, None))
        assert not torch.equal(drop_out(network, 0), drop_out(network, None))
    assert torch.equal(drop_out(plain, 0), drop_out(plain, None))


@pytest.mark.parametrize("shares", [{"dropout": 0.4}, {"input_dropout": 0.4}], ids=str)
def test_dropout_is_the_same_for_the_same_seed_of_its_generator(shares):
    network = make_network(n_heads=3, **shares)
    assert torch.equal(drop_out(network, 5), drop_out(network, 5))
    assert not torch.equal(drop_out(network, 5), drop_out(network, 6))


def test_dropout_neither_uses_nor_moves_the_global_random_state():
    network = make_network(n_heads=3, dropout=0.4, input_dropout=0.4)
    results = []
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 2):
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            results.append(drop_out(network, 5))
            assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*results)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_dropout_zeroes_its_share_and_keeps_the_mean(share):
    network = SetConvNetwork(D, encoder=(64,), dropout=share, generator=torch.Generator())
    rows = torch.ones(2000, D)
    plain = network.encode(rows)
    dropped = network.encode(rows, torch.Generator().manual_seed(0))
    alive = plain > 0
    assert (dropped[alive] == 0).double().mean().item() == pytest.approx(share, abs=0.01)
    kept = dropped[alive] != 0
    ratio = (dropped[alive][kept] / plain[alive][kept]).double()
    torch.testing.assert_close(ratio, torch.full_like(ratio, 1 / (1 - share)), rtol=0.01, atol=0)
    assert dropped.mean().item() == pytest.approx(plain.mean().item(), rel=0.03)


@pytest.mark.parametrize("name", ["dropout", "input_dropout"])
@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_any_share_below_one_can_be_dropped(name, share):
    network = make_network(n_heads=3, **{name: share})
    assert torch.isfinite(drop_out(network, 0)).all()


# ------------------------------------------------------------------------------------- the paper


def fitted_to(rows, labels, preset, **changes):
    parameters = {**preset, "max_steps": 0, "progress": False, "random_state": 0, **changes}
    return SetConvClassifier(**parameters).fit(rows, labels)


@pytest.fixture(scope="module")
def bert_like():
    """Rows as wide as BERT-Large, one in five of the minority class 1."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 5 == 0
    rows = rng.normal(scale=0.5, size=(40, 1024)) + 0.2 * labels[:, None] * rng.normal(size=1024)
    return rows.astype(np.float32), labels.astype(np.int64)


@pytest.mark.parametrize(("name", "count"), [("PAPER", 262_272), ("REFERENCE", 819_968)])
def test_the_presets_train_as_many_weights_as_the_paper_and_its_code(bert_like, name, count):
    network = fitted_to(*bert_like, getattr(presets, name)).network_
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    assert sum(parameter.numel() for parameter in trained) == count


def authors_weights(seed):
    """Random weights in the shapes of the authors' network, named as there."""
    rng = np.random.default_rng(seed)

    def normal(*shape, scale):
        return torch.from_numpy(rng.normal(scale=scale, size=shape)).float()

    return {
        "downsample.weight": normal(512, 1024, scale=1024**-0.5),
        "downsample.bias": normal(512, scale=0.1),
        "set_conv.w": normal(512, 256, scale=1.0),
        "set_conv.fc.weight": normal(256, 512, scale=(2 / 512) ** 0.5),
        "set_conv.fc.bias": normal(256, scale=0.3),
        "fc.weight": normal(128, 256, scale=(2 / 256) ** 0.5),
    }


def authors_embedding(weights, rows, minority_mean):
    """The authors' forward pass for one set, with its N x 512 x 256 tensor."""

    def downsample(x):
        return functional.linear(x, weights["downsample.weight"], weights["downsample.bias"])

    anchor = functional.relu(downsample(minority_mean))
    x = functional.relu(downsample(rows))
    data = functional.linear(x - anchor, weights["set_conv.fc.weight"], weights["set_conv.fc.bias"])
    feature = torch.softmax(weights["set_conv.w"], dim=0)
    kernel = data[:, None, :] * feature[None, :, :]
    out = (kernel * x[:, :, None]).sum(dim=(0, 1)) / len(x)
    return functional.relu(functional.linear(out, weights["fc.weight"]))


def authors_probabilities(weights, queries, rows, labels):
    """Softmax over the dot products of each query, a set of one, with the two representatives."""
    mean = rows[labels == 1].mean(dim=0, keepdim=True)
    classes = [authors_embedding(weights, rows[labels == c], mean) for c in (0, 1)]
    embedded = [authors_embedding(weights, query[None], mean) for query in queries]
    return torch.softmax(torch.stack(embedded) @ torch.stack(classes).T, dim=1).numpy()


def load_authors_weights(network, weights):
    """Put the authors' weights into our network; their g1 sees x - Y, ours Y - x."""
    ours = {
        "encoder.0.weight": weights["downsample.weight"].T,
        "encoder.0.bias": weights["downsample.bias"],
        "setconv.attention": weights["set_conv.w"],
        "setconv.g1.0.weight": -weights["set_conv.fc.weight"].T,
        "setconv.g1.0.bias": weights["set_conv.fc.bias"],
        "output.weight": weights["fc.weight"].T,
    }
    own = network.state_dict()
    network.load_state_dict({name: ours[name].reshape(own[name].shape) for name in own})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reference_with_the_authors_weights_gives_the_authors_probabilities(bert_like, seed):
    rows, labels = bert_like
    weights = authors_weights(seed)
    classifier = fitted_to(rows, labels, presets.REFERENCE, early_stopping=False)
    load_authors_weights(classifier.network_, weights)
    classifier.post_train(rows, labels)  # new representatives of the same weights
    rng = np.random.default_rng(seed + 100)
    queries = np.concatenate([rows[:6], rng.normal(size=(6, 1024)).astype(np.float32)])
    expected = authors_probabilities(
        weights, torch.from_numpy(queries), torch.from_numpy(rows), torch.from_numpy(labels)
    )
    assert np.ptp(expected[:, 1]) > 0.01  # the queries do differ
    assert ((expected > 0.001) & (expected < 0.999)).any(axis=0).all()
    np.testing.assert_allclose(classifier.predict_proba(queries), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_support", [2, 7, 30])
def test_an_episode_of_reference_is_the_authors_episode(bert_like, n_support):
    rows, labels = (torch.from_numpy(part) for part in bert_like)
    weights = authors_weights(n_support)
    network = SetConvNetwork(
        1024,
        encoder=(512,),
        out_features=256,
        output=128,
        similarity="dot",
        share_encoder=False,
    )
    load_authors_weights(network, weights)
    support, queries = rows[:n_support], rows[-4:]
    mean = rows[labels == 1].mean(dim=0)
    with torch.no_grad():
        margin = network(
            torch.cat([support, queries])[None],
            mean.view(1, 1, -1),
            averages(labels[None, :n_support]).float(),
        )
    classes = [
        authors_embedding(weights, support[labels[:n_support] == c], mean[None]) for c in (0, 1)
    ]
    expected = [
        torch.softmax(
            torch.stack([authors_embedding(weights, query[None], mean[None]) @ c for c in classes]),
            dim=0,
        )[1].item()
        for query in queries
    ]
    np.testing.assert_allclose(expit(margin[0, 0].numpy()), expected, rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "euclid"}, "similarity='euclid'"),
        ({"encoder": (4, 0)}, "widths must be at least 1"),
        ({"output": 0}, "widths must be at least 1"),
        ({"out_features": 0}, "at least 1"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"input_dropout": -0.1}, "input_dropout=-0.1"),
        ({"temperature": 0.0}, "temperature=0.0"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        SetConvNetwork(D, **options)
