"""The comparison of the paper's systems: own and tuned decisions of one cell."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.quality import baselines, tasks

from setconv.classifier import SetConvClassifier
from setconv.experiment.store import Cell


@pytest.mark.parametrize("method", ["SetConv", "SMOTE", "CLEMS"])
def test_a_cell_has_own_and_tuned_decisions(method, monkeypatch):
    rng = np.random.default_rng(0)
    y = (np.arange(300) < 60).astype(np.int64)
    X = (rng.normal(size=(300, 80)) + y[:, None] * (np.arange(80) < 4)).astype(np.float32)
    task = tasks.Task("semeval2017/negative", "text", "semeval2017", "choosing", X, y, None)
    monkeypatch.setattr(baselines, "load", lambda *_: task)
    few = SetConvClassifier(max_steps=5, n_members=3, random_state=0, progress=False)
    if method == "SetConv":
        monkeypatch.setattr(baselines, "build", lambda *_: few)
    found = baselines.work(Cell(task.name, method, 0), Path())
    assert {*found} == {*baselines.OWN, *baselines.TUNED}
    assert np.isfinite(list(found.values())).all()
    if method == "SMOTE":  # eighty columns for a few rows need a small C
        assert found["auc_tuned"] > found["auc"] + 0.01
    else:
        assert found["auc_tuned"] == pytest.approx(found["auc"])
    assert found["f1_tuned"] > 0
