"""The figures of the page: drawn by matplotlib, written as SVG that follows the page's colours.

`draw` makes the SVG of what `paint_roc` and the other painters put on a pair of axes.
`class_styles` says how a class looks in all of them, and `curve_lines` what gets a curve.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, PercentFormatter

from setconv.report import measure
from setconv.report.measure import Bin, Curve, Evaluation, Measured, Method
from setconv.report.space import LearnedMap

SERIES = tuple(f"s{number}" for number in range(6))

# Names of colours in the page's style, and what stands for them while drawing: each is unique, and
# is replaced by the name, so that a figure follows the light or dark scheme.
_COLOURS = {
    **{name: f"#0101{n:02d}" for n, name in enumerate(("ink", "muted", "grid", "card", "rest"), 1)},
    **{name: f"#0102{n:02d}" for n, name in enumerate(SERIES)},
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read, found and copied
    "svg.hashsalt": "setconv",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.parse_math": False,
    **dict.fromkeys(("text.color", "axes.labelcolor"), _COLOURS["ink"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), _COLOURS["muted"]),
    "grid.color": _COLOURS["grid"],
    **dict.fromkeys(("axes.linewidth", "grid.linewidth"), 0.8),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top"), False),
    "path.simplify": True,
}
_DPI = 72  # a point of the SVG is then a pixel of the page
_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 1)), (0, (9, 3)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P")


class Plot(NamedTuple):
    """An SVG without its root: the view box, and what is drawn in it."""

    view: str
    body: Markup


def draw(name: str, size: tuple[float, float], paint: Callable[..., None], *given: Any) -> Plot:
    """Have ``paint(axes, *given)`` draw on one pair of axes.

    Parameters
    ----------
    name : str
        Unique in the page.
    size : (float, float)
        In pixels, before it is scaled.
    paint : callable
    given : what it draws
    """
    with rc_context(_STYLE):
        figure = Canvas(figsize=(size[0] / _DPI, size[1] / _DPI), dpi=_DPI, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        paint(axes, *given)
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    return _inline(content.getvalue(), name)


def _inline(svg: str, name: str) -> Plot:
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
    return Plot(view[1], Markup(re.sub(r"\s*\n\s*", "\n", body).strip()))


class Style(NamedTuple):
    """A class or a method: its name, that of its colour, and its line or marker by number."""

    name: str
    colour: str
    number: int


def class_styles(evaluation: Evaluation) -> list[Style]:
    """Return a colour for each of the rarest classes, and one for all the rest."""
    styles = [Style(name, "rest", len(SERIES)) for name in evaluation.names]
    for number, c in enumerate(evaluation.minority[: len(SERIES)]):
        styles[c] = Style(evaluation.names[c], SERIES[number], number)
    return styles


class Line(NamedTuple):
    """What gets a curve: how it is drawn, its curves, and the figures at its operating point."""

    style: Style
    roc: Curve
    precision_recall: Curve
    at: dict[str, measure.Figure]


def curve_lines(
    evaluation: Evaluation, methods: Sequence[Method], measured: Sequence[Measured]
) -> list[Line]:
    """Return the curves: of two classes those of all methods, else of the model's rare classes.

    Where rows of the main class, or others, are missing there are none.
    """
    main, styles = evaluation.main, class_styles(evaluation)
    drawn = [(styles[c], c, 0) for c in evaluation.minority[: len(SERIES)]]
    if evaluation.binary:
        names = [method.name for method in methods[: len(SERIES)]]
        drawn = [(Style(name, SERIES[n], n), main, n) for n, name in enumerate(names)]
    lines = []
    for style, c, n in drawn:
        scores, n_class = methods[n].scores, evaluation.counts[c]
        if scores is not None and 0 < n_class < evaluation.n_rows:
            ranked = evaluation.truth == c, scores[:, c], evaluation.weights
            curves = measure.roc(*ranked), measure.precision_recall(*ranked)
            lines.append(Line(style, *curves, measured[n][c]))
    return lines if 0 < evaluation.counts[main] < evaluation.n_rows else []


def paint_roc(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw false alarms against rows found."""
    _unit_square(axes, "False alarms among the others", "Found, of the class", (0, 1))
    drawn = []
    for style, curve, _, at in lines:
        drawn.append((style, curve, (1 - at["specificity"].value, at["sensitivity"].value)))
    _curves(axes, drawn)


def paint_precision_recall(axes: Axes, lines: Sequence[Line], share: float) -> None:
    """Draw rows found against alarms that are right; guessing is right in the class's share."""
    _unit_square(axes, "Found, of the class (recall)", "Alarms that are right", (share, share))
    drawn = []
    for style, _, curve, at in lines:
        drawn.append((style, curve, (at["sensitivity"].value, at["precision"].value)))
    _curves(axes, drawn)


def _curves(axes: Axes, drawn: Sequence[tuple[Style, Curve, tuple[float, float]]]) -> None:
    """Draw curves with their operating points, the first one over all others."""
    for style, curve, _ in reversed(drawn):
        width, dashes = 1.4 if style.number else 2, _DASHES[style.number]
        axes.plot(*curve, color=_COLOURS[style.colour], lw=width, ls=dashes, clip_on=False)
    for style, _, point in reversed(drawn):
        _mark(axes, point, style.colour, "o", ms=8, mew=1.5, zorder=5)


def paint_reliability(axes: Axes, bins: Sequence[Bin]) -> None:
    """Draw what was said against what was seen."""
    _unit_square(axes, "Probability that the model states", "Share that is of the class", (0, 1))
    said, seen = [one.said for one in bins], [one.seen for one in bins]
    bars = np.array([[one.seen - one.seen_low, one.seen_high - one.seen] for one in bins]).T
    axes.errorbar(said, seen, bars.clip(0), fmt="none", ecolor=_COLOURS["s0"], lw=1.4, alpha=0.55)
    axes.plot(said, seen, color=_COLOURS["s0"], lw=1.4, clip_on=False)
    most = max(one.n_rows for one in bins)
    for one in bins:
        # The area follows the logarithm of the count: counts span many powers of ten.
        size = 4 + 7 * np.log1p(one.n_rows) / np.log1p(most)
        _mark(axes, (one.said, one.seen), "s0", "o", ms=size, ls="")


def paint_map(axes: Axes, laid_out: LearnedMap, styles: Sequence[Style]) -> None:
    """Draw rows as points and representatives as stars."""
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
        marker, size, alpha = (".", 5, 0.45) if rest else (_MARKERS[style.number], 4.5, 0.7)
        look: Any = {"marker": marker, "ms": size, "alpha": alpha, "color": _COLOURS[style.colour]}
        axes.plot(*points.round(4).T, ls="", mew=0, **look)
    for c in order:
        _mark(axes, laid_out.representatives[c], styles[c].colour, "*", ms=19, mew=1.6, zorder=5)


def paint_training(axes: Axes, history: Sequence[dict[str, float]]) -> None:
    """Draw the loss, and the monitored figure where there is one."""
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


def _unit_square(axes: Axes, x: str, y: str, guess: tuple[float, float]) -> None:
    """Set the axes up for shares, with the line of guessing."""
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y)
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.grid(True)
    axes.plot((0, 1), guess, color=_COLOURS["muted"], lw=1, ls=(0, (2, 3)))


def _mark(axes: Axes, at: Iterable[float], colour: str, marker: str, **options: Any) -> None:
    """Draw a point that stands out from what it lies on."""
    options |= {"marker": marker, "color": _COLOURS[colour], "mec": _COLOURS["card"]}
    axes.plot(*at, clip_on=False, **options)
