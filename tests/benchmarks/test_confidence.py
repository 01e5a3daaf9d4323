"""How sure fits are: one cell of the study, and its tables from rows made by hand."""

import re

import pandas as pd
import pytest
from benchmarks.quality import confidence, forward, raw

from setconv.fitting import JUDGED_BY_PARTS


def test_a_fit_is_asked_for_every_minimum(monkeypatch):
    monkeypatch.setattr(confidence, "TEST_ROWS", 2000)
    found = pd.DataFrame(confidence.evaluate(confidence.Cell("clusters", 0, large=False)))
    assert len(found) == 4 + 2 * 6
    assert found.asked.is_unique
    figures = found[found.asked.isin(list(confidence.FIGURES))]
    assert (figures.low < figures.high).all()
    assert figures.truth.between(0, 1).all()
    stated = found[found.stated == True]  # noqa: E712 - a column of objects
    assert stated.truth.notna().all()
    again = confidence.evaluate(confidence.Cell("clusters", 0, large=False))
    pd.testing.assert_frame_equal(pd.DataFrame(again), found)


def test_tables_count_fits():
    asked, known = "recall>=0.9 @ 90%", {"large": False, "level": 0.9, "reachable": True}
    found = pd.DataFrame(
        [
            {**known, "asked": asked, "stated": True, "truth": 0.95},
            {**known, "asked": asked, "stated": True, "truth": 0.85},
            {**known, "asked": asked, "stated": False},
            {**known, "asked": asked, "stated": False},
            {**known, "asked": asked[:11], "stated": True, "truth": 0.8, "may_miss": 0.4},
            {**known, "asked": asked[:11], "stated": True, "truth": 0.95, "may_miss": 0.2},
            {
                "large": False,
                "asked": "auc",
                "estimate": 0.8,
                "low": 0.7,
                "high": 0.9,
                "truth": 0.6,
            },
            {
                "large": False,
                "asked": "auc",
                "estimate": 0.8,
                "low": 0.7,
                "high": 0.9,
                "truth": 0.9,
            },
        ]
    )
    assert cells(confidence.minimums(found)) == [
        "20 to 60", "recall>=0.9 @ 90%", "4", "50.0 %", "25.0 %", "",
    ]  # fmt: skip
    assert cells(confidence.averages(found)) == [
        "20 to 60", "recall>=0.9", "50.0 %", "30.0 %", ".875", ".815", ".800",
    ]  # fmt: skip
    assert cells(confidence.intervals(found)) == [
        "20 to 60", "AUC", "50.0 %", "0.0 %", "50.0 %", "+.050", ".200",
    ]  # fmt: skip


def cells(table):
    """Return the cells of the one line of a table."""
    _, _, line = table.splitlines()
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.fixture(scope="module")
def published():
    return raw.read(confidence.RAW)


def test_what_was_published_keeps_what_was_promised(published):
    few = published[~published.large]
    assert few.groupby(["kind", "number"]).ngroups >= 400
    assert few.rare.between(20, 60).all()
    for asked, one in published[published.asked.str.contains("@")].groupby(["large", "asked"]):
        missed = (one.stated == True) & ~(one.truth >= one.level)  # noqa: E712
        assert missed.mean() <= 0.12, asked
        reachable = one[one.reachable == True]  # noqa: E712
        if asked[0]:
            assert (reachable.stated == True).mean() >= 0.8, asked  # noqa: E712
    part = published[published.may_miss.notna() & ~published.asked.str.contains("@")]
    for asked, one in part[part.stated == True].groupby(["large", "asked"]):  # noqa: E712
        assert (~(one.truth >= one.level)).mean() <= one.may_miss.mean(), asked
    for asked in confidence.FIGURES:
        one = few[few.asked == asked]
        assert (one.low > one.truth).mean() <= 0.06, asked


def test_reports_say_by_how_much_out_of_fold_figures_are_low(published):
    few = published[~published.large]
    said = [-float(number) for number in re.findall(r"\.\d+", JUDGED_BY_PARTS)]
    for name, number in zip(("auc", "average_precision"), said, strict=True):
        one = few[few.asked == name]
        assert round((one.estimate - one.truth).mean(), 3) == number


# -------------------------------------------------------------------------------- forward in time


def test_forward_and_random_folds_are_asked_about_the_same_later_rows(monkeypatch):
    small = {"still": forward.Problem(200, 12, 0.2, 0.0)}
    monkeypatch.setattr(forward, "PROBLEMS", small)
    monkeypatch.setattr(forward, "LATER", 300)
    found = pd.DataFrame([forward.evaluate(("still", seed)) for seed in range(2)])
    line = cells(forward.figures(found))
    assert line[0] == "still"
    ratio = (found.forward_alarms_later / found.forward_alarms_said).mean()
    assert line[-1] == f"{ratio:.2f}"
    said, later = (float(one) for one in line[1].split(" / "))
    assert said == pytest.approx(found.random_auc_said.mean(), abs=5.1e-4)
    assert later == pytest.approx(found.random_auc_later.mean(), abs=5.1e-4)


def test_what_was_published_shows_that_random_folds_flatter_where_rows_drift():
    found = raw.read(forward.RAW)
    part = found[found.problem == "attacks of new kinds"]
    later = part.forward_auc_later.mean()
    assert part.random_auc_said.mean() > later + 0.05
    assert part.forward_auc_said.mean() < later
