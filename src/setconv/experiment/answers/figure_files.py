"""A figure as a file of its own, for a white page: SVG, PNG or PDF."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from setconv.experiment.answers.figure_panels import Panel, StudyFigure, quiet_about_fonts
from setconv.experiment.answers.figure_style import PAPER, Look, short
from setconv.report.wording import readable

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "setconv",
    "font.size": 10.5,
    "font.family": "sans-serif",
    "text.parse_math": False,
    "text.color": PAPER["ink"],
    "axes.edgecolor": PAPER["muted"],
    "axes.labelcolor": PAPER["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "xtick.color": PAPER["muted"],
    "ytick.color": PAPER["muted"],
    "grid.color": PAPER["grid"],
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.0,
}
_DPI = 72  # a pixel of a panel is then a point
_PRINTED_DPI = 200
_TITLE = 26
_LEGEND_ROW = 18
_CHARACTER = 7
_KEY = 46
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}
FORMATS = tuple(_METADATA)


def compose(figure: StudyFigure, form: str) -> bytes:
    """Draw all panels and the legend on one white sheet; the same figure gives the same bytes."""
    columns = min(figure.columns, len(figure.panels))
    rows = [figure.panels[at : at + columns] for at in range(0, len(figure.panels), columns)]
    heights = [max(_height(panel) for panel in row) for row in rows]
    width = max(sum(panel.size[0] for panel in row) for row in rows)
    in_legend = _legend_columns(figure, width)
    legend_rows = -(-len(figure.legend) // in_legend) if figure.keys else 0
    height = sum(heights) + _TITLE + _LEGEND_ROW * legend_rows
    with rc_context(_STYLE), quiet_about_fonts():
        sheet = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, layout=_layout())
        FigureCanvasAgg(sheet)
        grid = sheet.add_gridspec(len(rows), columns, height_ratios=heights)
        for number, panel in enumerate(figure.panels):
            axes = sheet.add_subplot(grid[divmod(number, columns)])
            axes.set_axisbelow(True)
            panel.drawing(axes, PAPER)
            if panel.title:
                axes.set_title(readable(panel.title, 60))
        sheet.suptitle(readable(figure.title, 90), fontsize=12.5, fontweight="bold")
        if legend_rows:
            sheet.legend(
                handles=_handles(figure),
                loc="outside lower center",
                ncols=in_legend,
                frameon=False,
                fontsize=9.5,
            )
        content = io.BytesIO()
        sheet.savefig(
            content,
            format=form,
            dpi=_PRINTED_DPI if form == "png" else _DPI,
            facecolor=PAPER["card"],
            metadata=_METADATA[form],
        )
    return content.getvalue()


def _layout() -> ConstrainedLayoutEngine:
    return ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1, hspace=0.03, wspace=0.03)


def _height(panel: Panel) -> float:
    return panel.size[1] + (_TITLE if panel.title else 0)


def _legend_columns(figure: StudyFigure, width: float) -> int:
    longest = max((len(name) for name in short(list(figure.legend))), default=1)
    return max(1, min(len(figure.legend), int(width / (longest * _CHARACTER + _KEY))))


def _handles(figure: StudyFigure) -> list[Artist]:
    names = short(list(figure.legend))
    key = _bar_key if figure.keys == "bar" else _line_key
    return [key(name, look) for name, look in zip(names, figure.legend.values(), strict=True)]


def _bar_key(name: str, look: Look) -> Artist:
    return Patch(
        facecolor=PAPER[look.colour],
        edgecolor=PAPER["card"],
        hatch=look.hatch or None,
        linewidth=0,
        label=name,
    )


def _line_key(name: str, look: Look) -> Artist:
    return Line2D(
        *([], []),
        color=PAPER[look.colour],
        ls=look.dash,
        lw=2.2 if look.ours else 1.5,
        marker=look.marker,
        ms=4.5,
        label=name,
    )
