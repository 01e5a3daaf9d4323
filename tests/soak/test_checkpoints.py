"""A damaged or forged checkpoint is refused, or the fit goes on to the identical result."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import damaged, pick, soak
from safetensors import safe_open
from safetensors.torch import save
from small_models import Interrupt, assert_same_model, make_rows, small

from setconv.errors import CheckpointError
from setconv.training import checkpoint, loop

# No number that a run could have had.
HOSTILE = [None, -1, 10**30, "x", {"a": 1}, True, [[]], ["x"], [{"a": "b"}]]
PLACES = ["link", "dangling", "loop", "folder", "fifo", "empty", "other", "missing"]
DTYPES = [torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64]


class Checkpoints:
    errors = CheckpointError

    def __init__(self, folder):
        loop.CHECKPOINT_EVERY = 5
        self.folder, (self.X, self.y) = folder, make_rows()
        self.runs = []
        for name, parameters in (("members", {"max_steps": 12}), ("stops", self.stops())):
            place = folder / name
            cut = small(checkpoint_dir=place, callbacks=[Interrupt(8)], **parameters)
            with pytest.raises(KeyboardInterrupt):
                self.fit(cut)
            content = (place / checkpoint.FILE_NAME).read_bytes()
            self.runs.append((name, parameters, self.fit(small(**parameters)), content))

    @staticmethod
    def stops():
        return {"max_steps": 12, "early_stopping": True, "n_members": 1, "objective": None}

    def fit(self, clf, **more):
        return clf.fit(self.X, self.y, **more)

    def case(self, rng):
        name, parameters, whole, content = pick(rng, self.runs)
        place = self.folder / f"{rng.bytes(4).hex()}"
        path = place / checkpoint.FILE_NAME
        place.mkdir()
        (place / "whole").write_bytes(content)
        what, must_fail = self.mutate(rng, path, content)

        def act():
            resumed = self.fit(small(**parameters), resume_from=place)
            assert not must_fail, "taken"
            assert_same_model(resumed, whole, self.X)

        return f"{name}: {what}", act

    def mutate(self, rng, path, content):
        """Write a mutant; return what it is, and whether it must be refused."""
        kind = pick(rng, ["bytes", "bytes", "place", "state", "tensor", "tensor", "metadata"])
        if kind == "place":
            return self.misplaced(rng, path, content)
        if kind == "bytes":
            what, found = damaged(content, rng)
        else:
            (path.parent / "plain").write_bytes(content)
            with safe_open(path.parent / "plain", framework="pt") as file:
                metadata = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            what = getattr(self, kind)(rng, metadata, tensors)
            if kind != "metadata":  # signed anew, as no accident would
                metadata["checksum"] = checkpoint._checksum(tensors, metadata["state"])
            found = save(tensors, metadata)
        path.write_bytes(found)
        return what, kind in ("tensor", "state")

    def misplaced(self, rng, path, content):
        what = pick(rng, PLACES)
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what in ("empty", "other"):
            other = next(one for *_, one in self.runs if one != content)
            path.write_bytes(b"" if what == "empty" else other)
        elif what != "missing":
            path.symlink_to({"link": "whole", "dangling": "nowhere", "loop": path.name}[what])
        return what, what != "link"

    @staticmethod
    def state(rng, metadata, _):
        state = json.loads(metadata["state"])
        key, value = pick(rng, list(state)), pick(rng, HOSTILE)
        record = {**state["history"][-1], pick(rng, list(state["history"][-1])): value}
        forms = [
            json.dumps({name: one for name, one in state.items() if name != key}),
            json.dumps(state | {"history": [*state["history"][:-1], record]}),
            pick(rng, ["", "[]", "{", "null", "[" * 100_000, '"\\ud800"', "9" * 5000]),
            json.dumps(state | {key: value}),
        ]
        metadata["state"] = pick(rng, forms)
        return f"state {metadata['state'][:300]}"

    @staticmethod
    def metadata(rng, metadata, _):
        key = pick(rng, list(metadata))
        value = pick(rng, ["", "x", "\0", "é" * 40, "0" * 40, metadata[key][::-1], None])
        if value is None:
            del metadata[key]
        else:
            metadata[key] = value
        return f"{key} {value!r}"

    @staticmethod
    def tensor(rng, _, tensors):
        name = pick(rng, sorted(tensors))
        other, change = pick(rng, sorted(tensors)), pick(rng, ["shape", "dtype", "value", "gone"])
        tensor = tensors[name]
        if change == "shape":
            shapes = [tensor.unsqueeze(0), tensor.flatten()[:0], torch.cat([tensor.flatten()] * 2)]
            tensors[name] = pick(rng, shapes).clone()
        elif change == "dtype":
            tensors[name] = tensor.to(pick(rng, DTYPES))
        elif change == "value":
            flat = tensor.flatten().clone()
            flat[int(rng.integers(len(flat)))] = pick(rng, [np.nan, np.inf, -np.inf])
            tensors[name] = flat.reshape(tensor.shape)
        else:
            gone = tensors.pop(name)
            if rng.random() < 0.5:
                tensors[pick(rng, [f"{other}x", "x", "/", "", "network/", "best/x"])] = gone
        return f"{change} of {name}"


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(2))
def test_a_damaged_checkpoint_is_refused_or_does_no_harm(part, tmp_path, cases):
    counts = soak(Checkpoints, range(part, cases(500), 2), Path(tmp_path))
    assert counts["own error"]
