"""The performance suite: its pieces compute the right thing, at tiny sizes and without timing."""

import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score

from setconv.classifier import SetConvClassifier
from setconv.nn.layer import SetConv
from setconv.presets import PAPER

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed import (
    figures,
    fits,
    layer,
    machine,
    page,
    prediction,
    step,
    suite,
    tables,
    timing,
)
from benchmarks.speed.growth import exponent, power_law
from benchmarks.speed.made import Rows, band_edges, dense_chunks, dense_rows, sparse_rows
from benchmarks.speed.mlp import PlainMLP
from benchmarks.speed.parts import classes, disk, growth, limit, peers
from benchmarks.speed.processes import Processes, forget_peak, held_gigabytes, peak_gigabytes
from benchmarks.speed.targets import TARGETS, Target


def here(function, *arguments):
    """Stand in for a process of its own."""
    return function(*arguments)


def costs(fit=2.0, auc=0.9):
    return {
        "fit": fit,
        "fit_peak": 1.5,
        "fit_added": 0.5,
        "predict": 0.1,
        "predict_peak": 1.2,
        "predict_added": 0.25,
        "auc": auc,
    }


def series(power):
    points = [[10.0**n, 0.5 * 10.0 ** (n * power), 0.1 * 10.0**n] for n in (2, 3, 4)]
    return {"points": points, "rest": {"features": 384, "non_zeros": 60}}


def results():
    methods = {"SetConv": costs(), "LightGBM": costs(fit=5.0, auc=0.8)}
    paper = {"step": 0.002, "products": 0.001}
    return {
        "quick": False,
        "machine": machine.describe(),
        "parts": {
            "limit": {
                "steps": [
                    {"features": d, "members": members, "step": 0.03, "products": 0.02}
                    for d in (384, 1024)
                    for members in (5, 1)
                ],
                "prediction": {"rows": 1000, "features": 384, "predict": 1.6, "products": 1.0},
                "small": {"rows": 200, "features": 10, "first": 1.8, "median": 1.2},
            },
            "authors": {
                "layer": {
                    **{"rows": 64, "features": 1024, "out": 128, "difference": 1e-9},
                    **{"ours": 0.001, "printed": 0.06, "authors": 0.09},
                },
                "step": {"ours": 0.004, "literal": 0.08, "cap": 0.002},
            },
            "peers": {
                "rows": 100,
                "new": 50,
                "tables": [{"features": 384, "methods": methods}],
            },
            "growth": {"non-zeros": series(0.75), "sparse columns": series(0.125)},
            "classes": {
                **{"rows": 100, "features": 1024, "classes": 8, "binary_fit": 10.0},
                **{"many_fit": 31.0, "binary_paper": paper, "many_paper": paper},
            },
            "sparse": {
                **{"rows": 100, "columns": 1000, "non_zeros": 60, "new": 50},
                "methods": methods,
            },
            "disk": {
                **disk.FULL._asdict(),
                "gigabytes": 6.1,
                "disk": {"step": 0.09, "fit": 90, "fit_peak": 1.4, "predict": 60}
                | {"predict_peak": 1.3},
                "memory": {"step": 0.06, "fit": 40, "fit_peak": 2.0},
                "difference": 3e-6,
            },
            "start": {
                **{"python": 0.02, "libraries": 2.0, "package": 0.1, "classifier": 0.2},
                "help": 0.4,
            },
        },
    }


# --------------------------------------------------------------------------------- literal forms


@pytest.mark.parametrize("name", layer.FORMS)
def test_each_form_of_the_layer_is_the_sum_of_the_paper(name):
    generator = torch.Generator().manual_seed(0)
    module = SetConv(4, 3, generator=generator).double()
    torch.nn.init.normal_(module.attention, generator=generator)
    rows = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    anchor = torch.randn(4, generator=generator, dtype=torch.float64)
    (g1,) = module.g1
    weight, bias, scores = (one.detach().numpy() for one in (g1.weight, g1.bias, module.attention))
    attention = np.exp(scores) / np.exp(scores).sum(axis=0)
    expected = np.zeros(3)
    for x in rows.numpy():
        for o in range(3):
            kernel = ((anchor.numpy() - x) @ weight[:, o] + bias[o]) * attention[:, o]
            expected[o] += x @ kernel / len(rows)
    found = layer.FORMS[name](module, rows, anchor)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def test_all_forms_of_the_layer_have_the_same_gradients():
    generator = torch.Generator().manual_seed(0)
    module = SetConv(4, 3, generator=generator).double()
    rows = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    found = []
    for form in layer.FORMS.values():
        module.zero_grad()
        form(module, rows, torch.ones(4, dtype=torch.float64)).square().sum().backward()
        found.append([parameter.grad.clone() for parameter in module.parameters()])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])


