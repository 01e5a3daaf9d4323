"""Figures as SVG for the middle of a page: coloured by the page's style, the same bytes each time.

The figures hold no text of the user: names stand in legends that are part of the page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

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
