"""The performance suite: its pieces compute the right thing, at tiny sizes and without timing."""

import pkgutil
from importlib import import_module
from pathlib import Path

import benchmarks
import numpy as np
import pytest
import torch
from benchmarks.speed import layer, page, step, suite
from benchmarks.speed.growth import power_law
from benchmarks.speed.made import dense_chunks, dense_rows, sparse_rows
from benchmarks.speed.parts import classes, growth

from setconv.classifier import SetConvClassifier
from setconv.nn.layer import SetConv
from setconv.presets import PAPER

DOCS = Path(__file__).resolve().parents[2] / "docs"


def here(function, *arguments):
    """Stand in for a process of its own."""
    return function(*arguments)


def test_every_script_can_be_imported():
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


def test_each_form_of_the_layer_is_the_layer_and_so_are_its_gradients():
    generator = torch.Generator().manual_seed(0)
    module = SetConv(4, 3, generator=generator).double()
    torch.nn.init.normal_(module.attention, generator=generator)
    rows, anchor = torch.randn(6, 4, generator=generator, dtype=torch.float64).split([5, 1])
    expected = module(rows, anchor[0])
    gradients = torch.autograd.grad(expected.square().sum(), module.parameters())
    for form in layer.FORMS.values():
        found = form(module, rows, anchor[0])
        torch.testing.assert_close(found, expected)
        ours = torch.autograd.grad(found.square().sum(), module.parameters())
        torch.testing.assert_close(ours, gradients)


@pytest.mark.parametrize(
    ("given", "n_classes", "expected"),
    [
        ({}, 2, ([384, 256, 256], 4 * (64 + 2 * 8), 5)),
        ({}, 8, ([384, 256, 8 * 256], 2 * (64 + 8 * 8), 5)),
        (PAPER, 8, ([384, 256], 64 + 2, 8)),
    ],
)
def test_the_products_of_a_step_are_those_of_its_rows_and_members(given, n_classes, expected):
    assert step.product_shape(SetConvClassifier(**given), 10_000, 384, n_classes) == expected


def test_made_rows_have_the_shares_of_classes_and_the_non_zeros_that_were_asked_for():
    X, y = dense_rows(5000, 6, (3, 1, 1))
    assert np.bincount(y).tolist() == [3000, 1000, 1000]
    parts, _ = zip(*dense_chunks(5000, 6, (3, 1, 1)), strict=True)
    np.testing.assert_array_equal(np.concatenate(parts), X)
    assert (np.diff(sparse_rows(500, 3000, 20)[0].indptr) == 20).all()


def test_parts_run_and_growth_is_a_power_law():
    assert power_law([10, 100, 1000], [3 * n**1.5 for n in (10, 100, 1000)]) == pytest.approx(
        (3, 1.5)
    )
    one = growth.QUICK.series["members"]
    small = one._replace(problem=one.problem._replace(rows=80, features=4, steps=1))
    found = growth.run(growth.Sizes({"members": small}, turns=1), here)
    assert [point[0] for point in found["members"]["points"]] == [1, 2]
    assert classes.run(classes.Sizes(120, 101, 3, 1, 1, 1), here)["many_fit"] > 0


def test_the_published_page_is_that_of_the_published_results():
    results = suite.read(DOCS / page.FOLDER / page.RESULTS)
    assert page.render(results) == (DOCS / page.PAGE).read_text(encoding="utf-8")
