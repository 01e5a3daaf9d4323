"""Findings with made-up numbers, for the tests of figures and of the page."""

import json

import numpy as np
import pandas as pd

from setconv.experiment.results import Findings, Unit

METRICS = ("f1", "g_mean", "auc", "specificity", "sensitivity")
HOSTILE = "</script><img src=x onerror=\"window.flag=1\"> & 'q' $x_1$ \\textbf{b} 100%"
VERSIONS = {"python": "3.11.7", "numpy": "2.1.0", "setconv": "0.1"}


def make_unit(number, name=None, source=None):
    name = name or f"unit {number}"
    ratio = 2.5 + 3.75 * number
    return Unit(name, name, "rare", ratio, 1000 * (number + 1), source or name, 3 / 7)


def make_findings(
    n_units=3,
    methods=("SetConv", "SetConv (PAPER)", "IHT", "CS-DMLP"),
    ours=("SetConv", "SetConv (PAPER)"),
    n_splits=4,
    metrics=METRICS,
    units=None,
    settings=(),
    published=(),
    failed=(),
    seed=0,
    **others,
):
    """Return findings in which a method is about equally good everywhere."""
    rng = np.random.default_rng(seed)
    units = tuple(units or (make_unit(number) for number in range(n_units)))
    splits = range(n_splits)
    level = {method: 0.85 - 0.03 * place for place, method in enumerate(methods)}

    def draw(method, metric, sd=0.02):
        shift = {"f1": -0.2, "specificity": 0.05, "auc": 0.08}.get(metric, 0.0)
        return float(np.clip(level[method] + shift + rng.normal(0, sd), 0.01, 0.999))

    failures = set(failed)
    scores = [
        (unit.name, method, split, metric, draw(method, metric))
        for unit in units
        for method in methods
        if (unit.dataset, method) not in failures
        for split in splits
        for metric in metrics
    ]
    curves = [
        ("post_size", unit.name, method, split, metric, setting, draw(method, metric))
        for unit in units[:1]
        for method in methods
        for split in splits
        for metric in metrics[:3]
        for setting in settings
    ]
    cells = [
        (
            unit.dataset,
            method,
            split,
            "error" if (unit.dataset, method) in failures else "ok",
            "ValueError: no rows <b>" if (unit.dataset, method) in failures else "",
            float(rng.gamma(2, 10)),
            float(rng.uniform(100, 900)),
            "2024-01-01T00:00:00+00:00",
            json.dumps(VERSIONS),
            json.dumps([]),
        )
        for unit in {one.dataset: one for one in units}.values()
        for method in methods
        for split in splits
    ]
    given = {
        "name": "made-up",
        "title": "A made-up study",
        "about": "Numbers that nobody measured.",
        "command": "setconv experiment run made-up",
        "missing": 0,
        **others,
    }
    return Findings(
        methods=tuple(methods),
        ours=tuple(ours),
        metrics=tuple(metrics),
        units=units,
        scores=pd.DataFrame(scores, columns=["unit", "method", "split", "metric", "value"]),
        curves=pd.DataFrame(
            curves,
            columns=["curve", "unit", "method", "split", "metric", "setting", "value"],
        ),
        published=pd.DataFrame(
            list(published), columns=["unit", "method", "metric", "mean", "deviation"]
        ),
        cells=pd.DataFrame(
            cells,
            columns=[
                *("dataset", "method", "split", "status", "error"),
                *("seconds", "peak_mb", "started", "versions", "notes"),
            ],
        ),
        **given,
    )
