"""``setconv experiment``: a study from the command line, from its file to its page."""

import json
import os
import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import setconv
from setconv.cli.app import app, exit_code
from setconv.experiment.store import Cell, Outcome, Store

STUDY = """
title: Two trees
split: {repeats: 2}
data:
  rows: {load: npz, path: rows.npz}
methods:
  stump: {estimator: sklearn.tree.DecisionTreeClassifier, parameters: {max_depth: 1}}
  tree: {estimator: sklearn.tree.DecisionTreeClassifier}
"""


BROKEN = "  broken: {estimator: sklearn.tree.DecisionTreeClassifier, parameters: {max_depth: -1}}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) + np.repeat([0, 1], [70, 20])[:, None]
    np.savez(tmp_path / "rows.npz", X=X, y=np.repeat(["no", "yes"], [70, 20]))
    (tmp_path / "mine.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, ["experiment", *map(str, arguments)])


def test_a_study_is_run_reported_and_not_computed_twice(place):
    first = call("run", "mine.yaml", "--jobs", 1)
    assert first.exit_code == 0, first.output
    assert "4 cells computed, 0 there already, 0 failed" in first.output
    assert "0 cells computed, 4 there already" in call("run", "mine.yaml", "--jobs", 1).output

    told = call("report", "mine.yaml")
    assert told.exit_code == 0, told.output
    folder = place / "experiments" / "mine" / "report"
    assert "Two trees" in (folder / "index.html").read_text(encoding="utf-8")

    quiet = call("report", "mine.yaml", "--quiet", "-o", place / "elsewhere", "--method", "tree")
    assert quiet.exit_code == 0, quiet.output
    assert "stump" not in (place / "elsewhere" / "tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "near"),
    [
        (["run", "stand-in"], 2, "'stand-ins'"),
        (["run", "no.yaml"], 4, "no.yaml"),
        (["run", "mine.yaml", "--method", "stmp"], 2, "'stump'"),
        (["run", "mine.yaml", "--data", "elsewhere"], 4, "--data"),
        (["report", "mine.yaml"], 1, "experiment run"),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_cannot_be_done_says_what_to_do(arguments, code, near):
    result = call(*arguments)
    assert near in str(result.exception)
    assert exit_code(result.exception) == code


def test_cells_that_failed_are_told_with_their_reason_and_end_in_exit_code_1(place):
    (place / "mine.yaml").write_text(STUDY + BROKEN, encoding="utf-8")
    first = call("run", "mine.yaml", "--jobs", 1)
    assert "4 cells computed, 0 there already, 2 failed" in first.output
    again = call("run", "mine.yaml", "--jobs", 1)
    assert "0 cells computed, 6 there already, 0 failed" in again.output
    for result in (first, again):  # they are still missing from the study
        assert exit_code(result.exception) == 1
        told = str(result.exception)
        assert told.startswith("2 cells of mine failed:\n  rows / broken / 0, 1: error: ")
        assert "The 'max_depth' parameter of DecisionTreeClassifier" in told
        assert told.endswith("\n--retry-failed computes them again.")
    (place / "mine.yaml").write_text(STUDY, encoding="utf-8")
    assert call("run", "mine.yaml").exit_code == 0


def age(path, version):
    """Have the cells of a store computed by another version."""
    with Store(path) as store:
        figures = store.results().groupby(["dataset", "method", "split"])
        for one in store.cells().itertuples():
            key = (one.dataset, one.method, one.split)
            results = figures.get_group(key).set_index("metric")["value"].to_dict()
            cell = Cell(*key, one.version)
            told = {"versions": {"setconv": version}, "notes": json.loads(one.notes)}
            store.record(Outcome(cell, "ok", one.started, one.seconds, results, **told))


def test_cells_of_another_version_are_shown_and_computed_again_when_asked(place):
    arguments = ("mine.yaml", "--jobs", 1)
    assert call("run", *arguments, "--method", "tree").exit_code == 0
    age(place / "experiments" / "mine" / "results.sqlite", "0.0.9")
    run = call("run", *arguments)
    assert "another version of setconv (0.0.9) computed 2 cells; --recompute-outdated" in run.output
    assert "Computed by another version of setconv (0.0.9): 2 cells" in call(
        "report", "mine.yaml"
    ).output.replace("\n", " ")
    report = place / "experiments" / "mine" / "report"
    for name, mark in (("index.html", "†"), ("tables.md", "†"), ("tables.tex", r"$\dagger$")):
        text = (report / name).read_text(encoding="utf-8")
        figures = [line for line in text.splitlines() if "±" in line or r"$\pm$" in line]
        (tree, *_), (stump, *_) = (
            [line for line in figures if method in line] for method in ("tree", "stump")
        )
        assert mark in tree
        assert mark not in stump
        assert "0.0.9" in text
    again = call("run", *arguments, "--recompute-outdated")
    assert "2 cells computed, 2 there already, 0 failed" in again.output
    assert "another version" not in again.output
    assert call("report", "mine.yaml").exit_code == 0
    assert "†" not in (report / "tables.md").read_text(encoding="utf-8")


def test_the_page_has_a_command_that_computes_the_study_of_its_own_file(place, monkeypatch):
    work, data = place / "my  work", place / "the 'data'"
    for folder in (work, data):
        folder.mkdir()
    (place / "mine.yaml").rename(work / "my study.yaml")
    (place / "rows.npz").rename(data / "rows.npz")
    monkeypatch.chdir(work)
    given = ("my study.yaml", "--results", "its results", "--method", "tree", "--repeats", 1)
    assert call("run", *given, "--data", data, "--jobs", 1).exit_code == 0
    assert call("report", *given).exit_code == 0
    html = (work / "its results" / "report" / "index.html").read_text(encoding="utf-8")
    folder = unescape(re.search(r"Given in the folder <code>(.*?)</code>", html)[1])
    command = unescape(re.search(r"<pre [^>]*><code>(.*?)</code>", html)[1])
    assert Path(folder) == work
    assert f"    {command}\n" in (work / "its results" / "report" / "tables.md").read_text()
    # As a shell takes it, with this environment's setconv.
    name, *_ = words = shlex.split(command)
    assert name == "setconv"
    program = shlex.join([sys.executable, "-m", "setconv"])
    environment = {**os.environ, "PYTHONPATH": str(Path(setconv.__file__).parents[1])}
    done = subprocess.run(
        command.replace("setconv", program, 1),
        **{"shell": True, "cwd": folder, "env": environment, "capture_output": True, "text": True},
    )
    assert done.returncode == 0, done.stderr
    assert "0 cells computed, 1 there already, 0 failed" in done.stderr
    assert words[words.index("--data") + 1] == str(data)
