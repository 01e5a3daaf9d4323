"""Models that are kept: the same when they come back, whole or not at all, clear when damaged."""

import contextlib
import copy
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from operator import methodcaller

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from plain_intervals import figures, plain_intervals, size
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from scipy import sparse
from sklearn.base import clone
from small_models import assert_same_model, config_of, limited_files, preset, small, tamper
from statsmodels.stats.proportion import proportion_confint

import setconv
from setconv.classifier import SetConvClassifier
from setconv.errors import ModelFileError, ParameterError
from setconv.persistence import FORMAT_VERSION
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier, load
from setconv.training import Callback

FILES = ["README.md", "config.json", "model.safetensors"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def card_of(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def model(binary):
    return small(n_members=2).fit(*binary)


@pytest.fixture
def folder(model, tmp_path):
    """A saved model."""
    model.save(tmp_path / "model")
    return tmp_path / "model"


# ----------------------------------------------------------------------------------- round trip


ROUND_TRIPS = {
    "defaults": small(),
    "alone": small(n_members=1, scaling="pieces"),
    "the paper's rule": small(objective=None, scaling=None, similarity="dot"),
    "deep": small(encoder=(8, 6), output=3, objective={"recall": 0.9, "class": 0}),
    "no encoder": small(encoder=(), class_weight={0: 1, 1: np.float32(2.5)}),
    "PAPER": preset("PAPER"),
    "REFERENCE": preset("REFERENCE", encoder=(8,)),
    "separate heads": small(heads="separate", anchor="kmeans", objective="f1"),
    "subsets": small(anchor="subset", post_size=40, random_state=np.int64(7)),
    "two arrays": small(anchor=np.linspace(-1, 1, 16).reshape(2, 8)),
    "a callable": small(anchor=lambda rows: rows[:2]),
    "early stopping": small(early_stopping=True, patience=None, monitor="g_mean"),
    "no steps": small(max_steps=0, lr={"encoder": 0.1, "setconv": 0.2, "output": 0.3}),
}


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_a_loaded_model_is_the_saved_one_to_the_bit(name, kind, tmp_path, request):
    X, y = request.getfixturevalue(kind)
    clf = clone(ROUND_TRIPS[name]).fit(X, y)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is SetConvClassifier
    assert_same_model(clf, loaded, X)
    loaded.save(tmp_path / "again")
    for file in FILES:
        assert (tmp_path / "model" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    assert_same_model(clf, clone(loaded).fit(X, y), X)
    for one in (clf, loaded):
        one.partial_fit(X[:50], y[:50])
    assert_same_model(clf, loaded, X)


@pytest.mark.parametrize("stands_for", [None, (21.3, 1.0)])
def test_the_rows_of_the_decision_come_back_as_they_were(model, tmp_path, stands_for):
    clf = copy.deepcopy(model)
    decision, rule = clf._decision, clf._decision.rule
    rng, rows = np.random.default_rng(0), rule.evidence
    codes = rows.codes if stands_for is None else np.sort(rows.codes)
    evidence = replace(rows, codes=codes, units=np.arange(len(rows)) // 2, stands_for=stands_for)
    rule = replace(rule, grounds=replace(rule.grounds, evidence=evidence.evened()))
    numbers = np.sort(rng.choice(300_000, len(rows), replace=False))
    clf._decision = replace(decision, rule=rule, rows=numbers).reported()
    clf.save(tmp_path)
    loaded = load(tmp_path)
    ours, theirs = loaded._decision, clf._decision
    for name in ("scores", "codes", "weights", "units"):
        one, other = getattr(ours.rule.evidence, name), getattr(theirs.rule.evidence, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert ours.rule.evidence.stands_for == stands_for
    assert ours.rows.dtype == np.int64
    np.testing.assert_array_equal(ours.rows, numbers)
    assert ours.report == theirs.report
    assert ours.basis == theirs.basis
    assert loaded.set_objective("f1").threshold_ == clf.set_objective("f1").threshold_
    if stands_for is not None:
        total = f"{round(np.dot(np.bincount(codes), stands_for)):,}"
        assert f"{len(rows):,} out-of-fold rows that stand for {total}" in card_of(tmp_path)
        assert "sample weights" not in card_of(tmp_path)
    stored = load_tensors((tmp_path / "model.safetensors").read_bytes())
    sizes = {name: stored[f"rule/{name}"].element_size() for name in ("codes", "rows", "units")}
    assert sizes == {"codes": 1, "rows": 4, "units": 1 if len(rows) <= 512 else 2}
    assert "rule/weights" not in stored


def by_folder(clf, place):
    clf.save(place)
    return load(place)


def by_joblib(clf, place):
    joblib.dump(clf, place)
    return joblib.load(place)


def by_skops(clf, _):
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(clf)
    trusted = skops.get_untrusted_types(data=content)
    assert len(trusted) <= 3
    assert all(name.startswith("setconv.") for name in trusted)
    return skops.loads(content, trusted=trusted)


CARRIERS = {
    "folder": by_folder,
    "pickle": lambda clf, _: pickle.loads(pickle.dumps(clf)),
    "joblib": by_joblib,
    "deepcopy": lambda clf, _: copy.deepcopy(clf),
    "skops": by_skops,
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "sparse", "sparse wide", "forward"])
def test_a_model_that_was_moved_and_updated_survives_every_way_to_keep_it(
    kind, carrier, tmp_path, request
):
    X, y = request.getfixturevalue("multiclass" if kind == "multiclass" else "binary")
    if kind.startswith("sparse"):
        width = 40 if kind == "sparse" else 600
        X = sparse.random(len(y), width, 0.1, format="csr", random_state=0, dtype=np.float64)
    when = np.arange(len(y)) if kind == "forward" else None
    clf = small(anchor="kmeans").fit(X, y, time=when).set_objective("f1")
    clf.partial_fit(X[:50], y[:50])
    assert len(clf.representatives_) == (1 if kind == "forward" else 3)
    clf.set_prior(np.arange(1, len(clf.classes_) + 1) / sum(range(len(clf.classes_) + 1)))
    again = CARRIERS[carrier](clf, tmp_path / "model")
    assert_same_model(clf, again, X)
    for one in (clf, again):
        one.partial_fit(X[:50], y[:50]).set_prior(None).set_objective("recall>=0.9")
    assert_same_model(clf, again, X)


@pytest.mark.parametrize("carrier", ["folder", "pickle", "skops"])
@pytest.mark.parametrize("kind", ["table", "texts"])
def test_an_encoder_is_kept_with_its_model(kind, carrier, tmp_path):
    y = np.arange(60) % 3 == 0
    if kind == "table":
        X = pd.DataFrame({"a": np.where(y, 2.0, np.nan), "c": np.where(y, "NL", "DE")})
        model = SetConvTableClassifier(classifier=small())
    else:
        X = [f"{'fire' if one else 'tea'} number {n}" for n, one in enumerate(y)]
        model = SetConvTextClassifier("tfidf", small())
    again = CARRIERS[carrier](model.fit(X, y), tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def assert_plain(value):
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            assert_plain(one)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        assert_plain(value.tolist())
    else:
        plain = (str, int, float, bool, type(None), np.ndarray, np.generic)
        assert isinstance(value, plain), type(value)


def test_the_state_of_a_model_is_arrays_and_plain_data(multiclass, fitted):
    X, y = multiclass
    named = small().fit(pd.DataFrame(X).add_prefix("x"), np.array(list("abcd"), object)[y])
    waiting = small().partial_fit(X, y, classes=range(5))
    for one in (fitted, named, waiting, small()):
        assert_plain(one.__getstate__())


LABELS = {
    "small ints": np.array([3, 7, 250], dtype=np.uint8),
    "floats": np.array([1.0, 2.0, 30.0]),
    "bools": np.array([False, True, True]),
    "objects": np.array(["größe", "日本語", "🦉"], dtype=object),
    "a table's": np.array(["a | b", "two\nlines and\ttabs\r\n", "# heading"]),
    "HTML": np.array(["<b>", "[x](javascript:1) *a* _b_", "&lt; `c` \\"]),
    "quoted or nothing": np.array(['"quoted"', " ", "|"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_with_their_values_and_type_and_do_not_break_the_card(
    name, multiclass, tmp_path
):
    X, codes = multiclass
    clf = small(n_members=2).fit(X[codes < 3], LABELS[name][codes[codes < 3]])
    clf.save(tmp_path)
    loaded = load(tmp_path)
    assert_same_model(clf, loaded, X)
    assert loaded.classes_.tolist() == sorted(set(LABELS[name].tolist()))
    assert list(loaded.report_.classes) == clf.classes_.tolist()
    shown = [" ".join(str(label).split()) or "(empty)" for label in clf.classes_.tolist()]
    for heading, width in (("Data", 3), ("Metrics", 7)):
        cells = table(card_of(tmp_path), heading)
        assert [row[0] for row in cells] == shown
        assert {len(row) for row in cells} == {width}


def test_feature_names_come_back_and_are_checked(binary, tmp_path):
    frame = pd.DataFrame(binary[0], columns=["a", "größe", "c d", "e|f", "g", "h", "i", "j"])
    clf = small().fit(frame, binary[1])
    clf.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert_same_model(clf, loaded, frame)
    with pytest.raises(ValueError, match="größe"):
        loaded.predict(frame.rename(columns={"größe": "other"}))


def test_parameters_come_back_but_for_those_of_one_process(binary, tmp_path):
    parameters = {
        "encoder": np.array([8, 5]),
        "out_features": np.int64(4),
        "weight_decay": np.float32(0.5),
        "lr": {"encoder": 0.1, "setconv": 0.2, "output": 0.3},
        "patience": None,
        "class_weight": {0: 1, 1: np.float32(2.5)},
    }
    outside = {"callbacks": [Callback()], "checkpoint_dir": tmp_path / "checkpoints"}
    clf = small(**parameters, **outside, device="cpu").fit(*binary)
    clf.save(tmp_path / "model")
    expected = clf.get_params() | {"encoder": (8, 5), "callbacks": (), "checkpoint_dir": None}
    assert load(tmp_path / "model").get_params() == expected | {"device": "auto"}


def test_parameters_set_for_the_next_fit_do_not_spoil_the_saved_model(binary, tmp_path):
    clf = small().fit(*binary)
    clf.set_params(encoder=(5,), out_features=9, similarity="dot", objective="recall>=0.99")
    clf.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.objective == "balanced"
    assert_same_model(clf, loaded, binary[0])
    assert_same_model(clf, loaded.set_objective(loaded.objective), binary[0])


def test_a_model_whose_validation_rows_lack_a_class_can_be_saved(binary, tmp_path):
    X, y = binary
    common = X[:40][y[:40] == 0]
    clf = small(monitor="auc").fit(X[40:], y[40:], X_val=common, y_val=np.zeros(len(common)))
    assert_same_model(clf, by_folder(clf, tmp_path), X)


def test_a_model_is_loaded_to_the_device_asked_for_or_the_device_is_blamed(folder):
    assert load(folder, device="cpu").device == "cpu"
    for device in ("nonsense", "cuda:99"):
        with pytest.raises(ParameterError) as caught:
            load(folder, device=device)
        assert caught.value.parameter == "device"


# -------------------------------------------------------------------------------------- on disk


def test_a_folder_holds_safetensors_plain_json_and_a_card(folder, model):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert names(folder) == FILES
    config = json.loads((folder / "config.json").read_text("utf-8"), parse_constant=refuse)
    assert config == config_of(folder)
    assert config["format"] == "setconv-model"
    assert config["format_version"] == FORMAT_VERSION
    assert config["kind"] == "SetConvClassifier"
    content = (folder / "model.safetensors").read_bytes()
    (said,) = re.findall(rb'sha256\\":\\"([0-9a-f]{64})', content)
    assert hashlib.sha256(content.replace(said, b"0" * 64, 1)).hexdigest().encode() == said
    network = {name for name in load_tensors(content) if name.startswith("network/")}
    assert network == {f"network/{name}" for name in model.network_.state_dict()}


def test_loading_unpickles_nothing_and_needs_no_pyarrow(folder):
    program = f"""
import sys
sys.modules["pyarrow"] = None
import pickle, torch, setconv
pickle.load = pickle.loads = pickle.Unpickler = torch.load = None
setconv.load({str(folder)!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# --------------------------------------------------------------------------------------- atomic


@pytest.mark.parametrize("kind", ["older model", "empty folder", "link"])
def test_saving_fills_a_place_or_replaces_a_model(fitted, folder, binary, kind):
    place = folder.parent / kind
    if kind == "older model":
        place = folder
    elif kind == "link":
        place.symlink_to(folder, target_is_directory=True)
    else:
        place.mkdir()
    fitted.save(place)
    assert names(place) == FILES
    assert set(names(folder.parent)) == {"model", place.name}
    assert_same_model(fitted, load(place), binary[0])


@pytest.mark.parametrize("target", ["setconv.persistence.save_tensors", "os.fsync"])
def test_a_failure_while_saving_leaves_the_old_model_and_no_litter(
    model, fitted, folder, binary, monkeypatch, target
):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(target, fail)
        for place in (folder, folder.parent / "new"):
            with pytest.raises(ModelFileError, match="disk is full"):
                fitted.save(place)
    assert names(folder.parent) == ["model"]
    assert names(folder) == FILES
    assert_same_model(model, load(folder), binary[0])


@pytest.mark.parametrize("written", [0, 3000, 20_000])
def test_a_full_disk_leaves_the_old_model_or_nothing(fitted, folder, model, binary, written):
    with pytest.raises(ModelFileError, match="disk is full"), limited_files(written):
        fitted.save(folder)
    with pytest.raises(ModelFileError, match="disk is full"), limited_files(written):
        fitted.save(folder.parent / "new")
    assert names(folder.parent) == ["model"]
    assert names(folder) == FILES
    assert_same_model(model, load(folder), binary[0])


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_a_save_keeps_modes_and_what_else_is_in_the_folder(fitted, folder):
    others = {"train.csv": "a,b", "report.html": "<p>", ".git/HEAD": "ref", "encoder/x": "mine"}
    for name, text in others.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o600)
    fitted.save(folder)
    assert {name: (folder / name).read_text() for name in others} == others
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}
    fitted.save(folder.parent / "beside.csv")  # a folder that has other things only
    fitted.save(folder.parent / "fresh")


def test_only_the_one_file_is_read(folder, model, binary):
    (folder / "config.json").write_text("{}")
    (folder / "README.md").unlink()
    assert_same_model(model, load(folder), binary[0])


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "my work"},
        {"config.json": '{"format": "another"}'},
        {"config.json": "[1, 2]"},
        {"config.json": "{", "model.safetensors": ""},
    ],
)
def test_a_folder_or_file_of_something_else_is_not_replaced(model, tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for place in (tmp_path, tmp_path / next(iter(files))):
        with pytest.raises(ModelFileError):
            model.save(place)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


# -------------------------------------------------------------------------------------- damaged


def changed(name, change):
    """Damage to the bytes of a file."""

    def damage(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def configured(**values):
    """Another configuration, behind a right checksum."""
    return lambda folder: tamper(folder, config=lambda config: config.update(values))


def described(**values):
    """The same of the model in it."""
    return lambda folder: tamper(folder, config=lambda config: config["model"].update(values))


def ruled(**values):
    """The same of the decision rule."""
    return lambda folder: tamper(folder, config=lambda config: config["rule"].update(values))


def longer(folder):
    os.truncate(folder / "model.safetensors", 1 << 40)  # takes no room, but could not be read


def pipe(folder):
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


DAMAGE = {
    "cut tensors": changed("model.safetensors", lambda content: content[:-1]),
    "a byte": changed("model.safetensors", lambda content: content[:-1] + b"\x99"),
    "no tensors": lambda folder: (folder / "model.safetensors").unlink(),
    "no safetensors": changed("model.safetensors", lambda _: b"\xff" * 64),
    "nothing": changed("model.safetensors", lambda _: b""),
    "another library": changed("model.safetensors", lambda _: save_tensors({"a": torch.ones(3)})),
    "more than it says": longer,
    "a pipe": pipe,
    "a bit of the configuration": changed(
        "model.safetensors", lambda content: content.replace(b"balanced", b"balance`", 1)
    ),
    "a slope": changed("model.safetensors", lambda content: content.replace(b"slopes", b"slopet")),
    "labels of gigabytes": configured(classes={"dtype": "<U1000000000", "values": ["a", "b"]}),
    "labels that are dates": configured(classes={"dtype": "<M8[s]", "values": [0, 1]}),
    "a number beyond all": configured(n_steps=10**30),
    "a file elsewhere": configured(copied={"../../x": [1, "00"]}),
    "a network of terabytes": described(
        network={"in_features": 8, "encoder": [10**9], "dropout": 0, "input_dropout": 0}
    ),
    "no slope": ruled(
        calibrator={
            "slopes": [0, 0],
            "intercepts": [0],
            "centre": 0,
            "scale": 1,
            "prior": [0.5, 0.5],
        }
    ),
    "an objective of another kind": ruled(objective={"kind": "best"}),
    "a class that is not there": ruled(positive=2),
    "a prior of nothing": ruled(prior=[0, 1]),
    "rows that stand for less": ruled(stands_for=[0.5, 1]),
    "rows that stand for another class": ruled(stands_for=[1, 1, 1]),
    "rows that stand for words": ruled(stands_for=["1", "1"]),
    "a version that is no number": configured(format_version="1"),
    "an unknown kind": configured(kind="SetConvRegressor"),
    "too many classes": configured(classes={"dtype": "<i8", "values": [0, 1, 2]}),
    "equal classes": configured(classes={"dtype": "<i8", "values": [1, 1]}),
    "an unknown parameter": configured(parameters={"unheard_of": 1}),
    "half a report": configured(report={"classes": [0, 1]}),
    "too few counts": configured(class_counts=[1]),
    "too few names": configured(feature_names=["a"]),
    "no columns": described(n_features=0),
    "other columns": described(n_features=3),
    "another network": described(network={"in_features": 8, "encoder": [9]}),
    "no offset": described(offset=[]),
    "an unknown view": described(parts={"views/0": "minmax", "views/1": "normal"}),
    "too few views": described(parts={"views/0": "normal"}),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_or_foreign_folder_is_a_clear_error(folder, name):
    DAMAGE[name](folder)
    with pytest.raises(ModelFileError):
        load(folder)


def test_what_is_no_folder_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(ModelFileError, match=re.escape(str(place))):
            load(place)


@pytest.mark.parametrize(("versions", "wrote"), [({"setconv": "9.1"}, "setconv 9.1"), (None, "")])
def test_a_newer_format_says_who_wrote_it_and_what_to_do(folder, versions, wrote):
    configured(format_version=FORMAT_VERSION + 1, versions=versions)(folder)
    with pytest.raises(ModelFileError, match=rf"{wrote}.*pip install --upgrade setconv"):
        load(folder)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_part_is_needed_and_in_its_shape(model, binary, tmp_path, kind):
    folder = tmp_path / "model"
    if kind == "sparse":
        rows = sparse.random(240, 600, 0.05, format="csr", random_state=0)
        model = clone(model).fit(rows, binary[1])
    model.save(folder)
    kept = {name: (folder / name).read_bytes() for name in FILES}

    def opens(**change):
        for name, content in kept.items():
            (folder / name).write_bytes(content)
        tamper(folder, **change)
        with contextlib.suppress(ModelFileError):
            load(folder)
            return True
        return False

    config, tensors = config_of(folder), load_tensors(kept["model.safetensors"])
    for key in config:
        assert opens(config=methodcaller("pop", key)) == (key == "format"), key
    for key in config["model"]:
        assert not opens(config=lambda all_, key=key: all_["model"].pop(key)), key
    if kind == "sparse":
        assert not opens(config=lambda all_: all_["model"]["parts"].pop("front"))
    for key, tensor in tensors.items():
        assert not opens(tensors=methodcaller("pop", key)), key
        for wrong in (tensor.unsqueeze(0), torch.ones(3, 1, dtype=tensor.dtype)):
            assert not opens(tensors=methodcaller("update", {key: wrong})), key


# ------------------------------------------------------------------------------------- the card


def table(card, heading):
    """The cells of the table under a heading, without its head and rule."""
    lines = card.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    split = [re.split(r"(?<!\\)\|", line.strip("|")) for line in rows]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells] for cells in split][2:]


NAMES = ("specificity", "sensitivity", "f1", "g_mean", "auc", "average_precision")


def figures_of(said, label, column, classes):
    """The card's figures of a class with their intervals, from predictions alone."""
    truth, alarm = said.truth == label, said.labels == label
    if not truth.any() or truth.all():
        return ["n/a"] * 6
    scores = said.scores if said.scores.ndim == 1 else said.scores[:, column]
    if said.scores.ndim == 1 and column == 0:
        scores = -scores
    weights = np.ones(len(truth)) if said.weights is None else said.weights
    chances = said.probabilities[:, column]
    values = figures(truth, alarm, scores, chances, weights)
    codes = np.searchsorted(classes, said.truth)
    bounds = plain_intervals(codes, column, alarm, scores, chances, weights, said.units)
    shown = []
    for name in NAMES:
        # Where no draw moves a figure: Wilson's for the smaller side.
        n = min(size(weights, side, said.units) for side in (truth, ~truth))
        known = bounds.get(name) or proportion_confint(values[name] * n, n, method="wilson")
        low, high = (f"{bound:.3f}".replace("0.", ".", 1) for bound in known)
        high = "1" if high == "1.000" else high
        shown.append(f"{values[name]:.3f} ({low}-{high})")
    return shown


CARDS = {
    "two classes": (2, False, None, 0.7),
    "four classes": (4, True, None, 0.7),
    "weights and prior": (2, True, 0.02, 0.7),
    "perfect": (2, False, None, 50.0),
    "a class of one row": (3, False, None, 0.7),
}


@pytest.mark.parametrize("case", CARDS)
@pytest.mark.filterwarnings("ignore:Classes that cannot be judged")
def test_every_figure_of_the_card_follows_from_the_predictions(case, tmp_path):
    classes, weighted, prior, gap = CARDS[case]
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), [100, 24, 24, 24][:classes])
    if classes == 3:
        y = y[:125]
    X = rng.normal(size=(len(y), 5)) + gap * y[:, None]
    weights = rng.choice([0.5, 1.0, 4.0], len(y)) if weighted else None
    clf = small(objective="f1" if classes == 2 else "balanced")
    clf.fit(X, y, sample_weight=weights).set_prior(prior)
    clf.save(tmp_path)
    card, said = card_of(tmp_path), clf.predict_out_of_fold()
    if prior is not None:
        assert said.weights[y == 1].sum() / said.weights.sum() == pytest.approx(prior)
    elif weights is not None:
        within = weights / (np.bincount(y, weights) / np.bincount(y))[y]
        np.testing.assert_allclose(said.weights, within)
    expected = [
        [str(label), *figures_of(said, label, column, clf.classes_)]
        for column, label in enumerate(clf.classes_)
    ]
    assert table(card, "Metrics") == expected
    counts = np.bincount(y)
    data = [[str(c), str(n), f"{n / len(y):.1%}"] for c, n in enumerate(counts.tolist())]
    assert table(card, "Data") == data
    assert f"rests on this: {len(said):,} out-of-fold rows" in card


@pytest.mark.parametrize("how", ["one member", "early stopping", "X_val"])
def test_the_card_has_no_figures_of_rows_that_were_seen(binary, tmp_path, how):
    X, y = binary
    clf = small(n_members=1, early_stopping=how == "early stopping")
    named = {"X_val": X[:80], "y_val": y[:80]} if how == "X_val" else {}
    clf.fit(X, y, **named).save(tmp_path)
    assert table(card_of(tmp_path), "Metrics") == [[label, *["n/a"] * 6] for label in ("0", "1")]


def test_the_card_tells_shape_steps_versions_and_how_to_load(folder):
    card = card_of(folder)
    versions = [f"setconv {setconv.__version__}", f"torch {torch.__version__}", "scikit-learn "]
    parts = ["240 rows, 8 features.", "into 2 classes", "6 steps.", "setconv.load(", *versions]
    assert [part for part in parts if part not in card] == []
