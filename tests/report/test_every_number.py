"""Every number on the page, computed again from the predictions alone, with other code."""

import re

import numpy as np
import pytest
from judging import CASES, NAMES, cells, cosines, shown
from reading import number
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

from setconv.metrics import HEADINGS
from setconv.report.page import make_report
from setconv.report.words import of_100, per_cent


@pytest.fixture(params=CASES)
def case(cases, request):
    return cases[request.param]


def test_the_cases_are_what_they_say(cases):
    assert set(cases) == set(CASES)
    assert sum(case.weighted for case in cases.values()) == 4
    assert {name: cases[name].unjudged for name in CASES[-3:]} == {
        "a class unjudged": [2],
        "the rare class unjudged": ["rare"],
        "the common class unjudged": ["common"],
    }


# ------------------------------------------------------------------------------------- the page


def test_summary_and_tiles(case):
    main, right = case.main, case.figures(case.main)
    text = case.page.section("summary")
    wanted = {
        "sensitivity": f"of 100 that are “{main}” are found",
        "precision": "of 100 alarms are right",
        "specificity": "of 100 others are left alone",
    }
    for tile, (name, words) in zip(case.page.of_class("tile"), wanted.items(), strict=True):
        interval = ""
        if not np.isnan(right[name]):
            low, high = case.interval(main, name)
            interval = f"95 %: {of_100(low)} to {of_100(high)}"
        assert tile == f"{of_100(right[name])}{words}{interval}"
    if np.isnan(right["sensitivity"]):
        assert f"None of the rows judged here is “{main}”" in text
        return
    low, high = case.interval(main, "sensitivity")
    assert (
        f"Of 100 rows that are “{main}”, the model finds {of_100(right['sensitivity'])} (95 % "
        f"interval: {of_100(low)} to {of_100(high)})."
    ) in text
    said = (
        f"Of 100 alarms, {of_100(right['precision'])} are right; 1,000 rows give about "
        f"{1000 * case.share(case.labels == main):.0f} alarms."
    )
    assert (said in text) == (not np.isnan(right["precision"]))


def test_data_and_cautions(case):
    text = case.page.section("data")
    assert f"come from {len(case.y)} labelled rows" in text
    if case.out_of_fold:
        assert f"of the {len(case.X)} training rows" in text
    rows = {row[0].split()[0]: row[1:] for row in case.page.section_rows("data")[1:]}
    assert set(rows) == {str(c) for c in case.classes}
    # Rows that lack a class cannot be weighted to a prevalence.
    lacks = not case.out_of_fold and not all((case.y == c).any() for c in case.classes)
    weighted = bool(case.prior) and not lacks
    for c in case.classes:
        n, known = (case.y == c).sum(), case.known(c)
        right = [f"{n} {per_cent(n / len(case.y))}"]
        right.append(f"{known} {per_cent(known / case.model.class_counts_.sum())}")
        right += [per_cent(case.prior[c])] if weighted else []
        assert rows[str(c)] == right
    said = " ".join(case.page.of_class("caution"))
    for c in case.classes if weighted else ():
        assert re.search(rf"[“ (]{c}”? {case.prior[c]:.4g}[,)]", said)
    assert ("not for the one that was set" in said) == (bool(case.prior) and lacks)
    if case.out_of_fold:
        assert all(remark in said for remark in case.model.report_.remarks())
        assert "each was judged by the members that had left it out" in said
    for c in case.classes:
        n = (case.y == c).sum()
        assert (f"“{c}” ({n})" in said) == (0 < n < 30)
    assert f"Thresholds rest on: {case.model.threshold_basis_}." in case.page.of_class("lead")[0]


