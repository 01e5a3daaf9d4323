"""The figures of a study, like those of the paper: bars, gaps, ranks and curves, as SVG.

A figure is a number of panels that share a legend; a panel knows how to draw itself on axes.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setconv.experiment.results import (
    Findings,
    Ranking,
    Unit,
    higher_is_better,
    metric_name,
    ranking,
    scores_by_split,
)
from setconv.experiment.statistics import MINIMUM_SOURCES, Nemenyi
from setconv.experiment.tables import curve_metrics
from setconv.io.files import write_atomically
from setconv.messages import needed
from setconv.report.words import readable

with needed("a figure of a study", "matplotlib", "experiment"):
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

INK, GREY, _WHITE = "#1d2430", "#5b6472", "#ffffff"
STRONG = ("#0068a8", "#c8500a", "#00805d", "#a6528a", "#9a6700", "#2f93c9")
# Calm colours for the methods that the study compares with.
_CALM = (
    *("#8792a2", "#d0a95f", "#86b583", "#cf8fa4"),
    *("#978bc6", "#62b0b8", "#b98667", "#b3ba62"),
)
_HATCHES = ("", "/////", "xxxx", ".....")
_DASHES = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
NARROW = 410  # pixels of a panel that has room beside another
_DIAGNOSIS = ("specificity", "sensitivity")
_SPREAD = "one standard deviation over the splits to either side"


@dataclass(frozen=True)
class Look:
    """How one method is drawn: the hatch is that of its bars, the dash that of its lines."""

    colour: str
    marker: str
    hatch: str
    dash: Any
    ours: bool


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title : str
        Over the panel; may be empty.
    alt : str
        What it shows, for those who cannot see it.
    drawing : callable
        Draws on axes; what has a label is in the legend.
    size : (float, float)
        In pixels.
    """

    title: str
    alt: str
    drawing: Callable[[Axes], None]
    size: tuple[float, float]


