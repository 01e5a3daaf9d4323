"""Training that was cut short goes on to the result of the run that was not."""

import ast
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
SMALL = {
    "n_members": 1,
    "objective": None,
    "query_source": "disjoint",
    "encoder": (16,),
    "out_features": 8,
    "n_episodes": 4,
    "max_steps": 30,
}
MEMBERS = {
    "n_members": 3,
    "objective": "balanced",
    "query_source": "leave_one_out",
    "n_episodes": 2,
}
KINDS = {"one model": {}, "members": MEMBERS}
SCENARIOS = {
    "one model with dropout": {**SMALL, "dropout": 0.4, "input_dropout": 0.5},
    "members with dropout": {**SMALL, **MEMBERS, "dropout": 0.4, "input_dropout": 0.5},
    "members of separate heads with weights": {**SMALL, **MEMBERS, "heads": "separate"},
    # Its validation rows have wrong labels: what it learns is bad for them from the first look on,
    # and patience ends after the kill.
    "early stopping": {
        **SMALL,
        "early_stopping": True,
        "patience": 10,
        "lr": 0.03,
        "schedule": "constant",
        "dropout": 0.0,
        "input_dropout": 0.0,
    },
    "REFERENCE": {
        **presets.REFERENCE,
        "encoder": (16,),
        "out_features": 8,
        "output": 6,
        "max_steps": 30,
        "post_size": 50,
    },
    "separate heads with weights": {**SMALL, "heads": "separate", "dropout": 0.2},
    "killed in the middle of a write": SMALL,
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

folder, killed_at, every, scenarios = ast.literal_eval(sys.argv[1])
folder, loop.CHECKPOINT_EVERY = Path(folder), every
# What torch loads at a first fit is loaded once, before the forks.
SetConvClassifier(
    n_members=1, max_steps=1, encoder=(2,), out_features=2, progress=False
).fit([[0], [1]], [0, 1])
for number, (name, parameters) in enumerate(scenarios.items()):
    child = os.fork()
    if child == 0:
        data = np.load(folder / f"{number}.npz")
        callbacks = [Kill()]
        if "write" in name:
            callbacks = []
            kill_in_fourth_write()
        clf = SetConvClassifier(
            **parameters, random_state=3, progress=False, callbacks=callbacks,
            checkpoint_dir=folder / str(number),
        )
        X, y = data["X"], data["y"]
        named = {}
        if "early" in name:
            named = {"X_val": X, "y_val": 1 - y}
        if "weights" in name:
            named = {"sample_weight": data["w"]}
        clf.fit(X, y, **named)
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


def assert_identical(one, other):
    """Equal to the bit in all that training makes."""
    weights, others = one.network_.state_dict(), other.network_.state_dict()
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        assert torch.equal(tensor, others[name]), name
    assert np.array_equal(one.representatives_, other.representatives_)
    assert np.array_equal(one.anchor_, other.anchor_)
    assert one.history_ == other.history_
    assert one.n_steps_ == other.n_steps_
    assert one.report_ == other.report_
    assert np.array_equal(one.threshold_, other.threshold_)
    assert np.array_equal(one._model.levels, other._model.levels)
    assert np.array_equal(one._model.spreads, other._model.spreads)


def saved_step(folder):
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        return json.loads(file.metadata()["state"])["step"]


@pytest.fixture(scope="module")
def data(binary, multiclass):
    """What each scenario is fitted on: rows, labels, and more by name."""
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.5, 2, len(multiclass[0]))
    return {
        **{name: (X, y, {}) for name in SCENARIOS},
        "early stopping": (X, y, {"X_val": X, "y_val": 1 - y}),
        **{
            name: (*multiclass, {"sample_weight": weights})
            for name in SCENARIOS
            if "separate heads" in name
        },
    }


