"""Training that was cut short goes on to the result of the run that was not."""

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

import setconv
from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.errors import CheckpointError
from setconv.training import Callback, checkpoint, loop
from setconv.training.checkpoint import FILE_NAME

KILLED_AT, EVERY = 18, 7  # the last checkpoint before the end is that of step 14
SMALL = {"n_members": 3, "encoder": (16,), "out_features": 8, "n_episodes": 2, "max_steps": 30}
ALONE = {"n_members": 1, "objective": None, "query_source": "disjoint"}
SCENARIOS = {
    "members with dropout": {"dropout": 0.4, "input_dropout": 0.5},
    "members of separate heads with weights": {"heads": "separate"},
    # Its validation rows have wrong labels: what it learns is bad for them from the first look on,
    # and patience ends after the kill.
    "early stopping": {
        **ALONE,
        **{"early_stopping": True, "patience": 10, "lr": 0.03, "schedule": "constant"},
        **{"dropout": 0.0, "input_dropout": 0.0},
    },
    "REFERENCE": {**presets.REFERENCE, "encoder": (16,), "output": 6, "post_size": 50}
    | {"out_features": 8, "max_steps": 30},
    "killed in the middle of a write": ALONE,
}

# One process imports torch once and forks for each scenario; each child is killed.
PROGRAM = """
import ast, os, signal, sys
from pathlib import Path
import numpy as np
import torch
torch.set_num_threads(1)
from setconv import SetConvClassifier
from setconv.training import Callback, loop

class Kill(Callback):
    def on_step_end(self, state):
        if state.step == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

def kill_in_fourth_write():
    real, calls = Path.replace, []
    def replace(self, target):
        calls.append(target)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, target)
    Path.replace = replace

folder, killed_at, loop.CHECKPOINT_EVERY, small, scenarios = ast.literal_eval(sys.argv[1])
# What torch loads at a first fit is loaded once, before the forks.
SetConvClassifier(max_steps=1, progress=False).fit(np.arange(20)[:, None], np.arange(20) % 2)
for name, parameters in scenarios.items():
    child = os.fork()
    if child == 0:
        data = dict(np.load(Path(folder, f"{name}.npz")))
        if "write" in name:
            kill_in_fourth_write()
        SetConvClassifier(
            **small | parameters, random_state=3, progress=False,
            callbacks=[] if "write" in name else [Kill()], checkpoint_dir=Path(folder, name),
        ).fit(**data)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (name, status)
"""


class Begin(Callback):
    """Remembers the step from which a run went on."""

    step = None

    def on_fit_begin(self, state):
        self.step = state.step


class InterruptAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, state):
        if state.step == self.step:
            raise KeyboardInterrupt


def small(**parameters):
    return SetConvClassifier(**{**SMALL, "random_state": 3, "progress": False, **parameters})


def interrupt(step, folder, *rows, fit=None, **parameters):
    """Fit until an interrupt, with checkpoints."""
    clf = small(checkpoint_dir=folder, callbacks=[InterruptAt(step)], **parameters)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*rows, **(fit or {}))


