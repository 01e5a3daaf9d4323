"""Findings with given or made-up numbers, for the tests of tables, figures and the page."""

import json

import numpy as np
import pandas as pd

from setconv.experiment.results import Findings, Unit
from setconv.experiment.runner import library_version
from setconv.experiment.study import DataSpec, MethodSpec, Study

METRICS = ("f1", "g_mean", "auc", "specificity", "sensitivity")
HOSTILE = "</script><img src=x onerror=\"window.flag=1\"> & 'q' $x_1$ \\textbf{b} 100%"
NASTY = r"a_b & 50% {x} \input{y} $z$ #1 ~^ <b>|</b> [q] *r* `s` &amp; é"
VERSIONS = {"python": "3.11.7", "numpy": "2.1.0", "setconv": library_version()}
_SCORES = ["unit", "method", "metric", "split", "value", "curve", "setting"]
_CELLS = ["dataset", "method", "split", "status", "error", "seconds", "peak_mb"]


def unit(name, dataset=None, source=None, ratio=5.0):
    return Unit(name, dataset or name, "rare", ratio, 2000, source or dataset or name, 3 / 7)


def noisy(level, seed, n=10, spread=0.01):
    return (level + spread * np.random.default_rng(seed).normal(size=n)).tolist()


def cells(rows):
    """Rows of dataset, method, split, status, error, seconds and MB."""
    told = {"started": "2024-01-01T00:00:00+00:00", "versions": json.dumps(VERSIONS)}
    return pd.DataFrame(rows, columns=_CELLS).assign(**told, notes="{}")


def made(
    scores,
    units=("A",),
    metrics=("f1",),
    methods=("ours", "other"),
    ours=(),
    curves=(),
    done=(),
    title="A small study",
    about="What it is about.",
    published=None,
    **others,
):
    """Return findings of {(unit, method, metric): values by split}.

    ``curves`` has rows of curve, unit, method, metric, split, setting and value.
    """
    units = tuple(one if isinstance(one, Unit) else unit(one) for one in units)
    rows = [
        (*key, split, value, "", np.nan)
        for key, values in scores.items()
        for split, value in enumerate(values)
    ]
    rows += [(*of, split, value, curve, at) for curve, *of, split, at, value in curves]
    return Findings(
        study=Study(
            "small",
            tuple(DataSpec(name, "npz") for name in dict.fromkeys(one.dataset for one in units)),
            tuple(MethodSpec(one, ours=one in ours) for one in methods),
            title=title,
            about=about,
            metrics=tuple(metrics),
            published=published,
        ),
        units=units,
        scores=pd.DataFrame(rows, columns=_SCORES).astype({"value": float, "curve": object}),
        cells=cells(done),
        **{"command": "setconv experiment run small", **others},
    )


def made_up(
    n_units=3,
    methods=("SetConv", "SetConv (PAPER)", "IHT", "CS-DMLP"),
    metrics=METRICS,
    units=None,
    settings=(),
    n_splits=4,
    failed=(),
    **others,
):
    """Return findings in which a method is about equally good everywhere."""
    units = units or [unit(f"unit {i}", ratio=2.5 + 3.75 * i) for i in range(n_units)]
    rng = np.random.default_rng(0)
    splits = range(n_splits)

    def draw(method):
        level = 0.85 - 0.03 * methods.index(method)
        return float(np.clip(rng.normal(level, 0.02), 0.01, 0.999))

    scores = {
        (one.name, method, metric): [draw(method) for _ in splits]
        for one in units
        for method in methods
        if (one.dataset, method) not in failed
        for metric in metrics
    }
    curves = [
        ("post_size", units[0].name, method, metric, split, setting, draw(method))
        for method in methods
        for metric in metrics[:3]
        for split in splits
        for setting in settings
    ]
    done = [
        (one.dataset, method, split, "error", "ValueError: no rows <b>", 1.0, 100.0)
        if (one.dataset, method) in failed
        else (one.dataset, method, split, "ok", "", 20.0 + split, 100.0)
        for one in units
        for method in methods
        for split in splits
    ]
    ours = others.pop("ours", methods[:2])
    return made(scores, units, metrics, methods, ours, curves, done, **others)