@pytest.fixture(scope="module", autouse=True)
def killing(data, tmp_path_factory):
    """The process that kills its children, at work while the first tests here run."""
    folder = tmp_path_factory.mktemp("killed")
    for number, name in enumerate(SCENARIOS):
        X, y, named = data[name]
        np.savez(folder / f"{number}.npz", X=X, y=y, w=named.get("sample_weight", []))
    argument = repr((str(folder), KILLED_AT, EVERY, SCENARIOS))
    assert ast.literal_eval(argument)[3] == SCENARIOS
    path = [str(Path(setconv.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, argument],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)},
    ) as process:
        yield process, folder
        process.kill()


@pytest.fixture(scope="module")
def killed(killing):
    """The folders of checkpoints that killed processes left."""
    process, folder = killing
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return {name: folder / str(number) for number, name in enumerate(SCENARIOS)}


@pytest.fixture(scope="module")
def whole(binary):
    """The run that nothing interrupted."""
    return small().fit(*binary)


@pytest.fixture(scope="module", params=KINDS)
def either(request, binary):
    """The parameters of one model or of several members, and the run that nothing interrupted."""
    parameters = KINDS[request.param]
    return parameters, small(**parameters).fit(*binary)


@pytest.fixture(scope="module", autouse=True)
def _checkpoints_every_ten_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_EVERY", 10)
        yield


@pytest.fixture(scope="module")
def interrupted_once(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    clf = small(checkpoint_dir=folder, callbacks=[InterruptAt(15)])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*binary)
    return folder


@pytest.fixture
def interrupted(interrupted_once, tmp_path):
    """A folder with the checkpoint of a run that was interrupted after it."""
    return Path(shutil.copytree(interrupted_once, tmp_path / "interrupted"))


# ------------------------------------------------------------------------------------- resuming


