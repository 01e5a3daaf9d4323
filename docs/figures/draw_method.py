"""Draw the picture of the method: docs/images/method.svg and docs/images/method.png.

Every number in it is computed: a set convolution with two inputs and two outputs is
fitted to toy rows, and one episode of these rows goes through it.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Arc, FancyBboxPatch
from numpy.typing import NDArray

Array = NDArray[np.float64]

IMAGES = Path(__file__).resolve().parents[1] / "images"
WIDTH, HEIGHT, DPI = 16.0, 7.0, 100  # inches, inches, pixels an inch

COLOURS = MAJORITY, MINORITY = "#5b7fa6", "#e07b00"  # told apart when colour-blind
INK, MUTED, LINE, FILL = "#1f2a36", "#55616e", "#a9b4c0", "#f3f5f8"
TITLE, TEXT, SMALL = 18, 16, 15  # points; SMALL is 10 px when shown 800 px wide
DOT, RING, STAR, DISC = 10, 12, 23, 25  # points: support row, query row, anchor, representative

MARGIN, GAP = 0.015, 0.042  # beside and between the panels, of the width
BOTTOM, TOP = 0.32, 0.88  # of the drawings, of the height
HEADING, CAPTION, LEADING, LEGEND = 0.937, 0.256, 0.043, 0.055  # the text's heights
SHARES = (1.0, 1.3, 1.12, 1.0)  # the panels' relative widths
TITLES = ("An episode", "Set convolution", "One representative a class", "Decision")
CAPTIONS = (
    "Support rows (filled) keep\nthe class ratio, here 8 to 1;\nquery rows are outlined.",
    "Each row is weighted by its\ndifference to the anchor; a class\nis the mean of its rows.",
    "48 rows or 6, a class becomes\none point: the classifier sees\na balanced problem.",
    "A query takes the class of\nthe nearest representative,\nby cosine.",
)

SUPPORT = (48, 6)  # rows of the majority and of the minority
POOL = 20  # toy rows for each support row
QUERIES, STEPS, RATE, NUDGE = 8, 120, 0.1, 1e-4  # of the fit
SCALE = 5.0  # cosines are multiplied by it before the softmax
FIT_SEED, EPISODE_SEED = 21, 64  # chosen so that the rows overlap little in print


def factors(x: Array, anchor: Array, weights: Array) -> tuple[Array, Array]:
    """Return both factors of h(x), a row each: g1(anchor - x) and x softmax(W)."""
    slope, bias, w = weights[:4].reshape(2, 2), weights[4:6], weights[6:].reshape(2, 2)
    return (anchor - x) @ slope + bias, x @ (np.exp(w) / np.exp(w).sum(axis=0))


def embed(x: Array, anchor: Array, weights: Array) -> Array:
    """Return h(x) of every row."""
    sensitive, attended = factors(x, anchor, weights)
    return sensitive * attended


def cosines(h: Array, representatives: Array) -> Array:
    """Return the cosine of every row with every representative."""
    lengths = np.outer(np.linalg.norm(h, axis=1), np.linalg.norm(representatives, axis=1))
    return np.asarray(h @ representatives.T / lengths)


def minority_probability(cosine: Array) -> Array:
    """Return P(minority) from the cosines with (majority, minority)."""
    return np.asarray(1 / (1 + np.exp(SCALE * (cosine[:, 0] - cosine[:, 1]))))


def draw_episode(pools: list[Array], rng: np.random.Generator, queries: int) -> list[list[Array]]:
    """Return the support rows and the query rows, an array a class."""
    rows = [rng.permutation(pool) for pool in pools]
    return [[r[:n] for r, n in zip(rows, SUPPORT, strict=True)], [r[-queries:] for r in rows]]


def fit(pools: list[Array], anchor: Array, rng: np.random.Generator) -> Array:
    """Fit the layer's ten weights, one episode a step, by numeric gradients."""

    def loss(weights: Array, support: list[Array], queries: list[Array]) -> float:
        means = np.stack([embed(x, anchor, weights).mean(axis=0) for x in support])
        p = [minority_probability(cosines(embed(q, anchor, weights), means)) for q in queries]
        return float(-np.log(1 - p[0]).mean() - np.log(p[1]).mean())

    weights = rng.normal(size=10)
    for _ in range(STEPS):
        rows = draw_episode(pools, rng, QUERIES)
        rise = [loss(weights + n, *rows) - loss(weights - n, *rows) for n in NUDGE * np.eye(10)]
        weights = weights - RATE * np.array(rise) / (2 * NUDGE)
    return weights


