"""The figures of a study: every bar, line and label stands where the scores say."""

from xml.etree import ElementTree

import demsar
import numpy as np
import pytest
from made_findings import HOSTILE, made_up, unit
from matplotlib.colors import same_color

from setconv.experiment import figures
from setconv.experiment.figures import INK, STRONG, method_colours, rank_diagrams
from setconv.experiment.statistics import nemenyi

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def findings():
    return made_up(settings=(1000, 2000, 4000))


@pytest.fixture
def drawn(monkeypatch):
    """All axes that are drawn, by their titles."""
    found = {}
    save = figures.Figure.savefig

    def keep(figure, *arguments, **others):
        found.update({axes.get_title(): axes for axes in figure.axes})
        save(figure, *arguments, **others)

    monkeypatch.setattr(figures.Figure, "savefig", keep)
    return found


def by_name(findings):
    return {figure.name: figure for figure in figures.study_figures(findings)}


def texts(svg):
    return [
        "".join(one.itertext()).strip() for one in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


# ----------------------------------------------------------------------------------------- bars


def test_there_is_one_bar_for_each_method_and_unit_as_long_as_its_mean(findings, drawn):
    made = by_name(findings)
    assert list(made) == ["scores", "ranks", "curve-1-post-size-unit-0"]
    f1 = findings.scores[(findings.scores.metric == "f1") & (findings.scores.curve == "")]
    groups = f1.groupby(["unit", "method"])["value"]
    list(figures._scores(findings))  # the last that was drawn
    axes = drawn["F1"]
    bars = sorted((bar for bar in axes.patches if bar.get_width()), key=lambda bar: bar.get_y())
    expected = [groups.mean()[u.name, m] for u in findings.units for m in findings.methods]
    assert [bar.get_width() for bar in bars] == pytest.approx(expected)
    assert [bar.get_x() for bar in bars] == [0] * len(bars)
    whiskers = [np.ptp(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
    assert sorted(whiskers) == pytest.approx(sorted(2 * groups.std(ddof=1)))
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["unit 0 (2.50)", "unit 1 (6.25)", "unit 2 (10.00)"]


def test_no_two_methods_look_the_same_and_ours_are_strong():
    methods = [f"m{i}" for i in range(20)]
    for ours in (["m0", "m7", "m9"], methods[:10]):
        colours = method_colours(methods, ours)
        assert len(set(colours.values())) == 20
    assert [colours[name] in STRONG for name in methods] == [False] * 20
    assert method_colours(methods, ["m3"])["m3"] == STRONG[0]


# ------------------------------------------------------------------------------ curves and ranks


def test_a_curve_has_a_line_and_a_band_for_each_method(findings, drawn):
    figure = by_name(findings)["curve-1-post-size-unit-0"]
    assert {"F1", "G-mean", "AUC"} <= set(texts(figure.svg))
    axes = drawn["F1"]
    assert len(axes.collections) == len(findings.methods)
    rows = findings.scores.query("curve != '' and metric == 'f1' and method == 'SetConv'")
    means, spread = (getattr(rows.groupby("setting")["value"], name)() for name in ("mean", "std"))
    ours, *_ = [line for line in axes.lines if same_color(line.get_color(), STRONG[0])]
    assert list(ours.get_xdata()) == [1000, 2000, 4000]
    assert ours.get_ydata() == pytest.approx(means.to_numpy())
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((means + spread).max())
    assert corners.min() == pytest.approx((means - spread).min())
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1000", "2000", "4000"]


def test_bars_of_a_diagram_join_what_does_not_differ(drawn):
    comparison = nemenyi(demsar.scores(), higher_is_better=True)
    rank_diagrams("", {"AUC": comparison}, dict.fromkeys(comparison.ranks.index, INK))
    axes = drawn["AUC (critical difference 1.25)"]
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 3.5]
    ends = [
        [comparison.ranks[group[0]], comparison.ranks[group[-1]]] for group in comparison.groups
    ]
    assert [[bar[0], bar[-1]] for bar in bars] == ends


# ------------------------------------------------------------------------------------ odd input


def test_names_are_text_whatever_they_hold():
    names = [HOSTILE, "$\\alpha_1$", "日本", "_a & b_"]
    units = [unit(HOSTILE), unit("<b>&\"'$y$")]
    made = by_name(made_up(units=units, methods=names, settings=(1, 2), metrics=("f1",)))
    assert {"$\\alpha_1$", "日本", "_a & b_"} <= set(texts(made["scores"].svg))
    for figure in made.values():
        tags = {one.tag for one in ElementTree.fromstring(figure.svg).iter()}
        assert not tags & {f"{SVG}img", f"{SVG}script", f"{SVG}b"}