def test_a_resumed_run_that_is_resumed_again_comes_to_the_same(
    binary, tmp_path, either, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY", 4)
    parameters, whole = either
    written = {**parameters, "checkpoint_dir": tmp_path}
    for stop in (8, 17, 25):
        part = small(**written, callbacks=[InterruptAt(stop)])
        with pytest.raises(KeyboardInterrupt):
            part.fit(*binary, resume_from=tmp_path if stop > 8 else None)
    resumed = small(**written)
    assert_identical(resumed.fit(*binary, resume_from=tmp_path), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_of_losses_that_a_checkpoint_cuts_in_two_is_that_of_the_whole_run(
    kind, binary, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY", 151)
    # A record every second step, and a checkpoint after an odd one.
    parameters = {**KINDS[kind], "encoder": (), "n_episodes": 1, "support_size": 4}
    parameters["max_steps"] = 200
    clf = small(**parameters, checkpoint_dir=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(callbacks=[InterruptAt(160)]).fit(*binary)
    assert saved_step(tmp_path) == 151
    resumed = small(**parameters).fit(*binary, resume_from=tmp_path)
    assert_identical(resumed, small(**parameters).fit(*binary))


def test_resuming_in_the_same_estimator_after_an_interrupt_gives_the_whole_run(
    binary, tmp_path, either
):
    parameters, whole = either
    written = {**parameters, "checkpoint_dir": tmp_path}
    clf = small(**written, callbacks=[InterruptAt(15)])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*binary)
    clf.set_params(callbacks=())
    assert_identical(clf.fit(*binary, resume_from=str(tmp_path)), whole)


def test_a_finished_run_is_resumed_without_a_step(binary, tmp_path, either):
    parameters, whole = either
    clf = small(**parameters, checkpoint_dir=tmp_path).fit(*binary)
    assert_identical(clf, whole)  # checkpoints do not change the result
    begin = Begin()
    again = small(**parameters, callbacks=[begin]).fit(*binary, resume_from=tmp_path)
    assert begin.step == 30
    assert_identical(again, whole)


def test_the_objective_may_be_another_when_resuming(binary, tmp_path):
    written = {**MEMBERS, "checkpoint_dir": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        small(**written, callbacks=[InterruptAt(15)]).fit(*binary)
    other = {**MEMBERS, "objective": "recall>=0.9"}
    resumed = small(**other).fit(*binary, resume_from=tmp_path)
    assert_identical(resumed, small(**other).fit(*binary))


def test_a_run_that_a_callback_stopped_goes_on_when_it_is_resumed(binary, tmp_path, whole):
    class Stop(Callback):
        def on_step_end(self, state):
            state.stop = state.step == 11

    part = small(checkpoint_dir=tmp_path, callbacks=[Stop()]).fit(*binary)
    assert part.n_steps_ == saved_step(tmp_path) == 11
    assert_identical(small().fit(*binary, resume_from=tmp_path), whole)


# ------------------------------------------------------------------------------------- when due


def test_checkpoints_are_written_at_once_when_due_and_at_the_end(binary, tmp_path):
    steps, folder = [], tmp_path / "deep" / "er"

    class Steps(Callback):
        def on_step_end(self, state):
            steps.append((state.step, saved_step(folder)))

    small(checkpoint_dir=folder, callbacks=[Steps()]).fit(*binary)
    assert {(1, 0), (11, 10), (21, 20)} <= set(steps)
    assert saved_step(folder) == 30
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_new_run_keeps_the_checkpoint_of_an_earlier_one(binary, tmp_path, caplog):
    earlier = small(checkpoint_dir=tmp_path, random_state=1).fit(*binary)
    small(checkpoint_dir=tmp_path, random_state=2).fit(*binary)
    kept = tmp_path / f"{FILE_NAME}.previous"
    assert str(kept) in caplog.text
    kept.replace(tmp_path / FILE_NAME)
    again = small(random_state=1).fit(*binary, resume_from=tmp_path)
    assert_identical(again, earlier)


@pytest.mark.parametrize("step", [5, 15])
def test_an_interrupt_leaves_a_checkpoint_and_says_how_to_go_on(
    binary, tmp_path, whole, caplog, step
):
    clf = small(checkpoint_dir=tmp_path, callbacks=[InterruptAt(step)])
    with caplog.at_level(logging.WARNING, "setconv"), pytest.raises(KeyboardInterrupt):
        clf.fit(*binary)
    (record,) = caplog.records
    assert f"resume_from={str(tmp_path)!r}" in record.getMessage()
    assert_identical(small().fit(*binary, resume_from=tmp_path), whole)


def test_without_a_folder_nothing_is_written_and_nothing_promised(
    binary, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        small(callbacks=[InterruptAt(5)]).fit(*binary)
    assert caplog.records == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_checkpoints_that_is_a_file_is_a_clear_error(binary, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError) as raised:
        small(checkpoint_dir=tmp_path / "file").fit(*binary)
    assert raised.value.parameter == "checkpoint_dir"


# -------------------------------------------------------------------------------------- refusal


OTHERS = {
    "random_state": [4, None],
    "n_members": [2],
    "query_source": ["leave_one_out"],
    "max_steps": [31],
    "lr": [0.002],
    "dropout": [0.1],
    "class_weight": [{0: 1, 1: 2}],
    "anchor": ["kmeans"],
    "scaling": [None],
}


def assert_refused(folder, *arguments, X_val=None, y_val=None, **parameters):
    clf = small(**parameters)
    with pytest.raises(CheckpointError, match="other data, parameters or random_state"):
        clf.fit(*arguments, X_val=X_val, y_val=y_val, resume_from=folder)
    assert not hasattr(clf, "network_")


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_other_parameters_is_refused(binary, interrupted, name):
    for value in OTHERS[name]:
        assert_refused(interrupted, *binary, **{name: value})


def test_a_checkpoint_of_other_data_is_refused(binary, interrupted, tmp_path):
    X, y = binary
    other_rows, other_labels = X.copy(), y.copy()
    other_rows[7, 3] += 1e-3
    other_labels[np.flatnonzero(y == 1)[0]] = 0
    weights = np.ones(len(y))
    weights[0] = 2
    for arguments in ((other_rows, y), (X, other_labels), (X, y, weights), (X[:-1], y[:-1])):
        assert_refused(interrupted, *arguments)
    clf = small(checkpoint_dir=tmp_path, callbacks=[InterruptAt(15)])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y, X_val=X[:50], y_val=y[:50])
    assert_refused(tmp_path, X, y, X_val=X[:51], y_val=y[:51])


def test_a_folder_without_a_checkpoint_is_refused(binary, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError) as raised:
            small().fit(*binary, resume_from=folder)
        assert raised.value.parameter == "resume_from"


def changed_byte(content):
    return content[:-10] + bytes([content[-10] ^ 0x40]) + content[-9:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda _: b"{}",
        lambda _: b"\xff" * 5000,
        lambda _: save({"weight": torch.ones(3)}, {"from": "elsewhere"}),
        changed_byte,
    ],
    ids=["empty", "head", "cut", "JSON", "noise", "other", "byte"],
)
def test_a_damaged_file_is_refused(binary, interrupted, damage):
    path = interrupted / FILE_NAME
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
        small().fit(*binary, resume_from=interrupted)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "setconv-checkpoint-2"},
        {"fingerprint": None},
        {"state": '{"max_steps": 1, "strange": 1}'},
        {"state": "[]"},
        {"checksum": "0"},
    ],
    ids=str,
)
def test_figures_that_cannot_be_are_refused(binary, interrupted, change):
    path = interrupted / FILE_NAME
    with safe_open(path, framework="pt") as file:
        kept = {**file.metadata(), **change}
    save_file(load_file(path), path, {name: v for name, v in kept.items() if v is not None})
    with pytest.raises(CheckpointError):
        small().fit(*binary, resume_from=interrupted)


