"""The figures of a study, like those of the paper: bars, ranks and curves, as SVG."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from scikit_posthocs import critical_difference_diagram  # type: ignore[import-untyped]
from seaborn import axes_style, barplot, husl_palette, lineplot  # type: ignore[import-untyped]

from setconv.experiment.results import Findings, heading
from setconv.experiment.statistics import MINIMUM_SOURCES, Nemenyi
from setconv.report.words import readable

INK = "#1d2430"
STRONG = ("#0068a8", "#c8500a", "#00805d", "#a6528a", "#9a6700", "#2f93c9")
_STYLE: dict[Any, Any] = {
    **axes_style("whitegrid"),
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "setconv",
    "text.parse_math": False,  # names are no formulas
    "font.size": 10.5,
    "axes.titleweight": "bold",
    **dict.fromkeys(("axes.spines.left", "axes.spines.right", "axes.spines.top"), False),
    **dict.fromkeys(("figure.constrained_layout.h_pad", "figure.constrained_layout.w_pad"), 0.1),
}
_DPI = 72  # a pixel of a panel is then a point
_WIDTH = 410  # pixels of a panel that has room beside another
_TITLE, _LEGEND_ROW, _LEGEND_COLUMN = 26, 18, 230  # pixels
_SPREAD = "one standard deviation over the splits to either side"
_LEAST_SPAN = 0.1  # a smaller one would make noise look like a trend
_LOGARITHMIC_FROM = 20
_FEWEST_METHODS = 3  # of a diagram of ranks

Drawing = Callable[[Axes], None]


@dataclass(frozen=True)
class StudyFigure:
    """A figure.

    Attributes
    ----------
    name : str
        Good for a file name, unique in the study.
    title, caption : str
    svg : bytes
        The same findings give the same bytes.
    """

    name: str
    title: str
    caption: str
    svg: bytes


def study_figures(findings: Findings) -> list[StudyFigure]:
    """Return the figures that the findings allow.

    These are grouped bars for each metric, critical-difference diagrams, and metrics along a
    parameter where the study has curves.
    """
    return [*_scores(findings), *_ranks(findings), *_curves(findings)]


def _scores(findings: Findings) -> Iterator[StudyFigure]:
    """Draw a panel for each metric."""
    scores = findings.scores[findings.scores["curve"] == ""].dropna(subset="value")
    panels: dict[str, Drawing] = {
        heading(metric, " (lower is better)"): partial(_draw_bars, findings=findings, rows=rows)
        for metric in findings.study.metrics
        if len(rows := scores[scores["metric"] == metric])
    }
    if panels:
        height = 60 + len(findings.units) * (10 * len(findings.methods) + 16)
        title = "Scores on each unit"
        caption = (
            f"Bars are means over the splits; a whisker reaches {_SPREAD}. In brackets is the "
            "imbalance ratio; without a bar there is no score."
        )
        yield StudyFigure("scores", title, caption, compose(title, panels, (_WIDTH, height)))


def _draw_bars(axes: Axes, findings: Findings, rows: pd.DataFrame) -> None:
    """Draw a group of bars for each unit, the first on top."""
    units = findings.units
    look = _look(findings, rows) | {"saturation": 1, "err_kws": {"color": INK, "linewidth": 0.9}}
    barplot(**look, x="value", y="unit", order=[unit.name for unit in units], ax=axes)
    titles = [textwrap.fill(readable(unit.title, 60), 20) for unit in units]
    axes.set_yticks(range(len(units)), titles)
    axes.set(xlabel="", ylabel="")
    axes.grid(False, axis="y")


def _ranks(findings: Findings) -> Iterator[StudyFigure]:
    """Draw the average ranks of each metric that has them for three methods over two sources."""
    ours = findings.study.ours
    colours = dict.fromkeys(findings.methods, INK) | method_colours(ours, ours)
    found = {
        heading(metric): one.all_pairs
        for metric, one in findings.rankings.items()
        if one.all_pairs is not None and len(one.all_pairs.ranks) >= _FEWEST_METHODS
    }
    if found:
        title = "Average ranks"
        caption = (
            "Critical-difference diagrams. Methods hang from their average rank over the sources; "
            "1 is best. A bar joins methods that do not differ."
        )
        yield StudyFigure("ranks", title, caption, rank_diagrams(title, found, colours))


def rank_diagrams(title: str, found: Mapping[str, Nemenyi], colours: Mapping[str, Any]) -> bytes:
    """Draw critical-difference diagrams: ranks on a line, bars over what does not differ.

    Parameters
    ----------
    title : str
    found : mapping of str to Nemenyi
        What is ranked by, and the comparison.
    colours : mapping of str to colour
        Of each method.
    """
    panels: dict[str, Drawing] = {}
    for label, pairs in found.items():
        said = f"critical difference {pairs.critical_difference:.2f}"
        if not pairs.claimed:
            said = f"{pairs.n_sources} sources, fewer than {MINIMUM_SOURCES}: nothing is claimed"
        panels[f"{label} ({said})"] = partial(_draw_diagram, comparison=pairs, colours=colours)
    most = max(len(pairs.ranks) for pairs in found.values())
    return compose(title, panels, (640, 90 + 13 * most), columns=1)


def _draw_diagram(axes: Axes, comparison: Nemenyi, colours: Mapping[str, Any]) -> None:
    names = short(list(comparison.ranks.index))
    drawn = critical_difference_diagram(
        comparison.ranks.rename(index=names),
        (~comparison.significant).astype(float).rename(index=names, columns=names),
        ax=axes,
        label_fmt_left="{label}  {rank:.2f} ",
        label_fmt_right=" {rank:.2f}  {label}",
        text_h_margin=0.04 * len(names),
        color_palette={names[name]: colours[name] for name in names},
        crossbar_props={"color": INK, "linewidth": 3.5},
        elbow_props={"linewidth": 1},
    )
    for (bar,) in drawn["crossbars"]:
        bar.set_xdata(sorted(bar.get_xdata()))  # else its points are in no order
    axes.set_xticks(range(1, len(names) + 1))
    axes.spines["top"].set(visible=True, bounds=(1, len(names)))
    axes.grid(False)


def _curves(findings: Findings) -> Iterator[StudyFigure]:
    """Draw each curve on each unit: a panel a metric."""
    titles = {unit.name: unit.title for unit in findings.units}
    of = groupby(findings.curves, key=lambda one: one[:2])
    for number, ((curve, unit), found) in enumerate(of, 1):
        panels: dict[str, Drawing] = {
            heading(metric): partial(_draw_curve, findings=findings, rows=rows, curve=curve)
            for *_, metric, rows in found
        }
        name = file_name("curve", str(number), curve, unit)[:80]
        title = f"Along {curve}: {titles.get(unit, unit)}"
        caption = f"Lines are means over the splits at each setting; a band reaches {_SPREAD}."
        yield StudyFigure(name, title, caption, compose(title, panels, (_WIDTH, 290)))


def _draw_curve(axes: Axes, findings: Findings, rows: pd.DataFrame, curve: str) -> None:
    """Draw a line with a band for each method."""
    look = _look(findings, rows) | {"style": "method", "markers": True}
    lineplot(**look, x="setting", y="value", ax=axes)
    settings = sorted(rows["setting"].unique())
    if min(settings) > 0 and max(settings) / min(settings) > _LOGARITHMIC_FROM:
        axes.set_xscale("log")
    turned = 45 if len(settings) > 5 else 0
    axes.set_xticks(settings, [f"{one:.6g}" for one in settings], rotation=turned)
    axes.minorticks_off()
    bottom, top = axes.get_ylim()
    margin = max(0.0, (_LEAST_SPAN - (top - bottom)) / 2)
    axes.set_ylim(bottom - margin, top + margin)
    axes.set(xlabel=readable(curve, 50), ylabel="")


def _look(findings: Findings, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the rows and how each method is drawn, as seaborn wants them."""
    # A name that begins with an underscore would not be in the legend.
    present = set(rows["method"])
    names = {one: f" {name}" for one, name in short(findings.methods).items() if one in present}
    colours = method_colours(findings.methods, findings.study.ours)
    return {
        "data": rows.assign(method=rows["method"].map(names)),
        "hue": "method",
        "hue_order": list(names.values()),
        "palette": {name: colours[method] for method, name in names.items()},
        "errorbar": "sd",
    }


