"""Saved models: the same when they come back, whole or not at all, and clear when damaged."""

import contextlib
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from sklearn.base import clone
from sklearn.metrics import average_precision_score, f1_score, recall_score, roc_auc_score

import setconv
from setconv import persistence, presets
from setconv.classifier import SetConvClassifier
from setconv.errors import ModelFileError, ParameterError, SetConvError
from setconv.persistence import write_card
from setconv.pipelines import load
from setconv.training import Callback

NEWER = persistence.FORMAT_VERSION + 1
FILES = ["README.md", "config.json", "model.safetensors"]
SMALL = {"n_members": 2, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 6}


def small(**parameters):
    return SetConvClassifier(**{**SMALL, "random_state": 0, "progress": False, **parameters})


def preset(name):
    shape = {"encoder": (8,), "output": 5} if name == "REFERENCE" else {}
    values = {**getattr(presets, name), **shape, "out_features": 4, "max_steps": 6}
    return small(**values)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def tamper(folder, *, config=None, tensors=None):
    """Change a saved model and keep its checksum right, as no accident would."""
    stored = load_tensors((folder / "model.safetensors").read_bytes())
    if tensors:
        tensors(stored)
    content = save_tensors(stored)
    (folder / "model.safetensors").write_bytes(content)
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    values["sha256"] = hashlib.sha256(content).hexdigest()
    if config:
        config(values)
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")


def assert_same_model(one, other, X):
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert np.array_equal(one.transform(X), other.transform(X))
    predicted = other.predict(X)
    assert np.array_equal(one.predict(X), predicted)
    assert predicted.dtype == one.predict(X).dtype
    assert other.classes_.dtype == one.classes_.dtype
    for name in ("classes_", "class_counts_", "anchor_", "representatives_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype, name
    for name in ("n_features_in_", "history_", "n_steps_", "report_", "report_source_"):
        assert getattr(one, name) == getattr(other, name), name
    assert np.array_equal(one.threshold_, other.threshold_)
    assert np.array_equal(one.predictions(X).scores, other.predictions(X).scores)
    weights = one.network_.state_dict()
    for name, tensor in other.network_.state_dict().items():
        assert torch.equal(tensor, weights[name]), name
    assert {name for name in vars(other) if name.endswith("_")} == {
        name for name in vars(one) if name.endswith("_")
    }


@pytest.fixture(scope="module")
def model(binary):
    return small().fit(*binary)


@pytest.fixture
def folder(model, tmp_path):
    """A saved model."""
    model.save(tmp_path / "model")
    return tmp_path / "model"


# ----------------------------------------------------------------------------------- round trip


ROUND_TRIPS = {
    "defaults": small(),
    "alone": small(n_members=1),
    "three views": small(n_members=4),
    "pieces": small(n_members=1, scaling="pieces"),
    "the paper's rule": small(objective=None),
    "F1": small(objective="f1"),
    "a recall": small(objective={"recall": 0.9, "class": 0}),
    "no scaling": small(scaling=None),
    "dot product": small(similarity="dot"),
    "deep": small(encoder=(8, 6), output=3),
    "no encoder": small(encoder=()),
    "PAPER": preset("PAPER"),
    "REFERENCE": preset("REFERENCE"),
    "separate heads": small(heads="separate"),
    "kmeans": small(anchor="kmeans"),
    "a subset": small(anchor="subset"),
    "an array": small(anchor=np.linspace(-1, 1, 8)),
    "two arrays": small(anchor=np.linspace(-1, 1, 16).reshape(2, 8)),
    "a callable": small(anchor=lambda rows: rows[:2]),
    "early stopping": small(early_stopping=True, patience=None, monitor="g_mean"),
    "post-training subset": small(post_size=40),
    "no steps": small(max_steps=0),
    "learning rates": small(lr={"encoder": 0.1, "setconv": 0.2, "output": 0.3}),
}


SEVERAL_HEADS = [
    "defaults",
    "three views",
    "F1",
    "deep",
    "PAPER",
    "REFERENCE",
    "separate heads",
    "kmeans",
    "a callable",
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "binary") for name in ROUND_TRIPS),
        *((name, "multiclass") for name in SEVERAL_HEADS),
    ],
)
def test_a_loaded_model_is_the_saved_one_to_the_bit(name, kind, tmp_path, request):
    X, y = request.getfixturevalue(kind)
    clf = clone(ROUND_TRIPS[name]).fit(X, y)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is SetConvClassifier
    assert_same_model(clf, loaded, X)


