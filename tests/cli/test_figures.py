"""The figures that the commands print, computed again from what the model says of each row."""

import csv
import io
import json
import math

import numpy as np
import pytest
from plain_intervals import plain_intervals
from printed import read_intervals, read_table
from sklearn import metrics
from user_files import write_csv

import setconv as library
from setconv.io.records import open_records
from setconv.metrics.report import WHY_NOT_THE_LARGEST


def figures(truth, predicted, score, weight=None):
    """Return the same figures of one class against the rest, by scikit-learn."""
    kept = {"sample_weight": weight}
    two = len(set(truth)) == 2
    spec = metrics.recall_score(~truth, ~predicted, zero_division=np.nan, **kept)
    sens = metrics.recall_score(truth, predicted, zero_division=np.nan, **kept)
    return [
        spec,
        sens,
        metrics.precision_score(truth, predicted, zero_division=0, **kept) if two else math.nan,
        metrics.f1_score(truth, predicted, zero_division=0, **kept) if two else math.nan,
        math.sqrt(spec * sens),
        metrics.roc_auc_score(truth, score, **kept) if two else math.nan,
        metrics.average_precision_score(truth, score, **kept) if two else math.nan,
    ]


NAMES = ("specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision")


def same(found, expected):
    assert found.keys() == expected.keys()
    for label, values in expected.items():
        assert found[label] == pytest.approx(values, abs=5.1e-4, nan_ok=True), label


def expected_of(setconv, model, path, prior=None, options=()):
    """Return the figures of each class from what `setconv predict` writes."""
    rows = list(csv.DictReader(io.StringIO(setconv("predict", model, path, *options).out)))
    truth, predicted = (np.array([row[n] for row in rows]) for n in ("kind", "predicted_label"))
    with open_records(path) as reader:
        scores = library.load(model).predictions(reader.read()).scores
    classes = library.load(model).classes_.tolist()
    by_class = scores.T if scores.ndim == 2 else np.array([-scores, scores])
    weight = None
    if prior is not None:
        weight = np.array([prior[label] / np.mean(truth == label) for label in truth])
    return {
        label: figures(truth == label, predicted == label, score, weight)
        for label, score in zip(classes, by_class, strict=True)
    }


