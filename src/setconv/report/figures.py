"""The figures of the page, with their legends and what is said about them."""

from __future__ import annotations

import io
import math
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

from setconv.report import measure as curves
from setconv.report import text as sentences
from setconv.report.measure import FIGURES, Bin, Curve, Evaluation, Floats
from setconv.report.rows import Findings, LearnedMap
from setconv.report.words import readable

# ---------- report.svg

# Names of colours in the page's style, and what stands for them while drawing: each is unique, and
# is replaced by the name, so that a figure follows the light or dark scheme.
COLOURS = {
    "ink": "#010101",
    "muted": "#010102",
    "grid": "#010103",
    "card": "#010104",
    "rest": "#010105",
    **{f"s{number}": f"#0102{number:02d}" for number in range(6)},
}
SERIES = tuple(f"s{number}" for number in range(6))

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read, found and copied
    "svg.hashsalt": "setconv",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.parse_math": False,
    "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.8,
    "path.simplify": True,
}
_DPI = 72  # a point of the SVG is then a pixel of the page


def draw(
    name: str, alt: str, drawing: Callable[[Axes], None], size: tuple[float, float] = (400, 290)
) -> Markup:
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
    for colour, stand_in in COLOURS.items():
        body = body.replace(stand_in, f"var(--{colour})")
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    root = f'<svg class="plot" viewBox="{view[1]}" role="img" aria-label="{escape(alt)}">'
    return f"{root}\n{body}\n</svg>"


# ---------- report.drawing

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


# ---------- report.illustration

_SQUARE = (400, 340)


def illustrate(findings: Findings) -> dict[str, Any]:
    """Return the figures; one that the rows leave undefined is None."""
    return {
        "curves": _curves(findings),
        "reliability": _reliability(findings),
        "map": _map(findings),
        "training": _training(findings),
    }


def _curves(findings: Findings) -> dict[str, Any] | None:
    evaluation, main = findings.evaluation, findings.evaluation.main
    if evaluation.counts[main] in (0, evaluation.n_rows):
        return None
    shown, measured = _ranked(findings), findings.measured[0]
    truth, weights = evaluation.truth, evaluation.weights
    roc, precision = [], []
    for c, scores, style, (spec, sens, right), _ in shown:
        of_class = truth == c, scores, weights
        roc.append(Line(curves.roc(*of_class), style, (1 - spec, sens)))
        precision.append(Line(curves.precision_recall(*of_class), style, (sens, right)))
    words = sentences.roc(evaluation, measured), sentences.precision_recall(evaluation, measured)
    ends, share = np.array([0.0, 1.0]), evaluation.share(truth == main)
    axes = ("False alarms among the others", "Found, of the class")
    first = shares(roc, axes, Curve(ends, ends))
    axes = ("Found, of the class (recall)", "Alarms that are right")
    second = shares(precision, axes, Curve(ends, np.array([share, share])))
    return {
        "roc": draw("roc", f"ROC curve. {words[0]}", first, _SQUARE),
        "precision_recall": draw("pr", f"Precision-recall curve. {words[1]}", second, _SQUARE),
        "roc_words": words[0],
        "precision_recall_words": words[1],
        "legend": [{"name": name, "style": style} for _, _, style, _, name in shown],
    }


_Ranked = tuple[int, Floats, Style, tuple[float, float, float], str]


def _ranked(findings: Findings) -> list[_Ranked]:
    """Return what gets a curve: all methods of two classes, else the rare classes of the model."""
    evaluation, main = findings.evaluation, findings.evaluation.main
    found: list[_Ranked] = []
    if evaluation.binary:
        for number, name in enumerate(findings.methods[: len(SERIES)]):
            scores = findings.answers[number].scores
            if scores is not None:
                point = _point(findings, number, main)
                found.append(
                    (main, scores[:, main], method_style(number), point, readable(name, 40))
                )
        return found
    styles = class_styles(evaluation)
    for c in evaluation.minority[: len(SERIES)]:
        if 0 < evaluation.counts[c] < evaluation.n_rows:
            point = _point(findings, 0, c)
            found.append((c, evaluation.scores[:, c], styles[c], point, evaluation.names[c]))
    return found


def _point(findings: Findings, method: int, c: int) -> tuple[float, float, float]:
    """Return specificity, sensitivity and precision of a method's own decision."""
    of = dict(zip(FIGURES, findings.measured[method].values[c].tolist(), strict=True))
    return of["spec"], of["sens"], of["precision"]


def _reliability(findings: Findings) -> Any:
    if not findings.bins:
        return None
    alt = f"Reliability diagram. {sentences.calibration(findings.evaluation, findings.bins)}"
    return draw("reliability", alt, reliability(findings.bins), _SQUARE)


def _map(findings: Findings) -> dict[str, Any]:
    evaluation, laid_out = findings.evaluation, findings.map
    styles = class_styles(evaluation)
    words = sentences.learned_map(laid_out.explained, len(laid_out.points), evaluation)
    coloured = [
        {"name": evaluation.names[c], "style": styles[c]}
        for c in evaluation.minority[: len(SERIES)]
    ]
    rest = [c for c, style in enumerate(styles) if style.colour == "rest"]
    if rest:
        name = evaluation.names[rest[0]] if len(rest) == 1 else f"{len(rest)} other classes"
        coloured.append({"name": name, "style": styles[rest[0]]})
    figure = draw(
        "map",
        f"Map of the learned space. {words}",
        learned_map(laid_out, styles),
        (480, 350),
    )
    return {"figure": figure, "words": words, "legend": coloured}


def _training(findings: Findings) -> dict[str, Any] | None:
    history: Sequence[dict[str, float]] = getattr(findings.model, "history_", None) or []
    usable = [one for one in history if math.isfinite(one.get("loss", math.nan))]
    if len(usable) < 2:
        return None
    words = sentences.training(usable)
    return {
        "figure": draw("training", f"Training curve. {words}", training(usable)),
        "words": words,
    }