LABELS = {
    "ints": np.array([-3, 7, 250]),
    "small ints": np.array([3, 7, 250], dtype=np.uint8),
    "floats": np.array([1.0, 2.0, 30.0]),
    "strings": np.array(["a", "bb", "ccc"]),
    "objects": np.array(["eins", "zwei", "drei"], dtype=object),
    "unicode": np.array(["größe", "日本語", "🦉"]),
    "awkward": np.array(['"quoted"', "a | b", "two\nlines"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_with_their_values_and_type(name, multiclass, tmp_path):
    X, codes = multiclass
    clf = small().fit(X[codes < 3], LABELS[name][codes[codes < 3]])
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_model(clf, loaded, X)
    assert loaded.classes_.tolist() == sorted(LABELS[name].tolist())
    assert list(loaded.report_.classes) == clf.classes_.tolist()


def test_boolean_labels_come_back_as_booleans(binary, tmp_path):
    X, y = binary
    clf = small().fit(X, y == 1)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_model(clf, loaded, X)
    assert loaded.classes_.dtype == bool
    assert loaded.report_[True] == clf.report_[True]


def test_labels_that_json_cannot_hold_are_refused_before_anything_is_written(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(model, "classes_", np.array([(0, 0), None], dtype=object))
    with pytest.raises(ModelFileError, match="use strings, bools or numbers"):
        model.save(tmp_path / "model")
    assert names(tmp_path) == []


def test_feature_names_come_back_and_are_checked(binary, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = binary
    frame = pandas.DataFrame(X, columns=["a", "größe", "c d", "e|f", "g", "h", "i", "j"])
    clf = small().fit(frame, y)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(loaded.predict_proba(frame), clf.predict_proba(frame))
    with pytest.raises(ValueError, match="größe"):
        loaded.predict(frame.rename(columns={"größe": "other"}))


def test_class_weights_come_back(binary, tmp_path):
    X, y = binary
    clf = small(class_weight={0: 1, 1: np.float32(2.5)}).fit(X, y)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.class_weight == {0: 1.0, 1: 2.5}
    assert_same_model(clf, loaded, X)


def test_parameters_come_back_but_for_those_of_one_process(binary, tmp_path):
    parameters = {
        "encoder": [8, 5],
        "out_features": np.int64(4),
        "anchor": "kmeans",
        "support_size": 32,
        "lr": {"encoder": 0.1, "setconv": 0.2, "output": 0.3},
        "patience": None,
        "random_state": 5,
    }
    outside = {"callbacks": [Callback()], "checkpoint_dir": tmp_path / "checkpoints"}
    clf = small(**parameters, **outside, device="cpu").fit(*binary)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model").get_params()
    expected = {**clf.get_params(), "encoder": (8, 5), "callbacks": (), "checkpoint_dir": None}
    assert loaded == {**expected, "device": "auto"}


@pytest.mark.parametrize("rule", ["mean", "subset", "kmeans"])
def test_a_loaded_model_can_be_fitted_again_to_the_same(rule, binary, tmp_path):
    clf = small(anchor=rule).fit(*binary)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.anchor == rule
    assert_same_model(clf, clone(loaded).fit(*binary), binary[0])


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_a_model_with_anchors_of_a_callable_can_be_fitted_again_without_it(
    kind, members, tmp_path, request
):
    X, y = request.getfixturevalue(kind)
    clf = small(n_members=members, anchor=lambda rows: rows.max(axis=0)).fit(X, y)
    clf.save(tmp_path / "model")
    again = clone(load(tmp_path / "model")).fit(X, y)
    assert_same_model(clf, again, X)


def test_a_seed_of_numpy_comes_back(binary, tmp_path):
    clf = small(random_state=np.int64(7)).fit(*binary)
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").random_state == 7


def test_partial_fit_goes_on_after_loading(binary, tmp_path):
    X, y = binary
    clf = small().fit(X[:150], y[:150])
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for one in (clf, loaded):
        one.partial_fit(X[150:], y[150:])
    assert_same_model(clf, loaded, X)
    assert loaded.class_counts_.tolist() == np.bincount(y).tolist()


def test_a_loaded_model_is_saved_to_the_same_bytes(folder, tmp_path):
    load(folder).save(tmp_path / "again")
    for name in FILES:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_a_folder_is_named_by_a_string_or_a_path(model, tmp_path, monkeypatch, binary):
    monkeypatch.chdir(tmp_path)
    model.save("here")
    model.save(tmp_path / "a" / "b")
    for folder in ("here", Path("here"), str(tmp_path / "a" / "b"), "a/b/"):
        assert_same_model(model, load(folder), binary[0])


def test_an_estimator_without_a_model_cannot_be_saved(tmp_path):
    with pytest.raises(setconv.errors.NotFittedError, match="not fitted"):
        small().save(tmp_path / "model")
    assert names(tmp_path) == []


def test_a_model_is_loaded_to_the_device_asked_for(folder):
    loaded = load(folder, device="cpu")
    assert loaded.device == "cpu"
    assert {parameter.device.type for parameter in loaded.network_.parameters()} == {"cpu"}


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_not_blamed_on_the_files(folder, device):
    with pytest.raises(ParameterError, match=device):
        load(folder, device=device)


@pytest.mark.parametrize(
    "changed", [{"encoder": (5,)}, {"out_features": 9}, {"similarity": "dot"}, {"output": 3}]
)
def test_parameters_set_after_the_fit_do_not_spoil_the_saved_model(binary, tmp_path, changed):
    clf = small().fit(*binary)
    expected = clf.predict_proba(binary[0])
    clf.set_params(**changed)
    assert np.array_equal(clf.predict_proba(binary[0]), expected)
    clf.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(binary[0]), expected)


def test_a_model_whose_validation_rows_lack_a_class_can_be_saved(binary, tmp_path):
    X, y = binary
    clf = small(monitor="auc").fit(
        X[40:], y[40:], X_val=X[:40][y[:40] == 0], y_val=np.zeros(sum(y[:40] == 0))
    )
    clf.save(tmp_path / "model")
    assert_same_model(clf, load(tmp_path / "model"), X)


@pytest.mark.parametrize(
    "parameters",
    [{"weight_decay": np.float32(0.5)}, {"lr": np.float32(0.001)}, {"encoder": np.array([8])}],
)
def test_parameters_from_numpy_can_be_saved(binary, tmp_path, parameters):
    clf = small(**parameters).fit(*binary)
    clf.save(tmp_path / "model")
    assert_same_model(clf, load(tmp_path / "model"), binary[0])


# -------------------------------------------------------------------------------------- on disk


def test_a_folder_holds_three_files_and_no_pickle(folder):
    assert names(folder) == FILES
    for name in FILES:
        content = (folder / name).read_bytes()
        assert not content.startswith((b"\x80", b"PK")), f"{name} looks like pickle or zip"


def test_the_tensors_are_plain_safetensors(folder, model):
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    end = max(entry["data_offsets"][1] for entry in header.values())
    assert 8 + length + end == len(content)
    assert {entry["dtype"] for entry in header.values()} == {"F32", "F64", "I64", "U8"}
    assert header["anchors"]["shape"] == [2, 1, 8]
    assert header["sums/total"]["shape"] == [2, 2, 4]
    assert {name.removeprefix("network/") for name in header if name.startswith("network/")} == set(
        model.network_.state_dict()
    )


def test_the_configuration_is_plain_json_that_says_what_it_is(folder, model):
    text = (folder / "config.json").read_text(encoding="utf-8")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    config = json.loads(text, parse_constant=refuse)
    assert config["format"] == "setconv-model"
    assert config["format_version"] == persistence.FORMAT_VERSION
    assert config["kind"] == "SetConvClassifier"
    assert config["class_counts"] == model.class_counts_.tolist()
    content = (folder / "model.safetensors").read_bytes()
    assert config["sha256"] == hashlib.sha256(content).hexdigest()


def test_loading_opens_no_pickle(folder, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    monkeypatch.setattr("pickle.load", refuse)
    monkeypatch.setattr("pickle.loads", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    load(folder)


def test_a_model_of_rows_of_numbers_is_opened_without_pyarrow(folder):
    program = (
        f"import sys; sys.modules['pyarrow'] = None; import setconv; setconv.load({str(folder)!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --------------------------------------------------------------------------------------- atomic


def test_saving_replaces_an_older_model(fitted, folder, binary):
    fitted.save(folder)
    assert names(folder) == FILES
    assert names(folder.parent) == ["model"]
    assert np.array_equal(load(folder).predict_proba(binary[0]), fitted.predict_proba(binary[0]))


def test_saving_to_an_empty_folder_fills_it(model, tmp_path):
    (tmp_path / "model").mkdir()
    model.save(tmp_path / "model")
    assert names(tmp_path / "model") == FILES
    assert names(tmp_path) == ["model"]


def fail_to_write(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "target",
    [
        "setconv.persistence.save_tensors",
        "os.fsync",
        "setconv.persistence.write_card",
        "json.dumps",
    ],
)
def test_a_failure_while_saving_leaves_the_old_model_and_no_litter(
    model, fitted, folder, binary, monkeypatch, target
):
    with monkeypatch.context() as patch:
        patch.setattr(target, fail_to_write)
        with pytest.raises(OSError, match="No space"):
            fitted.save(folder)
    assert names(folder.parent) == ["model"]
    assert_same_model(model, load(folder), binary[0])


# A save moves three files into the new folder, the old folder aside, the new one in its place.
@pytest.mark.parametrize(
    "move",
    [
        1,
        3,
        4,
        5,
    ],
)
def test_a_move_that_fails_leaves_the_old_model_and_no_litter(
    model, fitted, folder, binary, monkeypatch, move
):
    real, calls = Path.replace, []

    def replace(self, target):
        calls.append(target)
        return fail_to_write() if len(calls) == move else real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(OSError, match="No space"):
            fitted.save(folder)
    assert_same_model(model, load(folder), binary[0])
    assert names(folder.parent) == ["model"]


def test_a_model_left_aside_by_a_save_that_died_is_named(folder):
    aside = folder.rename(folder.parent / ".model.old-x1")
    with pytest.raises(ModelFileError, match=r"earlier model is in .*\.model\.old-x1"):
        load(folder)
    assert load(aside)


# Two models replace each other in one folder until the kill.
SAVES = """
import os, random, shutil, signal, sys, time
from pathlib import Path
from setconv import load

place, kills = Path(sys.argv[1]), int(sys.argv[2])
folder, ways = place / "work" / "model", [place / "model", place / "other"]
models = [load(way) for way in ways]
whole = [(way / "model.safetensors").read_bytes() for way in ways]
models[0].save(folder)
moments, hits = random.Random(0), 0
for _ in range(kills):
    child = os.fork()
    while child == 0:
        for model in models:
            model.save(folder)
    time.sleep(moments.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    others = [one for one in folder.parent.iterdir() if one != folder]
    hits += bool(others)
    if not folder.exists():
        (aside,) = folder.parent.glob(".model.old-*")
        aside.rename(folder)
    load(folder)
    assert (folder / "model.safetensors").read_bytes() in whole
    for one in others:
        shutil.rmtree(one, ignore_errors=True)
assert hits > kills / 4, hits
"""


@pytest.mark.soak
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_a_killed_save_leaves_a_whole_model(folder, fitted, cases):
    fitted.save(folder.parent / "other")
    (folder.parent / "work").mkdir()
    program = [sys.executable, "-c", SAVES, str(folder.parent), str(cases(500))]
    path = [str(Path(setconv.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    subprocess.run(program, check=True, env=environment)


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "my work"},
        {"config.json": '{"format": "another"}'},
        {"config.json": "[1, 2]"},
        {"config.json": "{", "model.safetensors": ""},
        {".git": ""},
    ],
)
def test_a_folder_of_something_else_is_not_replaced(model, tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelFileError, match=r"not a setconv model: choose another folder"):
        model.save(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_file_in_the_place_of_the_folder_is_not_replaced(model, tmp_path):
    (tmp_path / "thesis.txt").write_text("my work")
    with pytest.raises(ModelFileError, match=r"is a file: give a folder"):
        model.save(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "my work"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_model_behind_a_link_can_be_replaced(fitted, folder):
    link = folder.parent / "latest"
    link.symlink_to(folder, target_is_directory=True)
    fitted.save(link)
    assert load(link).encoder == fitted.encoder


# -------------------------------------------------------------------------------------- damaged


@pytest.mark.parametrize("kept", [0, 1, 200, -2])
def test_a_truncated_configuration_is_a_clear_error(folder, kept):
    path = folder / "config.json"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match=r"config\.json is truncated or damaged .*again"):
        load(folder)


@pytest.mark.parametrize("content", [b"not json", b"\xff\xfe\x00", b'{"format": "setconv-model"'])
def test_a_configuration_that_is_not_json_is_a_clear_error(folder, content):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"config\.json is truncated or damaged"):
        load(folder)


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_truncated_tensors_are_a_clear_error(folder, kept):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match=r"model\.safetensors is truncated or damaged .*again"):
        load(folder)


@pytest.mark.parametrize("place", [12, 900, -1])
def test_a_changed_byte_in_the_tensors_is_a_clear_error(folder, place):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="checksum"):
        load(folder)


def test_tensors_of_another_model_are_a_clear_error(folder, fitted, tmp_path):
    fitted.save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(ModelFileError, match="checksum"):
        load(folder)


def test_a_file_that_is_no_safetensors_is_a_clear_error_even_with_the_right_checksum(folder):
    content = b"\xff" * 64
    (folder / "model.safetensors").write_bytes(content)
    config = json.loads((folder / "config.json").read_text())
    config["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_a_clear_error(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelFileError, match=rf"no readable {name} \(No such file"):
        load(folder)


def test_a_model_without_its_card_still_opens(folder, model, binary):
    (folder / "README.md").unlink()
    assert_same_model(model, load(folder), binary[0])


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(ModelFileError, match=r"nowhere is not a folder: give the folder"):
        load(tmp_path / "nowhere")


def test_a_file_instead_of_a_folder_is_a_clear_error(folder):
    with pytest.raises(ModelFileError, match="is not a folder"):
        load(folder / "config.json")


def test_an_empty_folder_is_a_clear_error(tmp_path):
    with pytest.raises(ModelFileError, match="is not a setconv model"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", '{"format": "sklearn"}', '{"model_type": "bert"}'])
def test_a_model_of_another_library_is_a_clear_error(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"not a setconv model: config\.json is of another"):
        load(folder)


def test_a_newer_format_says_who_wrote_it_and_what_to_do(folder):
    tamper(
        folder,
        config=lambda config: config.update(format_version=NEWER, versions={"setconv": "9.1"}),
    )
    with pytest.raises(
        ModelFileError, match=rf"version {NEWER}.* setconv 9\.1.* pip install --upgrade"
    ):
        load(folder)


def test_a_newer_format_may_have_another_way_to_say_who_wrote_it(folder):
    tamper(folder, config=lambda config: config.update(format_version=NEWER, versions=None))
    with pytest.raises(ModelFileError, match="pip install --upgrade"):
        load(folder)


@pytest.mark.parametrize("version", [None, "1", 1.5, []])
def test_a_format_without_a_sensible_number_is_a_clear_error(folder, version):
    tamper(folder, config=lambda config: config.update(format_version=version))
    with pytest.raises(ModelFileError, match="format version"):
        load(folder)


@pytest.mark.parametrize("kind", ["SetConvRegressor", None])
def test_an_unknown_kind_of_model_is_a_clear_error(folder, kind):
    tamper(folder, config=lambda config: config.update(kind=kind))
    with pytest.raises(ModelFileError, match=rf"holds a {kind}, which this version .*upgrade"):
        load(folder)


@pytest.mark.parametrize(
    "key",
    [
        "parameters",
        "classes",
        "class_counts",
        "n_features",
        "feature_names",
        "parts",
        "rule",
        "offset",
        "n_steps",
        "history",
        "report",
        "report_source",
    ],
)
def test_a_configuration_that_lacks_a_part_names_it(folder, key):
    tamper(folder, config=lambda config: config.pop(key))
    with pytest.raises(ModelFileError, match=rf"do not fit together .*{key}.*again"):
        load(folder)


@pytest.mark.parametrize(
    "key",
    [
        "anchors",
        "sums/total",
        "sums/weight",
        "levels",
        "spreads",
        "views/0/mean",
        "views/0/scale",
        "views/1/knots",
        "views/1/starts",
        "network/setconv.attention",
        "rule/codes",
    ],
)
def test_a_missing_tensor_is_named(folder, key):
    tamper(folder, tensors=lambda stored: stored.pop(key))
    with pytest.raises(ModelFileError, match=key.split("/")[-1]):
        load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 3},
        {"classes": {"dtype": "<i8", "values": [0, 1, 2]}},
        {"classes": {"dtype": "nonsense", "values": [0, 1]}},
        {"network": {}},
        {"parameters": {"unheard_of": 1}},
        {"network": {"in_features": 8, "encoder": [9]}},
        {"report": {"classes": [0, 1]}},
    ],
)
def test_a_configuration_that_does_not_fit_the_tensors_is_a_clear_error(folder, change):
    tamper(folder, config=lambda config: config.update(change))
    with pytest.raises(ModelFileError, match=r"(?s)do not fit together .*: copy the model folder"):
        load(folder)


@pytest.mark.parametrize("key", ["network/setconv.attention", "network/encoder.0.weight"])
def test_weights_of_a_wrong_shape_are_a_clear_error(folder, key):
    tamper(folder, tensors=lambda stored: stored.update({key: stored[key][..., 1:].contiguous()}))
    with pytest.raises(ModelFileError, match=r"size mismatch for (setconv\.att|encoder\.0)"):
        load(folder)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("anchors", (2, 1, 7)),
        ("anchors", (1, 1, 8)),
        ("anchors", (2, 8)),
        ("anchors", ()),
        ("sums/total", (2, 2, 3)),
        ("sums/total", (1, 2, 4)),
        ("sums/weight", (2, 1)),
        ("levels", (1,)),
        ("spreads", (2, 1)),
        ("views/0/mean", (7,)),
        ("views/0/mean", (1, 8)),
        ("views/0/scale", (1,)),
        ("views/1/knots", (7,)),
        ("views/1/values", (1, 8)),
        ("rule/scores", (3, 1)),
        ("rule/weights", (3,)),
    ],
)
def test_tensors_of_a_wrong_shape_are_a_clear_error(folder, key, shape):
    wrong = torch.ones(shape, dtype=torch.float64)
    tamper(folder, tensors=lambda stored: stored.update({key: wrong}))
    with pytest.raises(ModelFileError):
        load(folder)


def test_a_model_that_scales_does_not_open_without_its_scaling(folder):
    tamper(folder, tensors=lambda stored: stored.pop("views/0/mean"))
    with pytest.raises(ModelFileError):
        load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 0},
        {"class_counts": [1]},
        {"feature_names": ["a"]},
        {"offset": []},
        {"parts": {"views/0": "minmax", "views/1": "normal"}},
        {"parts": {"views/0": "normal"}},
        {"rule": {}},
        {"classes": {"dtype": "<i8", "values": [1, 1]}},
    ],
)
def test_figures_that_cannot_be_are_a_clear_error(folder, change):
    tamper(folder, config=lambda config: config.update(change))
    with pytest.raises(ModelFileError):
        load(folder)


