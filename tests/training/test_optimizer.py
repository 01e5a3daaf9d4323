"""The optimiser takes the steps that torch's own would take."""

import subprocess
import sys

import pytest
import torch

from setconv.nn.network import SetConvNetwork
from setconv.training.optimizer import Adam, TrainingSettings

RATES = {"encoder": 1e-3, "setconv": 2e-3, "output": 1e-2}


def make_network():
    return SetConvNetwork(
        6,
        encoder=(5,),
        out_features=4,
        output=3,
        generator=torch.Generator().manual_seed(0),
    )


def gradients(network, step):
    generator = torch.Generator().manual_seed(step)
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_every_step_is_that_of_torch(kind):
    settings = TrainingSettings(max_steps=5, optimizer=kind, lr=RATES, weight_decay=0.1)
    ours, theirs = make_network(), make_network()
    optimizer = Adam(ours, settings)
    named = dict(theirs.named_parameters())
    groups = [
        {
            "params": [p for name, p in named.items() if name.startswith(part)],
            "lr": RATES[part],
        }
        for part in RATES
    ]
    rest = [p for name, p in named.items() if not name.startswith(tuple(RATES))]
    groups[1]["params"] += rest
    torchs = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    reference = torchs(groups, weight_decay=0.1, foreach=False)
    for step in range(5):
        gradients(ours, step)
        gradients(theirs, step)
        optimizer.step()
        reference.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_it_goes_on_from_its_state_to_the_bit():
    settings = TrainingSettings(max_steps=4)
    whole, halves = make_network(), make_network()
    first, second = Adam(whole, settings), Adam(halves, settings)
    for step in range(4):
        gradients(whole, step)
        first.step()
        gradients(halves, step)
        second.step()
        kept = {name: tensor.clone() for name, tensor in second.state().items()}
        second = Adam(halves, settings)
        second.load_state(kept)
    for mine, other in zip(whole.parameters(), halves.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_parameters_without_a_gradient_stay():
    network = make_network()
    optimizer = Adam(network, TrainingSettings(max_steps=1))
    gradients(network, 0)
    optimizer.forget_gradients()
    before = [one.detach().clone() for one in network.parameters()]
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_a_fit_does_not_import_the_compiler_of_torch():
    program = """
import sys
import numpy as np
from setconv import SetConvClassifier
X = np.random.default_rng(0).normal(size=(40, 3))
SetConvClassifier(max_steps=2, n_members=2, random_state=0).fit(X, np.arange(40) % 4 == 0)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