def test_figures_of_the_main_class(case):
    rows = [row for row in case.page.section_rows("figures") if len(row) == 5][1:]
    right, name = case.figures(case.main), f"“{case.main}”"
    assert [row[0] for row in rows] == [HEADINGS[name] for name in NAMES]
    case.check_cells(case.main, [row[1:3] for row in rows])
    meaning = dict(zip(NAMES, (row[4] for row in rows), strict=True))
    of = {name: of_100(value) for name, value in right.items()}
    wanted = {
        "specificity": f"of 100 rows that are not {name}, {of['specificity']} are left alone.",
        "sensitivity": f"of 100 rows that are {name}, {of['sensitivity']} are found.",
        "auc": f"scores higher in {of['auc']}. Guessing gives 50.",
        "average_precision": f"Guessing gives {case.share(case.y == case.main):.3f}.",
    }
    if (case.labels == case.main).any():
        wanted["precision"] = f"Of 100 alarms, {of['precision']} are right."
    assert all(meaning[one].endswith(words) for one, words in wanted.items())
    if case.out_of_fold:  # as the model's own report has them
        own = case.model.oof_report_[case.main]
        assert [row[1] for row in rows] == [shown(getattr(own, one)) for one in NAMES]


def test_figures_of_all_classes(case):
    rows = [row for row in case.page.section_rows("figures") if len(row) == 9][1:]
    if len(case.classes) == 2:
        assert rows == []
        return
    assert {row[0] for row in rows} == {str(c) for c in case.classes}
    assert rows[0][0] == str(case.main)
    for name, n_rows, *figures in rows:
        assert int(n_rows) == (case.y == int(name)).sum()
        case.check_cells(int(name), [cell.partition(" ")[::2] for cell in figures])


def test_decisions(case):
    rows = case.page.section_rows("decisions")[2:]
    assert [row[0] for row in rows] == [str(c) for c in case.classes]
    for c, row in zip(case.classes, rows, strict=True):
        for p, cell in zip(case.classes, row[1:], strict=True):
            both = (case.y == c) & (case.labels == p)
            weight = case.w[case.y == c].sum()
            share = f" {per_cent(case.w[both].sum() / weight)}" if weight else ""
            assert cell == f"{both.sum()}{share}"


def test_explorer(case):
    explorers = case.page.explorer()
    judged = [c for c in case.rare if c not in case.unjudged]
    if len(judged) == 1:
        assert explorers == []
        return
    wanted = judged if len(case.classes) > 2 else [case.main]
    assert [one["name"] for one in explorers] == [str(c) for c in wanted]
    for c, one in zip(wanted, explorers, strict=True):
        is_c, margin, own = case.y == c, case.margin(c), case.labels == c
        assert one["cuts"] == sorted(set(margin.tolist()), reverse=True)
        alarms = np.stack([margin >= cut for cut in (np.inf, *one["cuts"])])
        for side, name in ((is_c, "tp"), (~is_c, "fp")):
            assert one["rows"][name] == (alarms & side).sum(axis=1).tolist()
            assert one["rows"][name][one["own"]] == (own & side).sum()
            if case.weighted:
                right = (alarms * side) @ case.w / case.w.mean()
                np.testing.assert_allclose(one["weights"][name], right, atol=1e-5)
        assert (one["weights"] is not None) == case.weighted
        if len(case.classes) > 2 or case.out_of_fold:
            assert one["probability"] is None
        else:
            chance = case.said.probabilities[:, case.classes.index(c)]
            right = [chance[margin == cut][0] for cut in one["cuts"]]
            np.testing.assert_allclose(one["probability"], right, atol=1e-6)
    first = wanted[0]
    start = cells(case.y, case.w, first, case.labels == first)
    assert {name: case.page.ids[f"x-{name}"] for name in start} == start
    assert case.page.ids["x-cut"] == "by 0.000"
    said = case.page.ids.get("x-probability", "")
    if explorers[0]["probability"] is None or not (case.labels == first).any():
        assert said == ""
    else:
        lowest = np.argmin(np.where(case.labels == first, case.margin(first), np.inf))
        chance = case.said.probabilities[lowest, case.classes.index(first)]
        assert said.endswith(f" {100 * chance:.1f} %")


def test_captions_of_the_curves(case):
    text, right = case.page.section("curves"), case.figures(case.main)
    if np.isnan(right["auc"]):
        assert "n/a: the curves need rows" in text
        return
    of = {name: of_100(value) for name, value in right.items()}
    assert (
        f"the dot, the model finds {of['sensitivity']} of 100 rows that are “{case.main}” and "
        f"raises a false alarm for {of_100(1 - right['specificity'])} of 100 others. The area "
        f"under the curve is {right['auc']:.3f};"
    ) in text
    assert f"At the dot {of['precision']} of 100 alarms are right. Guessing" in text
    assert f"would be right in {of_100(case.share(case.y == case.main))} of 100" in text