def damaged(content, rng):
    """The bytes with one of them changed, the end cut off, or a part gone or doubled."""
    start, end = sorted(rng.integers(0, len(content), 2))
    changed = bytes([content[start] ^ int(rng.integers(1, 256))])
    return [
        content[:start] + changed + content[start + 1 :],
        content[:start],
        content[:start] + content[end + 1 :],
        content[: end + 1] + content[start:],
    ][rng.integers(4)]


@pytest.mark.soak
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_damaged_file_is_a_clear_error_or_does_no_harm(folder, binary, rng, cases, name):
    path = folder / name
    content = path.read_bytes()
    for _ in range(cases(5000)):
        path.write_bytes(damaged(content, rng))
        try:
            opened = load(folder)
        except ModelFileError:
            continue
        # What is left of a configuration may be one, say with another number of steps.
        assert name == "config.json"
        assert opened.predict(binary[0]).shape == binary[1].shape


@pytest.mark.soak
def test_damage_behind_a_right_checksum_is_a_clear_error_or_a_model(folder, rng, cases):
    path = folder / "model.safetensors"
    content = path.read_bytes()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for _ in range(cases(5000)):
        path.write_bytes(damaged(content, rng))
        config["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        with contextlib.suppress(ModelFileError):
            load(folder)


def test_every_error_of_loading_is_one_of_setconv_and_a_value_error(tmp_path):
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path)
    assert isinstance(caught.value, SetConvError)
    assert isinstance(caught.value, ValueError)


