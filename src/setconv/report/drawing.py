"""What each figure of the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from setconv.report.curves import Bin, Curve
from setconv.report.evaluation import Evaluation
from setconv.report.learned_map import LearnedMap
from setconv.report.svg import COLOURS, SERIES

Drawing = Callable[[Axes], None]

_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 1)), (0, (9, 3)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P")
_REST_MARKER = "."


@dataclass(frozen=True)
class Style:
    """How a class or a method is drawn: the colour's name, and a line or marker by number."""

    colour: str
    number: int


@dataclass(frozen=True)
class Line:
    """A curve, how it is drawn, and its operating point."""

    curve: Curve
    style: Style
    point: tuple[float, float]


def class_styles(evaluation: Evaluation) -> list[Style]:
    """Return a colour for each of the rarest classes, and one for all the rest."""
    styles = [Style("rest", len(SERIES))] * len(evaluation.labels)
    for number, c in enumerate(evaluation.minority[: len(SERIES)]):
        styles[c] = Style(SERIES[number], number)
    return styles


def method_style(number: int) -> Style:
    """Return how the method with this number is drawn; the model is number 0."""
    if number < len(SERIES):
        return Style(SERIES[number], number)
    return Style("rest", len(SERIES))


def shares(lines: Sequence[Line], labels: tuple[str, str], guess: Curve) -> Drawing:
    """Draw curves in the unit square, with the line of guessing."""

    def drawing(axes: Axes) -> None:
        _unit_square(axes, *labels)
        axes.plot(guess.x, guess.y, color=COLOURS["muted"], lw=1, ls=(0, (2, 3)))
        for line in reversed(lines):
            width, dashes = 2 if line is lines[0] else 1.4, _DASHES[line.style.number]
            colour = COLOURS[line.style.colour]
            axes.plot(*line.curve, color=colour, lw=width, ls=dashes, clip_on=False)
        for line in reversed(lines):
            _mark(axes, line.point, line.style.colour, "o", 8, mew=1.5, zorder=5)

    return drawing


def reliability(bins: Sequence[Bin]) -> Drawing:
    """Draw what was said against what was seen."""

    def drawing(axes: Axes) -> None:
        _unit_square(axes, "Probability that the model states", "Share that is of the class")
        axes.plot([0, 1], [0, 1], color=COLOURS["muted"], lw=1, ls=(0, (2, 3)))
        said, seen = [one.said for one in bins], [one.seen for one in bins]
        bars = [
            [one.seen - one.seen_low for one in bins],
            [one.seen_high - one.seen for one in bins],
        ]
        axes.errorbar(
            said, seen, np.maximum(bars, 0), fmt="none", ecolor=COLOURS["s0"], lw=1.4, alpha=0.55
        )
        axes.plot(said, seen, color=COLOURS["s0"], lw=1.4, clip_on=False)
        most = max(one.n_rows for one in bins)
        for one in bins:
            # The area follows the logarithm of the count: counts span many powers of ten.
            size = 4 + 7 * np.log1p(one.n_rows) / np.log1p(most)
            _mark(axes, (one.said, one.seen), "s0", "o", size, ls="")

    return drawing


def learned_map(laid_out: LearnedMap, styles: Sequence[Style]) -> Drawing:
    """Draw rows as points and representatives as stars."""

    def drawing(axes: Axes) -> None:
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(True)
        if laid_out.explained is None:
            axes.set(xlabel="Similarity to the rare class", ylabel="Similarity to the other class")
        else:
            axes.tick_params(labelbottom=False, labelleft=False, length=0)
            axes.set(xlabel="First direction", ylabel="Second direction")
        # Rare classes are drawn last, over the frequent ones.
        order = sorted(range(len(styles)), key=lambda c: -styles[c].number)
        for c in order:
            style, points = styles[c], laid_out.points[laid_out.classes == c]
            rest = style.colour == "rest"
            axes.plot(
                *points.round(4).T,
                ls="",
                marker=_REST_MARKER if rest else _MARKERS[style.number],
                ms=5 if rest else 4.5,
                color=COLOURS[style.colour],
                mew=0,
                alpha=0.45 if rest else 0.7,
            )
        for c in order:
            star = laid_out.representatives[c]
            _mark(axes, star, styles[c].colour, "*", 19, mew=1.6, zorder=5)

    return drawing


def training(history: Sequence[dict[str, float]]) -> Drawing:
    """Draw the loss, and the monitored figure where there is one."""

    def drawing(axes: Axes) -> None:
        steps = [one["step"] for one in history]
        axes.plot(steps, [one["loss"] for one in history], color=COLOURS["s0"], lw=1.6)
        axes.grid(True)
        axes.set(xlabel="Step", ylabel="Loss")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        looks = [one for one in history if "validation" in one]
        if looks:
            twin = axes.twinx()
            twin.spines["right"].set_visible(True)
            points = [one["step"] for one in looks], [one["validation"] for one in looks]
            twin.plot(*points, color=COLOURS["s1"], lw=1.4, ls=_DASHES[1], marker="o", ms=3.5)
            twin.set_ylabel("On validation rows")

    return drawing


def _mark(
    axes: Axes, at: Iterable[float], colour: str, marker: str, size: float, **options: Any
) -> None:
    """Draw a point that stands out from what it lies on."""
    edge = COLOURS["card"]
    style: Any = {"marker": marker, "ms": size, "color": COLOURS[colour], "mec": edge}
    axes.plot(*at, clip_on=False, **style, **options)


def _unit_square(axes: Axes, x: str, y: str) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y)
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.grid(True)