def write_kinds(path, counts, seed):
    """Write rows of several kinds that overlap; the first row is the first kind's."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, (kind, count) in enumerate(counts.items()):
        values = rng.normal(0.9 * place, 1, (count, 2))
        rows += [[f"{x:.4f}", f"{-y:.4f}", kind] for x, y in values]
    return write_csv(path, rows, ("x", "y", "kind"))


def fit_kinds(setconv, place, counts, seed):
    """Return a model, what its fit printed, and a file that it has not seen."""
    train = write_kinds(place / "train.csv", counts, seed)
    done = setconv("fit", train, "--label", "kind", "-o", place / "model")
    return place / "model", done, write_kinds(place / "test.csv", counts, seed + 1)


@pytest.fixture(scope="module")
def two(setconv, tmp_path_factory):
    return fit_kinds(setconv, tmp_path_factory.mktemp("two"), {"a": 120, "b": 25}, 0)


@pytest.fixture(scope="module")
def three(setconv, tmp_path_factory):
    return fit_kinds(setconv, tmp_path_factory.mktemp("three"), {"a": 120, "b": 40, "c": 25}, 2)


# ------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("name", ["two", "three"])
def test_fit_prints_the_figures_of_the_out_of_fold_rows(request, name):
    folder, done, _ = request.getfixturevalue(name)
    model = library.load(folder)
    found = model.predict_out_of_fold()
    # 25 rows of the rarest class, none missed: what is missed in one of ten samples at most.
    assert f"25 rows of {model.classes_[-1].item()!r} can promise a recall of at most" in done.err
    assert f"{0.1 ** (1 / 25):.3f} and a precision" in " ".join(done.err.split())
    scores = found.scores.T if found.scores.ndim == 2 else np.array([-found.scores, found.scores])
    expected = {
        label: figures(found.truth == label, found.labels == label, score)
        for label, score in zip(model.classes_.tolist(), scores, strict=True)
    }
    same(read_table(done.out), expected)
    for c, (label, score) in enumerate(zip(model.classes_.tolist(), scores, strict=True)):
        codes = np.searchsorted(model.classes_, found.truth)
        chances = found.probabilities[:, c]
        right = plain_intervals(codes, c, found.labels == label, score, chances)
        for name, bounds in zip(NAMES, read_intervals(done.out)[label], strict=True):
            assert bounds == pytest.approx(right[name], abs=5.1e-4)
    basis = f"Thresholds rest on: {len(found)} out-of-fold rows."
    assert done.out.splitlines()[-2:] == [basis, WHY_NOT_THE_LARGEST]


def test_what_cannot_be_judged_is_said_below_the_figures(start_anew, tmp_path):
    rows = [
        [f"{x:.3f}", "b" if n < 12 else "a", "one" if n < 12 else n % 9]
        for n, x in enumerate(np.random.default_rng(0).normal(size=60))
    ]
    path = write_csv(tmp_path / "groups.csv", rows, ("x", "kind", "group"))
    options = ("--label", "kind", "--group", "group", "-o", tmp_path / "model")
    done = start_anew("fit", path, *options)
    found = library.load(tmp_path / "model").predict_out_of_fold()
    assert set(found.truth) == {"a"}
    sens = np.mean(found.labels == "a")
    nothing = [math.nan] * 5
    same(read_table(done.out), {"a": [math.nan, sens, *nothing], "b": [math.nan] * 7})
    said = "'b' is not judged: all its rows are in one group."
    assert said in done.out.splitlines()
    assert said in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "'b' (all its rows are in one group)" in done.err
    assert ".py" not in done.err


# -------------------------------------------------------------------------------------- evaluate


@pytest.mark.parametrize("name", ["two", "three"])
def test_evaluate_prints_the_figures_of_the_rows(request, setconv, name):
    model, _, test = request.getfixturevalue(name)
    done = setconv("evaluate", model, test, "--label", "kind")
    same(read_table(done.out), expected_of(setconv, model, test))
    assert done.out.splitlines()[-1] == WHY_NOT_THE_LARGEST


@pytest.mark.parametrize("objective", ["balanced", "f1"])
def test_with_a_prior_the_figures_are_of_rows_weighted_to_it(setconv, two, objective):
    model, _, test = two
    options = ("--prior", "0.02", "--objective", objective)
    prior = {"a": 0.98, "b": 0.02}
    done = setconv("evaluate", model, test, *options)
    expected = expected_of(setconv, model, test, prior, options)
    same(read_table(done.out), expected)
    # By hand: the precision of a class of 2 %.
    spec, sens, precision = expected["b"][:3]
    assert precision == pytest.approx(0.02 * sens / (0.02 * sens + 0.98 * (1 - spec)))
    assert "weighted to the prevalence that was set (a 0.98, b 0.02)" in done.out
    facts = json.loads(setconv("evaluate", model, test, "--json", *options).out)
    assert facts["prior"] == pytest.approx(prior)
    assert facts["report"]["per_class"][1]["precision"] == pytest.approx(precision)


def test_a_prior_that_was_saved_with_the_model_counts(setconv, three, tmp_path):
    shares, model = {"a": 0.7, "b": 0.2, "c": 0.1}, tmp_path / "model"
    library.load(three[0]).set_prior(shares).save(model)
    done = setconv("evaluate", model, three[2])
    same(read_table(done.out), expected_of(setconv, model, three[2], shares))


def test_a_file_without_the_rare_class_has_no_figures_of_it(setconv, two, tmp_path):
    test = write_kinds(tmp_path / "test.csv", {"a": 60}, 4)
    done = setconv("evaluate", two[0], test)
    found, expected = read_table(done.out), expected_of(setconv, two[0], test)
    assert math.isnan(found["b"][1])
    assert found["b"][0] == pytest.approx(expected["b"][0], abs=5.1e-4)
    assert found["a"][1] == pytest.approx(expected["a"][1], abs=5.1e-4)
    assert all(math.isnan(found[c][place]) for c in "ab" for place in (4, 5))
    assert "There is no row" not in done.out
    # A file that lacks a class cannot be weighted to a prevalence.
    weighted = setconv("evaluate", two[0], test, "--prior", "0.02")
    assert read_table(weighted.out)["a"][1] == found["a"][1]
    assert "There is no row of 'b'" in weighted.out
    assert "weighted to the prevalence" not in weighted.out