def test_calibration(case):
    text = case.page.section("calibration")
    if case.main in case.unjudged or len(case.classes) - len(case.unjudged) == 1:
        assert "n/a: the rows that are judged" in text
        return
    is_c, w = case.y == case.main, case.w
    chance = case.said.probabilities[:, case.classes.index(case.main)]
    if is_c.any():
        brier = brier_score_loss(is_c, chance, sample_weight=w)
        assert f"the mean squared error of the probabilities, is {brier:.3f};" in text
    rows, worst = [], (-1, "")
    for low in range(0, 100, 10):
        inside = (chance >= low / 100) & ((chance < (low + 10) / 100) | (low == 90))
        if not inside.any():
            continue
        said, seen = (np.average(part[inside], weights=w[inside]) for part in (chance, is_c))
        n = case.size(inside, is_c, inside | True)
        bounds = proportion_confint(seen * n, n, method="wilson")
        least, most = (per_cent(round(bound, 12)) for bound in bounds)
        said_of = f"{low} to {low + 10} %", str(inside.sum()), per_cent(said)
        rows.append([*said_of, f"{per_cent(seen)} {least[:-2]} to {most}"])
        if inside.sum() >= 30 and abs(said - seen) > worst[0]:
            worst = abs(said - seen), f"said {per_cent(said)} on average, it was {per_cent(seen)}."
    assert case.page.section_rows("calibration")[1:] == rows
    assert worst[1] in text
    if case.weighted:
        said = per_cent(np.average(chance, weights=w))
        assert f"states {said} for “{case.main}”; it is {per_cent(case.share(is_c))}." in text
    else:
        assert f"add up to {chance.sum():.1f} rows that are “{case.main}”" in text
        assert f"there are {is_c.sum()}." in text


def test_mistakes(case):
    wrong = np.flatnonzero(case.y != case.labels).tolist()
    text = case.page.section("mistakes")
    if not wrong:
        assert f"There are none: all {len(case.y)} rows are decided rightly." in text
        return
    assert f"{len(wrong)} of {len(case.y)} rows are decided wrongly." in text
    binary = len(case.classes) == 2
    own, true = (
        {row: case.column(case.said.decision_values, labels[row])[row] for row in wrong}
        for labels in (case.labels, case.y)
    )
    ahead = {row: (own[row] - true[row]) / (2 if binary else 1) for row in wrong}
    order = sorted(wrong, key=lambda row: -ahead[row])
    missed = [row for row in order if case.y[row] == case.main]
    other = [row for row in order if case.y[row] != case.main]
    n_missed = min(len(missed), max(5, 10 - len(other)))
    words = "from the threshold" if binary else "ahead of the true class"
    assert case.page.of_class("verdicts") == [
        f"is “{case.y[row]}” → taken for “{case.labels[row]}” with probability "
        f"{per_cent(case.column(case.said.probabilities, case.labels[row])[row])} · "
        f"{ahead[row]:.2f} {words} · row {case.said.rows[row]}"
        for row in missed[:n_missed] + other[: 10 - n_missed]
    ]


def similarity(model, rows):
    """Cosines of all rows with one another, averaged over members and heads."""
    width = model.representatives_.shape[-1]
    parts = np.reshape(model.transform(rows), (len(rows), -1, width)).astype(float)
    parts /= np.linalg.norm(parts, axis=-1, keepdims=True)
    return np.einsum("iph,jph->ij", parts, parts) / parts.shape[1]


def test_the_rows_most_like_the_mistakes(case):
    mistakes, near = case.page.of_class("verdicts"), case.page.of_class("near")
    rows = case.said.rows.tolist()
    given = dict(zip(rows, case.y.tolist(), strict=True))
    for mistake, other in zip(mistakes, near, strict=True):
        row = int(mistake.rsplit(" ", 1)[1])
        found = re.search(r"other (?:training )?row: row (\d+) \((\w+), similarity (.*)\)", other)
        like = similarity(case.who(rows.index(row)), case.X)[row]
        like[row] = -2
        assert int(found[1]) == like.argmax() != row
        assert found[3] == f"{like.max():.2f}"
        assert found[2] == str(given.get(int(found[1]), found[2]))