# ------------------------------------------------------------------------------------- the card


def table(card, heading):
    """The cells of the table under a heading, without its head and rule."""
    lines = card.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    split = [line.strip("|").replace("\\|", "\0").split("|") for line in rows]
    return [[cell.strip().replace("\0", "|") for cell in cells] for cells in split][2:]


def test_the_card_tells_the_shape_of_the_data_and_the_class_counts(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "240 rows, 8 features." in card
    assert "8 numeric features into 2 classes" in card
    assert table(card, "Data") == [["0", "204", "85.0%"], ["1", "36", "15.0%"]]


def figures_of(said, label, column):
    """The card's figures of a class, from predictions alone."""
    truth, alarm, weights = said.truth == label, said.labels == label, said.weights
    if not truth.any() or truth.all():
        return ["n/a"] * 6
    sens, spec = (
        recall_score(t, a, sample_weight=weights) for t, a in ((truth, alarm), (~truth, ~alarm))
    )
    scores = said.scores if said.scores.ndim == 1 else said.scores[:, column]
    if said.scores.ndim == 1 and column == 0:
        scores = -scores
    ranked = [
        measure(truth, scores, sample_weight=weights)
        for measure in (roc_auc_score, average_precision_score)
    ]
    f1 = f1_score(truth, alarm, sample_weight=weights)
    return [f"{figure:.3f}" for figure in (spec, sens, f1, math.sqrt(sens * spec), *ranked)]


CARDS = {
    "two classes": {},
    "four classes": {"classes": 4},
    "weights": {"weights": True},
    "prior": {"prior": 0.02},
    "weights and prior": {"weights": True, "prior": 0.02},
    "perfect": {"gap": 50.0},
    "a class of one row": {"single": True},
    "an objective": {"objective": "f1"},
}


@pytest.mark.parametrize("case", CARDS)
def test_every_figure_of_the_card_follows_from_the_predictions(case, tmp_path):
    options = CARDS[case]
    rng = np.random.default_rng(0)
    classes = options.get("classes", 2)
    y = np.repeat(np.arange(classes), [100, *[24] * (classes - 1)])
    X = rng.normal(size=(len(y), 5)) + options.get("gap", 0.7) * y[:, None]
    if options.get("single"):
        y[0] = 2
    weights = rng.choice([0.5, 1.0, 4.0], len(y)) if options.get("weights") else None
    clf = small(objective=options.get("objective", "balanced"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(X, y, sample_weight=weights)
    if "prior" in options:
        clf.set_prior(options["prior"])
    clf.save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    said = clf.predict_out_of_fold()
    if weights is not None and "prior" not in options:
        within = weights / (np.bincount(y, weights) / np.bincount(y))[y]
        np.testing.assert_allclose(said.weights, within)
    if "prior" in options:
        assert said.weights[y == 1].sum() / said.weights.sum() == pytest.approx(options["prior"])
    expected = [
        [str(label), *figures_of(said, label, column)] for column, label in enumerate(clf.classes_)
    ]
    assert table(card, "Metrics") == expected
    counts = np.bincount(y)
    data = [[str(c), str(n), f"{n / len(y):.1%}"] for c, n in enumerate(counts.tolist())]
    assert table(card, "Data") == data
    shown = re.search(r"rests on this: ([\d,]+) out-of-fold rows", card)
    assert shown[1] == f"{len(said):,}"


@pytest.mark.parametrize("how", ["one member", "early stopping", "X_val"])
def test_the_card_has_no_figures_of_rows_that_were_seen(binary, tmp_path, how):
    X, y = binary
    clf = small(n_members=1, early_stopping=how == "early stopping")
    named = {"X_val": X[:80], "y_val": y[:80]} if how == "X_val" else {}
    clf.fit(X, y, **named).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert table(card, "Metrics") == [[label, *["n/a"] * 6] for label in ("0", "1")]


def test_the_card_tells_the_versions_and_the_steps(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    python = ".".join(map(str, sys.version_info[:3]))
    for version in (
        f"setconv {setconv.__version__}",
        f"torch {torch.__version__}",
        f"numpy {np.__version__}",
        f"python {python}",
        "scikit-learn ",
    ):
        assert version in card
    assert "6 steps." in card


def test_the_card_shows_how_to_load_the_model(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "import setconv" in card
    assert "setconv.load(" in card


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("a | b", "a | b"),
        ("|", "|"),
        ("two\nlines", "two lines"),
        ("tab\tand\r\nreturn", "tab and return"),
        ("# heading", "# heading"),
        ("", "(empty)"),
        (" ", "(empty)"),
    ],
)
def test_a_label_cannot_break_the_tables_of_the_card(binary, tmp_path, label, shown):
    X, y = binary
    small(max_steps=0).fit(X, np.where(y == 1, label, "other")).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    for heading, width in (("Data", 3), ("Metrics", 7)):
        rows = table(card, heading)
        assert [len(cells) for cells in rows] == [width, width]
        assert sorted(cells[0] for cells in rows) == sorted([shown, "other"])


def test_a_figure_that_nobody_can_know_is_not_a_number_in_the_card(folder):
    config = json.loads((folder / "config.json").read_text())
    config["report"]["per_class"][1]["auc"] = None
    assert table(write_card(config), "Metrics")[1][5] == "n/a"