def assert_identical(one, other):
    """Equal to the bit in all that training makes."""
    weights, others = one.network_.state_dict(), other.network_.state_dict()
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        assert torch.equal(tensor, others[name]), name
    for name in ("representatives_", "anchor_", "threshold_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.history_, one.n_steps_) == (other.history_, other.n_steps_)
    assert one.report_ == other.report_


def saved_step(folder):
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        return json.loads(file.metadata()["state"])["step"]


@pytest.fixture(scope="module", autouse=True)
def _checkpoints_every_ten_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_EVERY", 10)
        yield


@pytest.fixture(scope="module")
def whole(binary):
    """The run that nothing interrupted."""
    return small().fit(*binary)


@pytest.fixture(scope="module")
def interrupted(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    interrupt(15, folder, *binary)
    return folder


# --------------------------------------------------------------------------------------- killed


@pytest.fixture(scope="module")
def data(binary, multiclass):
    """What each scenario is fitted on, by name."""
    (X, y), (Z, z) = binary, multiclass
    weights = np.random.default_rng(0).uniform(0.5, 2, len(z))
    return {
        **{name: {"X": X, "y": y} for name in SCENARIOS},
        "early stopping": {"X": X, "y": y, "X_val": X, "y_val": 1 - y},
        "members of separate heads with weights": {"X": Z, "y": z, "sample_weight": weights},
    }


@pytest.fixture(scope="module")
def killed(data, tmp_path_factory):
    """The folder of the checkpoints that killed processes left."""
    folder = tmp_path_factory.mktemp("killed")
    for name, arrays in data.items():
        np.savez(folder / f"{name}.npz", **arrays)
    path = [str(Path(setconv.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    subprocess.run(
        [sys.executable, "-c", PROGRAM, repr((str(folder), KILLED_AT, EVERY, SMALL, SCENARIOS))],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)},
        check=True,
        timeout=200,
    )
    return folder


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL and fork")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_killed_run_goes_on_to_the_identical_result(scenario, data, killed):
    parameters, rows = SCENARIOS[scenario], data[scenario]
    assert saved_step(killed / scenario) == 14
    whole, begin = small(**parameters).fit(**rows), Begin()
    resumed = small(**parameters, callbacks=[begin])
    resumed.fit(**rows, resume_from=killed / scenario)
    assert begin.step == 14, "nothing was left to do again"
    assert whole.n_steps_ > KILLED_AT, "the scenario ends before the kill"
    assert_identical(resumed, whole)
    assert np.array_equal(resumed.predict_proba(rows["X"]), whole.predict_proba(rows["X"]))
    if scenario == "early stopping":
        looks = [record for record in whole.history_ if "validation" in record]
        best = max(looks, key=lambda record: record["validation"])
        assert best["step"] < 14, "the best weights have to come out of the checkpoint"
        assert whole.n_steps_ < whole.max_steps


# ------------------------------------------------------------------------------------- resuming


def test_a_resumed_run_that_is_resumed_again_comes_to_the_same(
    binary, tmp_path, whole, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY", 4)
    for stop in (8, 17, 25):
        fit = {"resume_from": str(tmp_path)} if stop > 8 else {}
        interrupt(stop, tmp_path, *binary, fit=fit)
    resumed = small(checkpoint_dir=tmp_path).fit(*binary, resume_from=tmp_path)
    assert_identical(resumed, whole)
    begin = Begin()
    again = small(callbacks=[begin]).fit(*binary, resume_from=tmp_path)
    assert begin.step == 30  # a finished run is resumed without a step
    assert_identical(again, whole)


def test_a_mean_of_losses_that_a_checkpoint_cuts_in_two_is_that_of_the_whole_run(
    binary, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY", 151)
    # A record every second step, and a checkpoint after an odd one.
    parameters = {"encoder": (), "n_episodes": 1, "support_size": 4, "max_steps": 200}
    interrupt(160, tmp_path, *binary, **parameters)
    assert saved_step(tmp_path) == 151
    resumed = small(**parameters).fit(*binary, resume_from=tmp_path)
    assert_identical(resumed, small(**parameters).fit(*binary))


def test_the_objective_may_be_another_when_resuming(binary, interrupted):
    resumed = small(objective="recall>=0.9").fit(*binary, resume_from=interrupted)
    assert_identical(resumed, small(objective="recall>=0.9").fit(*binary))


def test_a_run_that_a_callback_stopped_goes_on_when_it_is_resumed(binary, tmp_path, whole):
    class Stop(Callback):
        def on_step_end(self, state):
            state.stop = state.step == 11

    part = small(checkpoint_dir=tmp_path, callbacks=[Stop()]).fit(*binary)
    assert part.n_steps_ == saved_step(tmp_path) == 11
    assert_identical(small().fit(*binary, resume_from=tmp_path), whole)


# ------------------------------------------------------------------------------------- when due


def test_checkpoints_are_written_at_once_and_a_new_run_keeps_that_of_an_earlier_one(
    binary, tmp_path, whole, caplog
):
    with caplog.at_level(logging.WARNING, "setconv"):
        interrupt(5, tmp_path, *binary)
    assert saved_step(tmp_path) == 0
    assert f"resume_from={str(tmp_path)!r}" in caplog.text
    assert_identical(small().fit(*binary, resume_from=tmp_path), whole)
    small(checkpoint_dir=tmp_path, random_state=2).fit(*binary)
    assert saved_step(tmp_path) == 30
    kept = tmp_path / f"{FILE_NAME}.previous"
    assert str(kept) in caplog.text
    kept.replace(tmp_path / FILE_NAME)
    assert saved_step(tmp_path) == 0


# -------------------------------------------------------------------------------------- refusal


def assert_refused(folder, *rows, fit=None, **parameters):
    clf = small(**parameters)
    with pytest.raises(CheckpointError):
        clf.fit(*rows, **(fit or {}), resume_from=folder)
    assert not hasattr(clf, "network_")


OTHERS = [{"random_state": 4}, {"max_steps": 31}, {"class_weight": {0: 1, 1: 2}}, {"scaling": None}]


@pytest.mark.parametrize("other", [*OTHERS, {"random_state": None}, {"anchor": "kmeans"}], ids=str)
def test_a_checkpoint_of_other_parameters_is_refused(binary, interrupted, other):
    assert_refused(interrupted, *binary, **other)


def test_a_checkpoint_of_other_data_is_refused(binary, interrupted, tmp_path):
    X, y = binary
    other_rows, other_labels, weights = X.copy(), y.copy(), np.ones(len(y))
    other_rows[7, 3] += 1e-3
    other_labels[np.flatnonzero(y == 1)[0]] = 0
    weights[0] = 2
    for rows in ((other_rows, y), (X, other_labels), (X, y, weights), (X[:-1], y[:-1])):
        assert_refused(interrupted, *rows)
    assert_refused(interrupted, X, y, fit={"groups": np.arange(len(y)) // 6})
    interrupt(15, tmp_path, X, y, fit={"X_val": X[:50], "y_val": y[:50]})
    assert_refused(tmp_path, X, y, fit={"X_val": X[:51], "y_val": y[:51]})


def test_folders_that_cannot_be_used_are_refused_by_their_parameter(binary, tmp_path):
    (tmp_path / "file").write_text("")
    for parameters, fit in (
        ({}, {"resume_from": tmp_path / "nowhere"}),
        ({"checkpoint_dir": tmp_path / "file"}, {}),
    ):
        with pytest.raises(CheckpointError) as raised:
            small(**parameters).fit(*binary, **fit)
        assert raised.value.parameter in {**parameters, **fit}


def test_a_disk_that_was_full_from_the_first_checkpoint_on_leaves_none(
    binary, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_atomically", full)
    with pytest.raises(CheckpointError, match="No space"):
        small(checkpoint_dir=tmp_path / "run").fit(*binary)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda _: b"\xff" * 5000,
        lambda _: save({"weight": torch.ones(3)}, {"from": "elsewhere"}),
        lambda content: content[:-10] + bytes([content[-10] ^ 0x40]) + content[-9:],
        lambda content: content.replace(b"setconv-checkpoint-", b"setconv-somewhat---"),
    ],
    ids=["cut", "noise", "other", "byte", "format"],
)
def test_a_damaged_file_is_refused(binary, interrupted, tmp_path, damage):
    content = (interrupted / FILE_NAME).read_bytes()
    assert damage(content) != content
    (tmp_path / FILE_NAME).write_bytes(damage(content))
    assert_refused(tmp_path, *binary)