def dots(ax: Axes, points: Array, colour: str, size: float, **style: Any) -> None:
    """Draw points without lines, outlined ones when they are query rows."""
    look: dict[str, Any] = {"ls": "", "marker": "o", "ms": size, "color": colour, "mec": "white"}
    ring = {"mfc": "white", "mec": colour, "mew": 3} if size == RING else {}
    ax.plot(*np.atleast_2d(points).T, **look | ring | style)


def arrow(ax: Axes, x: tuple[float, float], y: tuple[float, float], **style: Any) -> None:
    """Draw an arrow from (x[0], y[0]) to (x[1], y[1])."""
    look: dict[str, Any] = {"color": LINE, "lw": 2, "shrinkA": 0, "shrinkB": 0} | style
    head = "-|>,head_width=.18,head_length=.36"
    ax.annotate("", (x[1], y[1]), (x[0], y[0]), arrowprops={"arrowstyle": head} | look)


def box(ax: Axes, x: float, y: float, width: float, height: float, *lines: str) -> None:
    """Draw a rounded box around (x, y): a bold first line, then muted ones."""
    corner, shape = (x - width / 2, y - height / 2), "round,pad=0,rounding_size=.2"
    ax.add_patch(FancyBboxPatch(corner, width, height, shape, fc=FILL, ec=LINE, lw=1.5))
    for i, line in enumerate(lines):
        look: dict[str, Any] = {"color": MUTED} if i else {"color": INK, "weight": "bold"}
        middle = y + ((len(lines) - 1) / 2 - i) * 0.7
        ax.text(x, middle, line, ha="center", va="center", size=SMALL, **look)


def pair(values: Array, digits: int) -> str:
    """Write two numbers."""
    text = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"({text})".replace("-", "\N{MINUS SIGN}")


def episode_panel(ax: Axes, support: list[Array], queries: list[Array], anchor: Array) -> None:
    """Draw support rows filled, query rows outlined, and the anchor."""
    for rows, query, colour in zip(support, queries, COLOURS, strict=True):
        dots(ax, rows, colour, DOT)
        dots(ax, query, colour, RING)
    dots(ax, anchor, INK, STAR, marker="*")


def convolution_panel(ax: Axes, query: Array, anchor: Array, weights: Array) -> None:
    """Draw how the minority query becomes its embedding, and a class its mean."""
    sensitive, attended = (factor[0] for factor in factors(query, anchor, weights))
    ax.set(xlim=(-0.05, 10.05), ylim=(-0.05, 10.05))
    dots(ax, np.array([1.1, 9.5]), MINORITY, RING)
    box(ax, 5, 9.5, 6.4, 1, f"row x = {pair(query[0], 1)}")
    weight, attention = "g\N{SUBSCRIPT ONE}(anchor \N{MINUS SIGN} x)", "x softmax(W)"
    box(ax, 2.4, 6.75, 4.8, 3.1, weight, "data-sensitive", "weight", pair(sensitive, 2))
    box(ax, 7.6, 6.75, 4.8, 3.1, attention, "feature", "attention", pair(attended, 2))
    for side in (-1, 1):
        arrow(ax, (5 + side * 1.6, 5 + side * 1.9), (9, 8.32))
        arrow(ax, (5 + side * 1.9, 5 + side * 0.5), (5.2, 4.67))
    ax.text(5, 4.55, "\N{CIRCLED DOT OPERATOR}", ha="center", va="center", size=24)
    arrow(ax, (5, 5), (4.2, 3.62))
    box(ax, 5, 2.75, 6.4, 1.7, f"h(x) = {pair(sensitive * attended, 1)}", "elementwise product")
    arrow(ax, (5, 5), (1.9, 1.02))
    box(ax, 5, 0.5, 9.8, 1, "mean over the rows of a class")


def representative_panel(ax: Axes, embedded: list[Array], means: Array) -> None:
    """Draw every support row's embedding, tied to its class's mean."""
    shifts = (3.0, 4.0), (3.8, 0.0)  # of the labels
    for h, mean, colour, shift in zip(embedded, means, COLOURS, shifts, strict=True):
        for row in h:
            ax.plot(*np.stack([row, mean]).T, color=colour, lw=1, alpha=0.35)
        dots(ax, h, colour, 6, alpha=0.5, mew=0)
        dots(ax, mean, colour, DISC, mew=2)
        label = f"{len(h)} rows \N{RIGHTWARDS ARROW} 1"
        ax.text(mean[0] + shift[0], mean[1] + shift[1], label, va="center")


