"""The figures of a study: every bar, line and label stands where the scores say."""

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import demsar
import numpy as np
import pytest
from figure_findings import HOSTILE, make_findings, make_unit
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from setconv.errors import MissingDependencyError
from setconv.experiment.figures import (
    INK,
    STRONG,
    compose,
    is_logarithmic,
    method_looks,
    rank_panel,
    short,
    study_figures,
    wrapped,
    write_figures,
)
from setconv.experiment.statistics import nemenyi

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def findings():
    return make_findings(settings=(1000, 2000, 4000))


def figure_of(findings, name):
    return {figure.name: figure for figure in study_figures(findings)}[name]


def drawn(panel):
    axes = Figure().add_subplot()
    panel.drawing(axes)
    return axes


def mean(findings, unit, method, metric):
    chosen = findings.scores
    for column, value in (("unit", unit), ("method", method), ("metric", metric)):
        chosen = chosen[chosen[column] == value]
    return chosen["value"].mean()


def texts(svg):
    return [
        "".join(one.itertext()).strip() for one in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


# ----------------------------------------------------------------------------------------- bars


def test_a_study_has_the_figures_of_the_paper(findings):
    names = [figure.name for figure in study_figures(findings)]
    assert names == ["scores", "diagnosis", "ranks", "curve-1-post-size-unit-0"]
    panels = [panel.title for panel in figure_of(findings, "scores").panels]
    assert panels == ["F1", "G-mean", "AUC"]


def test_there_is_one_bar_for_each_method_and_unit_as_high_as_its_mean(findings):
    axes = drawn(figure_of(findings, "scores").panels[0])
    bars = sorted(axes.patches, key=lambda bar: bar.get_x())
    heights = [bar.get_height() for bar in bars]
    expected = [
        mean(findings, unit.name, method, "f1")
        for unit in findings.units
        for method in findings.methods
    ]
    assert heights == pytest.approx(expected)
    assert [bar.get_y() for bar in bars] == [0] * len(bars)


def test_whiskers_are_the_standard_deviation_of_the_splits(findings):
    axes = drawn(figure_of(findings, "scores").panels[0])
    lengths = [np.ptp(path[:, 1]) for one in axes.collections for path in one.get_segments()]
    groups = findings.scores.query("metric == 'f1'").groupby(["unit", "method"])["value"]
    assert sorted(lengths) == pytest.approx(sorted(2 * groups.std(ddof=1)))


def test_each_group_is_named_with_its_imbalance_ratio_in_brackets(findings):
    axes = drawn(figure_of(findings, "scores").panels[0])
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        "unit 0\n(2.50)",
        "unit 1\n(6.25)",
        "unit 2\n(10.00)",
    ]


def test_bars_in_the_svg_are_in_proportion_to_the_scores(findings):
    figure = figure_of(findings, "scores")
    heights = []
    svg = compose(replace(figure, panels=figure.panels[:1]))
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if f"fill: {STRONG[0]}" in path.get("style", "") and len(heights) < 3:
            y = [float(one) for one in re.findall(r"[ML] [\d.]+ ([\d.]+)", path.get("d"))]
            heights.append(max(y) - min(y))
    expected = [mean(findings, unit.name, "SetConv", "f1") for unit in findings.units]
    assert np.array(heights) / heights[0] == pytest.approx(np.array(expected) / expected[0], 1e-3)


def test_many_units_are_wrapped_into_rows_with_one_scale():
    many = make_findings(n_units=10, methods=[f"m{i}" for i in range(15)], ours=["m0"])
    rows = figure_of(many, "scores").panels[:4]
    axes = [drawn(row) for row in rows]
    assert [len(one.get_xticks()) for one in axes] == [3, 3, 3, 1]
    assert len({one.get_ylim() for one in axes}) == len({one.get_xlim() for one in axes}) == 1
    assert sum(len(one.patches) for one in axes) == 150
    assert max(row.size[0] for row in rows) <= 960


def test_a_bar_reaches_down_where_a_metric_is_negative():
    findings = make_findings(metrics=("mcc",))
    findings.scores["value"] -= 0.9
    low, high = drawn(figure_of(findings, "scores").panels[0]).get_ylim()
    assert low < findings.scores["value"].groupby(findings.scores["unit"]).mean().min() < 0 < high


# ------------------------------------------------------------------------- looks of the methods


