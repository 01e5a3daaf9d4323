"""From findings to tables: means, the best, marks, ranks, what is missing, costs and failures."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_findings import made, noisy, unit
from scipy import stats
from statsmodels.stats.multitest import multipletests

from setconv.experiment.results import BETTER, WORSE, compare
from setconv.experiment.tables import (
    by_metric,
    by_unit,
    cost_sheet,
    curve_sheets,
    failure_sheet,
    number,
    rank_sheet,
    sections,
)

NAN = math.nan


def texts(sheet):
    return [[str(cell) for cell in row] for row in sheet.rows]


def test_a_number_has_three_digits_and_no_zero_before_the_point():
    shown = {0.9716: ".972", 0.99951: "1.000", -0.0001: ".000", -0.0131: "-.013", NAN: "n/a"}
    assert [number(value) for value in shown] == list(shown.values())


# ------------------------------------------------------------------------------------------ marks


def test_marks_follow_the_corrected_test_and_holm_computed_elsewhere():
    levels = {"ours": 0.8, "a": 0.7, "b": 0.79, "c": 0.9, "d": 0.783}
    given = {("A", m, "f1"): noisy(v, seed) for seed, (m, v) in enumerate(levels.items())}
    raw = []
    for method in ("a", "b", "c", "d"):
        d = np.subtract(given["A", method, "f1"], given["A", "ours", "f1"])
        t = d.mean() / (d.std(ddof=1) * math.sqrt(1 / 10 + 3 / 7))
        raw.append(2 * stats.t.sf(abs(t), 9))
    expected = multipletests(raw, method="holm")[1]
    summary = made(given, methods=list(levels)).summary
    assert summary.p_value.tolist() == pytest.approx([NAN, *expected], nan_ok=True)
    assert summary.mark.tolist() == ["", WORSE, "", BETTER, ""]
    # Without Holm, and all the more without the correction, d would be marked.
    assert stats.ttest_rel(given["A", "d", "f1"], given["A", "ours", "f1"]).pvalue < 0.05


def test_the_best_are_those_with_all_splits_and_the_digits_of_the_highest_mean():
    levels = {"x": [0.90041] * 2, "y": [0.89961] * 2, "z": [0.89949] * 2, "part": [0.95, math.nan]}
    given = {("A", method, "f1"): values for method, values in levels.items()}
    (table,) = by_unit(made(given, methods=list(levels)))
    assert [row[1].bold for row in table.rows] == [True, True, False, False]
    assert texts(table)[3][1].endswith("(1)")


def test_lower_brier_scores_are_better():
    given = {("A", "ours", "brier"): [0.3, 0.4], ("A", "other", "brier"): [0.1, 0.2]}
    (table,) = by_unit(made(given, metrics=["brier"]))
    assert [row[1].bold for row in table.rows] == [False, True]
    assert table.head[1].endswith("↓")
    by_split = pd.DataFrame({"ours": [0.31, 0.30, 0.32], "other": [0.1, 0.1, 0.1]})
    assert compare(by_split, "ours", 3 / 7, higher_is_better=False)["mark"] == ["", BETTER]
    assert compare(by_split, "ours", 3 / 7, higher_is_better=True)["mark"] == ["", WORSE]
    ranks = ranked([(0.3, 0.2, 0.1)] * 3, metric="brier").ranks
    assert ranks.average.to_dict() == {"ours": 3.0, "x": 2.0, "y": 1.0}


def test_methods_are_compared_on_the_splits_that_both_have():
    by_split = pd.DataFrame(
        {"ours": [0.5, 0.6, 0.7, np.nan], "x": [0.4, 0.4, np.nan, 0.1], "y": [np.nan] * 3 + [1.0]}
    )
    _, x, y = compare(by_split, "ours", 0.5, higher_is_better=True)["p_value"]
    # Two splits: t = -.15 / sqrt((1/2 + 1/2) * .005), one degree of freedom, nothing to correct.
    assert x == pytest.approx(1 - 2 / math.pi * math.atan(0.15 / math.sqrt(0.005)))
    assert math.isnan(y)


# ------------------------------------------------------------------------------- what is missing


def test_what_has_no_figure_says_why_and_how_often():
    given = {("A", "ours", "f1"): [0.5, 0.6], ("A", "undefined", "f1"): [math.nan, math.nan]}
    done = [("A", "crashed", 0, "error", "boom", 1, 1), ("A", "ours", 0, "ok", "", 1, 1)]
    methods = ["ours", "undefined", "crashed", "waiting", "waiting too"]
    (table,) = by_unit(made(given, methods=methods, done=done))
    shown = [row[1] for row in texts(table)]
    assert shown == [".550 ± .071", "n/a", "failed", "\N{EN DASH}", "\N{EN DASH}"]
    counted = [note.partition(":")[0] for note in table.notes]
    assert counted == ["failed (1)", "\N{EN DASH} (2)", "n/a (1)"]


@given(st.data())
def test_every_unit_method_and_metric_has_an_entry(data):
    units, methods, metrics = ["A", "B"], ["ours", "x"], ["f1", "brier"]
    keys = [(u, m, q) for u in units for m in methods for q in metrics]
    values = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=4)
    given = {key: data.draw(values) for key in keys if data.draw(st.booleans())}
    summary = made(given, units=units, methods=methods, metrics=metrics).summary
    entries = {(e.unit, e.method, e.metric): e for e in summary.itertuples()}
    assert sorted(entries) == sorted(keys)
    for key, entry in entries.items():
        here = [one for one in given.get(key, []) if not math.isnan(one)]
        assert entry.n_splits == len(here)
        assert entry.mean == pytest.approx(np.mean(here) if here else math.nan, nan_ok=True)
        deviation = np.std(here, ddof=1) if len(here) > 1 else math.nan
        assert entry.sd == pytest.approx(deviation, abs=1e-12, nan_ok=True)
        assert math.isnan(entry.mean) == (not here) == (entry.state != "measured")
    for u in units:
        for q in metrics:
            column = [entries[u, m, q] for m in methods]
            assert any(e.best for e in column) == any(e.n_splits for e in column)


# ---------------------------------------------------------------------------------- the layouts


def test_units_are_blocks_of_their_data_set_or_stand_across_with_the_average_rank():
    units = [unit("S"), unit("D: hate", "D"), unit("D: none", "D")]
    levels = {"ours": 0.9, "x": 0.8, "y": 0.7}
    given = {(u.name, m, "f1"): noisy(v, 0) for u in units for m, v in levels.items()}
    found = made(given, units, methods=list(levels))
    single, double = by_unit(found)
    assert (single.title, double.title) == ("S (5.00)", "D")
    assert (single.head, double.head) == (["method", "F1"], ["unit", "method", "F1"])
    assert [row[0] for row in texts(double)] == ["D: hate (5.00)", "", "", "D: none (5.00)", "", ""]
    assert (single.rules, double.rules) == ([], [3])
    (f1,) = by_metric(found)
    assert f1.head == ["method", "S (5.00)", "D: hate (5.00)", "D: none (5.00)", "rank"]
    assert [row[-1] for row in texts(f1)] == ["1.00", "2.00", "3.00"]


def test_published_figures_stand_below_and_never_win():
    given = {("NYC: fire", m, "f1"): noisy(0.5, 1) for m in ("ours", "other")}
    units = [unit("NYC: fire", "NYC"), unit("NYC: none", "NYC")]
    table, *_ = by_unit(made(given, units, published="table4"))
    rows = texts(table)
    assert rows[2][:2] == ["", "IHT (published)"]
    assert [row[2] for row in rows if row[1] == "SetConv (published)"] == [".972 ± .002"]
    assert [cell.bold for row in table.rows[:3] for cell in row[2:]] == [True, True, False]
    assert table.notes[-1].startswith("(published)")
    assert [row[0] for row in rows if row[0]] == ["NYC: fire (5.00)", "NYC: none (5.00)"]


# ------------------------------------------------------------------------------------------ ranks


def ranked(levels, sources=None, methods=("ours", "x", "y"), metric="f1"):
    """One split a unit, with the scores that are given for each method."""
    names = [f"U{place}" for place in range(len(levels))]
    units = [unit(n, source=s) for n, s in zip(names, sources or names, strict=True)]
    given = {
        (name, method, metric): [value]
        for name, row in zip(names, levels, strict=True)
        for method, value in zip(methods, row, strict=True)
        if value is not None
    }
    return made(given, units=units, methods=methods, metrics=[metric]).rankings[metric]


def test_few_sources_claim_nothing_and_one_is_not_tested():
    alone = ranked([(0.9, 0.5, 0.1)] * 3, sources=["a"] * 3)
    assert alone.all_pairs is alone.against_ours is alone.omnibus is None
    assert rank_sheet(alone).head == ["method", "rank"]
    sheet = rank_sheet(ranked([(0.9, 0.5, 0.1)] * 4))
    assert "4 independent sources are fewer than 10" in sheet.caption
    assert texts(sheet) == [
        ["ours", "1.00", "", "", ""],
        ["x", "2.00", "+.400", "4/0/0", ".250"],
        ["y", "3.00", "+.800", "4/0/0", ".250"],
    ]
    assert [row[1].bold for row in sheet.rows] == [True, False, False]


def test_sources_enough_claim_what_the_tests_show():
    sheet = rank_sheet(ranked([(0.5, 0.1 + 0.01 * row, 0.9 - 0.01 * row) for row in range(12)]))
    assert [row[0] for row in texts(sheet)] == ["y", "ours", "x"]
    # All 12 sources agree: 2 / 2^12, and twice that after Holm for two comparisons.
    assert sheet.rows[0][-1].after == BETTER
    assert sheet.rows[2][-1].after == WORSE
    assert "p ≤ .05" in sheet.caption
    assert "fewer than 10" not in sheet.caption
    # q = 3.314 / sqrt(2) at three methods: 2.343 * sqrt(3 * 4 / (6 * 12))
    assert "critical difference at .05: 0.96" in sheet.caption


def test_a_method_that_failed_on_most_units_does_not_cost_the_others_their_ranks():
    found = ranked([(0.9, 0.5, 0.1), (0.9, 0.5, None), (0.5, 0.9, None), (0.9, None, None)])
    assert found.ranks.average.to_dict() == pytest.approx({"ours": 4 / 3, "x": 5 / 3})
    assert [note.rpartition(": ")[2] for note in found.notes] == ["y.", "U3."]


@pytest.mark.parametrize(
    ("units", "ours", "other"),
    [("", [], []), ("A", [0.9], [0.5]), ("AB", [0.9], []), ("AB", [0.5, NAN], [NAN, 0.5])],
    ids=["nothing", "one unit", "one method", "no common split"],
)
def test_without_ranks_there_is_a_reason(units, ours, other):
    given = {(u, m, "f1"): v for u in units for m, v in (("ours", ours), ("other", other))}
    found = made(given, units=["A", "B"])
    assert found.rankings["f1"].ranks is None
    (section,) = [one for one in sections(found) if one.title == "Average ranks"]
    assert (section.sheets, bool(section.text)) == ([], True)


# -------------------------------------------------------------------- costs, failures and curves


def test_costs_are_of_the_cells_that_ended_well():
    done = [
        ("Z", "ours", 0, "ok", "", 1234.5, 1500.4),
        ("A", "ours", 0, "ok", "", 1.0, 100.0),
        ("A", "ours", 1, "ok", "", 3.0, 300.0),
        ("A", "ours", 2, "timeout", "slow", 999.0, 9999.0),
        ("A", "other", 0, "error", "boom", 0.1, math.nan),
    ]
    assert texts(cost_sheet(made({}, units=["A", "Z"], done=done))) == [
        ["A", "ours", "2", "2.00", "300"],
        ["Z", "ours", "1", "1,234.50", "1,500"],
    ]


def test_failures_are_told_by_the_last_line_of_their_error():
    boom = "Traceback (most recent call last):\n  File x\nValueError: boom\n\n"
    done = [
        *[("A", "other", split, "error", boom, 1, 1) for split in (2, 0)],
        ("A", "other", 1, "timeout", "stopped after 60 s", 60, 1),
        ("A", "ours", 0, "ok", "", 1, 1),
    ]
    sheet = failure_sheet(made({}, done=done))
    assert texts(sheet) == [
        ["A", "other", "error", "0, 2", "ValueError: boom"],
        ["", "other", "timeout", "1", "stopped after 60 s"],
    ]
    assert sheet.caption.startswith("3 cells of 4")


def test_a_curve_is_a_table_for_each_metric_with_a_column_for_each_setting():
    rows = [
        ("size", "a", method, metric, split, setting, setting / 1000 + split / 10)
        for method in ("ours", "other")
        for metric in ("auc", "movement", "brier")
        for split in range(2)
        for setting in (100.0, 500.0)
        if (method, metric, setting) != ("other", "auc", 500.0)
    ]
    sheets = {one.title: one for one in curve_sheets(made({}, metrics=("auc",), curves=rows))}
    # The Brier score is no metric of this study; what was probed always is.
    assert set(sheets) == {"AUC along size: a", "Movement of representatives along size: a"}
    auc = sheets["AUC along size: a"]
    assert auc.head == ["method", "100", "500"]
    deviation = number(math.sqrt(0.005))
    assert texts(auc) == [
        ["ours", f".150 ± {deviation}", f".550 ± {deviation}"],
        ["other", f".150 ± {deviation}", "\u2013"],
    ]
