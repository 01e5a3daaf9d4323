"""The comparison study: tasks, splits, tuning and tables, without its data."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setconv import metrics
from setconv.classifier import SetConvClassifier
from setconv.experiment.store import Cell, Outcome, Store

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.quality import evaluate, measures, report, tasks, tuning
from benchmarks.quality.peers import CALIBRATED, OURS, PRESETS, calibrated, methods, peers, quiet
from benchmarks.quality.splits import folds, split
from benchmarks.quality.tasks import halves_of, specs

NEEDS = {
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "balanced random forest": "imblearn",
    "EasyEnsemble": "imblearn",
    "RUSBoost": "imblearn",
    "SMOTE + logistic": "imblearn",
}


def rows(n=120, minority=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < minority * n).astype(np.int64)
    X = rng.normal(size=(n, 5)) + y[:, None] * [1.5, 1.0, 0, 0, 0]
    return X.astype(np.float32), y


# ---------------------------------------------------------------------------------------- tasks


def test_the_study_has_the_tasks_and_halves_that_were_listed_beforehand():
    text, tabular = specs("text"), specs("tabular")
    assert len(text) == 11
    assert len(tabular) == 68
    assert len({spec.name for spec in specs()}) == 79
    halves = {spec.source: spec.half for spec in tabular}
    assert len(halves) == 23
    assert sum(half == "untouched" for half in halves.values()) == 11
    assert halves_of(sorted(halves, reverse=True)) == halves  # by their names alone


# --------------------------------------------------------------------------------------- splits


@pytest.mark.parametrize("seed", range(5))
def test_a_split_by_a_few_large_groups_keeps_them_whole_and_has_both_classes(seed):
    # Four events with the minority, twenty without, and some majority rows in every event.
    groups = np.concatenate([np.repeat(np.arange(4), 60), np.repeat(np.arange(4, 24), 30)])
    y = np.concatenate([np.tile([1] * 50 + [0] * 10, 4), np.zeros(600, int)])
    train, test = split(y, groups, seed)
    assert not set(groups[train]) & set(groups[test])
    assert y[test].sum() == 50
    assert 0.2 < len(test) / len(y) < 0.4
    assert split(y, groups, seed)[1].tolist() == test.tolist()


# ----------------------------------------------------------------------------- figures, tuning


def test_the_fast_measures_are_those_of_the_library():
    rng = np.random.default_rng(0)
    y, predicted, p = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.random(50)
    assert measures.g_mean(y, predicted) == pytest.approx(metrics.g_mean(y, predicted))
    assert measures.f1(y, predicted) == pytest.approx(metrics.f1(y, predicted, positive=1))
    assert measures.f1(y, np.zeros(50, int)) == 0
    assert measures.brier(y, p) == pytest.approx(np.mean((p - y) ** 2))


class Counting(LogisticRegression):
    """Counts its fits over all copies."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return super().fit(X, y)


def test_thresholds_for_two_metrics_take_one_fit_a_fold_and_one_more():
    X, y = rows()
    train = np.arange(len(y))
    bench = tuning.Bench(X, y, None)
    Counting.fits = 0
    bench.fit(Counting(), train)
    cv = folds(y, None, 0)
    found = tuning.tuned_thresholds(Counting(), bench, train, cv)
    assert Counting.fits == 6
    assert set(found) == {"g_mean", "f1"}
    for name, measure in {"g_mean": measures.g_mean, "f1": measures.f1}.items():
        held = [(bench.scores(train[a], train[b]), y[b]) for a, b in cv]

        def worth(at, held=held, measure=measure):
            return np.mean([measure(truth, (s >= at).astype(int)) for s, truth in held])

        every = np.unique(np.concatenate([s for s, _ in held]))
        assert worth(found[name]) >= max(map(worth, every)) - 1e-9


# ---------------------------------------------------------------------------------------- peers


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*peers(), *calibrated()])
def test_every_peer_tells_the_classes_apart(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    quiet()
    X, y = rows(minority=0.15)
    bench = tuning.Bench(X, y, np.arange(len(y)) // 2)
    fitted_on = np.arange(len(y))
    bench.fit(methods(wide=False)[name](0), fitted_on)
    scores = bench.scores(fitted_on, fitted_on)
    assert scores[y == 1].mean() > scores[y == 0].mean()


# ---------------------------------------------------------------------------- cells and reports


@pytest.mark.parametrize("method", [OURS, "logistic regression", *PRESETS, *CALIBRATED])
def test_a_cell_has_every_figure_that_the_tables_need(method, monkeypatch):
    X, y = rows(n=200)
    task = tasks.Task("ecoli3", "tabular", "ecoli", "untouched", X, y, None)
    monkeypatch.setattr(evaluate, "load", lambda *_: task)
    if method.startswith("SetConv"):
        few = {"max_steps": 5, "encoder": (8,), "out_features": 8, "progress": False}
        few |= {"n_members": 3} if method == OURS else {"n_members": 1}
        fixed = {method: lambda seed: SetConvClassifier(**few, random_state=seed)}
        monkeypatch.setattr(evaluate, "methods", lambda **_: fixed)
    figures = evaluate.work(Cell("ecoli3", method, 0))
    assert all(np.isfinite(value) for value in figures.values())
    wanted = {"auc", "average_precision", "g_mean_natural", "f1_natural", "brier", "ece"}
    if method in (OURS, "logistic regression"):
        wanted |= {"g_mean_tuned", "f1_tuned"}
    if method == OURS:
        wanted |= {"oof_auc", "oof_average_precision", "oof_g_mean", "oof_f1"}
    assert wanted <= set(figures)


def made_up(store):
    """Record a study in which our method is best on text and second on tabular sets."""
    rng = np.random.default_rng(0)
    names = ("auc", "average_precision", "g_mean_tuned", "f1_tuned", "g_mean_natural", "f1_natural")
    for spec in specs():
        if spec.name in ("ecoli3", "sylva"):
            continue
        level = {OURS: 0.9, "logistic regression": 0.8, "RBF SVM": 0.7, "SetConv, PAPER": 0.5}
        if spec.kind == "tabular":
            level["RBF SVM"] = 0.95
        for method, value in level.items():
            results = {name: value + 0.01 * rng.random() for name in names}
            results |= {"brier": 0.1, "ece": 0.05, "fit_seconds": 1.0, "predict_seconds": 0.1}
            if method == OURS:
                results |= {f"oof_{m}": value for m in ("auc", "average_precision", "g_mean", "f1")}
            cell = Cell(spec.name, method, 0)
            store.record(Outcome(cell, "ok", "2020-01-01", 1.0, results))
    store.record(Outcome(Cell("sylva", OURS, 0), "timeout", "2020-01-01", 9.0, error="too long"))


def test_the_report_has_every_table_and_figure(tmp_path):
    pytest.importorskip("scikit_posthocs")
    with Store(tmp_path / "study.sqlite") as store:
        made_up(store)
        text = report.write(store, tmp_path / "out")
    assert (tmp_path / "out" / "tables.md").read_text(encoding="utf-8") == text
    part = text[: text.index("## Tabular, all")]
    first = part[part.index("| **SetConv** |") :].splitlines()[0]
    assert first.count("1.0 [1.0, 1.0]") == 4
    assert "Best or equal on: AUC 11, average precision 11, G-mean 11, F1 11, of 11." in part
    assert "## Cells that failed" in text
    drawn = {path.name for path in (tmp_path / "out").glob("*.svg")}
    assert {"estimates-text.svg", "ranks-text-auc.svg", "ranks-tabular-untouched-auc.svg"} <= drawn