@pytest.mark.parametrize("name", ["two", "out of fold", "three out of fold", "forward in time"])
def test_what_features_add_in_a_mistake(cases, name):
    case = cases[name]
    place = case.said.rows.tolist().index(int(case.page.of_class("verdicts")[0].split()[-1]))
    row, label = case.X[case.said.rows[place]], case.labels[place]
    changed = np.where(np.eye(8, dtype=bool), np.median(case.X, axis=0), row)
    own, *without = case.column(
        case.who(place).predictions(np.vstack([row, changed])).scores, label
    )
    assert own == pytest.approx(case.column(case.said.scores, label)[place])
    adds = {f"feature {feature}": own - score for feature, score in enumerate(without)}
    strongest = sorted(adds, key=lambda name: -abs(adds[name]))[:4]
    table = case.page.section_rows("mistakes")[1:5]
    assert [" ".join(line[0].split()[:2]) for line in table] == strongest
    right = [adds[name] for name in strongest]
    assert [number(line[1]) for line in table] == pytest.approx(right, abs=6e-4)


def test_the_rows_closest_to_a_representative(case):
    found = re.findall(r"(\d+) of the (\d+) closest rows are of this class", case.page.text)
    rare = [c for c in case.rare if case.known(c) < case.model.class_counts_.mean()]
    similarities = cosines(case.model, case.X[case.said.rows], case.said.left_out)
    listed = case.page.of_class("rows")
    for c, (n_of_class, n_near), text in zip(rare, found, listed, strict=True):
        like = similarities[:, case.classes.index(c)]
        order = np.argsort(-like, kind="stable")
        assert int(n_near) == min(60, len(like))
        assert int(n_of_class) == (case.y[order[:60]] == c).sum()
        shown_rows = re.findall(r"row (\d+) · similarity (\S+)", text)
        assert shown_rows == [(str(case.said.rows[i]), f"{like[i]:.2f}") for i in order[:5]]


def test_header_map_and_training(case):
    lead = case.page.of_class("lead")[0]
    assert lead.startswith(f"{len(case.y)} rows, {len(case.classes)} classes.")
    # Of the fit, whatever the parameter became.
    assert f"The decision was set for “{case.model.objective_}”" in lead
    assert "Each point is a row, placed" in case.page.section("map")
    assert "nan" not in case.page.text
    first, last = case.model.history_[0], case.model.history_[-1]
    text = case.page.section("training")
    assert f"from {first['loss']:.3f} to {last['loss']:.3f} in {last['step']} steps" in text


# ---------------------------------------------------------------------------------------- honesty


class Counting:
    """A model that keeps every row that it is asked to score, which is in one way only."""

    def __init__(self, model, rows=None):
        self.model, self.rows = model, [] if rows is None else rows

    def __getattr__(self, name):
        assert name not in ("predict", "predict_proba", "decision_function")
        return getattr(self.model, name)

    def predictions(self, X):
        self.rows += [one.tobytes() for one in X]
        return self.model.predictions(X)

    def _only(self, members):
        return Counting(self.model._only(members), self.rows)


@pytest.mark.parametrize("name", ["two", "three", "prior"])
def test_each_judged_row_is_scored_once(cases, name):
    case = cases[name]
    model = Counting(case.model)
    make_report(model, case.X, case.y)
    scored = [model.rows.count(row.tobytes()) for row in case.X]
    assert scored == [1] * len(case.X)
    assert model.rows[: len(case.X)] == [row.tobytes() for row in case.X]
    known = Counting(case.model)
    page = make_report(known, case.X, case.y, predictions=case.said)
    assert not {row.tobytes() for row in case.X} & set(known.rows)
    assert page.html == case.report.html


@pytest.mark.parametrize("name", ["out of fold", "three out of fold", "weights"])
def test_no_judged_row_is_scored_out_of_fold(cases, name):
    case = cases[name]
    model = Counting(case.model)
    make_report(model, case.X, case.y, out_of_fold=True)
    assert model.rows  # copies with a feature at its usual value
    assert not {row.tobytes() for row in case.X} & set(model.rows)
