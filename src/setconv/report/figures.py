"""The figures of the page: drawn by matplotlib, written as SVG that follows the page's colours.

`draw` makes the SVG of a drawing; `shares`, `reliability`, `learned_map` and `training` are the
drawings. `class_styles` says how a class looks in all of them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from setconv.report.measure import Bin, Curve, Evaluation
from setconv.report.rows import LearnedMap

Drawing = Callable[[Axes], None]

SERIES = tuple(f"s{number}" for number in range(6))

# Names of colours in the page's style, and what stands for them while drawing: each is unique, and
# is replaced by the name, so that a figure follows the light or dark scheme.
_COLOURS = {
    "ink": "#010101",
    "muted": "#010102",
    "grid": "#010103",
    "card": "#010104",
    "rest": "#010105",
    **{name: f"#0102{number:02d}" for number, name in enumerate(SERIES)},
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read, found and copied
    "svg.hashsalt": "setconv",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.parse_math": False,
    "text.color": _COLOURS["ink"],
    "axes.edgecolor": _COLOURS["muted"],
    "axes.labelcolor": _COLOURS["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": _COLOURS["muted"],
    "ytick.color": _COLOURS["muted"],
    "grid.color": _COLOURS["grid"],
    "grid.linewidth": 0.8,
    "path.simplify": True,
}
_DPI = 72  # a point of the SVG is then a pixel of the page
_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 1)), (0, (9, 3)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P")
_REST_MARKER = "."


def draw(name: str, alt: str, drawing: Drawing, size: tuple[float, float] = (400, 290)) -> Markup:
    """Draw on one pair of axes and return the SVG.

    Parameters
    ----------
    name : str
        Unique in the page.
    alt : str
        What the figure shows, for those who cannot see it.
    drawing : callable
    size : (float, float)
        In pixels, before it is scaled.
    """
    with rc_context(_STYLE):
        figure = Figure(figsize=(size[0] / _DPI, size[1] / _DPI), dpi=_DPI, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        drawing(axes)
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    return Markup(_inline(content.getvalue(), name, alt))


def _inline(svg: str, name: str, alt: str) -> str:
    """Make a file's SVG one for the middle of a page."""
    body = svg[svg.index("<svg") :]
    view = re.search(r'viewBox="([^"]+)"', body)
    assert view is not None
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    # Names of groups would be the same in all figures; those that are referred to get a prefix.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace('xlink:href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    body = re.sub(r"font: ([\d.]+)px[^;\"]*", r"font-size: \1px", body)
    body = re.sub(r"font-family: [^;\"]*;? ?", "", body)
    for colour, stand_in in _COLOURS.items():
        body = body.replace(stand_in, f"var(--{colour})")
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    root = f'<svg class="plot" viewBox="{view[1]}" role="img" aria-label="{escape(alt)}">'
    return f"{root}\n{body}\n</svg>"


@dataclass(frozen=True)
class Style:
    """How a class or a method is drawn: the colour's name, and a line or marker by number."""

    colour: str
    number: int


def class_styles(evaluation: Evaluation) -> list[Style]:
    """Return a colour for each of the rarest classes, and one for all the rest."""
    styles = [Style("rest", len(SERIES))] * len(evaluation.labels)
    for number, c in enumerate(evaluation.minority[: len(SERIES)]):
        styles[c] = Style(SERIES[number], number)
    return styles


@dataclass(frozen=True)
class Line:
    """A curve, how it is drawn, and its operating point."""

    curve: Curve
    style: Style
    point: tuple[float, float]


def shares(lines: Sequence[Line], labels: tuple[str, str], guess: Curve) -> Drawing:
    """Draw curves in the unit square, with the line of guessing."""

    def drawing(axes: Axes) -> None:
        _unit_square(axes, *labels)
        axes.plot(guess.x, guess.y, color=_COLOURS["muted"], lw=1, ls=(0, (2, 3)))
        for line in reversed(lines):
            width, dashes = 2 if line is lines[0] else 1.4, _DASHES[line.style.number]
            colour = _COLOURS[line.style.colour]
            axes.plot(*line.curve, color=colour, lw=width, ls=dashes, clip_on=False)
        for line in reversed(lines):
            _mark(axes, line.point, line.style.colour, "o", 8, mew=1.5, zorder=5)

    return drawing


def reliability(bins: Sequence[Bin]) -> Drawing:
    """Draw what was said against what was seen."""

    def drawing(axes: Axes) -> None:
        _unit_square(axes, "Probability that the model states", "Share that is of the class")
        axes.plot([0, 1], [0, 1], color=_COLOURS["muted"], lw=1, ls=(0, (2, 3)))
        said, seen = [one.said for one in bins], [one.seen for one in bins]
        bars = [
            [one.seen - one.seen_low for one in bins],
            [one.seen_high - one.seen for one in bins],
        ]
        axes.errorbar(
            said, seen, np.maximum(bars, 0), fmt="none", ecolor=_COLOURS["s0"], lw=1.4, alpha=0.55
        )
        axes.plot(said, seen, color=_COLOURS["s0"], lw=1.4, clip_on=False)
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
                color=_COLOURS[style.colour],
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
        axes.plot(steps, [one["loss"] for one in history], color=_COLOURS["s0"], lw=1.6)
        axes.grid(True)
        axes.set(xlabel="Step", ylabel="Loss")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        looks = [one for one in history if "validation" in one]
        if looks:
            twin = axes.twinx()
            twin.spines["right"].set_visible(True)
            points = [one["step"] for one in looks], [one["validation"] for one in looks]
            twin.plot(*points, color=_COLOURS["s1"], lw=1.4, ls=_DASHES[1], marker="o", ms=3.5)
            twin.set_ylabel("On validation rows")

    return drawing


def _unit_square(axes: Axes, x: str, y: str) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y)
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.grid(True)


def _mark(
    axes: Axes, at: Iterable[float], colour: str, marker: str, size: float, **options: Any
) -> None:
    """Draw a point that stands out from what it lies on."""
    edge = _COLOURS["card"]
    style: Any = {"marker": marker, "ms": size, "color": _COLOURS[colour], "mec": edge}
    axes.plot(*at, clip_on=False, **style, **options)