# ---------------------------------------------------------------------------------- bare products


def test_the_products_of_a_step_are_values_and_gradients_of_each_layer():
    shapes = [
        (tuple(a.shape), tuple(b.shape), tuple(buffer.shape))
        for a, b, buffer in step.list_products([7, 5, 4], rows=3, networks=2)
    ]
    assert shapes == [
        ((2, 3, 7), (2, 7, 5), (2, 3, 5)),
        ((2, 7, 3), (2, 3, 5), (2, 7, 5)),
        ((2, 3, 5), (2, 5, 4), (2, 3, 4)),
        ((2, 5, 3), (2, 3, 4), (2, 5, 4)),
        ((2, 3, 4), (2, 4, 5), (2, 3, 5)),
    ]


def test_a_default_step_draws_support_and_queries_of_each_class_for_each_member():
    shape = step.product_shape(SetConvClassifier(), rows=10_000, features=384, classes=2)
    assert shape == ([384, 256, 256], 4 * (64 + 2 * 8), 5)
    shape = step.product_shape(SetConvClassifier(), rows=10_000, features=384, classes=8)
    assert shape == ([384, 256, 8 * 256], 2 * (64 + 8 * 8), 5)


def test_separate_models_have_two_sides_and_products_of_their_own():
    shape = step.product_shape(SetConvClassifier(**PAPER), rows=10_000, features=384, classes=8)
    assert shape == ([384, 256], 64 + 2, 8)


def test_the_products_of_a_prediction_are_those_of_the_fitted_network():
    X, y = dense_rows(300, 101)
    model = SetConvClassifier(max_steps=1, n_members=2, random_state=0).fit(X, y)
    with torch.profiler.profile(record_shapes=True) as profile:
        prediction.bare_products(model, 300)()
    shapes = {(one.name, *map(tuple, one.input_shapes)) for one in profile.events()}
    assert ("aten::mm", (256, 101), (101, 2 * 256), (256, 2 * 256)) in shapes
    assert ("aten::bmm", (2, 256, 256), (2, 256, 256), (2, 256, 256)) in shapes
    assert sum(one.name == "aten::mm" for one in profile.events()) == 2


# ------------------------------------------------------------------------------------------ growth


def test_the_exponent_of_made_costs_is_found():
    sizes = [10, 100, 1000]
    assert exponent(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    assert power_law(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx((3, 1.5))


def test_the_exponent_is_a_least_squares_fit_on_logarithms():
    # Slopes by hand: logarithms (0, 1, 2) against (0, 2, 1).
    assert exponent([1, math.e, math.e**2], [1, math.e**2, math.e]) == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[2.0], [2.0, 0.0], [2.0, math.nan]])
def test_one_known_cost_has_no_exponent(values):
    assert math.isnan(exponent([1, 2][: len(values)], values))


def test_a_series_is_a_table_of_value_seconds_and_gigabytes():
    one = growth.QUICK.series["members"]
    small = one._replace(problem=one.problem._replace(rows=80, features=4, steps=1))
    found = growth.run(growth.Sizes({"members": small}, turns=1), here)
    assert [point[0] for point in found["members"]["points"]] == [1, 2]
    assert all(seconds > 0 <= held for _, seconds, held in found["members"]["points"])
    assert found["members"]["rest"] == {
        **{"rows": 80, "features": 4, "classes": 2, "support": 64, "steps": 1}
    }


# --------------------------------------------------------------------------------------- made rows


def test_dense_rows_have_the_shares_of_their_classes():
    X, y = dense_rows(5000, 6, (3, 1, 1))
    assert X.shape == (5000, 6)
    assert np.bincount(y).tolist() == [3000, 1000, 1000]


def test_chunks_laid_end_to_end_are_the_rows():
    X, y = dense_rows(5000, 6)
    parts, labels = zip(*dense_chunks(5000, 6), strict=True)
    assert [len(part) for part in parts] == [4096, 904]
    np.testing.assert_array_equal(np.concatenate(parts), X)
    np.testing.assert_array_equal(np.concatenate(labels), y)


def test_sparse_rows_have_exactly_the_non_zeros_and_unit_length():
    X, y = sparse_rows(500, 3000, 20)
    assert X.shape == (500, 3000)
    assert (np.diff(X.indptr) == 20).all()
    assert X.has_canonical_format
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)
    assert set(y) == {0, 1}


