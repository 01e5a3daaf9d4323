"""What a figure is made of, and how it becomes a file: panels on a white sheet, with one style."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setconv.needs import needed
from setconv.report.wording import readable

with needed("a figure of a study", "matplotlib", "experiment"):
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GREY, WHITE = "#1d2430", "#5b6472", "#ffffff"
STRONG = ("#0068a8", "#c8500a", "#00805d", "#a6528a", "#9a6700", "#2f93c9")
# Calm colours for the methods that the study compares with.
CALM = (
    *("#8792a2", "#d0a95f", "#86b583", "#cf8fa4"),
    *("#978bc6", "#62b0b8", "#b98667", "#b3ba62"),
)
_HATCHES = ("", "/////", "xxxx", ".....")
_DASHES = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
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
_TITLE, _LEGEND_ROW = 26, 18
_CHARACTER, _KEY = 7, 46
NARROW = 410  # pixels of a panel that has room beside another


@dataclass(frozen=True)
class Look:
    """How one method is drawn: the hatch is that of its bars, the dash that of its lines."""

    colour: str
    marker: str
    hatch: str
    dash: Any
    ours: bool


def method_looks(methods: Sequence[str], ours: Sequence[str]) -> dict[str, Look]:
    """Return how each method is drawn: ours in strong colours, the others in calm ones."""
    looks, counts = {}, {True: 0, False: 0}
    for method in methods:
        mine = method in ours
        colours = STRONG if mine else CALM
        # Where colours are used up, they come again with another hatch and dash.
        again, place = divmod(counts[mine], len(colours))
        dash = _DASHES[(again + (not mine)) % len(_DASHES)]
        hatch = _HATCHES[again % len(_HATCHES)]
        looks[method] = Look(colours[place], _MARKERS[place], hatch, dash, mine)
        counts[mine] += 1
    return looks


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
            room = max(map(len, names)) * _CHARACTER + _KEY
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
        sheet.savefig(content, format="svg", facecolor=WHITE, metadata={"Date": None})
    return content.getvalue()


def file_name(*parts: str) -> str:
    """Return a name of small letters, digits and hyphens, for a file or an element."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "x" for part in parts)


def wrapped(text: str, width: int, lines: int) -> str:
    """Return a name in at most so many lines of at most so many characters."""
    shown = readable(text, width * lines * 2)
    return "\n".join(textwrap.wrap(shown, width, max_lines=lines, placeholder="…"))


def key(name: str) -> str:
    """Return a label for the legend, which leaves out what begins with an underscore."""
    return f" {name}"


def short(names: Sequence[str], limit: int = 26) -> dict[str, str]:
    """Return names cut to a length, still different from one another."""
    cut = [readable(name, limit) for name in names]
    return {
        name: one if cut.count(one) == 1 else f"{one} [{number}]"
        for number, (name, one) in enumerate(zip(names, cut, strict=True), 1)
    }
