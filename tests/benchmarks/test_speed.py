"""The performance suite: its pieces compute the right thing, at tiny sizes and without timing."""

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.dummy import DummyClassifier

from setconv.classifier import SetConvClassifier
from setconv.nn.layer import SetConv
from setconv.presets import PAPER

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed import (
    fits,
    layer,
    machine,
    page,
    step,
    suite,
    tables,
)
from benchmarks.speed.made import Rows
from benchmarks.speed.parts import classes, disk, growth, limit
from benchmarks.speed.targets import TARGETS


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


def test_each_form_of_the_layer_is_the_layer_and_so_are_its_gradients():
    generator = torch.Generator().manual_seed(0)
    module = SetConv(4, 3, generator=generator).double()
    torch.nn.init.normal_(module.attention, generator=generator)
    rows = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    anchor = torch.randn(4, generator=generator, dtype=torch.float64)
    expected = module(rows, anchor)
    gradients = torch.autograd.grad(expected.square().sum(), module.parameters())
    for form in layer.FORMS.values():
        found = form(module, rows, anchor)
        torch.testing.assert_close(found, expected)
        ours = torch.autograd.grad(found.square().sum(), module.parameters())
        torch.testing.assert_close(ours, gradients)


# ---------------------------------------------------------------------------------- bare products


def test_a_default_step_draws_support_and_queries_of_each_class_for_each_member():
    shape = step.product_shape(SetConvClassifier(), rows=10_000, features=384, classes=2)
    assert shape == ([384, 256, 256], 4 * (64 + 2 * 8), 5)
    shape = step.product_shape(SetConvClassifier(), rows=10_000, features=384, classes=8)
    assert shape == ([384, 256, 8 * 256], 2 * (64 + 8 * 8), 5)
    shape = step.product_shape(SetConvClassifier(**PAPER), rows=10_000, features=384, classes=8)
    assert shape == ([384, 256], 64 + 2, 8)


# ------------------------------------------------------------------------------------------ growth


def test_a_series_is_a_table_of_value_seconds_and_gigabytes():
    one = growth.QUICK.series["members"]
    small = one._replace(problem=one.problem._replace(rows=80, features=4, steps=1))
    found = growth.run(growth.Sizes({"members": small}, turns=1), here)
    assert [point[0] for point in found["members"]["points"]] == [1, 2]
    assert all(seconds > 0 <= held for _, seconds, held in found["members"]["points"])


# ------------------------------------------------------------------------------------ measurements


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


def test_limit_and_classes_measure_what_their_tables_show():
    small = limit.Sizes(80, (101,), (2, 1), 1, 300, 101, 1, 40, 3, 1)
    found = limit.run(small, here)
    assert "| d=101, 2 members |" in tables.steps(found)
    assert min(*found["prediction"].values(), *found["small"].values()) > 0
    found = classes.run(classes.Sizes(120, 101, 3, 1, 1, 1), here)
    assert "| 2 classes | 3 classes |" in tables.classes(found)


# ------------------------------------------------------------------------------------------- page


def test_targets_and_page_have_the_figures_of_the_results():
    lines = {what: rest for what, *rest in (target.line(results()["parts"]) for target in TARGETS)}
    ratio = lines["a default training step at d=384, of its products"]
    assert ratio == ["1.50x", "at most 2.30x", "yes"]
    slow = lines["8 classes one-vs-all at d=1024, of a binary fit"]
    assert slow == ["3.10x", "at most 3.00x", "**no**"]
    assert lines["largest difference of scores, disk and memory"][0] == "3e-06"
    assert TARGETS[0].line({}) == [TARGETS[0].what, "", "", "not measured"]
    text = page.render(results())
    assert "| d=1024, 5 members | 30 ms | 20 ms | 1.50x | 5.00x |" in text
    assert "| LightGBM | 2.50x | 5 s | 0.50 GB | 1.00x | 0.1 s | 0.25 GB | 0.800 |" in text
    assert "| non-zeros | 100 to 10,000 | 0.75 | 0.75 | 1.00 | 1.00 |" in text
    assert "results of a quick run" in page.render({**results(), "quick": True})


def test_every_plot_is_in_the_page(tmp_path):
    path = tmp_path / page.FOLDER / page.RESULTS
    path.parent.mkdir(parents=True)
    suite.write(results(), path)
    page.write(suite.read(path), tmp_path)
    text = (tmp_path / page.PAGE).read_text(encoding="utf-8")
    plots = [str(plot.relative_to(tmp_path)) for plot in tmp_path.rglob("*.svg")]
    assert len(plots) == 3
    assert all(f"]({plot})" in text for plot in plots)
