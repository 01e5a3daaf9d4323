"""The tables of the page, from the results of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.quality.markdown import table
from benchmarks.speed.growth import exponent
from benchmarks.speed.targets import TARGETS

OURS = "SetConv"


def targets(parts: dict[str, Any]) -> str:
    return table(["what", "reached", "target", "holds"], [target.line(parts) for target in TARGETS])


def steps(limit: dict[str, Any]) -> str:
    alone = {one["features"]: one["step"] for one in limit["steps"] if one["members"] == 1}
    rows = [
        [
            f"d={one['features']}, {_count(one['members'], 'member')}",
            milliseconds(one["step"]),
            milliseconds(one["products"]),
            times(one["step"], one["products"]),
            times(one["members"] * alone[one["features"]], one["step"]),
        ]
        for one in limit["steps"]
    ]
    head = ["a training step", "step", "its products", "ratio", "members in turn, of together"]
    return table(head, rows)


def forms(authors: dict[str, Any]) -> str:
    layer, step = authors["layer"], authors["step"]
    rows = [
        ["the layer, kernel as outer products (the authors' code)"],
        ["the layer, kernel by broadcasting (as printed)"],
        ["a training step of `REFERENCE` (the authors' code)"],
    ]
    pairs = [
        (layer["authors"], layer["ours"]),
        (layer["printed"], layer["ours"]),
        (step["literal"], step["ours"]),
    ]
    filled = [
        [*row, milliseconds(literal), milliseconds(ours), times(literal, ours)]
        for row, (literal, ours) in zip(rows, pairs, strict=True)
    ]
    return table(["what", "literal", "ours", "faster by"], filled)


def methods(found: dict[str, dict[str, float]], base: str = OURS) -> str:
    """Return the costs of methods on the same rows, with ratios to one of them."""
    rows = [
        [
            name,
            times(costs["fit"], found[base]["fit"]),
            seconds(costs["fit"]),
            gigabytes(costs["fit_added"]),
            times(costs["predict"], found[base]["predict"]),
            seconds(costs["predict"]),
            gigabytes(costs["predict_added"]),
            f"{costs['auc']:.3f}",
        ]
        for name, costs in found.items()
    ]
    fit = [f"fit, of {base}'s", "fit", "fit adds"]
    predict = [f"prediction, of {base}'s", "prediction", "prediction adds"]
    return table(["method", *fit, *predict, "AUC"], rows)


def exponents(growth: dict[str, Any]) -> str:
    rows = []
    for name, series in growth.items():
        sizes, *costs = _columns(series["points"])
        fitted = [_power(sizes, one) for one in costs]
        last = [_power(sizes[-2:], one[-2:]) for one in costs]
        span = f"{sizes[0]:,.0f} to {sizes[-1]:,.0f}"
        rows.append([name, span, fitted[0], last[0], fitted[1], last[1]])
    head = ["size", "from, to", "time", "at the end", "memory", "at the end"]
    return table(head, rows)


def time_exponent(growth: dict[str, Any], name: str) -> str:
    sizes, spent, _ = _columns(growth[name]["points"])
    return _power(sizes, spent)


def points(name: str, series: dict[str, Any]) -> str:
    rows = [
        [f"{size:,.0f}", times(cost, series["points"][0][1]), seconds(cost), gigabytes(held)]
        for size, cost, held in series["points"]
    ]
    return table([name, "of the first", "seconds", "gigabytes"], rows)


def classes(found: dict[str, Any]) -> str:
    two, many = found["binary_paper"], found["many_paper"]
    ratio = times(found["many_fit"], found["binary_fit"])
    rows = [
        [
            "a default fit, shared encoder",
            seconds(found["binary_fit"]),
            seconds(found["many_fit"]),
            ratio,
        ],
        [
            "a step of `PAPER`, separate models",
            milliseconds(two["step"]),
            milliseconds(many["step"]),
            times(many["step"], two["step"]),
        ],
        [
            "its bare products",
            milliseconds(two["products"]),
            milliseconds(many["products"]),
            times(many["products"], two["products"]),
        ],
        [
            "step, of products",
            times(two["step"], two["products"]),
            times(many["step"], many["products"]),
            "",
        ],
    ]
    return table(["what", "2 classes", f"{found['classes']} classes", "ratio"], rows)


def thresholds(found: dict[str, Any]) -> str:
    rows = [
        [name, *(f"{seconds(one)} ({times(one, found[key][0])})" for one in found[key])]
        for name, key in (("thresholds", "choose"), ("`set_objective`", "move"))
    ]
    return table(["what", *(f"{classes} classes" for classes in found["classes"])], rows)


def disk(found: dict[str, Any]) -> str:
    on_disk, in_memory = found["disk"], found["memory"]
    rows = [
        [
            f"{found['rows']:,} rows on disk",
            times(on_disk["step"], in_memory["step"]),
            milliseconds(on_disk["step"]),
            seconds(on_disk["fit"]),
            gigabytes(on_disk["fit_peak"]),
            seconds(on_disk["predict"]),
            gigabytes(on_disk["predict_peak"]),
        ],
        [
            f"{found['in_memory']:,} rows in memory",
            times(1, 1),
            milliseconds(in_memory["step"]),
            seconds(in_memory["fit"]),
            gigabytes(in_memory["fit_peak"]),
            "",
            "",
        ],
    ]
    head = ["rows", "step, of memory's", "step", "fit", "peak", "predictions written", "peak"]
    return table(head, rows)


def bounds(found: dict[str, Any]) -> str:
    rows = [
        [
            columns,
            f"{one['rows']:,}",
            seconds(one["fit"]),
            gigabytes(one["fit_peak"]),
            seconds(one["predict"]),
            gigabytes(one["predict_peak"]),
            f"{one['model']:.1f} MB",
        ]
        for columns, pair in found["columns"].items()
        for one in pair.values()
    ]
    return table(["columns", "rows", "fit", "peak", "predictions", "peak", "model file"], rows)


def encode(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{name}, {one['tokens']:.0f} tokens on average",
            times(one["fixed"], one["batches"]),
            *(f"{found['texts'] / one[way]:,.0f}" for way in ("fixed", "batches", "cached")),
            times(one["single"], one["bare"]),
        ]
        for name, one in found["mixes"].items()
    ]
    head = ["texts", "time, of padded batches'", "texts a second", "in padded batches"]
    return table([*head, "from the cache", "a text alone, of the bare network's"], rows)


def onnx(found: dict[str, Any]) -> str:
    names = {"table": "a table", "texts": "texts, MiniLM", "int8": "texts, `--int8`"}
    rows = [
        [
            text,
            f"{one['out']:.3g} MB",
            times(one["library_start"], one["export_start"]),
            f"{seconds(one['library_start'])}, {seconds(one['export_start'])}",
            *(
                f"{times(one[f'library_{size}'], one[f'export_{size}'])} "
                f"({milliseconds(one[f'export_{size}'])})"
                for size in ("one", "many")
            ),
        ]
        for name, text in names.items()
        for one in [found[name]]
    ]
    head = ["model", "export", "first answer, sooner by", "library, export"]
    return table([*head, "1 row, faster by", f"{found['many']} rows, faster by"], rows)


def start(found: dict[str, Any]) -> str:
    commands = {
        "python": "`python -c pass`",
        "libraries": "`import torch, sklearn`",
        "package": "`import setconv` after these",
        "classifier": "`from setconv import SetConvClassifier` after these",
        "help": "`setconv --help`",
    }
    rows = [
        [text, times(found[name], found["libraries"]), f"{found[name]:.2f} s"]
        for name, text in commands.items()
    ]
    return table(["what", "of torch's and scikit-learn's", "time"], rows)


def serve(found: dict[str, Any]) -> str:
    names = {"parse": "parsed only", "predict": "predicted"}
    rows = [
        [text, f"{found[name]:,.0f}", times(found[name], found["parse"])]
        for name, text in names.items()
    ]
    return table(["a request is", "a second", "of those parsed"], rows)


def times(value: float, base: float) -> str:
    ratio = value / base
    if ratio < 0.1:
        return f"{ratio:.2g}x"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.3g}x" if ratio < 100 else f"{ratio:,.0f}x"


def seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"


def milliseconds(value: float) -> str:
    return f"{value * 1e3:,.3g} ms" if value < 1 else seconds(value)


def gigabytes(value: float) -> str:
    return f"{value:.2f} GB"


def _power(sizes: Sequence[float], costs: Sequence[float]) -> str:
    found = exponent(sizes, costs)
    return "-" if math.isnan(found) else f"{found:.2f}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _columns(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    return [list(column) for column in zip(*rows, strict=True)]
