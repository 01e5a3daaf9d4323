"""Studies from beginning to end, on small data made here."""

import multiprocessing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from setconv.errors import DataError, LabelError, ParameterError, StudyError
from setconv.experiment import runner
from setconv.experiment.cells import StudyWork, plan_cells
from setconv.experiment.data import Rows, prepare, rows_of
from setconv.experiment.results import findings, run_study
from setconv.experiment.runner import Tally
from setconv.experiment.splits import make_split
from setconv.experiment.study import (
    DataSpec,
    MethodSpec,
    Probe,
    SearchRule,
    SplitRule,
    Study,
    Sweep,
)
from setconv.metrics.report import report

LOGISTIC = MethodSpec("logistic", "logistic regression")
TREE = MethodSpec("tree", estimator="sklearn.tree.DecisionTreeClassifier")
QUICK = {"max_steps": 5, "n_members": 1, "objective": None, "post_size": 50}


@pytest.fixture(autouse=True, scope="module")
def quick_workers():
    """Fork workers from a process that has imported all; the tests of `run` start them anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["setconv.experiment.cells", "setconv", "setconv.classifier", "sklearn.tree"]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "multiprocessing", SimpleNamespace(get_context=lambda _: context))
        yield


@pytest.fixture
def data(tmp_path):
    """Return a folder with features in three classes, and texts in two."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["no", "crash", "fire"], [90, 30, 20])
    X = rng.normal(size=(140, 4)) + np.repeat([0, 1, -1], [90, 30, 20])[:, None]
    event = np.arange(140) % 7
    np.savez(tmp_path / "rows.npz", X=X, y=labels, event=event)
    lines = [f"good day {n},ham" for n in range(30)] + [f"win cash {n},spam" for n in range(10)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    return tmp_path


def spec(name="rows", **more):
    return DataSpec(name, "npz", {"path": "rows.npz"}, **more)


def small(*methods, data=(), **more):
    split = more.pop("split", SplitRule(repeats=2))
    return Study("small", data or (spec(),), methods or (LOGISTIC,), split=split, **more)


def compute_here(study, folder, data):
    """Compute all cells in this process: what workers do, without their start."""
    prepared = prepare(study, folder, data)
    work = StudyWork(study, prepared, folder)
    return {cell: work(cell) for cell in plan_cells(study, prepared, folder)}


def test_a_study_is_run_resumed_and_edited_computing_only_what_is_new(data, tmp_path):
    study = small(LOGISTIC, TREE)
    folder = tmp_path / "results"
    arguments = {"data": data, "jobs": 1, "threads": 1, "progress": False}
    assert run_study(study, folder, **arguments) == Tally(skipped=0, ok=4, failed=0)
    before = findings(study, folder).scores
    assert run_study(study, folder, **arguments) == Tally(skipped=4, ok=0, failed=0)
    # Other metrics are only shown; a parameter of one method is that method's matter.
    edited = replace(
        study, metrics=("mcc",), methods=(LOGISTIC, replace(TREE, parameters={"max_depth": 2}))
    )
    assert findings(edited, folder).missing == 2
    assert run_study(edited, folder, **arguments) == Tally(skipped=2, ok=2, failed=0)
    after = findings(edited, folder).scores
    same = before.merge(after, on=["unit", "method", "split", "metric"])
    changed = same[same.value_x.fillna(-1) != same.value_y.fillna(-1)]
    assert set(changed.method) == {"tree"}
    # More repeats leave the first ones as they are.
    longer = replace(edited, split=SplitRule(repeats=3))
    assert run_study(longer, folder, **arguments) == Tally(skipped=4, ok=2, failed=0)
    # Rows that changed on disk are other rows.
    stored = dict(np.load(data / "rows.npz"))
    np.savez(data / "rows.npz", **{**stored, "X": stored["X"] * 2})
    assert run_study(longer, folder, **arguments) == Tally(skipped=0, ok=6, failed=0)
    for other in (tmp_path / "nothing", folder):
        with pytest.raises(StudyError):
            findings(small(data=(spec(), spec("not run", size=50))), other)


def test_the_figures_are_those_of_a_fit_by_hand(data, tmp_path):
    study = small(TREE, split=SplitRule(repeats=1))
    ((cell, (figures, notes)),) = compute_here(study, tmp_path / "rows", data).items()
    from sklearn.tree import DecisionTreeClassifier

    stored = np.load(data / "rows.npz")
    X, y = stored["X"].astype(np.float32), stored["y"]
    train, test = make_split(study.split, Rows(X, y, None, None), 0, notes["seed"])
    model = DecisionTreeClassifier(random_state=notes["seed"]).fit(X[train], y[train])
    expected = report(y[test], model.predict(X[test]), model.predict_proba(X[test]))
    for metric in ("f1", "auc"):
        assert figures[f"{metric}:fire"] == getattr(expected["fire"], metric)
    assert "f1:no" not in figures
    assert figures["macro_f1"] == expected.macro_f1
    assert notes["rows"] == [len(train), len(test)]
    assert cell.version


def test_two_classes_are_ranked_by_the_decision_function(data, tmp_path):
    fine = MethodSpec("fine", estimator="sklearn.linear_model.LogisticRegression")
    coarse = MethodSpec("coarse", estimator="study_work.Saturated")
    two = small(fine, coarse, data=(spec(binary="crash"),), split=SplitRule(repeats=1))
    (first, _), (second, _) = compute_here(two, tmp_path / "rows", data).values()
    assert first["auc:crash"] == second["auc:crash"]
    assert first["brier:crash"] != second["brier:crash"]
    # Decision functions of more classes need not rank one of them against the rest.
    three = small(fine, coarse, split=SplitRule(repeats=1))
    (first, _), (second, _) = compute_here(three, tmp_path / "rows", data).values()
    assert first["auc:crash"] > second["auc:crash"]


def test_training_rows_are_thinned_and_searched_and_test_rows_are_not(data, tmp_path):
    swept = spec(binary="crash", sweep=Sweep((2.0, 10.0), 40))
    chooses = replace(TREE, search={"max_depth": [1, 3]})
    once = {"split": SplitRule(repeats=1), "search": SearchRule(3, "auc")}
    found = compute_here(small(chooses, data=(swept,), **once), tmp_path / "rows", data).values()
    assert [notes["rows"] for _, notes in found] == [[60, 42], [44, 42]]
    assert all(notes["chosen"]["max_depth"] in ("1", "3") for _, notes in found)


def test_texts_are_encoded_by_what_the_training_texts_teach(data, tmp_path):
    for encoder in ({"kind": "tfidf", "n_components": 4}, {"kind": "terms", "max_features": 20}):
        texts = DataSpec("texts", "file", {"path": "texts.csv", "text": "text", "label": "label"})
        once = {"split": SplitRule(repeats=1), "encoder": encoder, "search": SearchRule(2)}
        searched = replace(LOGISTIC, search={"logisticregression__C": [0.1]})
        study = small(searched, data=(texts,), **once)
        ((figures, notes),) = compute_here(study, tmp_path / "rows", data).values()
        assert figures["auc:spam"] == 1
        assert notes["chosen"] == {"logisticregression__C": "0.1"}


def test_a_method_for_two_classes_is_searched_one_against_the_rest(data, tmp_path):
    study = small(
        MethodSpec("WEOB2", parameters={"n_estimators": 2}, search={"theta": [0.9]}),
        split=SplitRule(repeats=1),
        search=SearchRule(2),
    )
    ((_, notes),) = compute_here(study, tmp_path / "rows", data).values()
    assert notes["chosen"] == {"theta": "0.9"}


def test_copies_are_on_one_side_of_every_split_and_fold(data, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0) ^ (rng.random(200) < 0.3)
    np.savez(data / "twins.npz", X=np.tile(X, (2, 1)), y=np.tile(y, 2))
    nearest = MethodSpec(
        "nearest",
        estimator="sklearn.neighbors.KNeighborsClassifier",
        search={"n_neighbors": [1, 20]},  # one is best where it is the row's own copy
    )
    twins = DataSpec("twins", "npz", {"path": "twins.npz"})
    study = small(nearest, data=(twins,), search=SearchRule(3, "auc"))
    for figures, notes in compute_here(study, tmp_path / "rows", data).values():
        assert notes["chosen"] == {"n_neighbors": "20"}
        assert figures["auc:True"] < 0.9
        assert all(size % 2 == 0 for size in notes["rows"])


def test_texts_that_say_the_same_are_copies(data, tmp_path):
    lines = [
        "text,label",
        *(f"Good day {n},ham" for n in range(8)),
        "win cash,spam",
        "win gold,spam",
    ]
    lines += ["good  DAY 3 @you,ham", "Win cash http://x.y,spam"]
    (data / "texts.csv").write_text("\n".join(lines), encoding="utf-8")
    texts = DataSpec("texts", "file", {"path": "texts.csv", "text": "text", "label": "label"})
    study = small(data=(texts,), encoder={"kind": "terms"})
    (known,) = prepare(study, tmp_path / "rows", data).values()
    assert known.n_copies == 2
    assert known.provenance.startswith("FOLDER/texts.csv:")
    copies = rows_of(tmp_path / "rows", known.digest).copies
    assert [copies[3] == copies[10], copies[8] == copies[11], len(set(copies))] == [1, 1, 10]


def test_sizes_of_the_post_training_subset_become_a_curve(data, tmp_path):
    setconv = MethodSpec("SetConv", parameters=QUICK)
    probe = Probe((20, 60, 10_000), draws=3)
    study = small(setconv, data=(spec(binary="crash"),), split=SplitRule(repeats=1), probe=probe)
    folder = tmp_path / "r"
    assert run_study(study, folder, data=data, jobs=1, threads=1, progress=False).ok == 1
    scores = findings(study, folder).scores
    curves = scores[scores.curve != ""]
    assert set(curves.curve) == {"post-training size", "post-training size, balanced subsets"}
    assert sorted(set(curves.setting)) == [20, 60, 10_000]
    natural = curves[curves.curve == "post-training size"].set_index(["metric", "setting"]).value
    assert natural["movement", 20] > natural["movement", 60] > 0
    # A subset of that size is all rows, each time.
    assert natural["movement", 10_000] == pytest.approx(0, abs=1e-6)
    assert natural["flips", 10_000] == 0


def test_units_say_what_a_row_of_a_table_is_about(data, tmp_path):
    stored = dict(np.load(data / "rows.npz"))
    stored["X"][:10] = stored["X"][10:20]
    np.savez(data / "rows.npz", **stored)
    both = (spec(), spec("binary", binary="crash", source="rows"))
    study = small(LOGISTIC, data=both, split=SplitRule((60, 40), 1))
    run_study(study, tmp_path / "r", data=data, jobs=1, threads=1, progress=False)
    found = findings(study, tmp_path / "r")
    units = {one.name: one for one in found.units}
    assert set(units) == {"rows: crash", "rows: fire", "binary"}
    assert units["rows: fire"].imbalance_ratio == 6
    assert units["binary"].source == "rows"
    assert units["binary"].test_share == pytest.approx(2 / 3)
    assert len(found.notes) == 2
    assert all("10 rows are copies of others" in note for note in found.notes)


@pytest.mark.parametrize(
    ("entry", "error", "near"),
    [
        (DataSpec("a", "npz", {"path": "no.npz"}), FileNotFoundError, "no.npz"),
        (DataSpec("a", "npz", {"path": "rows.npz", "grup": "event"}), ParameterError, "'group'"),
        (DataSpec("a", "npz", {"path": "rows.npz", "label": "Y"}), DataError, "'Y'"),
        (DataSpec("a", "file", {"path": "texts.csv", "text": "txt"}), DataError, "'txt'"),
        (spec(drop=("crush",)), ParameterError, "'crash'"),
        (spec(binary="crush"), LabelError, "'crash'"),
        (spec(report=("crush",)), ParameterError, "'crash'"),
        (DataSpec("a", "npz", {"path": "single.npz"}), LabelError, "class b"),
    ],
)
def test_data_that_cannot_be_used_stops_the_study_before_it_computes(
    data, tmp_path, entry, error, near
):
    np.savez(data / "single.npz", X=np.zeros((6, 2)), y=["a"] * 5 + ["b"])
    study = small(LOGISTIC, data=(entry,))
    with pytest.raises(error) as caught:
        run_study(study, tmp_path / "r", data=data, jobs=1, progress=False)
    assert near in str(caught.value)
    assert not (tmp_path / "r" / "results.sqlite").exists()
