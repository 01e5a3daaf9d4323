"""The comparison study: splits, figures of a cell, and the tables that are published."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from benchmarks.quality import (
    evaluate,
    measures,
    overview,
    publish,
    raw,
    report,
    semeval,
    sparse,
    tasks,
    tuning,
)
from benchmarks.quality.peers import OURS
from benchmarks.quality.splits import folds, joined_groups, split
from sklearn.linear_model import LogisticRegression

from setconv import metrics
from setconv.classifier import SetConvClassifier
from setconv.experiment.store import Cell


def rows(n):
    rng = np.random.default_rng(0)
    y = (np.arange(n) < 0.2 * n).astype(np.int64)
    X = rng.normal(size=(n, 5)) + y[:, None] * [1.5, 1.0, 0, 0, 0]
    return X.astype(np.float32), y


def test_splits_and_folds_keep_groups_whole_and_have_both_classes():
    # Four events with the minority, twenty without, and some majority rows in every event.
    groups = np.concatenate([np.repeat(np.arange(4), 60), np.repeat(np.arange(4, 24), 30)])
    y = np.concatenate([np.tile([1] * 50 + [0] * 10, 4), np.zeros(600, int)])
    for seed in range(5):
        train, test = split(y, groups, seed)
        assert not set(groups[train]) & set(groups[test])
        assert y[test].sum() == 50
        assert 0.2 < len(test) / len(y) < 0.4
        assert split(y, groups, seed)[1].tolist() == test.tolist()
    y, groups = np.arange(400) < 60, np.random.default_rng(0).integers(0, 250, 400)
    found = folds(y.astype(int), groups, 0)
    assert sorted(np.concatenate([held for _, held in found])) == list(range(400))
    for inside, held in found:
        assert not set(groups[inside]) & set(groups[held])
        assert 10 <= y[held].sum() <= 14
    shared = [np.array([0, 0, 1, 2, 3]), np.array(["a", "b", "b", "c", "d"])]
    assert joined_groups(shared).tolist() == [0, 0, 0, 1, 2]


def test_the_fast_measures_are_those_of_the_library():
    rng = np.random.default_rng(0)
    y, predicted, p = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.random(50)
    assert measures.g_mean(y, predicted) == pytest.approx(metrics.g_mean(y, predicted))
    assert measures.f1(y, predicted) == pytest.approx(metrics.f1(y, predicted, positive=1))
    assert measures.brier(y, p) == pytest.approx(np.mean((p - y) ** 2))


def test_no_threshold_is_better_in_cross_validation_than_the_tuned_one():
    X, y = rows(120)
    train, cv = np.arange(len(y)), folds(y, None, 0)
    bench = tuning.Bench(X, y, None)
    found = tuning.tuned_thresholds(LogisticRegression(), bench, train, cv)
    held = [(bench.scores(train[a], train[b]), y[b]) for a, b in cv]
    for name, at in found.items():
        every = [at, *np.concatenate([scores for scores, _ in held])]
        measure = getattr(measures, name)
        worth = [np.mean([measure(of, (s >= cut).astype(int)) for s, of in held]) for cut in every]
        assert worth[0] >= max(worth) - 1e-9


@pytest.mark.parametrize("method", [OURS, "logistic regression"])
def test_a_cell_has_every_figure_that_the_tables_need(method, monkeypatch):
    task = tasks.Task("ecoli3", "tabular", "ecoli", "untouched", *rows(200), None)
    monkeypatch.setattr(evaluate, "load", lambda *_: task)
    few = SetConvClassifier(max_steps=5, n_members=3, random_state=0, progress=False)
    made = {OURS: lambda _: few, "logistic regression": lambda _: LogisticRegression()}
    monkeypatch.setattr(evaluate, "methods", lambda **_: made)
    figures = evaluate.work(Cell("ecoli3", method, 0))
    assert np.isfinite(list(figures.values())).all()
    assert {"auc", "average_precision", "brier", "ece", "g_mean_natural", "f1_tuned"} <= {*figures}
    assert ("oof_f1" in figures) == (method == OURS)


def test_peers_are_tuned_on_sparse_rows_too(monkeypatch):
    y = rows(200)[1]
    words = np.where(y == 1, "urgent fire", "usual talk")
    rng = np.random.default_rng(0)
    texts = np.array([f"{rng.choice(words)} {w} {rng.choice(words)}" for w in words])
    task = tasks.Task("sms_spam/spam", "text", "sms_spam", "choosing", *rows(200), None)
    few = SetConvClassifier(max_steps=5, n_members=3, random_state=0, progress=False)
    monkeypatch.setattr(sparse, "load", lambda *_: task)
    monkeypatch.setattr(sparse, "texts_of", lambda *_: texts)
    monkeypatch.setitem(sparse.METHODS, OURS, lambda _: few)
    fitted = []
    fit = tuning.Bench.fit
    monkeypatch.setattr(tuning.Bench, "fit", lambda *a: fitted.append(fit(*a)) or fitted[-1])
    found = []
    for vectors in sparse.VECTORS:
        for method in sparse.METHODS:
            cell = Cell(f"{vectors}: sms_spam/spam", method, 1)
            found += [(*astuple(cell)[:3], *one) for one in sparse.work(cell, None).items()]
    # The threshold belongs to the C that was chosen on all training rows.
    assert {one.C for one in fitted[2:7]} == {fitted[1].estimator_.C}
    results = pd.DataFrame(found, columns=["dataset", "method", "split", "metric", "value"])
    assert sparse.ranks(results, 1).count("\n") == 9
    assert sparse.tasks(results, "words", 1).splitlines()[2].startswith("| sms_spam/spam | ")


def test_the_peer_on_semeval_has_its_own_and_a_tuned_decision():
    task = tasks.Task("semeval2017/negative", "text", "semeval2017", "choosing", *rows(200), None)
    found = semeval.logistic(task, split(task.y, None, 0), 0)
    assert set(found) == {"auc", "g_mean_natural", "g_mean_tuned"}
    assert min(found.values()) > 0.6


def test_the_published_tables_are_those_of_the_published_results(tmp_path, monkeypatch):
    pytest.importorskip("scikit_posthocs")
    # What is significant takes long to say: the next test does.
    claims = f"{publish.STUDY}: claims"
    quality = (raw.ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
    known = quality.split(f"<!-- from {claims} -->\n\n")[1].split("\n\n")[0]
    monkeypatch.setitem(publish.TABLES, claims, lambda _: known)
    for name in publish.DOCUMENTS:
        page = raw.ROOT / name
        assert publish.document(page) == page.read_text(encoding="utf-8"), name
    results = raw.read(publish.STUDY)
    results = results[results["dataset"].isin([spec.name for spec in tasks.specs("text")])]
    text = report.write(results, tmp_path, raw.made(publish.STUDY, publish.STUDY))
    assert text.strip() in (raw.FOLDER / "tables.md").read_text(encoding="utf-8")
    assert (tmp_path / "ranks-text-auc.svg").exists()


@pytest.mark.long
def test_the_published_page_is_that_of_the_published_results(tmp_path):
    quality = (raw.ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
    assert overview.claims(raw.read(publish.STUDY)) in quality
    assert publish.study(tmp_path) == (raw.FOLDER / "tables.md").read_text(encoding="utf-8")


def test_raw_results_lie_at_full_precision_beside_what_made_them(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "FOLDER", tmp_path)
    (tmp_path / "made.json").write_text("{}")
    found = pd.DataFrame({"dataset": ["a"], "value": [0.1 + 0.2]})
    for name in ("one.csv", "one.csv.gz"):
        raw.record(name, found, "python -m one", "0123456789")
        before = (tmp_path / name).read_bytes()
        raw.record(name, found, "python -m one", "0123456789")
        assert (tmp_path / name).read_bytes() == before
        assert raw.read(name).equals(found)
        assert "commit `0123456` by `python -m one`" in raw.made(name, name)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- from one.csv: sum -->\nold\n<!-- end -->\nb\n")
    monkeypatch.setitem(publish.TABLES, "one.csv: sum", lambda one: str(one["value"].sum()))
    once = publish.document(page)
    assert "old" not in once
    assert "\n0.30000000000000004\n\nBuilt from [one.csv](one.csv)" in once
    page.write_text(once)
    assert publish.document(page) == once


def test_results_to_publish_are_made_by_committed_code(monkeypatch):
    monkeypatch.setattr(raw, "_git", lambda *_: " M src/setconv/classifier.py")
    with pytest.raises(SystemExit, match="classifier"):
        raw.head()
