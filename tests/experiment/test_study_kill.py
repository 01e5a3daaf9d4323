"""A study that is killed again and again ends in the table of one that was left alone."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from setconv.experiment.results import findings
from setconv.experiment.store import Store
from setconv.experiment.study import read_study

posix = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")

STUDY = """
split: {repeats: 6}
data:
  rows: {load: npz, path: rows.npz}
methods:
  tree: {estimator: sklearn.tree.DecisionTreeClassifier}
  slow tree: {estimator: slow_tree.SlowTree}
  broken: {estimator: slow_tree.Broken}
"""

# Cells take a moment, so that many kills hit one; every fit is noted when it begins and ends.
ESTIMATORS = """
import os, time
from pathlib import Path
from sklearn.tree import DecisionTreeClassifier

def note(what, model):
    with Path(os.environ["STUDY_NOTES"]).open("a") as file:
        file.write(f"{what} {model.random_state}\\n")

class SlowTree(DecisionTreeClassifier):
    def fit(self, X, y):
        note("begins", self)
        time.sleep(0.05)
        super().fit(X, y)
        note("ends", self)
        return self

class Broken(DecisionTreeClassifier):
    def fit(self, X, y):
        raise ValueError("it never works")
"""

# Studies and their workers are forked, so that what is imported once serves every run, which is
# then short; the kill comes at a random moment of it. The tests of `run` start workers as users do.
PROGRAM = """
import json, multiprocessing, os, random, sys, time
import pandas, slow_tree
from setconv.experiment import Store, read_study, run_study
from setconv.experiment import cells, data as rows

forked = multiprocessing.get_context("fork")
multiprocessing.get_context = lambda _: forked

study, folder, data, kills = read_study(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4])
OPTIONS = {"data": data, "jobs": 1, "threads": 1, "progress": False}

path = os.path.join(folder, "results.sqlite")

def begin():
    child = forked.Process(target=run_study, args=(study, folder), kwargs=OPTIONS)
    child.start()
    return child

def finished():
    if not os.path.exists(path):
        return set()
    with Store(path) as store:
        return store.finished()

if __name__ == "__main__":
    moments, killed, known, lost, hits = random.Random(1), 0, set(), 0, 0
    while killed < kills:
        child = begin()
        child.join(moments.uniform(0.05, 1.0) * float(sys.argv[5]))
        if child.is_alive():
            child.kill()
            child.join()
            killed += 1
        else:  # it came to its end: the rest of the kills hit a new one
            os.unlink(path)
            known = set()
        now = finished()
        lost += len(known - now)
        hits += len(now - known)
        known = now
    began = time.monotonic()
    child = begin()
    child.join()
    lost += len(known - finished())
    seconds = time.monotonic() - began
    print(json.dumps({"code": child.exitcode, "lost": lost, "hits": hits, "seconds": seconds}))
"""


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) + np.repeat([0, 1], [60, 20])[:, None]
    np.savez(tmp_path / "rows.npz", X=X, y=np.repeat(["no", "yes"], [60, 20]))
    for name, text in (("mine.yaml", STUDY), ("slow_tree.py", ESTIMATORS), ("go.py", PROGRAM)):
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def start(place, folder, kills=0, longest=0.0):
    source = Path(__file__).resolve().parents[2] / "src"
    more = {"PYTHONPATH": f"{place}{os.pathsep}{source}", "STUDY_NOTES": f"{place / folder}.notes"}
    told = [place / "go.py", place / "mine.yaml", place / folder, place, kills, longest]
    command = [sys.executable, *map(str, told)]
    own = {"start_new_session": True, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | more, **own)


def outcome(process):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@posix
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_kills_lose_no_finished_cell_and_end_in_the_same_table(place, cases):
    alone = outcome(start(place, "alone"))
    killed = outcome(start(place, "killed", cases(200), alone["seconds"]))
    assert (alone["code"], killed["code"], killed["lost"]) == (0, 0, 0)
    assert killed["hits"] > 0  # some kills came after cells were finished
    study = read_study(place / "mine.yaml")
    expected, found = (findings(study, place / name).scores for name in ("alone", "killed"))
    assert expected.equals(found)
    assert len(found) == 2 * 6 * 10
    with Store(place / "killed" / "results.sqlite") as store:
        assert len(store.finished()) == 12
        assert len(store.failed()) == 6


@posix
def test_what_was_finished_is_never_computed_again(place):
    process = start(place, "run")
    try:
        notes = place / "run.notes"
        while not notes.exists() or notes.read_text().count("ends") < 3:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.communicate()
    with Store(place / "run" / "results.sqlite") as store:
        finished = {cell for cell in store.finished() if cell.method == "slow tree"}
    assert 2 <= len(finished) < 6
    before = notes.read_text().splitlines()
    assert outcome(start(place, "run"))["code"] == 0
    again = notes.read_text().splitlines()[len(before) :]
    assert sum(line.startswith("begins") for line in again) == 6 - len(finished)
