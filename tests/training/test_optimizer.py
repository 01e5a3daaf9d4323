"""Steps and learning rates are those that torch's own would take, on as many threads as is due."""

import subprocess
import sys

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR

from setconv.nn.network import SetConvNetwork
from setconv.training.loop import threads_for
from setconv.training.optimizer import Adam, TrainingSettings, lr_factor

RATES = {"encoder": 1e-3, "setconv": 2e-3, "output": 1e-2}


def make_network():
    generator = torch.Generator().manual_seed(0)
    return SetConvNetwork(6, encoder=(5,), out_features=4, output=3, generator=generator)


def gradients(network, step):
    generator = torch.Generator().manual_seed(step)
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize(
    ("kind", "torchs"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_every_step_is_that_of_torch(kind, torchs):
    settings = TrainingSettings(
        max_steps=5, optimizer=kind, lr=RATES, weight_decay=0.1, schedule="cosine"
    )
    ours, theirs = make_network(), make_network()
    optimizer = Adam(ours, settings)
    named = dict(theirs.named_parameters())
    parts = {part: [p for name, p in named.items() if name.startswith(part)] for part in RATES}
    parts["setconv"].append(named["log_temperature"])
    groups = [{"params": parts[part], "lr": RATES[part]} for part in RATES]
    reference = torchs(groups, weight_decay=0.1, foreach=False)
    schedule = CosineAnnealingLR(reference, T_max=5)
    for step in range(5):
        gradients(ours, step)
        gradients(theirs, step)
        assert optimizer.lr_at(step) == pytest.approx(max(schedule.get_last_lr()))
        optimizer.step(step)
        reference.step()
        schedule.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)
        assert mine.grad is None


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


# --------------------------------------------------------------------------------- learning rate


@pytest.mark.parametrize("steps", [7, 10, 33, 1500])
def test_one_cycle_of_learning_rates_is_that_of_torch(steps):
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = OneCycleLR(sgd, max_lr=1.0, total_steps=steps, cycle_momentum=False)
    for step in range(steps):
        expected = theirs.get_last_lr()[0]
        assert lr_factor("one_cycle", step, steps) == pytest.approx(expected, rel=1e-6, abs=1e-9)
        sgd.step()
        if step < steps - 1:
            theirs.step()


# --------------------------------------------------------------------------------------- threads


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize(("operations", "threads"), [(1e6, 1), (1e10, 2)])
def test_small_steps_are_taken_by_one_thread_and_the_number_is_put_back(operations, threads):
    with pytest.raises(KeyboardInterrupt) as raised, threads_for(operations):
        raise KeyboardInterrupt(torch.get_num_threads())
    assert raised.value.args == (threads,)
    assert torch.get_num_threads() == 2
