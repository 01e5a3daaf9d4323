"""What was to be reached, and whether it was: computed from the results of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.growth import exponent

Parts = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A bound on a figure.

    Attributes
    ----------
    what : str
    part : str
        Where the figure is measured.
    figure : callable
        From that part's results to the figure.
    bound : float or callable
        A number, or what gives it from that part's results.
    unit : str
        Stands behind the figure.
    least : bool
        Whether the figure is to be at least the bound; else at most.
    digits : int or None
        After the point; None for powers of ten.
    """

    what: str
    part: str
    figure: Callable[[Any], float]
    bound: float | Callable[[Any], float]
    unit: str = "x"
    least: bool = False
    digits: int | None = 2

    def reached(self, parts: Parts) -> tuple[float, float] | None:
        """Return the figure and its bound; None where the part was not run."""
        if self.part not in parts:
            return None
        found = parts[self.part]
        return self.figure(found), self.bound(found) if callable(self.bound) else self.bound

    def line(self, parts: Parts) -> list[str]:
        """Return what, the figure, the target, and whether it holds."""
        reached = self.reached(parts)
        if reached is None:
            return [self.what, "", "", "not measured"]
        figure, bound = reached
        sign = "at least" if self.least else "at most"
        holds = figure >= bound if self.least else figure <= bound
        return [
            self.what,
            self._written(figure),
            f"{sign} {self._written(bound)}",
            "yes" if holds else "**no**",
        ]

    def _written(self, value: float) -> str:
        text = f"{value:.0e}" if self.digits is None else f"{value:,.{self.digits}f}"
        return f"{text}{self.unit}" if self.unit in ("", "x") else f"{text} {self.unit}"


def step_ratio(features: int) -> Callable[[Any], float]:
    """Return the ratio of a step of all members to its products, for so many features."""

    def ratio(limit: Any) -> float:
        most = max(one["members"] for one in limit["steps"])
        (found,) = (
            one for one in limit["steps"] if (one["features"], one["members"]) == (features, most)
        )
        return float(found["step"] / found["products"])

    return ratio


def time_exponent(series: str) -> Callable[[Any], float]:
    """Return the exponent of a fit's time in a series."""

    def fitted(growth: Any) -> float:
        sizes, seconds, _ = zip(*growth[series]["points"], strict=True)
        return exponent(sizes, seconds)

    return fitted


def highest(bounds: Any, key: str) -> float:
    """Return the highest peak over all numbers of columns and rows."""
    return max(one[key] for pair in bounds["columns"].values() for one in pair.values())


def growth_of(bounds: Any, key: str) -> float:
    """Return by how much a peak grows at most from half of the rows to all."""
    return max(pair["all"][key] - pair["half"][key] for pair in bounds["columns"].values())


