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
# then short; the kills come at random moments of it. The tests of `run` start workers as users do.
PROGRAM = """
import hashlib, json, multiprocessing, os, random, shutil, sys, time
from pathlib import Path
import pandas, slow_tree
from setconv.experiment import Store, findings, read_study, run_study
from setconv.experiment import cells, data as rows, runner

forked = multiprocessing.get_context("fork")
multiprocessing.get_context = lambda _: forked
runner._PATIENCE = 0.0  # forked workers do not see that their pipe ends

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

def ended(child):
    # What a study that came to its end says, and what it left that does not belong there.
    child.join()
    said = findings(study, folder).scores.to_csv() + str(child.exitcode)
    others = [one.name for one in Path(folder).rglob("*") if "." in (one.name[0], one.suffix[:1])]
    return hashlib.sha256(said.encode()).hexdigest(), sorted(set(others))

if __name__ == "__main__":
    moments, killed, known, lost, hits, ends = random.Random(1), 0, set(), 0, 0, []
    while killed < kills:
        children = [begin() for _ in range(moments.choice([1, 1, 2, 3]))]
        for child in children[: moments.randint(1, len(children))]:
            child.join(moments.uniform(0.05, 1.0) * float(sys.argv[5]) / len(children))
            if child.is_alive():
                child.kill()
                child.join()
                killed += 1
        now = finished()
        lost += len(known - now)
        hits += len(now - known)
        known = now
        alive = [child for child in children if child.exitcode != -9]
        for child in alive:
            child.join()
        ends += map(ended, alive)
        if alive:  # it came to its end: the rest of the kills hit a new one
            shutil.rmtree(folder)
            known = set()
    began = time.monotonic()
    ends.append(ended(begin()))
    lost += len(known - finished())
    seconds = time.monotonic() - began
    print(json.dumps({"lost": lost, "hits": hits, "seconds": seconds, "ends": ends}))
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
    killed = outcome(start(place, "killed", cases(60), alone["seconds"]))
    assert (alone["lost"], killed["lost"]) == (0, 0)
    assert killed["hits"] > 0  # some kills came after cells were finished
    ((digest, files),) = alone["ends"]
    assert {one for one, _ in killed["ends"]} == {digest}
    assert len(killed["ends"]) > 1  # others went on without the killed one, to their end
    assert all(left == files for _, left in killed["ends"])
    found = findings(read_study(place / "mine.yaml"), place / "killed")
    assert len(found.scores) == 2 * 6 * 10
    assert (len(found.cells), len(found.failed)) == (18, 6)


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
    outcome(start(place, "run"))
    again = notes.read_text().splitlines()[len(before) :]
    assert sum(line.startswith("begins") for line in again) == 6 - len(finished)
