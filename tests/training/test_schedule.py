"""The learning rate of each step against torch's own schedulers, and the numbers of the loop."""

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR

from setconv.errors import ParameterError
from setconv.training.optimizer import SCHEDULES, TrainingSettings, lr_factor


def torch_rates(make, steps):
    """The learning rate that torch's scheduler uses in each step, the peak being one."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    rates = [optimizer.param_groups[0]["lr"]]
    while len(rates) < steps:
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def our_rates(schedule, steps):
    return [lr_factor(schedule, step, steps) for step in range(steps)]


@pytest.mark.parametrize("steps", [7, 10, 33, 100, 1500])
def test_one_cycle_is_that_of_torch(steps):
    theirs = torch_rates(
        lambda sgd: OneCycleLR(sgd, max_lr=1.0, total_steps=steps, cycle_momentum=False), steps
    )
    assert our_rates("one_cycle", steps) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 10, 33, 1000])
def test_cosine_is_that_of_torch(steps):
    theirs = torch_rates(lambda sgd: CosineAnnealingLR(sgd, T_max=steps), steps)
    assert our_rates("cosine", steps) == pytest.approx(theirs, rel=1e-6, abs=1e-9)


def test_constant_is_constant():
    assert our_rates("constant", 5) == [1.0] * 5


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("steps", range(1, 9))
def test_short_runs_have_positive_rates_up_to_the_peak(schedule, steps):
    assert all(0 < rate <= 1 for rate in our_rates(schedule, steps))


@pytest.mark.parametrize("steps", [10, 100, 1501])
def test_one_cycle_rises_to_its_peak_and_falls_from_there(steps):
    rates = our_rates("one_cycle", steps)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[0] == pytest.approx(1 / 25)
    assert abs(top - (0.3 * steps - 1)) < 1


# -------------------------------------------------------------------------------------- settings


def test_one_learning_rate_is_for_all_parts_and_a_mapping_for_each():
    assert TrainingSettings(1, lr=0.02).lr_of("output") == 0.02
    each = TrainingSettings(1, lr={"encoder": 0.1, "setconv": 0.2, "output": 0.3})
    assert [each.lr_of(part) for part in ("encoder", "setconv", "output")] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": -1}, "max_steps=-1"),
        ({"optimizer": "sgd"}, "optimizer='sgd'"),
        ({"schedule": "linear"}, "schedule='linear'.*'one_cycle', 'cosine', 'constant'"),
        ({"patience": 0}, "patience=0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1"),
        ({"lr": 0.0}, "learning rates must be positive"),
        ({"lr": float("nan")}, "learning rates must be positive"),
        ({"lr": {"encoder": 1, "setconv": 1, "output": -1}}, "learning rates must be positive"),
        ({"lr": {"encoder": 0.1}}, "exactly the keys encoder, setconv, output"),
        ({"lr": {"encoder": 1, "setconv": 1, "output": 1, "fc": 1}}, "exactly the keys"),
    ],
    ids=str,
)
def test_numbers_that_cannot_work_are_refused_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        TrainingSettings(**{"max_steps": 10, **options})