TARGETS = (
    Target("a default training step at d=1024, of its products", "limit", step_ratio(1024), 2.0),
    Target("a default training step at d=384, of its products", "limit", step_ratio(384), 2.3),
    Target(
        "prediction of 1,000,000 x 384, of its products",
        "limit",
        lambda limit: limit["prediction"]["predict"] / limit["prediction"]["products"],
        1.5,
    ),
    Target(
        "a default fit of n=200, d=10",
        "limit",
        lambda limit: limit["small"]["median"],
        1.5,
        unit="s",
    ),
    Target(
        "a training step of `REFERENCE`, faster than the authors' by",
        "authors",
        lambda authors: authors["step"]["literal"] / authors["step"]["ours"],
        15.0,
        least=True,
        digits=1,
    ),
    Target(
        "the layer, faster than the authors' by",
        "authors",
        lambda authors: authors["layer"]["authors"] / authors["layer"]["ours"],
        80.0,
        least=True,
        digits=1,
    ),
    Target(
        "8 classes one-vs-all at d=1024, of a binary fit",
        "classes",
        lambda classes: classes["many_fit"] / classes["binary_fit"],
        3.0,
    ),
    Target(
        "8 classes in separate models (`PAPER`), of a binary step; bound: as their products",
        "classes",
        lambda classes: classes["many_paper"]["step"] / classes["binary_paper"]["step"],
        lambda classes: classes["many_paper"]["products"] / classes["binary_paper"]["products"],
    ),
    Target(
        "thresholds of 60 classes, of those of 6",
        "thresholds",
        lambda thresholds: thresholds["choose"][-1] / thresholds["choose"][0],
        12.0,
    ),
    Target(
        "fit of 200,000 x 1,000,000, 60 non-zeros a row",
        "sparse",
        lambda sparse: sparse["methods"]["SetConv"]["fit"],
        300.0,
        unit="s",
        digits=0,
    ),
    Target(
        "the same, peak memory",
        "sparse",
        lambda sparse: sparse["methods"]["SetConv"]["fit_peak"],
        3.0,
        unit="GB",
    ),
    Target(
        "exponent of time by sparse columns, against that by non-zeros",
        "growth",
        time_exponent("sparse columns"),
        time_exponent("non-zeros"),
        unit="",
    ),
    Target(
        "fit of 1.5 million x 1024 on disk, peak memory",
        "disk",
        lambda disk: disk["disk"]["fit_peak"],
        1.5,
        unit="GB",
    ),
    Target(
        "prediction of the same, peak memory",
        "disk",
        lambda disk: disk["disk"]["predict_peak"],
        1.5,
        unit="GB",
    ),
    Target(
        "the highest peak of fits from 1.1 GB of Parquet, 64 to 1,024 columns",
        "bounds",
        lambda bounds: highest(bounds, "fit_peak"),
        1.0,
        unit="GB",
    ),
    Target(
        "that of predictions",
        "bounds",
        lambda bounds: highest(bounds, "predict_peak"),
        1.0,
        unit="GB",
    ),
    Target(
        "what either grows by at most, from half of the rows to all",
        "bounds",
        lambda bounds: max(growth_of(bounds, key) for key in ("fit_peak", "predict_peak")),
        0.05,
        unit="GB",
        digits=3,
    ),
    Target(
        "a training step from disk, of one in memory",
        "disk",
        lambda disk: disk["disk"]["step"] / disk["memory"]["step"],
        2.0,
    ),
    Target(
        "largest difference of scores, disk and memory",
        "disk",
        lambda disk: disk["difference"],
        1e-4,
        unit="",
        digits=None,
    ),
    Target(
        "first answer of an exported table model, sooner than with torch by",
        "onnx",
        lambda onnx: onnx["table"]["library_start"] / onnx["table"]["export_start"],
        5.0,
        least=True,
        digits=1,
    ),
    Target(
        "that of an exported model of texts",
        "onnx",
        lambda onnx: onnx["texts"]["library_start"] / onnx["texts"]["export_start"],
        5.0,
        least=True,
        digits=1,
    ),
    Target(
        "`import setconv` adds to torch and scikit-learn",
        "start",
        lambda start: start["package"],
        0.3,
        unit="s",
    ),
    Target("`setconv --help`", "start", lambda start: start["help"], 0.5, unit="s"),
    Target(
        "the service, requests of a row predicted, of those only parsed",
        "serve",
        lambda serve: serve["predict"] / serve["parse"],
        0.5,
        least=True,
    ),
    Target(
        "its 99th percentile of latency, of the median",
        "serve",
        lambda serve: serve["p99"] / serve["median"],
        5.0,
    ),
    Target(
        "wrong or lost answers at twice what it can take",
        "serve",
        lambda serve: serve["crowd"]["wrong"],
        0.0,
        unit="",
        digits=0,
    ),
    Target(
        "memory that it gains over the requests",
        "serve",
        lambda serve: serve["held_at_end"] - serve["held"],
        0.02,
        unit="GB",
        digits=3,
    ),
    Target(
        "its start after a SIGKILL under load, of the first",
        "serve",
        lambda serve: serve["start_after_kill"] / serve["start"],
        1.5,
    ),
)