def test_no_two_methods_look_the_same_and_ours_are_strong():
    looks = method_looks([f"m{i}" for i in range(20)], ["m0", "m7", "m9"])
    assert len({(look.colour, look.hatch) for look in looks.values()}) == 20
    assert len({(look.colour, str(look.dash), look.marker) for look in looks.values()}) == 20
    strong = {name for name, look in looks.items() if look.colour in STRONG}
    assert strong == {"m0", "m7", "m9"}


def test_a_figure_shows_every_method_in_its_legend_once(findings):
    found = texts(compose(figure_of(findings, "scores")))
    assert [found.count(method) for method in findings.methods] == [1] * len(findings.methods)


def test_names_that_are_cut_stay_different():
    cut = short(["a" * 60 + "1", "a" * 60 + "2", "b"])
    assert len(set(cut.values())) == 3
    assert max(map(len, cut.values())) < 40
    assert wrapped("one two three four five", 9, 2) == "one two\nthree…"


# ------------------------------------------------------------------------------------ diagnosis


def test_a_line_joins_specificity_and_sensitivity_of_each_method(findings):
    figure = figure_of(findings, "diagnosis")
    assert [panel.title for panel in figure.panels] == [unit.title for unit in findings.units]
    axes = drawn(figure.panels[1])
    assert [text.get_text() for text in axes.get_yticklabels()] == list(findings.methods)
    lines = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    expected = [
        [mean(findings, "unit 1", method, metric) for metric in ("specificity", "sensitivity")]
        for method in findings.methods
    ]
    assert np.array(lines) == pytest.approx(np.array(expected))
    gaps = {method: abs(a - b) for method, (a, b) in zip(findings.methods, expected, strict=True)}
    assert f"smallest for {min(gaps, key=gaps.get)}" in figure.panels[1].alt


def test_without_sensitivity_specificity_is_a_metric_like_others():
    findings = make_findings(metrics=("f1", "specificity"))
    assert "diagnosis" not in [figure.name for figure in study_figures(findings)]
    assert [one.title for one in figure_of(findings, "scores").panels] == ["F1", "Spec"]


# --------------------------------------------------------------------------------------- curves


def test_a_curve_has_a_line_and_a_band_for_each_method(findings):
    figure = figure_of(findings, "curve-1-post-size-unit-0")
    assert [panel.title for panel in figure.panels] == ["F1", "G-mean", "AUC"]
    axes = drawn(figure.panels[0])
    assert len(axes.lines) == len(axes.collections) == len(findings.methods)
    rows = findings.curves.query("metric == 'f1' and method == 'SetConv'").groupby("setting")
    ours = next(line for line in axes.lines if same_color(line.get_color(), STRONG[0]))
    assert list(ours.get_xdata()) == [1000, 2000, 4000]
    assert ours.get_ydata() == pytest.approx(rows["value"].mean().to_numpy())
    band = next(
        one for one in axes.collections if same_color(one.get_facecolor()[0][:3], ours.get_color())
    )
    corners = band.get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((rows["value"].mean() + rows["value"].std()).max())
    assert corners.min() == pytest.approx((rows["value"].mean() - rows["value"].std()).min())


def test_ticks_stand_at_the_settings():
    findings = make_findings(settings=(1000, 2000, 4000))
    axes = drawn(figure_of(findings, "curve-1-post-size-unit-0").panels[0])
    assert list(axes.get_xticks()) == [1000, 2000, 4000]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1000", "2000", "4000"]
    assert axes.get_xscale() == "linear"


@pytest.mark.parametrize(
    ("settings", "logarithmic"),
    [([1, 20], False), ([1, 21], True), ([0, 500], False), ([-1, 500], False), ([5], False)],
)
def test_the_axis_is_logarithmic_beyond_a_factor_of_20(settings, logarithmic):
    assert is_logarithmic(settings) is logarithmic


def test_noise_does_not_look_like_a_trend():
    findings = make_findings(settings=(1, 2), methods=["a"], ours=["a"])
    findings.curves["value"] = 0.8
    low, high = drawn(figure_of(findings, "curve-1-post-size-unit-0").panels[0]).get_ylim()
    assert high - low == pytest.approx(0.1)


# ---------------------------------------------------------------------------------------- ranks


def test_each_metric_has_its_critical_difference_diagram(findings):
    figure = figure_of(findings, "ranks")
    assert len(figure.panels) == len(findings.metrics)
    found = texts(compose(figure))
    assert {"SetConv  1.00", "4.00  CS-DMLP", "1", "4"} <= set(found)
    assert "F1 (3 sources, fewer than 10: nothing is claimed)" in found


