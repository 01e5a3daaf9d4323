"""The network against written-out models: equations 5-6, and the authors' own forward pass."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.nn.network import SetConvNetwork

EXACT = {"rtol": 1e-9, "atol": 1e-11}
D, SUPPORT, QUERIES, EPISODES, HEADS, MEMBERS = 6, 5, 3, 2, 3, 2
SIDES = torch.tensor([[0, 0, 1, 0, 1], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]])  # of each head
QUERY_SIDES = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]])


def noise(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_network(seed=0, **options):
    """A float64 network in which no weight and no bias is at its (special) initial value."""
    small = {"encoder": (16,), "out_features": 4, "n_heads": HEADS, "n_members": MEMBERS}
    network = SetConvNetwork(D, **{**small, **options}).double()
    with torch.no_grad():
        for number, parameter in enumerate(network.parameters()):
            parameter.copy_(0.4 * noise(seed + 7919 * number, *parameter.shape) + 0.1)
    return network


def rows_of(network, n=SUPPORT + QUERIES, seed=1):
    return noise(seed, network.n_encoders, EPISODES, n, D)


def averages(sides):
    """Weights (heads, 1, 2, support) that average the support rows of each side."""
    member = torch.stack([sides == 0, sides == 1], dim=1).double()
    return (member / member.sum(dim=-1, keepdim=True)).unsqueeze(1)


def encoder_of(network, head):
    return head // (network.n_stacked // network.n_encoders)


def literal_embedding(network, head, rows, anchors):
    """What is compared for a set of rows (n, d): encoder, layer, mean, output, by the book."""

    def encode(values):
        for linear in network.encoder:
            weight = linear.weight.view(network.n_encoders, *linear.weight.shape[-2:])
            bias = linear.bias.view(network.n_encoders, -1)
            own = encoder_of(network, head)
            values = (values @ weight[own] + bias[own]).clamp(min=0)
        return values

    layer, rows = network.setconv, encode(rows)
    by_anchor = []
    for anchor in encode(anchors):
        weight = (anchor - rows) @ layer.g1[0].weight[head] + layer.g1[0].bias[head]
        mean = (weight * (rows @ layer.attention[head].softmax(dim=0))).mean(dim=0)
        if network.output is not None:
            mean = (mean @ network.output.weight[head]).clamp(min=0)
        by_anchor.append(mean)
    return torch.cat(by_anchor)


def literal_log_odds(network, head, sets, query, anchors):
    """log P(1|x) - log P(0|x) of equations 5-6, with a dot product or a scaled cosine."""
    x = literal_embedding(network, head, query.unsqueeze(0), anchors)
    similarities = []
    for rows in sets:
        representative = literal_embedding(network, head, rows, anchors)
        if network.log_temperature is None:
            similarities.append(x @ representative)
        else:
            cosine = functional.cosine_similarity(x, representative, dim=0)
            similarities.append(network.log_temperature[head].exp() * cosine)
    chances = torch.softmax(torch.stack(similarities), dim=0)
    return chances[1].log() - chances[0].log()


def literal_margin(network, rows, anchors, sides, n_support):
    """The margin of every query, one at a time; a row is never in the set that it is held to."""
    heads = range(network.n_stacked)
    columns = range(n_support if n_support == rows.shape[2] else rows.shape[2] - n_support)
    first = 0 if n_support == rows.shape[2] else n_support
    found = []
    for head, episode, query in itertools.product(heads, range(EPISODES), columns):
        own = rows[encoder_of(network, head), episode]
        others = torch.arange(n_support) != first + query
        sets = [own[:n_support][(sides[head] == side) & others] for side in (0, 1)]
        found.append(literal_log_odds(network, head, sets, own[first + query], anchors[head]))
    return torch.stack(found).view(network.n_stacked, EPISODES, -1)


ALL_FORMS = [
    {"share_encoder": shared, "similarity": similarity, "output": output, "encoder": encoder}
    for shared, similarity, output, encoder in itertools.product(
        [True, False], ["cosine", "dot"], [None, 8], [(), (16,)]
    )
]


@pytest.mark.parametrize("n_anchors", [1, 2])
@pytest.mark.parametrize("members", [1, MEMBERS])
@pytest.mark.parametrize("all_query", [False, True], ids=["queries", "leave one out"])
@pytest.mark.parametrize("options", ALL_FORMS, ids=str)
def test_margins_are_log_odds_of_the_two_class_softmax_and_gradients_are_theirs(
    options, all_query, members, n_anchors
):
    network = make_network(n_members=members, **options)
    sides = torch.cat([SIDES, QUERY_SIDES], dim=1) if all_query else SIDES
    sides = torch.cat([sides, 1 - sides])[: network.n_stacked]
    rows, anchors = rows_of(network), noise(2, network.n_stacked, n_anchors, D)
    found = network(rows, anchors, averages(sides))
    expected = literal_margin(network, rows, anchors, sides, sides.shape[1])
    torch.testing.assert_close(found, expected, **EXACT)
    factors = noise(3, *found.shape)
    parameters = dict(network.named_parameters())
    gradients = [
        torch.autograd.grad((one * factors).sum(), parameters.values()) for one in (found, expected)
    ]
    for name, ours, theirs in zip(parameters, *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT, msg=lambda text, n=name: f"{n}: {text}")
        assert ours.any(), name


@pytest.mark.parametrize("members", [1, MEMBERS])
@pytest.mark.parametrize("options", [*ALL_FORMS, {"encoder": (5, 4)}], ids=str)
def test_rows_to_predict_are_embedded_by_every_head_as_by_the_book(options, members):
    network = make_network(n_members=members, **options)
    shared, anchors = noise(1, 7, D), noise(2, network.n_stacked, 2, D)
    own = noise(3, *(() if network.n_encoders == 1 else (network.n_encoders,)), 7, D)
    with torch.inference_mode():
        encode, embed = network.ready_encoder(), network.prepare(anchors)
        for rows in (shared, own):
            before = rows.clone()
            torch.testing.assert_close(encode(rows), network.encode(rows), **EXACT)
            found = network.finish(embed(encode(rows)))
            assert torch.equal(rows, before)
            for head, row in itertools.product(range(network.n_stacked), range(7)):
                mine = rows if rows.dim() == 2 else rows[encoder_of(network, head)]
                expected = literal_embedding(network, head, mine[row : row + 1], anchors[head])
                if network.log_temperature is not None:
                    expected = functional.normalize(expected, dim=0)
                torch.testing.assert_close(found[head, row], expected, **EXACT)


# --------------------------------------------------------------------------------------- dropout


def drop_out(network, seed):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    rows = rows_of(network)[:1].expand(network.n_encoders, -1, -1, -1)
    anchors = noise(2, 1, 1, D).expand(network.n_stacked, -1, -1)
    sides = SIDES[:1].expand(network.n_stacked, -1)
    return network(rows, anchors, averages(sides), generator)


@pytest.mark.parametrize("shares", [{"dropout": 0.4}, {"input_dropout": 0.4}], ids=str)
def test_dropout_is_active_exactly_when_there_is_a_generator_and_follows_its_seed(shares):
    network, plain = make_network(**shares), make_network()
    assert torch.equal(drop_out(network, None), drop_out(plain, 0))
    before = torch.get_rng_state()
    assert torch.equal(drop_out(network, 5), drop_out(network, 5))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(drop_out(network, 5), drop_out(network, 6))


@pytest.mark.parametrize("shares", [{"dropout": 0.5}, {"input_dropout": 0.5}], ids=str)
def test_members_drop_out_independently_of_each_other(shares):
    network = make_network(n_heads=1, **shares)
    with torch.no_grad():
        for value in network.parameters():
            value[1] = value[0]
    same, other = drop_out(network, None), drop_out(network, 0)
    torch.testing.assert_close(same[0], same[1], **EXACT)
    assert not torch.allclose(other[0], other[1])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.999])
def test_dropout_zeroes_its_share_and_keeps_the_mean(share):
    network = SetConvNetwork(D, encoder=(64,), dropout=share, generator=torch.Generator())
    rows = torch.ones(2000, D)
    plain = network.encode(rows)
    dropped = network.encode(rows, torch.Generator().manual_seed(0))
    alive = plain > 0
    assert (dropped[alive] == 0).double().mean().item() == pytest.approx(share, abs=0.01)
    kept = dropped[alive] != 0
    ratio = (dropped[alive][kept] / plain[alive][kept]).double()
    torch.testing.assert_close(ratio, torch.full_like(ratio, ratio[0].item()))
    assert dropped.mean().item() == pytest.approx(plain.mean().item(), rel=0.15)


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


@pytest.mark.parametrize("seed", [0, 1])
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
