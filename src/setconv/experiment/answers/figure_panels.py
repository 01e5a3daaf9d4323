"""What a figure is made of: panels that can be drawn into a page or onto paper."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from setconv.needs import needed

with needed("a figure of a study", "jinja2", "report"):
    from markupsafe import Markup

from setconv.experiment.answers.figure_style import PAGE, Look, Palette, for_page
from setconv.experiment.answers.table_sheet import plain
from setconv.report.svg import draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NARROW = 410  # pixels of a panel that has room beside another
PanelDrawing = Callable[["Axes", Palette], None]


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    name : str
        Unique in the page.
    title : str
        Over the panel; may be empty.
    alt : str
        What it shows, for those who cannot see it.
    drawing : callable
        Draws on axes with the colours of a palette.
    size : (float, float)
        In pixels.
    """

    name: str
    title: str
    alt: str
    drawing: PanelDrawing
    size: tuple[float, float]

    def inline(self) -> Markup:
        """Return the panel as SVG for the middle of a page."""
        with quiet_about_fonts():
            svg = draw(self.name, plain(self.alt), lambda axes: self.drawing(axes, PAGE), self.size)
        return Markup(for_page(svg))


@dataclass(frozen=True)
class StudyFigure:
    """A figure: panels that share a legend.

    Attributes
    ----------
    name : str
        Good for a file name, unique in the study.
    title, caption : str
    panels : tuple of Panel
    columns : {1, 2}
        How many panels stand beside each other where there is room.
    legend : mapping of str to Look
        Methods that need a key.
    keys : {"bar", "line", ""}
        What the keys of the legend look like.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: Literal[1, 2]
    legend: Mapping[str, Look]
    keys: Literal["bar", "line", ""]


def file_name(*parts: str) -> str:
    """Return a name of small letters, digits and hyphens, for a file or an element."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "x" for part in parts)


@contextmanager
def quiet_about_fonts() -> Iterator[None]:
    """Draw names in any script: what the font lacks is left to the reader's fonts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