@dataclass(frozen=True)
class StudyFigure:
    """A figure: panels that share a legend.

    Attributes
    ----------
    name : str
        Good for a file name, unique in the study.
    title, caption : str
    panels : tuple of Panel
    columns : int, default=2
        How many panels stand beside each other.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2

    @property
    def alt(self) -> str:
        """What the panels show, in words."""
        return " ".join(panel.alt for panel in self.panels)


class _Summary(NamedTuple):
    """Means and deviations over splits: a row a unit or setting, a column a method."""

    means: pd.DataFrame
    deviations: pd.DataFrame

    @property
    def reach(self) -> tuple[float, float]:
        """From where to where means with their deviations reach."""
        spread = self.deviations.fillna(0)
        low, high = (self.means - spread).min().min(), (self.means + spread).max().max()
        return float(low), float(high)


def study_figures(findings: Findings) -> list[StudyFigure]:
    """Return the figures that the findings allow; the same findings give the same figures.

    These are grouped bars for each metric, the gap between specificity and sensitivity,
    critical-difference diagrams, and a metric along a parameter where the study has curves.
    """
    looks = method_looks(findings.methods, findings.ours)
    found = [_bars(findings, looks), _diagnosis(findings, looks), _ranks(findings, looks)]
    return [figure for figure in [*found, *_curves(findings, looks)] if figure.panels]


def method_looks(methods: Sequence[str], ours: Sequence[str]) -> dict[str, Look]:
    """Return how each method is drawn: ours in strong colours, the others in calm ones."""
    looks, counts = {}, {True: 0, False: 0}
    for method in methods:
        mine = method in ours
        colours = STRONG if mine else _CALM
        # Where colours are used up, they come again with another hatch and dash.
        again, place = divmod(counts[mine], len(colours))
        dash = _DASHES[(again + (not mine)) % len(_DASHES)]
        hatch = _HATCHES[again % len(_HATCHES)]
        looks[method] = Look(colours[place], _MARKERS[place], hatch, dash, mine)
        counts[mine] += 1
    return looks


def _bars(findings: Findings, looks: dict[str, Look]) -> StudyFigure:
    panels: list[Panel] = []
    diagnosed = set(_DIAGNOSIS) <= set(findings.metrics)
    for metric in findings.metrics:
        scores = _unit_scores(findings, metric)
        if scores.means.notna().to_numpy().any() and not (diagnosed and metric in _DIAGNOSIS):
            label = metric_name(metric)
            label += "" if higher_is_better(metric) else " (lower is better)"
            panels += _bar_panels(findings.units, scores, looks, label)
    return StudyFigure(
        "scores",
        "Scores on each unit",
        f"Mean over the splits; a whisker reaches {_SPREAD}. In brackets is the imbalance "
        "ratio; a small cross means that there is no score.",
        tuple(panels),
        columns=2 if all(panel.size[0] <= NARROW for panel in panels) else 1,
    )


_WIDEST, _NARROWEST = 960, 300
_MARGIN = 64  # pixels for the numbers at the left
_BAR = 14  # pixels a bar takes if there is room
_GAP = 1.6  # bars between two groups
_TICK_CHARACTER = 6.6  # pixels


def _bar_panels(
    units: Sequence[Unit], scores: _Summary, looks: Mapping[str, Look], label: str
) -> Iterator[Panel]:
    """Draw one metric: a group of bars for each unit, in as many rows as they need."""
    low, high = scores.reach
    # Bars start at 0, and all rows of a metric have one scale.
    below = math.floor(low * 10) / 10 if (scores.means < 0).to_numpy().any() else 0.0
    limits = below, max(0.1, math.ceil(round(high, 6) * 10) / 10)
    most = max(1, int((_WIDEST - _MARGIN) / _BAR / (len(looks) + _GAP)))
    # Rows of about the same length look better than a full one and a remnant.
    groups = math.ceil(len(units) / math.ceil(len(units) / most))
    # All rows have the room of the longest one, so that a bar is as wide in each.
    bars = groups * (len(looks) + _GAP)
    width = min(_WIDEST, max(_NARROWEST, _MARGIN + _BAR * bars))
    characters = max(7, int((width - _MARGIN) / groups / _TICK_CHARACTER))
    for start in range(0, len(units), groups):
        row = units[start : start + groups]
        titles = [f"{wrapped(one.name, characters, 3)}\n({one.imbalance_ratio:.2f})" for one in row]
        part = _Summary(*(table.loc[[one.name for one in row]] for table in scores))
        size = (width, 190 + 14 * max(title.count("\n") + 1 for title in titles))
        frame = {"ylim": limits, "ylabel": label, "xlim": (-_GAP / 2, bars - _GAP / 2)}
        drawing = partial(_draw_bars, scores=part, titles=titles, looks=looks, frame=frame)
        alt = f"Bars of {label}, mean over the splits. {_best(part, label)}"
        yield Panel("" if start else label, alt, drawing, size)


def _draw_bars(
    axes: Axes,
    scores: _Summary,
    titles: Sequence[str],
    looks: Mapping[str, Look],
    frame: Mapping[str, Any],
) -> None:
    starts = np.arange(len(titles)) * (len(looks) + _GAP)
    whisker = {"ecolor": INK, "elinewidth": 0.9, "capsize": 1.8, "capthick": 0.9}
    names = short(list(looks))
    for place, (method, look) in enumerate(looks.items()):
        x = starts + place + 0.5
        there = scores.means[method].notna().to_numpy()
        axes.bar(
            x[there],
            scores.means[method][there],
            0.88,
            yerr=scores.deviations[method][there],
            error_kw=whisker,
            color=look.colour,
            edgecolor=_WHITE,
            linewidth=0,
            hatch=look.hatch,
            label=legend_name(names[method]),
        )
        if not there.all():
            axes.plot(x[~there], 0 * x[~there], "x", color=GREY, ms=4, clip_on=False)
    axes.set_xticks(starts + len(looks) / 2, titles)
    axes.tick_params(axis="x", length=0, labelcolor=INK)
    axes.set(**frame)
    axes.grid(True, axis="y")
    axes.axhline(0, color=GREY, lw=0.8)


def _best(scores: _Summary, label: str) -> str:
    """Say in words what a reader who does not see the bars would look for."""
    parts = []
    for unit, means in scores.means.iterrows():
        known = means.dropna()
        best = f"highest {label} {known.max():.3f} ({known.idxmax()})" if len(known) else "no score"
        parts.append(f"{unit}: {best}")
    return "; ".join(parts) + "."


def _diagnosis(findings: Findings, looks: dict[str, Look]) -> StudyFigure:
    panels = []
    if set(_DIAGNOSIS) <= set(findings.metrics):
        spec, sens = (_unit_scores(findings, metric).means for metric in _DIAGNOSIS)
        if spec.notna().to_numpy().any() and sens.notna().to_numpy().any():
            panels = [
                _gap_panel(one, spec.T[one.name], sens.T[one.name], looks) for one in findings.units
            ]
    return StudyFigure(
        "diagnosis",
        "Spec and Sens",
        "A ring is the mean of Spec, a dot that of Sens. A long line means that one is bought "
        "with the other; a small cross, that there is no score.",
        tuple(panels),
    )


def _gap_panel(
    unit: Unit, spec: pd.Series[float], sens: pd.Series[float], looks: Mapping[str, Look]
) -> Panel:
    """Draw how far specificity and sensitivity are apart, one line a method."""
    gaps = (spec - sens).abs().dropna()
    alt = f"Specificity and sensitivity on {unit.title}."
    if len(gaps):
        alt += (
            f" The gap is smallest for {gaps.idxmin()} ({gaps.min():.3f}) and largest for "
            f"{gaps.idxmax()} ({gaps.max():.3f})."
        )

    def drawing(axes: Axes) -> None:
        for y, (method, look) in enumerate(looks.items()):
            ends, colour = [spec[method], sens[method]], look.colour
            axes.plot(ends, [y, y], color=colour, lw=3.2 if look.ours else 2.4, alpha=0.6)
            axes.plot(ends[0], y, "o", ms=8, mfc=_WHITE, mec=colour, mew=1.8, clip_on=False)
            axes.plot(ends[1], y, "o", ms=5.5, color=colour, mew=0, clip_on=False, zorder=3)
            if np.isnan(ends).any():
                axes.plot(0.02, y, "x", color=GREY, ms=4)
        axes.set_yticks(range(len(looks)), list(short(list(looks)).values()))
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        for text, look in zip(axes.get_yticklabels(), looks.values(), strict=True):
            text.set_fontweight("bold" if look.ours else "normal")
        axes.set(xlim=(0, 1), ylim=(len(looks) - 0.4, -0.6), xlabel="Spec (ring) and Sens (dot)")
        axes.grid(True, axis="x")
        axes.spines["left"].set_visible(False)

    return Panel(unit.title, alt, drawing, (NARROW, 74 + 19 * len(looks)))


_FEWEST_METHODS = 3  # of a diagram


def _ranks(findings: Findings, looks: dict[str, Look]) -> StudyFigure:
    """Draw the average ranks of each metric that has them for three methods over two sources."""
    by_split, panels = scores_by_split(findings), []
    for metric in findings.metrics:
        found = ranking(findings, metric, by_split)
        comparison = found.all_pairs if isinstance(found, Ranking) else None
        if comparison is None or len(comparison.ranks) < _FEWEST_METHODS:
            continue
        colours = {name: look.colour if look.ours else INK for name, look in looks.items()}
        panels.append(rank_panel(comparison, metric_name(metric), colours))
    return StudyFigure(
        "ranks",
        "Average ranks",
        "Critical-difference diagrams. Methods hang from their average rank over the sources; "
        "1 is best. A bar joins methods that do not differ.",
        tuple(panels),
        columns=1,
    )


def rank_panel(comparison: Nemenyi, label: str, colours: Mapping[str, str]) -> Panel:
    """Return a critical-difference diagram: ranks on a line, bars over what does not differ."""
    order = ", ".join(f"{method} {rank:.2f}" for method, rank in comparison.ranks.items())
    alt = f"Critical-difference diagram of {label}. Average ranks: {order}."
    said = f"critical difference {comparison.critical_difference:.2f}"
    if not comparison.claimed:
        said = f"{comparison.n_sources} sources, fewer than {MINIMUM_SOURCES}: nothing is claimed"
    drawing = partial(_draw_diagram, comparison=comparison, colours=colours)
    return Panel(f"{label} ({said})", alt, drawing, (640, 90 + 13 * len(comparison.ranks)))


def _draw_diagram(axes: Axes, comparison: Nemenyi, colours: Mapping[str, str]) -> None:
    with needed("a critical-difference diagram", "scikit-posthocs", "experiment"):
        from scikit_posthocs import critical_difference_diagram  # type: ignore[import-untyped]
    names = short(list(comparison.ranks.index))
    alike = (~comparison.significant).astype(float).rename(index=names, columns=names)
    drawn = critical_difference_diagram(
        comparison.ranks.rename(index=names),
        alike,
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


def _curves(findings: Findings, looks: dict[str, Look]) -> Iterator[StudyFigure]:
    if findings.curves.empty:
        return
    titles = {unit.name: unit.title for unit in findings.units}
    groups = findings.curves.groupby(["curve", "unit"], sort=False)
    for number, ((curve, unit), rows) in enumerate(groups, 1):
        present = set(rows.dropna(subset=["value"])["method"])
        drawn = {method: look for method, look in looks.items() if method in present}
        panels = [
            _band_panel(rows[rows["metric"] == metric], drawn, metric_name(metric), str(curve))
            for metric in curve_metrics(rows, findings)
        ]
        yield StudyFigure(
            file_name("curve", str(number), str(curve), str(unit))[:80],
            f"Along {curve}: {titles.get(str(unit), unit)}",
            f"Mean over the splits at each setting; a band reaches {_SPREAD}.",
            tuple(panels),
        )


_LOGARITHMIC_FROM = 20
_LEAST_SPAN = 0.1  # a smaller one would make noise look like a trend


def _band_panel(
    rows: pd.DataFrame, looks: Mapping[str, Look], metric: str, parameter: str
) -> Panel:
    """Draw one metric along a parameter."""
    settings = sorted(float(one) for one in rows["setting"].unique())
    scores = _summarise(rows, "setting", settings, tuple(looks))
    ends = [
        f"{method} from {known.iloc[0]:.3f} to {known.iloc[-1]:.3f}"
        for method in looks
        if len(known := scores.means[method].dropna())
    ]
    alt = (
        f"{metric} along {parameter}, from {settings[0]:.6g} to {settings[-1]:.6g}. "
        f"{'; '.join(ends)}."
    )
    names = short(list(looks))

    def drawing(axes: Axes) -> None:
        for method, look in looks.items():
            means, spread = scores.means[method], scores.deviations[method]
            order = 2.5 if look.ours else 2  # ours are drawn over the others
            axes.fill_between(
                settings,
                means - spread,
                means + spread,
                color=look.colour,
                alpha=0.2 if look.ours else 0.13,
                linewidth=0,
                zorder=order,
            )
            axes.plot(
                settings,
                means,
                color=look.colour,
                ls=look.dash,
                lw=2.2 if look.ours else 1.5,
                marker=look.marker,
                ms=5,
                mec=_WHITE,
                mew=0.6,
                zorder=order,
                label=legend_name(names[method]),
            )
        if is_logarithmic(settings):
            axes.set_xscale("log")
        turned = 45 if len(settings) > 5 else 0
        axes.set_xticks(settings, [f"{one:.6g}" for one in settings], rotation=turned)
        axes.minorticks_off()
        low, high = scores.reach
        margin = max(0.05 * (high - low), (_LEAST_SPAN - (high - low)) / 2)
        axes.set_ylim(low - margin, high + margin)
        axes.set(xlabel=readable(parameter, 50), ylabel=metric)
        axes.grid(True)

    return Panel(metric, alt, drawing, (NARROW, 290))


def is_logarithmic(settings: Sequence[float]) -> bool:
    """Whether settings span so much that a logarithmic axis shows them better."""
    return min(settings) > 0 and max(settings) / min(settings) > _LOGARITHMIC_FROM


def _unit_scores(findings: Findings, metric: str) -> _Summary:
    rows = findings.scores[findings.scores["metric"] == metric]
    return _summarise(rows, "unit", [unit.name for unit in findings.units], findings.methods)


def _summarise(
    rows: pd.DataFrame, along: str, order: Sequence[object], methods: Sequence[str]
) -> _Summary:
    finite = rows[np.isfinite(rows["value"].astype(float))]
    groups = finite.groupby([along, "method"])["value"]
    means, deviations = (
        one.unstack("method").reindex(index=list(order), columns=list(methods)).astype("float64")
        for one in (groups.mean(), groups.std(ddof=1))
    )
    return _Summary(means, deviations)


def write_figures(findings: Findings, folder: str | Path) -> list[Path]:
    """Write each figure to an SVG file of its own, in a folder that is made if it is not there."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {folder / f"{one.name}.svg": one for one in study_figures(findings)}
    for path, figure in figures.items():
        write_atomically(path, compose(figure))
    return list(figures)


