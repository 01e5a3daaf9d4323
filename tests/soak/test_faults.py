"""Kills, full disks and many at once: whole files under their names, the same result next time.

The work is done by children that are forked when all is imported, so that faults hit the work
itself.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = {"Save": 40, "Fit": 30, "Predict": 30, "Embed": 20, "Cache": 20}  # and 60 of studies

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.name != "posix", reason="needs signals, limits and fork"),
]


@pytest.mark.parametrize("kind", list(KILLS))
def test_killed_work_leaves_nothing_half_and_ends_as_if_left_alone(kind, tmp_path, cases):
    run_here("kill", kind, cases(KILLS[kind]), tmp_path)


@pytest.mark.parametrize("kind", list(KILLS))
def test_a_full_disk_is_an_own_error_and_leaves_what_was_there(kind, tmp_path, cases):
    run_here("fill", kind, cases(50), tmp_path)


def test_many_save_to_one_folder_and_read_from_it(tmp_path, cases):
    run_here("crowd", "Save", cases(50), tmp_path)


def run_here(*words):
    pytest.importorskip("transformers", reason="embeddings are made, too")
    tests = Path(__file__).resolve().parents[1]
    paths = [tests.parent / "src", tests, tests / "text"]
    more = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    more["SETCONV_CACHE"] = str(words[-1] / "cache")
    told = [sys.executable, __file__, *map(str, words)]
    done = subprocess.run(told, env=os.environ | more, text=True, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr[-3000:]


def kill(work, kills):
    began, moments, killed, whole = time.monotonic(), random.Random(0), 0, 0
    finish(work)
    longest = time.monotonic() - began
    while killed < kills:
        child = begin(work.run)
        child.join(moments.uniform(0, longest))
        if child.is_alive():
            child.kill()
            child.join()
            killed += 1
            work.check()
        else:
            whole += 1
            work.check_finished()
            assert whole < 10 * kills, "no kill hits"
        if killed % 3 == 0:
            finish(work)
            if killed % 2 and isinstance(work, Command):
                work.forget()  # the next one has nothing to replace
    finish(work)


def fill(work, disks):
    """Let no file grow beyond a size, as on a disk with so much room."""
    finish(work)
    largest = max(path.stat().st_size for path in work.folder.rglob("*") if path.is_file())
    ends = set()
    for part in range(disks):
        child = begin(limited, work.run, largest * part // disks)
        child.join()
        ends.add(child.exitcode)
        work.check()
        left = [name for name in names(work.folder) if Path(name).name.startswith(".")]
        assert not left, left
    assert ends <= {0, 4}, ends
    assert 4 in ends or isinstance(work, Cache), ends
    finish(work)


def limited(run, size):
    import resource

    from setconv.errors import ModelFileError

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        run()
    except ModelFileError as error:
        sys.exit(4 if "disk is full" in str(error) else str(error))


def crowd(work, saves):
    """Four save to one folder while others open what is there."""
    work.share_an_encoder()  # of an encoder of its own a model keeps the copy for one save only
    writers = [begin(work.save_often, saves) for _ in range(4)]
    reads = 0
    while any(writer.is_alive() for writer in writers):
        work.check()
        reads += 1
    assert reads
    assert [writer.exitcode for writer in writers] == [0] * 4
    work.check_finished(copies=1)


def begin(run, *given):
    child = multiprocessing.get_context("fork").Process(target=run, args=given)
    child.start()
    return child


def finish(work):
    child = begin(work.run)
    child.join()
    assert child.exitcode == 0, child.exitcode
    work.check_finished()


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Command:
    """A command of setconv whose output is a file, or the file of a model."""

    def __init__(self, folder):
        self.folder = folder / "out"
        self.folder.mkdir()
        self.right = None

    def call(self, *words):
        from setconv.cli.app import run

        sys.argv = ["setconv", *map(str, words)]
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        run()

    def check(self):
        """What is there after a kill is whole."""
        if (self.folder / self.output).exists():
            assert (self.folder / self.output).read_bytes() == self.right

    def check_finished(self):
        """Nothing but the result is there, and it is always the same."""
        assert names(self.folder) == sorted(self.files)
        found = (self.folder / self.output).read_bytes()
        self.right = self.right or found
        assert found == self.right

    def forget(self):
        (self.folder / self.output).unlink()


def write_rows(path, n, seed=0):
    from small_models import make_rows

    rows, y = make_rows(n=n, features=5, seed=seed)
    lines = [
        ",".join(f"{one:.4f}" for one in row) + f",{label}"
        for row, label in zip(rows, y, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,e,label", *lines]))
    return rows, y


class Fit(Command):
    output = "model/model.safetensors"
    files = ("model/README.md", "model/config.json", output)

    def __init__(self, folder):
        from setconv.training import loop

        super().__init__(folder)
        loop.CHECKPOINT_EVERY = 20
        self.rows = folder / "rows.csv"
        write_rows(self.rows, 300)

    def run(self):
        kept = (self.folder / "model.checkpoint").is_dir()
        more = ["--resume"] if kept else []
        self.call("fit", self.rows, "--label", "label", "-o", self.folder / "model", *more)


class Predict(Command):
    output = "out.csv"
    files = (output,)

    def __init__(self, folder):
        from small_models import small

        from setconv import SetConvTableClassifier

        super().__init__(folder)
        self.rows, self.model = folder / "rows.csv", folder / "model"
        X, y = write_rows(self.rows, 20_000)
        import pandas as pd

        table = pd.DataFrame(X[:300].round(4), columns=list("abcde"))
        SetConvTableClassifier(classifier=small()).fit(table, y[:300]).save(self.model)

    def run(self):
        self.call("predict", self.model, self.rows, "-o", self.folder / "out.csv")


class Embed(Command):
    output = "out.parquet"
    files = (output,)

    def __init__(self, folder):
        from tiny_bert import make_texts, save_tiny_bert

        super().__init__(folder)
        self.rows, self.encoder = folder / "texts.csv", save_tiny_bert(folder / "tiny")
        self.rows.write_text("\n".join(["text", *make_texts(3000)]))

    def run(self):
        out = self.folder / "out.parquet"
        self.call("embed", self.rows, "--encoder", self.encoder, "-o", out)

    def check_finished(self):
        super().check_finished()
        cache = Path(os.environ["SETCONV_CACHE"])
        assert [path.suffix for path in cache.iterdir()] == [".sqlite"]

    def forget(self):
        super().forget()
        next(Path(os.environ["SETCONV_CACHE"]).iterdir()).unlink()


class Save:
    """Two models with encoders of their own replace each other."""

    def __init__(self, folder):
        import numpy as np
        from small_models import small
        from tiny_bert import make_texts, save_tiny_bert

        from setconv import SetConvTextClassifier
        from setconv.text.encoder import TextEncoder

        self.folder, self.texts = folder / "model", make_texts(60)
        self.y = np.array(["cat" in text for text in self.texts])
        self.models, self.right = [], []
        for seed in (0, 1):
            tiny = TextEncoder(
                save_tiny_bert(folder / f"tiny {seed}", seed), device="cpu", cache=False
            )
            model = SetConvTextClassifier(tiny, small()).fit(self.texts, self.y)
            self.models.append(model)
            self.right.append(model.predict_proba(self.texts))
        self.models[0].save(self.folder, copy_encoder=True)
        (self.folder / "notes.txt").write_text("mine")

    def share_an_encoder(self):
        from sklearn.base import clone

        other = clone(self.models[0]).set_params(classifier__random_state=1)
        self.models[1] = other.fit(self.texts, self.y)
        self.right[1] = other.predict_proba(self.texts)

    def run(self):
        self.save_often(6)

    def save_often(self, count):
        for number in range(count):
            self.models[number % 2].save(self.folder, copy_encoder=True)

    def check(self):
        import numpy as np

        from setconv import load

        said = load(self.folder).predict_proba(self.texts)
        assert any(np.array_equal(said, right) for right in self.right)

    def check_finished(self, copies=2):  # those of the model before stay until the next save
        self.check()
        found = names(self.folder)
        assert not [name for name in found if Path(name).name.startswith(".")], found
        kept = {"README.md", "config.json", "model.safetensors", "notes.txt"}
        assert len({Path(name).parts[0] for name in found} - kept) == copies
        assert kept <= set(found)


class Cache:
    """Embeddings are added and removed."""

    def __init__(self, folder):
        from tiny_bert import make_texts, save_tiny_bert

        from setconv.text.cache import EmbeddingCache

        self.texts, self.tiny = make_texts(400), save_tiny_bert(folder / "tiny")
        self.folder = folder / "of mine"
        self.cache, self.right = EmbeddingCache(self.folder), self.encode(False)

    def encode(self, cache):
        from setconv.text.encoder import TextEncoder

        return TextEncoder(self.tiny, device="cpu", cache=cache).transform(self.texts)

    def run(self):
        for _ in range(3):
            self.encode(self.cache)
            self.cache.clear()
        self.encode(self.cache)

    def check(self):
        import numpy as np

        assert np.array_equal(self.encode(self.cache), self.right)

    def check_finished(self):
        self.check()
        assert self.cache.info().entries == len(self.texts)
        assert names(self.folder) == [self.cache.path.name]


if __name__ == "__main__":
    fault, kind, count, place = sys.argv[1:]
    globals()[fault](globals()[kind](Path(place)), int(count))