def method_colours(methods: Sequence[str], ours: Sequence[str]) -> dict[str, Any]:
    """Return the colour of each method: ours are strong, the others calm, and all different."""
    strong = iter(STRONG if len(ours) <= len(STRONG) else husl_palette(len(ours)))
    calm = iter(husl_palette(len(methods) - len(ours), s=0.45, l=0.72))
    return {method: next(strong if method in ours else calm) for method in methods}


def compose(
    title: str, panels: Mapping[str, Drawing], size: tuple[float, float], columns: int = 2
) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes.

    Parameters
    ----------
    title : str
        May be empty.
    panels : mapping of str to callable
        The title of each panel, and what draws it on axes. They share a legend of what has a label.
    size : (float, float)
        Of a panel, in pixels.
    columns : int, default=2
        How many panels stand beside each other.
    """
    columns = min(columns, len(panels))
    n_rows = -(-len(panels) // columns)
    width = size[0] * columns
    content = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # What the font lacks is left to the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        sheet = Figure(dpi=_DPI, layout="constrained")
        FigureCanvasSVG(sheet)
        for number, (name, drawing) in enumerate(panels.items(), 1):
            axes = sheet.add_subplot(n_rows, columns, number)
            drawing(axes)
            axes.set_title(readable(name, 60))
            if (legend := axes.get_legend()) is not None:
                legend.remove()
        handles, names = sheet.axes[0].get_legend_handles_labels()
        n_columns = max(1, int(width / _LEGEND_COLUMN))
        if handles:
            place: dict[str, Any] = {"loc": "outside lower center", "ncols": n_columns}
            sheet.legend(handles, names, frameon=False, fontsize=9.5, **place)
        if title:
            sheet.suptitle(readable(title, 90), fontsize=12.5, fontweight="bold")
        around = _TITLE * (n_rows + bool(title)) + _LEGEND_ROW * -(-len(names) // n_columns)
        sheet.set_size_inches(width / _DPI, (size[1] * n_rows + around) / _DPI)
        sheet.savefig(content, format="svg", facecolor="#ffffff", metadata={"Date": None})
    return content.getvalue()


def file_name(*parts: str) -> str:
    """Return a name of small letters, digits and hyphens, for a file or an element."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "x" for part in parts)


def short(names: Sequence[str], limit: int = 26) -> dict[str, str]:
    """Return names cut to a length, still different from one another."""
    cut = [readable(name, limit) for name in names]
    return {
        name: one if cut.count(one) == 1 else f"{one} [{number}]"
        for number, (name, one) in enumerate(zip(names, cut, strict=True), 1)
    }
