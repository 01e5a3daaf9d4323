"""The plots of the page, as SVG files: the same results give the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.speed.growth import power_law
from setconv.experiment.figures import STRONG, compose, file_name, method_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_SIZE = (410.0, 300.0)
_MARKERS = "os^DvPXp"
GREY = "#5b6472"


def growth_files(growth: dict[str, Any]) -> dict[str, bytes]:
    """Return a file a series: time and memory against the size, on logarithmic axes."""
    return {growth_name(name): _growth(name, series) for name, series in growth.items()}


def growth_name(series: str) -> str:
    """Return the name of a series' file."""
    return f"growth-{file_name(series)}.svg"


def peers_name(features: int) -> str:
    """Return the name of the file with the peers for so many features."""
    return f"peers-{features}.svg"


def peer_files(peers: dict[str, Any]) -> dict[str, bytes]:
    """Return a file for each number of features: AUC against the time of a fit."""
    return {
        peers_name(one["features"]): compose(
            f"{peers['rows']:,} rows, d={one['features']}",
            {
                "Fit": _scatter(one["methods"], "fit", "Seconds of a fit"),
                "Prediction": _scatter(one["methods"], "predict", "Seconds of a prediction"),
            },
            _SIZE,
        )
        for one in peers["tables"]
    }


def _growth(name: str, series: dict[str, Any]) -> bytes:
    sizes, seconds, gigabytes = (list(column) for column in zip(*series["points"], strict=True))
    return compose(
        f"A fit, by {name}",
        {
            "Time": _curve(name, sizes, seconds, "Seconds", STRONG[0]),
            "Memory": _curve(name, sizes, gigabytes, "Gigabytes", STRONG[1]),
        },
        _SIZE,
    )


def _curve(
    name: str, sizes: list[float], costs: list[float], label: str, colour: str
) -> Callable[[Axes], None]:
    """Draw the measured points and the line whose slope is the exponent."""

    def drawing(axes: Axes) -> None:
        a, b = power_law(sizes, costs)
        ends = np.array([min(sizes), max(sizes)], dtype=np.float64)
        axes.set(xscale="log", yscale="log", xlabel=name.capitalize(), ylabel=label)
        axes.plot(sizes, costs, color=colour, marker="o", ms=5, lw=1.8)
        _plain_log(axes.xaxis)
        _plain_log(axes.yaxis)
        axes.set_xticks(sizes, [_short(size) for size in sizes])
        axes.grid(True)
        if np.isfinite(b):
            axes.plot(ends, a * ends**b, color=GREY, lw=1.2, ls=(0, (4, 2)))
            axes.annotate(f"exponent {b:.2f}", (0.05, 0.92), xycoords="axes fraction")

    return drawing


def _plain_log(axis: Axis) -> None:
    """Let a logarithmic axis have few ticks, in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _short(size: float) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= unit and size % (unit / 10) == 0:
            return f"{size / unit:g}{letter}"
    return f"{size:g}"


def _scatter(methods: dict[str, dict[str, float]], job: str, label: str) -> Callable[[Axes], None]:
    """Draw each method at its time and AUC; the first is ours."""
    names = list(methods)

    def drawing(axes: Axes) -> None:
        for place, (name, colour) in enumerate(method_colours(names, names[:1]).items()):
            point, marker = (methods[name][job], methods[name]["auc"]), _MARKERS[place % 8]
            axes.plot(*point, ls="", marker=marker, ms=9, color=colour, label=name)
        axes.set(xscale="log", xlabel=label, ylabel="AUC on new rows")
        _plain_log(axes.xaxis)
        axes.margins(x=0.15, y=0.15)
        axes.grid(True)

    return drawing
