"""``setconv experiment``: a study from the command line, from its file to its page."""

import numpy as np
import pytest
from typer.testing import CliRunner

from setconv.cli.app import app, exit_code

STUDY = """
title: Two trees
split: {repeats: 2}
data:
  rows: {load: npz, path: rows.npz}
methods:
  stump: {estimator: sklearn.tree.DecisionTreeClassifier, parameters: {max_depth: 1}}
  tree: {estimator: sklearn.tree.DecisionTreeClassifier}
"""


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