_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "setconv",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.parse_math": False,  # names are no formulas
    "text.color": INK,
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "grid.color": "#e3e6eb",
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.0,
}
_DPI = 72  # a pixel of a panel is then a point
_TITLE, _LEGEND_ROW = 26, 18  # pixels of height
_LEGEND_CHARACTER, _LEGEND_LINE = 7, 46  # pixels of width


def compose(figure: StudyFigure) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    columns = min(figure.columns, len(figure.panels))
    rows = [figure.panels[at : at + columns] for at in range(0, len(figure.panels), columns)]
    heights = [max(one.size[1] + _TITLE * bool(one.title) for one in row) for row in rows]
    width = max(sum(panel.size[0] for panel in row) for row in rows)
    content = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # What the font lacks is left to the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        sheet = Figure(dpi=_DPI, layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
        FigureCanvasSVG(sheet)
        grid = sheet.add_gridspec(len(rows), columns, height_ratios=heights)
        for number, panel in enumerate(figure.panels):
            axes = sheet.add_subplot(grid[divmod(number, columns)])
            panel.drawing(axes)
            if panel.title:
                axes.set_title(readable(panel.title, 60))
        height = sum(heights)
        if figure.title:
            sheet.suptitle(readable(figure.title, 90), fontsize=12.5, fontweight="bold")
            height += _TITLE
        handles, names = sheet.axes[0].get_legend_handles_labels()
        if handles:
            room = max(map(len, names)) * _LEGEND_CHARACTER + _LEGEND_LINE
            n_columns = max(1, min(len(names), int(width / room)))
            height += _LEGEND_ROW * -(-len(names) // n_columns)
            sheet.legend(
                handles,
                names,
                loc="outside lower center",
                ncols=n_columns,
                frameon=False,
                fontsize=9.5,
            )
        sheet.set_size_inches(width / _DPI, height / _DPI)
        sheet.savefig(content, format="svg", facecolor=_WHITE, metadata={"Date": None})
    return content.getvalue()


def legend_name(name: str) -> str:
    """Return a label that the legend shows even where the name begins with an underscore."""
    return f" {name}"


def file_name(*parts: str) -> str:
    """Return a name of small letters, digits and hyphens, for a file or an element."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "x" for part in parts)


def wrapped(text: str, width: int, lines: int) -> str:
    """Return a name in at most so many lines of at most so many characters."""
    shown = readable(text, width * lines * 2)
    return "\n".join(textwrap.wrap(shown, width, max_lines=lines, placeholder="…"))


def short(names: Sequence[str], limit: int = 26) -> dict[str, str]:
    """Return names cut to a length, still different from one another."""
    cut = [readable(name, limit) for name in names]
    return {
        name: one if cut.count(one) == 1 else f"{one} [{number}]"
        for number, (name, one) in enumerate(zip(names, cut, strict=True), 1)
    }