def test_sparse_columns_get_rarer_and_the_classes_differ_in_some():
    X, y = sparse_rows(4000, 3000, 20)
    seen = np.asarray((X > 0).sum(axis=0)).ravel()
    assert seen[:30].mean() > 5 * seen[-1000:].mean()
    (first, end, *_) = band_edges(3000, 20)
    half = (first + end) // 2
    low = np.asarray((X[:, first:half] > 0).sum(axis=1)).ravel()
    assert low[y == 1].mean() > low[y == 0].mean() + 0.1


def test_too_many_bands_for_the_columns_are_refused():
    with pytest.raises(ValueError, match="too few"):
        sparse_rows(10, 10, 15)


def test_a_folder_of_parquet_files_holds_the_rows_in_order(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    disk.write_rows(tmp_path / "rows", 5000, 3)
    table = dataset.dataset(tmp_path / "rows").to_table()
    X, y = dense_rows(5000, 3)
    assert table.column_names == ["x0000", "x0001", "x0002", "label"]
    np.testing.assert_array_equal(np.column_stack(table.columns[:3]), X)
    np.testing.assert_array_equal(table.column("label"), y)


# ------------------------------------------------------------------------------------ measurements


def test_jobs_take_turns(monkeypatch):
    monkeypatch.setattr(timing, "_TURN", 0)
    calls = []
    found = timing.medians(
        {name: lambda name=name: calls.append(name) for name in "ab"}, 2, warm_up=0
    )
    turns = [name for name, before in zip(calls, [None, *calls], strict=False) if name != before]
    assert turns == ["a", "b", "a", "b"]
    assert set(found) == {"a", "b"}


def test_fresh_processes_are_different_ones_and_a_shared_one_is_not():
    with Processes(fresh=True) as alone:
        assert len({alone(os.getpid), alone(os.getpid), os.getpid()}) == 3
    with Processes(fresh=False) as alone:
        assert alone(os.getpid) == alone(os.getpid) != os.getpid()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say")
def test_a_forgotten_peak_is_what_is_held():
    block = np.ones(40_000_000)
    assert peak_gigabytes() > 0.32
    del block
    forget_peak()
    assert peak_gigabytes() == pytest.approx(held_gigabytes(), abs=0.1)


def test_methods_are_compared_on_the_same_rows_by_medians():
    X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
    made = []

    def make():
        made.append(1)
        return DummyClassifier()

    found = fits.compare({"a": make, "b": DummyClassifier}, lambda: Rows(X, y, X, y), 3, here)
    assert len(made) == 3
    assert list(found) == ["a", "b"]
    assert found["a"]["auc"] == 0.5
    assert set(found["a"]) == set(costs())


def test_the_mlp_learns_and_predicts_classes():
    X, y = dense_rows(1200, 20)
    model = PlainMLP(rows_seen=30_000).fit(X[:800], y[:800])
    assert roc_auc_score(y[800:], model.decision_function(X[800:])) > 0.9
    assert set(model.predict(X[800:])) == {0, 1}


def test_the_mlp_sees_as_many_rows_as_all_members_of_a_default_fit():
    assert peers.rows_seen(SetConvClassifier(), 20_000, 384) == 1000 * 5 * 4 * (64 + 2 * 8)


def test_limit_and_classes_measure_what_their_tables_show():
    small = limit.Sizes(80, (101,), (2, 1), 1, 300, 101, 1, 40, 3, 1)
    found = limit.run(small, here)
    assert "| d=101, 2 members |" in tables.steps(found)
    assert min(*found["prediction"].values(), *found["small"].values()) > 0
    found = classes.run(classes.Sizes(120, 101, 3, 1, 1, 1), here)
    assert "| 2 classes | 3 classes |" in tables.classes(found)


# ------------------------------------------------------------------------------------------- page


def test_every_target_is_computed_from_the_results():
    lines = {what: rest for what, *rest in (target.line(results()["parts"]) for target in TARGETS)}
    assert lines["a default training step at d=384, of its products"] == [
        "1.50x",
        "at most 2.30x",
        "yes",
    ]
    assert lines["the layer, faster than the authors' by"] == ["90.0x", "at least 80.0x", "yes"]
    assert lines["8 classes one-vs-all at d=1024, of a binary fit"] == [
        "3.10x",
        "at most 3.00x",
        "**no**",
    ]
    assert lines["exponent of time by sparse columns, against that by non-zeros"] == [
        "0.12",
        "at most 0.75",
        "yes",
    ]
    assert lines["largest difference of scores, disk and memory"][0] == "3e-06"
    assert [rest[2] for rest in lines.values()].count("**no**") == 2


def test_a_target_of_a_part_that_was_not_run_is_not_measured():
    assert TARGETS[0].line({}) == [TARGETS[0].what, "", "", "not measured"]


@pytest.mark.parametrize(
    ("least", "figure", "holds"),
    [(False, 2.0, "yes"), (False, 2.1, "**no**"), (True, 2.0, "yes"), (True, 1.9, "**no**")],
)
def test_a_target_holds_at_its_bound(least, figure, holds):
    target = Target("what", "part", lambda found: found, 2.0, unit="s", least=least)
    assert target.line({"part": figure})[3] == holds


def test_the_page_has_the_figures_of_the_results_and_names_the_command():
    text = page.render(results())
    assert "python -m benchmarks.speed\n" in text
    assert "| d=1024, 5 members | 30 ms | 20 ms | 1.50x | 5.00x |" in text
    assert "more than 40x" in text  # literal over cap
    assert "| LightGBM | 2.50x | 5 s | 0.50 GB | 1.00x | 0.1 s | 0.25 GB | 0.800 |" in text
    assert "| non-zeros | 100 to 10,000 | 0.75 | 0.75 | 1.00 | 1.00 |" in text
    assert "| `import setconv` after these | 0.05x | 0.10 s |" in text
    assert "quick run" not in text


def test_the_page_of_a_quick_run_says_so():
    assert "results of a quick run" in page.render({**results(), "quick": True})


@pytest.mark.parametrize("name", suite.PARTS)
def test_the_page_is_there_without_a_part(name):
    found = results()
    del found["parts"][name]
    assert page.render(found) != page.render(results())


def test_the_same_results_give_the_same_files_and_every_plot_is_in_the_page(tmp_path):
    for folder in ("a", "b"):
        path = tmp_path / folder / page.FOLDER / page.RESULTS
        path.parent.mkdir(parents=True)
        suite.write(results(), path)
        page.write(suite.read(path), tmp_path / folder)
    files = [
        {path.relative_to(tmp_path / folder): path.read_bytes() for path in sorted(found)}
        for folder in ("a", "b")
        if (found := [p for p in (tmp_path / folder).rglob("*") if p.is_file()])
    ]
    assert files[0] == files[1]
    text = (tmp_path / "a" / page.PAGE).read_text(encoding="utf-8")
    plots = [str(path) for path in files[0] if path.suffix == ".svg"]
    assert len(plots) == 3
    assert all(f"]({plot})" in text for plot in plots)


def test_plots_have_text_and_the_exponent():
    (content,) = figures.growth_files({"non-zeros": series(0.75)}).values()
    assert b"exponent 0.75" in content
    assert b"Gigabytes" in content


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.012x"), (0.5, "0.50x"), (9.987, "9.99x"), (58.33, "58.3x"), (1234.5, "1,234x")],
)
def test_ratios_have_three_digits(value, text):
    assert tables.times(value, 1) == text