@pytest.mark.parametrize(
    "part", ["network/setconv.attention", "loss/sum", "optimizer/encoder/means/0"]
)
def test_a_checkpoint_that_lacks_a_part_is_refused(binary, interrupted, part):
    path = interrupted / FILE_NAME
    with safe_open(path, framework="pt") as file:
        fingerprint = file.metadata()["fingerprint"]
    found = read_checkpoint(interrupted, fingerprint)
    section, _, name = part.partition("/")
    del found.sections[section][name]
    found.write(interrupted)
    with pytest.raises(CheckpointError, match="lacks a part"):
        small().fit(*binary, resume_from=interrupted)


# ----------------------------------------------------------------------------------- the format


@pytest.mark.parametrize(
    "state",
    [
        TrainingState(50, 20, 0.5, [{"step": 20, "loss": 0.5, "lr": 0.1}], 10, -0.4, 1),
        TrainingState(50, 20, 0.5),  # without a look at validation rows
    ],
)
def test_a_checkpoint_reads_back_as_it_was_written(tmp_path, state):
    sections = {
        "network": {"a/b": torch.arange(3.0)},
        "best": {"a": torch.ones(2, 2)},
        "best_of": {"a": torch.zeros(())},
    }
    Checkpoint("print", state, sections).write(tmp_path)
    read = read_checkpoint(tmp_path, "print")
    assert read.state == state
    assert read.sections.keys() == sections.keys()
    for name, section in sections.items():
        assert read.sections[name].keys() == section.keys()
        assert all(torch.equal(read.sections[name][key], one) for key, one in section.items())


# --------------------------------------------------------------------------------------- killed


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL and fork")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_killed_run_goes_on_to_the_identical_result(scenario, data, killed):
    X, y, named = data[scenario]
    parameters = SCENARIOS[scenario]
    assert saved_step(killed[scenario]) == 14
    whole = small(**parameters).fit(X, y, **named)
    begin = Begin()
    resumed = small(**parameters, callbacks=[begin])
    resumed.fit(X, y, **named, resume_from=killed[scenario])
    assert begin.step == 14, "nothing was left to do again"
    assert whole.n_steps_ > 18, "the scenario ends before the kill"
    assert_identical(resumed, whole)
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    if scenario == "early stopping":
        looks = [record for record in whole.history_ if "validation" in record]
        best = max(looks, key=lambda record: record["validation"])
        assert best["step"] < 14, "the best weights have to come out of the checkpoint"
        assert whole.n_steps_ < whole.max_steps