def decision_panel(ax: Axes, query: Array, means: Array) -> None:
    """Draw the query's angles with both representatives and its P(minority)."""
    cosine = cosines(query, means)
    angles = np.degrees(np.arctan2(*np.vstack([means, query]).T[::-1]))
    marks = (12.0, (6.6, 3.0)), (17.0, (4.4, 17.5))  # an arc's diameter, its label's place
    for i, (size, place) in enumerate(marks):
        ax.plot([0, means[i, 0]], [0, means[i, 1]], color=COLOURS[i], lw=2.5)
        dots(ax, means[i], COLOURS[i], DISC, mew=2)
        low, high = sorted((angles[i], angles[2]))
        ax.add_patch(Arc((0, 0), size, size, theta1=low, theta2=high, color=COLOURS[i], lw=2.5))
        ax.text(*place, f"cos {cosine[0, i]:.2f}", va="center")
    ax.plot([0, query[0, 0]], [0, query[0, 1]], color=INK, lw=2)
    dots(ax, query, MINORITY, RING)

    chance, width, floor = float(minority_probability(cosine)[0]), 27.0, -16.0
    ax.barh(floor, width, 1.6, color=MAJORITY)
    ax.barh(floor, chance * width, 1.6, color=MINORITY)
    ax.text(0, floor + 1.7, f"P(minority) = {chance:.2f}", va="bottom")
    ax.set(xlim=(-2, 28), ylim=(floor - 1, 25), aspect="equal")


def draw_legend(figure: Figure) -> None:
    """Explain the marks in one line below the panels."""
    marks: tuple[dict[str, Any], ...] = (
        {"label": "majority row", "ms": DOT, "color": MAJORITY},
        {"label": "minority row", "ms": DOT, "color": MINORITY},
        {"label": "query row", "ms": RING, "mfc": "white", "mec": MUTED, "mew": 3},
        {"label": "anchor: mean of the minority class", "marker": "*", "ms": STAR, "color": INK},
        {"label": "representative", "ms": DISC, "color": MUTED},
    )
    handles = [Line2D([], [], **{"ls": "", "marker": "o", "mec": "white"} | m) for m in marks]
    figure.legend(handles=handles, loc="center", bbox_to_anchor=(0.5, LEGEND), ncols=len(marks))


def draw_frame(figure: Figure) -> list[Axes]:
    """Draw titles, captions and the arrows between panels; return the empty panels."""
    page = figure.add_axes((0, 0, 1, 1))
    page.axis("off")
    unit = (1 - 2 * MARGIN - GAP * (len(SHARES) - 1)) / sum(SHARES)
    panels: list[Axes] = []
    left = MARGIN
    for share, title, caption in zip(SHARES, TITLES, CAPTIONS, strict=True):
        middle, right = left + share * unit / 2, left + share * unit
        panels.append(figure.add_axes((left, BOTTOM, share * unit, TOP - BOTTOM)))
        panels[-1].axis("off")
        page.text(middle, HEADING, title, ha="center", size=TITLE, weight="bold")
        for i, line in enumerate(caption.splitlines()):
            page.text(middle, CAPTION - i * LEADING, line, ha="center")
        if len(panels) < len(SHARES):
            ends, height = (right + 0.2 * GAP, right + 0.8 * GAP), (BOTTOM + TOP) / 2
            arrow(page, ends, (height, height), color=MUTED, lw=3)
        left = right + GAP
    return panels


def main() -> None:
    """Fit the layer, pass one episode through it and write both files."""
    rng = np.random.default_rng(FIT_SEED)
    majority = rng.normal((3.8, 6.0), 1.3, (POOL * SUPPORT[0], 2))
    minority = rng.normal((7.0, 3.4), 0.9, (POOL * SUPPORT[1], 2))
    pools, anchor = [majority, minority], minority.mean(axis=0)
    weights = fit(pools, anchor, rng)
    support, queries = draw_episode(pools, np.random.default_rng(EPISODE_SEED), 1)
    embedded = [embed(x, anchor, weights) for x in support]
    means = np.stack([h.mean(axis=0) for h in embedded])

    mpl.rc("font", size=TEXT)
    mpl.rc("text", color=INK)
    mpl.rc("legend", fontsize=SMALL, labelcolor=MUTED, frameon=False)
    mpl.rc("legend", handlelength=1, columnspacing=2.2)
    mpl.rc("svg", hashsalt="setconv")
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, facecolor="white")
    panels = draw_frame(figure)
    episode_panel(panels[0], support, queries, anchor)
    convolution_panel(panels[1], queries[1], anchor, weights)
    representative_panel(panels[2], embedded, means)
    decision_panel(panels[3], embed(queries[1], anchor, weights), means)
    draw_legend(figure)

    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "method.svg", metadata={"Date": None})
    figure.savefig(IMAGES / "method.png")


if __name__ == "__main__":
    main()