# ------------------------------------------------------------------------------------------- suite


def test_results_are_kept_in_the_order_of_the_parts_to_four_digits(tmp_path):
    path = tmp_path / "results.json"
    suite.write({"parts": {"start": {"help": 1 / 3}, "limit": {"n": 12345, "x": [1.23456]}}}, path)
    found = suite.read(path)["parts"]
    assert list(found) == ["limit", "start"]
    assert found == {"limit": {"n": 12345, "x": [1.235]}, "start": {"help": 0.3333}}


def test_parts_are_not_mixed_with_those_of_another_machine(tmp_path):
    path = tmp_path / "results.json"
    suite.write({**results(), "machine": {"cores": 64}}, path)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="another machine"):
        suite.run(["start"], path, quick=False)
    assert path.read_bytes() == before


def test_a_part_that_fails_is_named_and_the_others_are_kept(tmp_path, monkeypatch, capsys):
    def found(sizes, alone):
        return {"alone": alone(max, 1, 2), "sizes": sizes}

    def fails(*_):
        raise ZeroDivisionError

    for name, run in (("limit", fails), ("start", found)):
        part = SimpleNamespace(QUICK="quick", FULL="full", run=run)
        monkeypatch.setitem(sys.modules, f"benchmarks.speed.parts.{name}", part)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    path = tmp_path / "results.json"
    assert suite.run(["limit", "start"], path, quick=True) == ["limit"]
    assert suite.read(path)["parts"] == {"start": {"alone": 2, "sizes": "quick"}}
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_threads_of_other_libraries_are_those_of_torch(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    machine.limit_threads()
    assert os.environ["OPENBLAS_NUM_THREADS"] == str(machine.THREADS)
