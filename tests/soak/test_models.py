"""A damaged or forged model is refused, or gives the answers of the one that was saved."""

import json
import os
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import torch
from harness import damaged, pick, soak
from safetensors.torch import load as load_tensors
from scipy import sparse
from small_models import config_of, make_rows, preset, small

from setconv import SetConvTableClassifier, SetConvTextClassifier, load
from setconv.errors import ModelFileError, SetConvError
from setconv.explain import feature_contributions
from setconv.persistence import pack
from setconv.text.encoder import TextEncoder

pytest.importorskip("transformers", reason="a model of texts has an encoder of its own")

MODEL = "model.safetensors"
VALUES = [None, True, -1, 0, 1, 3, 10**9, 2**63, 10**30, -0.5, 1e-300, 1e300, "", "x", "\ud800"]
VALUES += ["0" * 5000, [], {}, [[]], [None], ["x", 1], {"a": {}}, "../../etc/passwd", "cuda:9"]
TEXTS = ["", "{", "[]", "null", "NaN", "[" * 200_000, '{"a":' * 50_000, '{"a": 1e999}', "9" * 9999]
DTYPES = [torch.float64, torch.float16, torch.int64, torch.int8, torch.bool, torch.complex64]
SHAPES = [(0,), (1,), (), (2, 3), (1, 1, 1, 1), (70_000,)]
PLACES = ["folder", "fifo", "empty", "gone", "dangling", "loop", "link", "long"]


def make_table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.2, "rare", "usual")
    table = {
        "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + (y == "rare")),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
        "sure": rng.random(n) < 0.5,
        "shop": rng.choice(["a", "b", "c"], n),
    }
    return pd.DataFrame(table), y


