"""From findings to tables: means, the best, marks, ranks, what is missing, costs and failures."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from setconv.errors import DataError
from setconv.experiment.results import (
    METRIC_NAMES,
    PROBED,
    Findings,
    NoRanking,
    Unit,
    higher_is_better,
    joined,
    metric_name,
    ranking,
    scores_by_split,
)
from setconv.experiment.tables import (
    BETTER,
    WORSE,
    Entry,
    Key,
    by_metric,
    by_unit,
    compare,
    cost_sheet,
    curve_sheets,
    failure_sheet,
    last_line,
    measured_entries,
    number,
    published_elsewhere,
    rank_sheet,
    sections,
)

CELLS = [
    *("dataset", "method", "split", "status", "error"),
    *("seconds", "peak_mb", "started", "versions", "notes"),
]


def unit(name, dataset=None, source=None, share=3 / 7):
    return Unit(name, dataset or name, "rare", 5.0, 100, source or dataset or name, share)


def scores(given):
    """Rows from {(unit, method, metric): values by split}."""
    rows = [
        (where, method, split, metric, value)
        for (where, method, metric), values in given.items()
        for split, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["unit", "method", "split", "metric", "value"])


def study(given, units=("A",), metrics=("f1",), methods=("ours", "other"), **changes):
    found = Findings(
        name="small",
        title="A small study",
        about="What it is about.",
        command="setconv experiment run small",
        methods=tuple(methods),
        ours=(methods[0],),
        metrics=tuple(metrics),
        units=tuple(one if isinstance(one, Unit) else unit(one) for one in units),
        scores=scores(given),
        curves=pd.DataFrame(),
        published=pd.DataFrame(),
        cells=pd.DataFrame(columns=CELLS),
    )
    return replace(found, **changes)


def cells(rows):
    """Rows of dataset, method, split, status, error, seconds and MB."""
    return pd.DataFrame([(*row, "", "{}", "{}") for row in rows], columns=CELLS)


def published(rows):
    return pd.DataFrame(rows, columns=["unit", "method", "metric", "mean", "deviation"])


def entries_of(found, metric="f1"):
    """The entries of all methods on unit A."""
    entries = measured_entries(found)
    return [entries[Key("A", method, metric)] for method in found.methods]


def texts(sheet):
    return [[str(cell) for cell in row.cells] for row in sheet.rows]


# ---------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9716, ".972"),
        (1.0, "1.000"),
        (0.99951, "1.000"),
        (0.0, ".000"),
        (-0.0001, ".000"),
        (-0.0131, "-.013"),
        (-1.0, "-1.000"),
        (12.3456, "12.346"),
        (math.nan, "n/a"),
    ],
)
def test_a_number_has_three_digits_and_no_zero_before_the_point(value, text):
    assert number(value) == text


@given(st.floats(-20, 20))
def test_a_number_reads_back_to_its_rounded_value(value):
    assert float(number(value)) == pytest.approx(value, abs=0.00051)


def test_names_are_listed_as_people_do():
    assert [joined([]), joined("a"), joined("ab"), joined("abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_every_metric_has_a_name_and_a_direction():
    assert [metric_name(one) for one in ("g_mean", "specificity", "new")] == [
        "G-mean",
        "Spec",
        "new",
    ]
    assert [one for one in METRIC_NAMES if not higher_is_better(one)] == ["brier", *PROBED]


# ---------------------------------------------------------------------------- means and the best


def test_an_entry_has_the_mean_and_the_deviation_of_a_sample():
    found = study({("A", "ours", "f1"): [0.5, 0.7], ("A", "other", "f1"): [0.4, 0.2]})
    (table,) = by_unit(found)
    first, second = entries_of(found)
    assert (first.mean, second.mean) == (pytest.approx(0.6), pytest.approx(0.3))
    assert first.deviation == pytest.approx(math.sqrt(0.02))
    assert (first.n_splits, first.best, second.best) == (2, True, False)
    assert texts(table) == [["ours", ".600 ± .141"], ["other", ".300 ± .141"]]


def test_equal_at_the_digits_shown_is_equally_good():
    given = {("A", m, "f1"): [v] for m, v in [("x", 0.90041), ("y", 0.89961), ("z", 0.89949)]}
    (table,) = by_unit(study(given, methods="xyz"))
    assert [row.cells[1].bold for row in table.rows] == [True, True, False]


def test_the_lowest_brier_score_is_the_best():
    given = {("A", "ours", "brier"): [0.3, 0.4], ("A", "other", "brier"): [0.1, 0.2]}
    (table,) = by_unit(study(given, metrics=["brier"]))
    assert [row.cells[1].bold for row in table.rows] == [False, True]
    assert table.head == ("method", "Brier score ↓")
    assert "↓ lower is better" in table.caption


def test_one_split_has_no_deviation_and_no_test():
    (table,) = by_unit(study({("A", "ours", "f1"): [1.0], ("A", "other", "f1"): [0.5]}))
    assert texts(table) == [["ours", "1.000"], ["other", ".500"]]
    assert "Nothing is tested" in table.caption
    assert "over 1 split;" in table.caption


def test_a_score_that_is_there_twice_is_refused():
    twice = scores({("A", "ours", "f1"): [0.5]})
    with pytest.raises(DataError, match="A / ours / f1 has split 0 twice"):
        by_unit(study({}, scores=pd.concat([twice, twice])))


# ------------------------------------------------------------------------------------------ marks


def noisy(level, seed, n=10, spread=0.01):
    return (level + spread * np.random.default_rng(seed).normal(size=n)).tolist()


def test_marks_follow_the_corrected_test_and_holm_computed_elsewhere():
    levels = {"ours": 0.8, "a": 0.7, "b": 0.79, "c": 0.9, "d": 0.783}
    given = {("A", m, "f1"): noisy(v, seed) for seed, (m, v) in enumerate(levels.items())}
    raw = []
    for method in ("a", "b", "c", "d"):
        d = np.subtract(given["A", method, "f1"], given["A", "ours", "f1"])
        t = d.mean() / (d.std(ddof=1) * math.sqrt(1 / 10 + 3 / 7))
        raw.append(2 * stats.t.sf(abs(t), 9))
    expected = multipletests(raw, method="holm")[1]
    entries = entries_of(study(given, methods=list(levels)))
    assert [one.p_value for one in entries[1:]] == pytest.approx(expected.tolist())
    assert math.isnan(entries[0].p_value)
    assert [one.mark for one in entries] == ["", WORSE, "", BETTER, ""]
    # Without Holm, and all the more without the correction, d would be marked.
    assert stats.ttest_rel(given["A", "d", "f1"], given["A", "ours", "f1"]).pvalue < 0.05


def test_the_caption_names_the_test_the_splits_and_its_limits():
    given = {("A", m, "f1"): noisy(0.5, seed) for seed, m in enumerate(["ours", "x", "y"])}
    (table,) = by_unit(study(given, methods=["ours", "x", "y"]))
    assert "over 10 splits" in table.caption
    assert "corrected resampled t test" in table.caption
    assert "p ≤ .05 after Holm's correction for up to 2 methods" in table.caption
    assert "not independent evidence" in table.caption


def test_lower_brier_scores_are_marked_as_better():
    by_split = pd.DataFrame({"ours": [0.31, 0.30, 0.32], "other": [0.1, 0.1, 0.1]})
    assert compare(by_split, "ours", 3 / 7, higher_is_better=False)["other"][1] == BETTER
    assert compare(by_split, "ours", 3 / 7, higher_is_better=True)["other"][1] == WORSE


def test_methods_are_compared_on_the_splits_that_both_have():
    by_split = pd.DataFrame(
        {"ours": [0.5, 0.6, 0.7, np.nan], "x": [0.4, 0.4, np.nan, 0.1], "y": [np.nan] * 3 + [1.0]}
    )
    found = compare(by_split, "ours", 0.5, higher_is_better=True)
    # Two splits: t = -.15 / sqrt((1/2 + 1/2) * .005), one degree of freedom, nothing to correct.
    expected = 1 - 2 / math.pi * math.atan(0.15 / math.sqrt(0.005))
    assert found["x"][0] == pytest.approx(expected)
    assert math.isnan(found["y"][0])
    assert found["y"][1] == ""


def test_without_scores_of_our_own_nothing_is_tested():
    given = {("A", m, "f1"): noisy(0.5, seed) for seed, m in enumerate("xy")}
    found = study(given, methods=["ours", "x", "y"])
    assert all(math.isnan(entry.p_value) for entry in entries_of(found))
    (table,) = by_unit(found)
    assert "Nothing is tested: ours shares fewer than two splits" in table.caption
    (table,) = by_unit(study(given, methods=["x", "y"], ours=()))
    assert "tested" not in table.caption


# ------------------------------------------------------------------------------- what is missing


def test_what_has_no_figure_says_why_and_how_often():
    given = {
        ("A", "ours", "f1"): [0.5, 0.6],
        ("A", "undefined", "f1"): [math.nan, math.nan],
    }
    failed = cells([("A", "crashed", 0, "error", "boom", 1, 1), ("A", "ours", 0, "ok", "", 1, 1)])
    methods = ["ours", "undefined", "crashed", "waiting", "waiting too"]
    (table,) = by_unit(study(given, methods=methods, cells=failed))
    shown = [row[1] for row in texts(table)]
    assert shown == [".550 ± .071", "n/a", "failed", "\N{EN DASH}", "\N{EN DASH}"]
    assert table.notes == (
        "failed (1): no split of the method ended well.",
        "\N{EN DASH} (2): not computed yet.",
        "n/a (1): the metric is not defined on any split.",
    )


def test_a_mean_over_fewer_splits_says_so_and_is_never_the_best():
    given = {("A", "ours", "f1"): [0.5, 0.6, 0.7], ("A", "other", "f1"): [0.9, math.nan, 0.95]}
    (table,) = by_unit(study(given))
    ours, other = entries_of(study(given))
    assert (ours.best, other.best, other.n_splits, other.partial) == (True, False, 2, True)
    assert texts(table)[1] == ["other", ".925 ± .035 (2)"]
    assert any("fewer than others (1)" in note for note in table.notes)
    assert "over 3 splits" in table.caption


def test_a_study_without_a_single_score_still_has_its_tables():
    empty = study({}, units=["A", "B"])
    assert [entry.kind for entry in entries_of(empty)] == ["missing", "missing"]
    found = sections(empty)
    assert [one.title for one in found] == ["Scores by unit", "Scores by metric", "Average ranks"]
    assert found[-1].text == "F1: Ranks need at least two units with scores."


@given(st.data())
def test_every_unit_method_and_metric_has_an_entry(data):
    units, methods, metrics = ["A", "B"], ["ours", "x"], ["f1", "brier"]
    keys = [Key(u, m, q) for u in units for m in methods for q in metrics]
    values = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=4)
    given = {key: data.draw(values) for key in keys if data.draw(st.booleans())}
    entries = measured_entries(study(given, units=units, methods=methods, metrics=metrics))
    assert sorted(entries) == sorted(keys)
    for key, entry in entries.items():
        here = [one for one in given.get(key, []) if not math.isnan(one)]
        assert entry.n_splits == len(here)
        assert math.isnan(entry.mean) == (not here) == (entry.kind != "measured")
    for u in units:
        for q in metrics:
            column = [entries[Key(u, m, q)] for m in methods]
            assert any(e.best for e in column) == any(e.n_splits for e in column)


# ---------------------------------------------------------------------------------- the layouts


@pytest.fixture
def three_units():
    units = [unit("S"), unit("D: hate", "D"), unit("D: none", "D")]
    methods = ["ours", "x", "y"]
    given = {
        (u.name, m, q): noisy(0.9 - 0.1 * place, 10 * row + place)
        for row, u in enumerate(units)
        for place, m in enumerate(methods)
        for q in ("f1", "auc")
    }
    return study(given, units=units, methods=methods, metrics=["f1", "auc"])


def test_by_unit_is_a_table_a_data_set_with_a_block_a_unit(three_units):
    single, double = by_unit(three_units)
    assert (single.title, double.title) == ("S (5.00)", "D")
    assert single.head == ("method", "F1", "AUC")
    sheet = double
    assert sheet.head == ("unit", "method", "F1", "AUC")
    assert [row[0] for row in texts(sheet)] == ["D: hate (5.00)", "", "", "D: none (5.00)", "", ""]
    assert [row.rule for row in sheet.rows] == [False, False, False, True, False, False]


def test_by_metric_has_units_across_and_the_average_rank(three_units):
    f1, auc = by_metric(three_units)
    assert (f1.title, auc.title) == ("F1", "AUC")
    assert f1.head == ("method", "S (5.00)", "D: hate (5.00)", "D: none (5.00)", "rank")
    assert [row[-1] for row in texts(f1)] == ["1.00", "2.00", "3.00"]


def test_one_unit_has_no_ranks(three_units):
    alone = replace(three_units, units=three_units.units[:1])
    (table, _) = by_metric(alone)
    assert table.head == ("method", "S (5.00)")
    titles = [one.title for one in sections(alone)]
    assert titles == ["Scores by unit", "Average ranks"]
    assert "at least two units" in sections(alone)[1].text


def test_published_figures_stand_apart_and_never_win():
    rows = [("A", "ours", "f1", 0.999, math.nan), ("A", "third", "auc", 0.9, 0.01)]
    given = {("A", m, q): noisy(0.5, 1) for m in ("ours", "other") for q in ("f1", "auc")}
    found = study(given, metrics=["f1", "auc"], published=published(rows))
    (table,) = by_unit(found)
    assert texts(table)[2:] == [
        ["ours (published)", ".999", ""],
        ["third (published)", "", ".900 ± .010"],
    ]
    assert [row.rule for row in table.rows] == [False, False, True, False]
    assert not any(cell.bold or cell.after for row in table.rows[2:] for cell in row.cells)
    assert all(row.cells[1].bold for row in table.rows[:2])
    assert table.notes[-1].startswith("(published): reported by others")
    assert published_elsewhere(found) is None


def test_published_figures_of_other_data_have_a_table_of_their_own():
    rows = [
        ("IRT: fire", "ours", "f1", 0.972, math.nan),
        ("IRT: crash", "ours", "f1", 0.931, math.nan),
    ]
    table = published_elsewhere(study({}, published=published(rows)))
    assert texts(table) == [
        ["IRT: fire", "ours (published)", ".972"],
        ["IRT: crash", "ours (published)", ".931"],
    ]
    assert "cannot be compared" in table.caption


# ------------------------------------------------------------------------------------------ ranks


def ranked(levels, sources=None, methods=("ours", "x", "y"), metric="f1", **changes):
    """One split a unit, with the scores that are given for each method."""
    names = [f"U{place}" for place in range(len(levels))]
    units = [unit(n, source=s) for n, s in zip(names, sources or names, strict=True)]
    given = {
        (name, method, metric): [value]
        for name, row in zip(names, levels, strict=True)
        for method, value in zip(methods, row, strict=True)
        if value is not None
    }
    found = study(given, units=units, methods=methods, metrics=[metric], **changes)
    return ranking(found, metric, scores_by_split(found))


def test_units_of_one_source_count_once():
    levels = [(0.9, 0.5, 0.1), (0.1, 0.5, 0.9), (0.1, 0.5, 0.9), (0.1, 0.5, 0.9)]
    found = ranked(levels, sources=["a", "b", "b", "b"])
    assert found.ranks.average.to_dict() == {"ours": 2.0, "x": 2.0, "y": 2.0}
    assert (found.n_units, found.n_sources) == (4, 2)


def test_few_sources_claim_nothing_and_say_why():
    found = ranked([(0.9, 0.5, 0.1)] * 4)
    sheet = rank_sheet(found)
    assert "4 independent sources are fewer than 10" in sheet.caption
    assert texts(sheet) == [
        ["ours", "1.00", "", "", ""],
        ["x", "2.00", "+.400", "4/0/0", ".250"],
        ["y", "3.00", "+.800", "4/0/0", ".250"],
    ]
    assert [row.cells[1].bold for row in sheet.rows] == [True, False, False]


def test_sources_enough_claim_what_the_tests_show():
    sheet = rank_sheet(ranked([(0.5, 0.1 + 0.01 * row, 0.9 - 0.01 * row) for row in range(12)]))
    assert [row[0] for row in texts(sheet)] == ["y", "ours", "x"]
    # All 12 sources agree: 2 / 2^12, and twice that after Holm for two comparisons.
    assert sheet.rows[0].cells[-1].after == BETTER
    assert sheet.rows[2].cells[-1].after == WORSE
    assert "p ≤ .05" in sheet.caption
    assert "fewer than 10" not in sheet.caption
    # q = 3.314 / sqrt(2) at three methods: 2.343 * sqrt(3 * 4 / (6 * 12))
    assert "critical difference at .05: 0.96" in sheet.caption


def test_the_lowest_brier_score_ranks_first():
    found = ranked([(0.3, 0.2, 0.1)] * 3, metric="brier")
    assert found.ranks.average.to_dict() == {"ours": 3.0, "x": 2.0, "y": 1.0}
    assert found.against_ours.comparisons["losses"].tolist() == [3, 3]


def test_two_methods_need_no_omnibus_test():
    found = ranked([(0.9, 0.5)] * 3, methods=("ours", "x"))
    assert found.omnibus is None
    assert "Friedman" not in rank_sheet(found).caption


def test_one_source_has_ranks_but_no_tests():
    found = ranked([(0.9, 0.5, 0.1)] * 3, sources=["a"] * 3)
    assert found.all_pairs is found.against_ours is found.omnibus is None
    sheet = rank_sheet(found)
    assert sheet.head == ("method", "rank")
    assert "one source" in sheet.caption


def test_a_method_that_failed_on_most_units_does_not_cost_the_others_their_ranks():
    found = ranked([(0.9, 0.5, 0.1), (0.9, 0.5, None), (0.5, 0.9, None), (0.9, None, None)])
    assert found.ranks.average.to_dict() == {
        "ours": pytest.approx(4 / 3),
        "x": pytest.approx(5 / 3),
    }
    assert found.notes == (
        "Without a rank, for scores on half of the units or fewer: y.",
        "Left out, for no split has all methods: U3.",
    )


def test_ranks_are_over_the_splits_that_all_methods_have():
    given = {
        ("A", "ours", "f1"): [0.5, 0.5, 0.0],
        ("A", "x", "f1"): [0.4, 0.4, math.nan],
        ("B", "ours", "f1"): [0.5],
        ("B", "x", "f1"): [0.4],
    }
    found = study(given, units=["A", "B"], methods=["ours", "x"])
    one = ranking(found, "f1", scores_by_split(found))
    assert one.ranks.average.to_dict() == {"ours": 1.0, "x": 2.0}
    assert one.notes == ("Ranked on the splits that all methods have: A.",)


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        ([(0.9, 0.5, 0.1)], "at least two units with scores"),
        ([(0.9, None, None), (0.9, None, None)], "two methods with scores on most units"),
    ],
)
def test_without_ranks_there_is_a_reason(levels, reason):
    found = ranked(levels)
    assert isinstance(found, NoRanking)
    assert reason in found.reason


def test_without_a_common_split_there_are_no_ranks():
    both = scores({("A", "ours", "f1"): [0.5], ("B", "ours", "f1"): [0.5]})
    later = scores({("A", "other", "f1"): [0.5], ("B", "other", "f1"): [0.5]}).assign(split=1)
    found = study({}, units=["A", "B"], scores=pd.concat([both, later]))
    assert "a split that all methods have" in ranking(found, "f1", scores_by_split(found)).reason


def test_means_that_differ_in_the_last_bits_share_a_rank():
    found = ranked([(0.1 + 0.2, 0.3, 0.1), (0.3, 0.1 + 0.2, 0.1)])
    assert found.ranks.average.to_dict() == {"ours": 1.5, "x": 1.5, "y": 3.0}


# ----------------------------------------------------------------------------- costs and failures


def test_costs_are_of_the_cells_that_ended_well():
    rows = [
        ("A", "ours", 0, "ok", "", 1.0, 100.0),
        ("A", "ours", 1, "ok", "", 3.0, 300.0),
        ("A", "ours", 2, "timeout", "slow", 999.0, 9999.0),
        ("A", "other", 0, "error", "boom", 0.1, math.nan),
        ("Z", "extra", 0, "ok", "", 1234.5, 1500.4),
    ]
    assert texts(cost_sheet(study({}, cells=cells(rows)))) == [
        ["A", "ours", "2", "2.00", "300"],
        ["", "other", "0", "\N{EN DASH}", "\N{EN DASH}"],
        ["Z", "extra", "1", "1,234", "1,500"],
    ]


def test_failures_are_told_by_the_last_line_of_their_error():
    boom = "Traceback (most recent call last):\n  File x\nValueError: boom\n\n"
    rows = [
        *[("A", "other", split, "error", boom, 1, 1) for split in (2, 0)],
        ("A", "other", 1, "timeout", "stopped after 60 s", 60, 1),
        ("A", "ours", 0, "ok", "", 1, 1),
    ]
    sheet = failure_sheet(study({}, cells=cells(rows)))
    assert texts(sheet) == [
        ["A", "other", "0, 2", "error", "ValueError: boom"],
        ["A", "other", "1", "timeout", "stopped after 60 s"],
    ]
    assert sheet.caption.startswith("3 cells of 4 did not end well")


def test_a_study_without_failures_says_so():
    fine = study({("A", "ours", "f1"): [0.5]}, cells=cells([("A", "ours", 0, "ok", "", 1, 1)]))
    assert failure_sheet(fine) is None
    assert sections(fine)[-1].text == "No cell failed."
    assert cost_sheet(study({})) is None


@given(st.text())
def test_the_last_line_of_any_error_is_one_short_line(error):
    line = last_line(error)
    assert line
    assert len(line) <= 202
    assert line.isprintable()


def test_an_entry_shows_its_mark_before_its_splits():
    entry = Entry(0.5, 0.01, 7, mark=WORSE, partial=True)
    assert str(entry.shown) == ".500 ± .010 ▼ (7)"


# --------------------------------------------------------------------------------------- curves


def test_a_curve_is_a_table_for_each_metric_with_a_column_for_each_setting():
    rows = [
        ("size", "a", method, split, metric, setting, setting / 1000 + split / 10)
        for method in ("ours", "other")
        for split in range(2)
        for metric in ("auc", "movement", "brier")
        for setting in (100.0, 500.0)
    ]
    rows = [one for one in rows if one[2:6] != ("other", 0, "auc", 500.0)]
    rows = [one for one in rows if one[2:6] != ("other", 1, "auc", 500.0)]
    names = ["curve", "unit", "method", "split", "metric", "setting", "value"]
    findings = study({}, metrics=("auc",), curves=pd.DataFrame(rows, columns=names))
    sheets = {one.title: one for one in curve_sheets(findings)}
    # The Brier score is no metric of this study; what was probed always is.
    assert set(sheets) == {"AUC along size: a", "Movement of representatives along size: a"}
    auc = sheets["AUC along size: a"]
    assert auc.head == ("method", "100", "500")
    deviation = f"{math.sqrt(0.005):.3f}".removeprefix("0")
    assert texts(auc) == [
        ["ours", f".150 ± {deviation}", f".550 ± {deviation}"],
        ["other", f".150 ± {deviation}", "\u2013"],
    ]
