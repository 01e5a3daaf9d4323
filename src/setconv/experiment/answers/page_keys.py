"""The keys of a legend, as small pictures that follow the page's style."""

from __future__ import annotations

from markupsafe import Markup

from setconv.experiment.answers.figure_style import MARKERS, Look

# Around the point (15, 7), in the order of the markers.
_SHAPES = dict(
    zip(
        MARKERS,
        (
            "M11 7a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
            "M11.5 3.5h7v7h-7z",
            "M15 2.5l4.5 8h-9z",
            "M15 2l5 5l-5 5l-5-5z",
            "M15 11.5l4.5-8h-9z",
            "M13.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
            "M12.5 2.5l2.5 2.5l2.5-2.5l2 2l-2.5 2.5l2.5 2.5l-2 2l-2.5-2.5l-2.5 2.5l-2-2l2.5-2.5"
            "l-2.5-2.5z",
            "M15 2.5l4.5 3.3l-1.7 5.2h-5.6l-1.7-5.2z",
        ),
        strict=True,
    )
)
# In the order of the hatches.
_HATCHES = (
    "",
    "M-2 8L8-2M2 12L14 0M8 14L16 6",
    "M-2 8L8-2M2 12L14 0M8 14L16 6M6-2L16 8M0 0L12 12M-2 6L6 14",
    "M3 3h.1M9 3h.1M6 6h.1M12 6h.1M3 9h.1M9 9h.1M6 12h.1M12 12h.1",
)


def bar_key(look: Look) -> Markup:
    """Return a piece of a bar."""
    hatch = _HATCHES[look.round % len(_HATCHES)]
    stripes = f'<path d="{hatch}" style="fill: none; stroke: var(--card); stroke-width: 1.6"/>'
    return Markup(
        '<svg class="key" viewBox="0 0 14 14" aria-hidden="true">'
        f'<path d="M0 0h14v14H0z" style="fill: var(--{look.colour})"/>'
        f"{stripes if hatch else ''}</svg>"
    )


def line_key(look: Look) -> Markup:
    """Return a piece of a line with its marker."""
    dash = "none" if isinstance(look.dash, str) else " ".join(map(str, look.dash[1]))
    return Markup(
        '<svg class="key wide" viewBox="0 0 30 14" aria-hidden="true">'
        f'<path d="M0 7H30" style="fill: none; stroke: var(--{look.colour}); '
        f'stroke-width: {2.4 if look.ours else 1.7}; stroke-dasharray: {dash}"/>'
        f'<path d="{_SHAPES[look.marker]}" style="fill: var(--{look.colour})"/></svg>'
    )