def make_models(folder):
    """Estimators of every kind that is saved, with rows that they predict."""
    from tiny_bert import make_texts, save_tiny_bert

    rows, y = make_rows()
    many, codes = make_rows(n=300, classes=4, minority=0.4, seed=1)
    thin = sparse.csr_matrix(np.where(np.abs(rows) > 1, rows, 0))
    wide = sparse.hstack([thin, sparse.random(len(y), 900, 0.02, random_state=0)]).tocsr()
    table, shops = make_table()
    texts = make_texts(80)
    about = np.array(["cat" in text for text in texts])
    tiny = TextEncoder(save_tiny_bert(folder / "tiny"), device="cpu", cache=False)
    moved = small(random_state=1).fit(rows, y).set_objective("recall>=0.8").set_prior(0.3)
    grouped = small(objective="f1").fit(rows, y, groups=np.arange(len(y)) // 3)
    updated = small().fit(rows[:200], y[:200]).partial_fit(rows[200:], y[200:])
    stopped = small(early_stopping=True, n_members=1, objective=None)
    names = np.array(["größe", "b | c", "日本", "x"])
    return {
        "two classes": (small().fit(rows, y), rows),
        "four classes": (small().fit(many, names[codes]), many),
        "cost": (small(objective=[[0, 1], [9, 0]], scaling="pieces").fit(rows, y), rows),
        "moved": (moved, rows),
        "groups": (grouped, rows),
        "times": (small(n_members=4).fit(rows, y, time=np.arange(len(y))), rows),
        "updated": (updated, rows),
        "stopped": (stopped.fit(rows, y), rows),
        "own anchors": (small(anchor=rows[:3]).fit(rows, y), rows),
        "sparse": (small().fit(thin, y), thin),
        "wide": (small().fit(wide, y), wide),
        "paper": (preset("PAPER").fit(many, codes), many),
        "table": (SetConvTableClassifier(classifier=small()).fit(table, shops), table),
        "words": (SetConvTextClassifier("tfidf", small()).fit(texts, about), texts),
        "texts": (SetConvTextClassifier(tiny, small()).fit(texts, about), texts),
    }


class Models:
    errors = ModelFileError

    def __init__(self, folder):
        self.folder, self.kept = folder, {}
        for name, (model, rows) in make_models(folder).items():
            place = folder / name
            model.save(place, **({"copy_encoder": True} if name == "texts" else {}))
            said = model.predictions(rows[:40])
            self.kept[name] = (rows[:40], said.labels, said.probabilities)
            loaded = load(place).predictions(rows[:40])
            assert np.array_equal(said.probabilities, loaded.probabilities), name

    def case(self, rng):
        name = pick(rng, list(self.kept))
        place = self.folder / "case" / "model"
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(self.folder / name, place)
        kinds = [self.bytes] * 3 + [self.place, self.swap, self.other_files]
        kinds += [self.configuration] * 4 + [self.tensor] * 4 + [self.text]
        kind = pick(rng, kinds)
        what = kind(rng, place)
        forged = kind in (self.configuration, self.tensor, self.text)
        return f"{name}: {what}", lambda: self.use(place, name, forged)

    def use(self, place, name, forged):
        """Open it and ask: an accident must change nothing, a forgery may but must not crash."""
        rows, labels, probabilities = self.kept[name]
        model = load(place)
        if forged:
            with suppress(SetConvError):  # say, weights so large that scores are not finite
                self.ask(model, rows, place.parent)
            return
        said = model.predictions(rows)
        assert np.array_equal(said.labels, labels), "other labels"
        assert np.array_equal(said.probabilities, probabilities), "other probabilities"

    @staticmethod
    def ask(model, rows, folder):
        said = model.predictions(rows)
        assert np.isfinite(said.probabilities).all()
        assert np.allclose(said.probabilities.sum(axis=1), 1)
        assert set(said.labels.tolist()) <= set(model.classes_.tolist())
        assert str(model.report_)
        assert repr(model)
        if isinstance(rows, np.ndarray):
            feature_contributions(model, rows[:2], background=rows[3])
        model.save(folder / "again")
        load(folder / "again")
        model.set_objective("f1")
        assert np.isfinite(model.predict_proba(rows)).all()
        model.predict_out_of_fold()

    def bytes(self, rng, place):
        path = place / MODEL
        what, content = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
        return what

    def place(self, rng, place):
        files = [one for one in place.rglob("*") if one.is_file() and one.name != "README.md"]
        path = pick(rng, sorted(files))
        whole = place.parent / "whole"
        what = pick(rng, PLACES)
        path.rename(whole)
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "empty":
            path.write_bytes(b"")
        elif what == "long":
            shutil.copy(whole, path)
            os.truncate(path, 1 << 40)
        elif what != "gone":
            path.symlink_to({"dangling": "nowhere", "loop": path.name, "link": whole}[what])
        return f"{path.name}: {what}"

    def swap(self, rng, place):
        """Files in each other's place, or of another model."""
        files = sorted(one for one in place.rglob("*") if one.is_file())
        one, other = pick(rng, files), pick(rng, files)
        if rng.random() < 0.3:
            donor = pick(rng, [name for name in self.kept if name != "two classes"])
            other = self.folder / donor / one.name
            if one.name == MODEL or not other.is_file():
                other = self.folder / "two classes" / "config.json"
            shutil.copy(other, one)
            return f"{one.name} is {other.parent.name}/{other.name}"
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
        return f"{one.name} and {other.name} swapped"

    def other_files(self, rng, place):
        """What nothing reads: answers stay."""
        for path in place.iterdir():
            if path.name in ("config.json", "README.md"):
                path.write_bytes(damaged(path.read_bytes(), rng)[1])
        (place / ".model.safetensors.new-00").write_bytes(rng.bytes(10))
        (place / "model.safetensors.bak").write_bytes(rng.bytes(10))
        return "copies for people damaged, others beside"

    def configuration(self, rng, place):
        config, stored = config_of(place), load_tensors((place / MODEL).read_bytes())
        parents = [config]
        for _ in range(int(rng.integers(0, 6))):
            inner = [one for one in _values(parents[-1]) if isinstance(one, (dict, list)) and one]
            if inner:
                parents.append(pick(rng, inner))
        target = parents[-1]
        key = (
            pick(rng, list(target)) if isinstance(target, dict) else int(rng.integers(len(target)))
        )
        before, change = (
            target[key],
            pick(rng, ["value", "value", "value", "gone", "double", "near"]),
        )
        if change == "gone":
            del target[key]
        elif change == "double" and isinstance(before, list):
            target[key] = before * int(pick(rng, [2, 1000]))
        elif change == "near" and isinstance(before, (int, float)):
            target[key] = pick(rng, [-before, before + 1, before - 1, before * 1e6, before / 3])
        else:
            target[key] = pick(rng, VALUES)
        self.write(place, config, stored)
        return f"{key!r} {change}: {str(target)[:150]}"

    def tensor(self, rng, place):
        config, stored = config_of(place), load_tensors((place / MODEL).read_bytes())
        name, change = pick(rng, sorted(stored)), pick(rng, ["shape", "dtype", "value", "gone"])
        tensor = stored[name]
        if change == "shape":
            stored[name] = pick(
                rng,
                [
                    tensor.unsqueeze(0),
                    tensor.flatten()[:0],
                    torch.cat([tensor.flatten()] * 2),
                    tensor.repeat(3, *[1] * max(tensor.ndim - 1, 0)),
                    torch.zeros(pick(rng, SHAPES), dtype=tensor.dtype),
                ],
            ).clone()
        elif change == "dtype":
            stored[name] = tensor.to(pick(rng, DTYPES))
        elif change == "value":
            flat = tensor.flatten().clone()
            if not len(flat):
                return self.text(rng, place)
            numbers = [np.nan, np.inf, -np.inf, 1e30, -1.0, 0.0]
            if not flat.is_floating_point():
                numbers = [0, 1] if flat.dtype == torch.bool else [-1, 0, 99, 120]
                numbers = [0, 1, 255] if flat.dtype == torch.uint8 else numbers
            flat[int(rng.integers(len(flat)))] = pick(rng, numbers)
            stored[name] = flat.reshape(tensor.shape)
        else:
            gone = stored.pop(name)
            if rng.random() < 0.5:
                stored[pick(rng, [f"{name}x", "x", "/", "rule/", "network/x"])] = gone
        self.write(place, config, stored)
        return f"{change} of {name}"

    def text(self, rng, place):
        """JSON that no library writes, with a right checksum."""
        stored = load_tensors((place / MODEL).read_bytes())
        text = pick(rng, TEXTS)
        config = {"kind": pick(rng, ["SetConvClassifier", "os.system", ""]), "more": "@@@"}
        content = pack(config, {name: one.numpy() for name, one in stored.items()})
        length = int.from_bytes(content[:8], "little")
        header = content[8 : 8 + length].replace(b"@@@", json.dumps(text)[1:-1].encode())
        header += b" " * (-len(header) % 8)
        (place / MODEL).write_bytes(
            len(header).to_bytes(8, "little") + header + content[8 + length :]
        )
        return f"configuration {text[:60]}"

    @staticmethod
    def write(place, config, stored):
        arrays = {name: one.contiguous().numpy() for name, one in stored.items()}
        (place / MODEL).write_bytes(pack(config, arrays))


def _values(parent):
    return list(parent.values()) if isinstance(parent, dict) else parent


@pytest.mark.soak
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("part", range(2))
def test_a_damaged_model_is_refused_or_gives_the_same_answers(part, tmp_path, cases):
    warnings.simplefilter("ignore")
    counts = soak(Models, range(part, cases(3000), 2), tmp_path)
    assert counts["own error"]
