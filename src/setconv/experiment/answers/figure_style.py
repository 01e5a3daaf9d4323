"""How a method looks in every figure of a study: colour, hatch, dash and marker."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setconv.experiment.answers.findings import Findings
from setconv.report.svg import COLOURS, SERIES
from setconv.report.wording import readable

Dash = str | tuple[int, tuple[float, ...]]
Palette = Mapping[str, str]

# Calm colours for the methods that the study compares with; the dark ones are in page.html.
MUTED = {
    "m0": "#8792a2",
    "m1": "#d0a95f",
    "m2": "#86b583",
    "m3": "#cf8fa4",
    "m4": "#978bc6",
    "m5": "#62b0b8",
    "m6": "#b98667",
    "m7": "#b3ba62",
}
_STAND_INS = {name: f"#0103{number:02d}" for number, name in enumerate(MUTED)}

# What is drawn with while the page's style still decides: each is replaced by `var(--name)`.
PAGE: Palette = {**COLOURS, **_STAND_INS}
PAPER: Palette = {
    "ink": "#1d2430",
    "muted": "#5b6472",
    "grid": "#e3e6eb",
    "card": "#ffffff",
    "rest": "#9aa3af",
    "s0": "#0068a8",
    "s1": "#c8500a",
    "s2": "#00805d",
    "s3": "#a6528a",
    "s4": "#9a6700",
    "s5": "#2f93c9",
    **MUTED,
}

HATCHES = ("", "/////", "xxxx", ".....")
DASHES: tuple[Dash, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")


@dataclass(frozen=True)
class Look:
    """How one method is drawn.

    Attributes
    ----------
    colour : str
        Its name in a palette.
    marker : str
    round : int
        How often the colours were used up before: it chooses the hatch and the dash.
    ours : bool
    """

    colour: str
    marker: str
    round: int
    ours: bool

    @property
    def hatch(self) -> str:
        """The hatch of a bar, for matplotlib."""
        return HATCHES[self.round % len(HATCHES)]

    @property
    def dash(self) -> Dash:
        """The dash of a line, for matplotlib."""
        return DASHES[(self.round if self.ours else self.round + 1) % len(DASHES)]


def method_looks(findings: Findings) -> dict[str, Look]:
    """Return how each method is drawn: ours in strong colours, the others in calm ones."""
    looks, counts = {}, {True: 0, False: 0}
    for method in findings.methods:
        ours = method in findings.ours
        colours = SERIES if ours else tuple(MUTED)
        round_, place = divmod(counts[ours], len(colours))
        looks[method] = Look(colours[place], MARKERS[place], round_, ours)
        counts[ours] += 1
    return looks


def for_page(svg: str) -> str:
    """Let the page's style choose the calm colours too."""
    for name, stand_in in _STAND_INS.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return svg


def wrapped(text: str, width: int, lines: int) -> str:
    """Return a name in at most so many lines of at most so many characters."""
    parts = textwrap.wrap(readable(text, width * lines * 2), width) or ["(empty)"]
    if len(parts) > lines:
        parts = [*parts[: lines - 1], parts[lines - 1][: width - 1].rstrip() + "…"]
    return "\n".join(parts)


def short(names: Sequence[str], limit: int = 26) -> list[str]:
    """Return names cut to a length, still different from one another."""
    cut = [readable(name, limit) for name in names]
    return [
        one if cut.count(one) == 1 else f"{one} [{number}]" for number, one in enumerate(cut, 1)
    ]