def test_bars_of_a_diagram_join_what_does_not_differ():
    comparison = nemenyi(demsar.scores(), higher_is_better=True)
    colours = dict.fromkeys(comparison.ranks.index, INK)
    panel = rank_panel(comparison, "AUC", colours)
    assert panel.title == "AUC (critical difference 1.25)"
    bars = [line.get_xdata() for line in drawn(panel).lines if line.get_linewidth() == 3.5]
    ends = [
        [comparison.ranks[group[0]], comparison.ranks[group[-1]]] for group in comparison.groups
    ]
    assert [[bar[0], bar[-1]] for bar in bars] == ends


@pytest.mark.parametrize(
    "changes",
    [{"n_units": 1}, {"methods": ["a", "b"], "ours": ["a"]}, {"units": "one source"}],
    ids=str,
)
def test_without_units_sources_or_methods_enough_there_is_no_diagram(changes):
    if "units" in changes:
        changes = {"units": [make_unit(number, source="one") for number in range(3)]}
    names = [figure.name for figure in study_figures(make_findings(**changes))]
    assert names == ["scores", "diagnosis"]


# ------------------------------------------------------------------------------------ odd input


def test_a_metric_without_a_number_has_no_panel():
    findings = make_findings()
    findings.scores.loc[findings.scores["metric"] == "auc", "value"] = np.nan
    assert [one.title for one in figure_of(findings, "scores").panels] == ["F1", "G-mean"]


def test_a_cross_stands_where_a_method_has_no_score():
    findings = make_findings(failed=[("unit 1", "IHT")])
    axes = drawn(figure_of(findings, "scores").panels[0])
    assert len(axes.patches) == 3 * 4 - 1
    (cross,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert cross.get_ydata()[0] == 0
    left, right = sorted(bar.get_x() for bar in axes.patches)[5:7]
    assert left < cross.get_xdata()[0] < right


def test_one_unit_one_method_and_one_split_make_figures_without_whiskers():
    findings = make_findings(
        n_units=1, methods=["a"], ours=["a"], n_splits=1, settings=(1,), metrics=("f1",)
    )
    axes = drawn(figure_of(findings, "scores").panels[0])
    assert len(axes.patches) == 1
    assert not any(len(path) for one in axes.collections for path in one.get_segments())
    assert all(map(compose, study_figures(findings)))


def test_findings_without_scores_have_no_figures():
    findings = make_findings()
    empty = replace(findings, scores=findings.scores.iloc[:0])
    assert study_figures(empty) == []


def test_names_are_text_whatever_they_hold(tmp_path):
    names = [HOSTILE, "$\\alpha_1$", "日本", "_a & b_"]
    findings = make_findings(
        units=[make_unit(0, HOSTILE), make_unit(1, "<b>&\"'$y$")],
        methods=names,
        ours=names[:1],
        settings=(1, 2),
        metrics=("f1", "specificity", "sensitivity"),
    )
    figures = {figure.name: figure for figure in study_figures(findings)}
    assert {"$\\alpha_1$", "日本", "_a & b_"} <= set(texts(compose(figures["diagnosis"])))
    assert figures["diagnosis"].panels[1].title == "<b>&\"'$y$ (6.25)"
    assert {"<b>&\"'$y$", "_a & b_"} <= set(texts(compose(figures["scores"])))
    for path in write_figures(findings, tmp_path):
        tags = {one.tag for one in ElementTree.parse(path).iter()}
        assert not tags & {f"{SVG}img", f"{SVG}script", f"{SVG}b"}


# ---------------------------------------------------------------------------------------- files


def test_figures_are_written_to_files_of_their_own(findings, tmp_path):
    paths = write_figures(findings, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [
        "scores.svg",
        "diagnosis.svg",
        "ranks.svg",
        "curve-1-post-size-unit-0.svg",
    ]
    assert sorted(tmp_path.glob("new/folder/*")) == sorted(paths)
    content = paths[0].read_text(encoding="utf-8")
    assert {*findings.methods, "unit 0", "(2.50)", "F1", "G-mean", "AUC"} <= set(texts(content))


def test_the_same_findings_give_the_same_bytes(tmp_path):
    small = make_findings(n_units=1, methods=[f"m{i}" for i in range(12)], metrics=("f1",))
    one = [path.read_bytes() for path in write_figures(small, tmp_path / "one")]
    two = [path.read_bytes() for path in write_figures(small, tmp_path / "two")]
    assert one == two


def test_figures_without_their_packages_name_the_pip_line(monkeypatch):
    monkeypatch.delitem(sys.modules, "setconv.experiment.figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[experiment\]'"):
        import setconv.experiment.figures  # noqa: F401
