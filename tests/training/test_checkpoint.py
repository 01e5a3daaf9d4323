"""Training that was cut short goes on to the result of the run that was not."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

import setconv
from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.errors import CheckpointError
from setconv.training import Callback, TrainingState, loop
from setconv.training.checkpoint import FILE_NAME, Checkpoint, read_checkpoint

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


def read_metadata(folder):
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        return file.metadata()


def saved_step(folder):
    return json.loads(read_metadata(folder)["state"])["step"]


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
def interrupted_once(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    interrupt(15, folder, *binary)
    return folder


@pytest.fixture
def interrupted(interrupted_once, tmp_path):
    """A folder with the checkpoint of a run that was interrupted after it."""
    return Path(shutil.copytree(interrupted_once, tmp_path / "interrupted"))


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


def test_checkpoints_are_written_at_once_when_due_and_at_the_end(binary, tmp_path, whole, caplog):
    steps, folder = [], tmp_path / "deep" / "er"

    class Steps(Callback):
        def on_step_end(self, state):
            steps.append((state.step, saved_step(folder)))

    assert_identical(small(checkpoint_dir=folder, callbacks=[Steps()]).fit(*binary), whole)
    assert {(1, 0), (11, 10), (21, 20)} <= set(steps)
    assert saved_step(folder) == 30
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    # A new run keeps the checkpoint of an earlier one.
    small(checkpoint_dir=folder, random_state=2).fit(*binary)
    kept = folder / f"{FILE_NAME}.previous"
    assert str(kept) in caplog.text
    kept.replace(folder / FILE_NAME)
    assert_identical(small().fit(*binary, resume_from=folder), whole)


@pytest.mark.parametrize("step", [5, 15])
def test_an_interrupt_leaves_a_checkpoint_and_says_how_to_go_on(
    binary, tmp_path, whole, caplog, step
):
    with caplog.at_level(logging.WARNING, "setconv"):
        interrupt(step, tmp_path, *binary)
    (record,) = caplog.records
    assert f"resume_from={str(tmp_path)!r}" in record.getMessage()
    assert_identical(small().fit(*binary, resume_from=tmp_path), whole)


def test_without_a_folder_nothing_is_written_and_nothing_promised(
    binary, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    interrupt(5, None, *binary)
    assert caplog.records == []
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------- refusal


def assert_refused(folder, *rows, fit=None, **parameters):
    clf = small(**parameters)
    with pytest.raises(CheckpointError, match="other data, parameters or random_state"):
        clf.fit(*rows, **(fit or {}), resume_from=folder)
    assert not hasattr(clf, "network_")


@pytest.mark.parametrize(
    "other",
    [
        {"random_state": 4},
        {"random_state": None},
        {"n_members": 2},
        {"max_steps": 31},
        {"lr": 0.002},
        {"class_weight": {0: 1, 1: 2}},
        {"anchor": "kmeans"},
        {"scaling": None},
    ],
    ids=str,
)
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
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError) as raised:
            small().fit(*binary, resume_from=folder)
        assert raised.value.parameter == "resume_from"
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError) as raised:
        small(checkpoint_dir=tmp_path / "file").fit(*binary)
    assert raised.value.parameter == "checkpoint_dir"


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda _: b"\xff" * 5000,
        lambda _: save({"weight": torch.ones(3)}, {"from": "elsewhere"}),
        lambda content: content[:-10] + bytes([content[-10] ^ 0x40]) + content[-9:],
    ],
    ids=["empty", "head", "cut", "noise", "other", "byte"],
)
def test_a_damaged_file_is_refused(binary, interrupted, damage):
    path = interrupted / FILE_NAME
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
        small().fit(*binary, resume_from=interrupted)


@pytest.mark.parametrize("change", [{"format": "setconv-checkpoint-2"}, {"state": "[]"}], ids=str)
def test_figures_that_cannot_be_are_refused(binary, interrupted, change):
    path = interrupted / FILE_NAME
    save_file(load_file(path), path, {**read_metadata(interrupted), **change})
    with pytest.raises(CheckpointError):
        small().fit(*binary, resume_from=interrupted)


@pytest.mark.parametrize(
    ("section", "name"),
    [("network", "setconv.attention"), ("loss", "sum"), ("optimizer", "encoder/means/0")],
)
def test_a_checkpoint_that_lacks_a_part_is_refused(binary, interrupted, section, name):
    found = read_checkpoint(interrupted, read_metadata(interrupted)["fingerprint"])
    del found.sections[section][name]
    found.write(interrupted)
    with pytest.raises(CheckpointError, match="lacks a part"):
        small().fit(*binary, resume_from=interrupted)


def test_a_checkpoint_reads_back_as_it_was_written(tmp_path):
    sections = {
        "network": {"a/b": torch.arange(3.0)},
        "best": {"a": torch.ones(2, 2)},
        "best_of": {"a": torch.zeros(())},
    }
    for state in (
        TrainingState(50, 20, 0.5, [{"step": 20, "loss": 0.5, "lr": 0.1}], 10, -0.4, 1),
        TrainingState(50, 20, 0.5),  # without a look at validation rows
    ):
        Checkpoint("print", state, sections).write(tmp_path)
        read = read_checkpoint(tmp_path, "print")
        assert read.state == state
        assert read.sections.keys() == sections.keys()
        for name, section in sections.items():
            assert read.sections[name].keys() == section.keys()
            assert all(torch.equal(read.sections[name][key], one) for key, one in section.items())
