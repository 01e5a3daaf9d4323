"""Every number on the page, computed again from the predictions alone, with other code."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from reading import Page, number
from scipy.spatial.distance import cosine
from sklearn.datasets import make_classification
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)
from statsmodels.stats.proportion import proportion_confint

from setconv.classifier import SetConvClassifier
from setconv.report.page import make_report
from setconv.report.words import count, of_100, per_cent

NAMES = ["Spec", "Sens", "Precision", "F1", "G-mean", "AUC", "Average precision"]
SHARES = NAMES[:3]


def shown(value):
    return "n/a" if np.isnan(value) else f"{value:.3f}".replace("-", "\u2212")


# ------------------------------------------------------------------------------------ the cases


def make_rows(n, classes, seed):
    """Rows of a frequent class 0 and rare others that no model tells apart without mistakes."""
    rare = 0.15 * (classes - 1)
    X, y = make_classification(
        n,
        n_features=8,
        n_informative=6,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        weights=[1 - rare, *[0.15] * (classes - 1)],
        class_sep=1.5,
        random_state=seed,
    )
    return X + np.random.default_rng(seed).normal(size=X.shape) * 0.8, y


def quick(**parameters):
    small = {"n_members": 3, "encoder": (16,), "out_features": 8, "max_steps": 30}
    small |= {"n_episodes": 4, "random_state": 0, "progress": False}
    return SetConvClassifier(**small | parameters)


@pytest.fixture(scope="module")
def cases():
    """Model, rows, labels, predictions, and how the page is asked for."""
    X, y = make_rows(360, 2, seed=3)
    y = np.where(y == 1, "rare", "usual")
    fit, other = slice(0, 160), slice(160, None)
    X3, y3 = make_rows(420, 3, seed=5)
    weights = np.random.default_rng(2).gamma(1, size=160) + 0.05
    model = quick().fit(X[fit], y[fit])
    three = quick(max_steps=40).fit(X3[:200], y3[:200])
    weighted = quick().fit(X[fit], y[fit], weights)
    prior = quick(objective="f1").fit(X[fit], y[fit]).set_prior(0.03)
    prior3 = quick().fit(X3[:200], y3[:200]).set_prior({0: 0.9, 1: 0.06, 2: 0.04})
    single, alone = y3[:200].copy(), y[fit].copy()
    single[single == 2] = 0
    single[7] = 2
    alone[:] = "usual"
    alone[[3, 8, 30]] = "rare"
    groups = np.where(alone == "rare", -1, np.arange(160))
    with pytest.warns(UserWarning, match="cannot be judged"):
        missing = quick().fit(X3[:200], single)
    with pytest.warns(UserWarning, match="cannot be judged"):
        bare = quick().fit(X[fit], alone, groups=groups)
    with pytest.warns(UserWarning, match="cannot be judged"):
        crowd = quick().fit(X[fit], y[fit], groups=np.where(y[fit] == "usual", -1, np.arange(160)))
    usual = np.flatnonzero(y == "usual")[-90:]
    found = {
        "two": (model, X[other], y[other], False),
        "no positives": (model, X[usual], y[usual], False),
        "perfect": (model, X[other], model.predict(X[other]), False),
        "three": (three, X3[200:], y3[200:], False),
        "out of fold": (model, X[fit], y[fit], True),
        "three out of fold": (three, X3[:200], y3[:200], True),
        "weights": (weighted, X[fit], y[fit], True),
        "prior": (prior, X[other], y[other], False),
        "prior out of fold": (prior, X[fit], y[fit], True),
        "prior, no positives": (prior, X[usual], y[usual], False),
        "three, prior": (prior3, X3[200:], y3[200:], False),
        "a class unjudged": (missing, X3[:200], single, True),
        "the rare class unjudged": (bare, X[fit], alone, True),
        "the usual class unjudged": (crowd, X[fit], y[fit], True),
    }
    return {name: Case(*given) for name, given in found.items()}


CASES = [
    "two", "no positives", "perfect", "three", "out of fold", "three out of fold", "weights",
    "prior", "prior out of fold", "prior, no positives", "three, prior", "a class unjudged",
    "the rare class unjudged", "the usual class unjudged",
]  # fmt: skip


class Case:
    """A page, and what the predictions say."""

    def __init__(self, model, X, y, out_of_fold):
        self.model, self.X, self.out_of_fold = model, X, out_of_fold
        self.said = model.predict_out_of_fold() if out_of_fold else model.predictions(X)
        self.y, self.labels = np.asarray(y)[self.said.rows], self.said.labels
        self.html = make_report(model, X, y, out_of_fold=out_of_fold, n_bootstrap=60).html
        self.page = Page(self.html)
        self.classes = model.classes_.tolist()
        self.rare = sorted(self.classes, key=lambda c: (self.known(c), -self.classes.index(c)))
        self.main = self.rare[0]
        self.prior = None
        if model.prior_ is not None:
            self.prior = dict(zip(self.classes, model.prior_, strict=True))
        if self.said.weights is not None:
            self.w = self.said.weights
        elif self.prior:
            self.w = np.array([self.prior[c] / np.mean(self.y == c) for c in self.y.tolist()])
        else:
            self.w = np.ones(len(self.y))
        self.weighted = len(set(self.w.tolist())) > 1
        self.unjudged = [c for c in self.classes if out_of_fold and not (self.y == c).any()]

    def known(self, c):
        return self.model.class_counts_[self.classes.index(c)]

    def share(self, flags):
        return self.w[flags].sum() / self.w.sum()

    def column(self, values, c):
        """Scores or decision values of a class."""
        place = self.classes.index(c)
        if values.ndim == 1:
            return values if place else -values
        return values[:, place]

    def margin(self, c):
        values = self.said.decision_values
        own = self.column(values, c)
        if values.ndim == 1:
            return own
        return own - np.delete(values, self.classes.index(c), axis=1).max(axis=1)

    def figures(self, c):
        """The seven figures, and Wilson's interval of the first three."""
        is_c, alarm, w = self.y == c, self.labels == c, self.w
        lost = len(self.classes) - len(self.unjudged) == 1
        nan = dict.fromkeys(NAMES, np.nan)
        if c in self.unjudged:
            return nan
        found = dict(nan)
        if is_c.any():
            found["Sens"] = recall_score(is_c, alarm, sample_weight=w)
        if lost:
            return found
        if (~is_c).any():
            found["Spec"] = recall_score(~is_c, ~alarm, sample_weight=w)
        if is_c.any() or alarm.any():
            found["Precision"] = precision_score(is_c, alarm, sample_weight=w, zero_division=0)
        if is_c.any():
            found["F1"] = f1_score(is_c, alarm, sample_weight=w)
        found["G-mean"] = np.sqrt(found["Spec"] * found["Sens"])
        if is_c.any() and (~is_c).any():
            scores = self.column(self.said.scores, c)
            found["AUC"] = roc_auc_score(is_c, scores, sample_weight=w)
            found["Average precision"] = average_precision_score(is_c, scores, sample_weight=w)
        return found

    def interval(self, c, name):
        base = {"Spec": self.y != c, "Sens": self.y == c, "Precision": self.labels == c}[name]
        if not base.any():
            return 0.0, 1.0
        n = self.w[base].sum() ** 2 / (self.w[base] ** 2).sum()
        bounds = proportion_confint(self.figures(c)[name] * n, n, method="wilson")
        return tuple(round(bound, 12) for bound in bounds)


@pytest.fixture(params=CASES)
def case(cases, request):
    return cases[request.param]


def test_the_cases_are_what_they_say(cases):
    assert set(cases) == set(CASES)
    assert cases["weights"].weighted
    assert cases["prior out of fold"].weighted
    assert cases["a class unjudged"].unjudged == [2]
    assert cases["the rare class unjudged"].unjudged == ["rare"]
    assert len(cases["the rare class unjudged"].y) == 157
    assert cases["the usual class unjudged"].unjudged == ["usual"]
    for name in ("two", "three", "out of fold", "weights", "prior", "a class unjudged"):
        assert (cases[name].y != cases[name].labels).sum() > 0


# ------------------------------------------------------------------------------------- the page


def test_summary_and_tiles(case):
    main, right = case.main, case.figures(case.main)
    text = case.page.section("summary")
    wanted = [
        ("Sens", "of 100 that are"),
        ("Precision", "of 100 alarms"),
        ("Spec", "of 100 others"),
    ]
    for tile, (name, words) in zip(case.page.of_class("tile"), wanted, strict=True):
        assert tile.startswith(f"{of_100(right[name])}{words}")
        if np.isnan(right[name]):
            assert "95 %" not in tile
        else:
            low, high = case.interval(main, name)
            assert tile.endswith(f"95 %: {of_100(low)} to {of_100(high)}")
            assert low < high
    if np.isnan(right["Sens"]):
        assert f"None of the rows judged here is “{main}”" in text
        return
    low, high = case.interval(main, "Sens")
    assert (
        f"Of 100 rows that are “{main}”, the model finds {of_100(right['Sens'])} (95 % interval: "
        f"{of_100(low)} to {of_100(high)})."
    ) in text
    if np.isnan(right["Precision"]):
        assert "alarms, n/a" not in text
        return
    share = case.share(case.labels == main)
    assert (
        f"Of 100 alarms, {of_100(right['Precision'])} are right; 1,000 rows give about "
        f"{1000 * share:.0f} alarms."
    ) in text


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
        assert "members that had left it out, which saw fewer rows" in said
    for c in case.classes:
        n = (case.y == c).sum()
        assert (f"“{c}” ({n})" in said) == (0 < n < 30)
    assert f"Thresholds rest on: {case.model.threshold_basis_}." in case.page.of_class("lead")[0]


def test_figures_of_the_main_class(case):
    rows = {r[0]: r for r in case.page.section_rows("figures") if len(r) == 5 and r[0] != "Figure"}
    right, name = case.figures(case.main), f"“{case.main}”"
    assert {n: rows[n][1] for n in NAMES} == {n: shown(right[n]) for n in NAMES}
    for n in NAMES:
        if np.isnan(right[n]):
            assert rows[n][2] == ""
            continue
        low, high = rows[n][2].split(" to ")
        assert low != high
        assert float(low) <= right[n] + 5e-4
        assert float(high) >= right[n] - 5e-4
        if n in SHARES:
            assert [low, high] == [shown(bound) for bound in case.interval(case.main, n)]
    of = {n: of_100(right[n]) for n in NAMES}
    assert rows["Spec"][4].endswith(
        f"of 100 rows that are not {name}, {of['Spec']} are left alone."
    )
    assert rows["Sens"][4].endswith(f"of 100 rows that are {name}, {of['Sens']} are found.")
    if (case.labels == case.main).any():
        assert rows["Precision"][4] == f"Of 100 alarms, {of['Precision']} are right."
    assert rows["AUC"][4].endswith(f"scores higher in {of['AUC']}. Guessing gives 50.")
    guess = case.share(case.y == case.main)
    assert rows["Average precision"][4].endswith(f"Guessing gives {guess:.3f}.")


def test_figures_agree_with_the_models_own_report(case):
    if not case.out_of_fold:
        return
    names = ["specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision"]
    rows = {r[0]: r for r in case.page.section_rows("figures") if len(r) == 5}
    own = case.model.oof_report_[case.main]
    assert [rows[n][1] for n in NAMES] == [shown(getattr(own, name)) for name in names]


def test_figures_of_all_classes(case):
    rows = [row for row in case.page.section_rows("figures") if len(row) == 9][1:]
    if len(case.classes) == 2:
        assert rows == []
        return
    assert {row[0] for row in rows} == {str(c) for c in case.classes}
    assert rows[0][0] == str(case.main)
    for row in rows:
        c = int(row[0])
        right = case.figures(c)
        assert int(row[1]) == (case.y == c).sum()
        for n, cell in zip(NAMES, row[2:], strict=True):
            if np.isnan(right[n]):
                assert cell == "n/a"
                continue
            value, low, _, high = cell.split()
            assert value == shown(right[n])
            assert low != high
            if n in SHARES:
                assert [low, high] == [shown(bound) for bound in case.interval(c, n)]


def test_decisions(case):
    rows = case.page.section_rows("decisions")[2:]
    assert [row[0] for row in rows] == [str(c) for c in case.classes]
    for c, row in zip(case.classes, rows, strict=True):
        for p, cell in zip(case.classes, row[1:], strict=True):
            both = (case.y == c) & (case.labels == p)
            weight = case.w[case.y == c].sum()
            share = f" {per_cent(case.w[both].sum() / weight)}" if weight else ""
            assert cell == f"{both.sum()}{share}"


def rates(tp, fp, fn, tn, *, alarms, positives, negatives):
    spec = tn / (tn + fp) if negatives else np.nan
    sens = tp / (tp + fn) if positives else np.nan
    precision = tp / (tp + fp) if alarms else 0.0 if positives else np.nan
    f1 = 2 * tp / (2 * tp + fp + fn) if positives else np.nan
    return {
        "spec": shown(spec),
        "sens": shown(sens),
        "precision": shown(precision),
        "f1": shown(f1),
        "g_mean": shown(np.sqrt(spec * sens)),
        "alarms": f"{1000 * (tp + fp) / (tp + fp + fn + tn):.1f}",
    }


def cells(case, c, alarm):
    """What the explorer shows for alarms: rows in the table, and rates by weight."""
    is_c = case.y == c
    parts = [is_c & alarm, ~is_c & alarm, is_c & ~alarm, ~is_c & ~alarm]
    sides = {"positives": is_c.any(), "negatives": (~is_c).any(), "alarms": alarm.any()}
    counts = [str(part.sum()) for part in parts]
    return {
        **dict(zip(("tp", "fp", "fn", "tn"), counts, strict=True)),
        **rates(*(case.w[part].sum() for part in parts), **sides),
    }


def test_explorer(case):
    explorers = case.page.explorer()
    judged = [c for c in case.rare if c not in case.unjudged]
    if len(judged) == 1:
        assert explorers == []
        return
    wanted = judged if len(case.classes) > 2 else [case.main]
    assert [one["name"] for one in explorers] == [str(c) for c in wanted]
    for c, one in zip(wanted, explorers, strict=True):
        is_c, margin = case.y == c, case.margin(c)
        assert one["cuts"] == sorted(set(margin.tolist()), reverse=True)
        assert (one["positives"], one["negatives"]) == (is_c.sum(), (~is_c).sum())
        for place, cut in enumerate([np.inf, *one["cuts"]]):
            alarm = margin >= cut
            assert one["tp"][place] == (is_c & alarm).sum()
            assert one["fp"][place] == (~is_c & alarm).sum()
            if case.weighted:
                of, mean = one["weighted"], case.w.mean()
                assert of["tp"][place] == pytest.approx(case.w[is_c & alarm].sum() / mean, abs=1e-5)
                assert of["fp"][place] == pytest.approx(
                    case.w[~is_c & alarm].sum() / mean, abs=1e-5
                )
        if case.weighted:
            assert of["positives"] == pytest.approx(case.w[is_c].sum() / mean, abs=1e-5)
            assert of["negatives"] == pytest.approx(case.w[~is_c].sum() / mean, abs=1e-5)
        else:
            assert one["weighted"] is None
        own = case.labels == c
        assert one["tp"][one["own"]] == (own & is_c).sum()
        assert one["fp"][one["own"]] == (own & ~is_c).sum()
        if len(case.classes) > 2 or case.out_of_fold:
            assert one["probability"] is None
        else:
            chance = case.said.probabilities[:, case.classes.index(c)]
            for cut, said in zip(one["cuts"], one["probability"], strict=True):
                assert said == pytest.approx(chance[margin == cut][0], abs=1e-6)
    first = wanted[0]
    start = cells(case, first, case.labels == first)
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
    if np.isnan(right["AUC"]):
        assert "n/a: the curves need rows" in text
        return
    of = {n: of_100(right[n]) for n in NAMES}
    share = case.share(case.y == case.main)
    assert (
        f"the dot, the model finds {of['Sens']} of 100 rows that are “{case.main}” and raises a "
        f"false alarm for {of_100(1 - right['Spec'])} of 100 others. The area under the curve is "
        f"{right['AUC']:.3f};"
    ) in text
    assert f"At the dot {of['Precision']} of 100 alarms are right. Guessing" in text
    assert f"would be right in {of_100(share)} of 100" in text
    on_the_curve = len(case.classes) == 2 and not case.out_of_fold
    assert ("At its own threshold, the dot" in text) == on_the_curve
    assert ("the dot may lie beside the curve" in text) != on_the_curve


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
        n = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        bounds = proportion_confint(seen * n, n, method="wilson")
        least, most = (per_cent(round(bound, 12)) for bound in bounds)
        rows.append(
            [
                f"{low} to {low + 10} %",
                str(inside.sum()),
                per_cent(said),
                f"{per_cent(seen)} {least[:-2]} to {most}",
            ]
        )
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
    wrong = np.flatnonzero(case.y != case.labels)
    text = case.page.section("mistakes")
    if not len(wrong):
        assert f"There are none: all {len(case.y)} rows are decided rightly." in text
        return
    assert f"{len(wrong)} of {len(case.y)} rows are decided wrongly." in text
    values = case.said.decision_values
    ahead = {}
    for row in wrong.tolist():
        if values.ndim == 1:
            ahead[row] = abs(values[row])
        else:
            own, true = (case.classes.index(one) for one in (case.labels[row], case.y[row]))
            ahead[row] = values[row, own] - values[row, true]
    order = sorted(ahead, key=lambda row: -ahead[row])
    missed = [row for row in order if case.y[row] == case.main]
    other = [row for row in order if case.y[row] != case.main]
    n_missed = min(len(missed), max(5, 10 - len(other)))
    wanted = missed[:n_missed] + other[: 10 - n_missed]
    words = "from the threshold" if values.ndim == 1 else "ahead of the true class"
    right = []
    for row in wanted:
        chance = case.said.probabilities[row, case.classes.index(case.labels[row])]
        right.append(
            f"is “{case.y[row]}” → taken for “{case.labels[row]}” with probability "
            f"{per_cent(chance)} · {ahead[row]:.2f} {words} · row {case.said.rows[row]}"
        )
    assert case.page.of_class("verdicts") == right


def similarity(model, rows):
    """Cosines of all rows with one another, averaged over members and heads."""
    width = model.representatives_.shape[-1]
    parts = np.reshape(model.transform(rows), (len(rows), -1, width)).astype(float)
    parts /= np.linalg.norm(parts, axis=-1, keepdims=True)
    return np.einsum("iph,jph->ij", parts, parts) / parts.shape[1]


def test_the_rows_most_like_the_mistakes(case):
    mistakes, near = case.page.of_class("verdicts"), case.page.of_class("near")
    assert len(mistakes) == len(near)
    given = dict(zip(case.said.rows.tolist(), case.y.tolist(), strict=True))
    for mistake, other in zip(mistakes, near, strict=True):
        row = int(mistake.rsplit(" ", 1)[1])
        found = re.search(r"other (?:training )?row: row (\d+) \((\w+), similarity (.*)\)", other)
        place = case.said.rows.tolist().index(row)
        who = case.model
        if case.out_of_fold:
            who = who._only(case.said.left_out[:, place])
        like = similarity(who, case.X)[row]
        like[row] = -2
        assert int(found[1]) == like.argmax() != row
        assert found[3] == f"{like.max():.2f}"
        assert found[2] == str(given.get(int(found[1]), found[2]))


def test_what_features_add_in_a_mistake(cases):
    for name in ("two", "out of fold", "three out of fold"):
        case = cases[name]
        place = case.said.rows.tolist().index(int(case.page.of_class("verdicts")[0].split()[-1]))
        row = case.X[case.said.rows[place]]
        who = case.model
        if case.out_of_fold:
            who = who._only(case.said.left_out[:, place])

        def score(x, who=who, case=case, place=place):
            return case.column(who.predictions(x[None]).scores, case.labels[place])[0]

        assert score(row) == pytest.approx(case.column(case.said.scores, case.labels[place])[place])
        adds = {}
        for feature, usual in enumerate(np.median(case.X, axis=0)):
            changed = row.copy()
            changed[feature] = usual
            adds[f"feature {feature}"] = score(row) - score(changed)
        strongest = sorted(adds, key=lambda name: -abs(adds[name]))[:4]
        table = case.page.section_rows("mistakes")[1:5]
        assert [" ".join(line[0].split()[:2]) for line in table] == strongest
        assert [number(line[1]) for line in table] == [
            pytest.approx(adds[name], abs=6e-4) for name in strongest
        ]


def test_the_rows_closest_to_a_representative(case):
    heads = 1 if len(case.classes) == 2 else len(case.classes)
    width = case.model.representatives_.shape[-1]
    sides = np.reshape(case.model.representatives_, (-1, heads, 2, width))
    rows = np.reshape(case.model.transform(case.X), (len(case.X), -1, heads, width))
    members = case.said.left_out
    found = re.findall(r"(\d+) of the (\d+) closest rows are of this class", case.page.text)
    listed = iter(case.page.classes["rows"])
    rarer = [
        c
        for c in case.rare
        if case.known(c) * len(case.classes) < sum(case.known(c) for c in case.classes)
    ]
    assert len(found) == len(rarer)
    for c, (n_of_class, n_near) in zip(rarer, found, strict=True):
        code = case.classes.index(c)
        head, side = (0, code) if heads == 1 else (code, 1)
        like = np.array(
            [
                np.mean(
                    [
                        1 - cosine(rows[row, m, head], sides[m, head, side])
                        for m in range(len(sides))
                        if members is None or members[m, place]
                    ]
                )
                for place, row in enumerate(case.said.rows)
            ]
        )
        order = np.argsort(-like, kind="stable")
        assert int(n_near) == min(60, len(like))
        assert int(n_of_class) == (case.y[order[:60]] == c).sum()
        shown_rows = re.findall(r"row (\d+) · similarity (\S+)", "".join(next(listed)))
        right = [(str(case.said.rows[i]), f"{like[i]:.2f}") for i in order[:5]]
        assert shown_rows == right


def test_training(case):
    first, last = case.model.history_[0], case.model.history_[-1]
    text = case.page.section("training")
    assert f"from {first['loss']:.3f} to {last['loss']:.3f} in {last['step']} steps" in text


def test_header_and_map(case):
    lead = case.page.of_class("lead")[0]
    assert lead.startswith(f"{len(case.y)} rows, {len(case.classes)} classes.")
    assert "Each point is a row, placed" in case.page.section("map")
    assert "Rows are numbered from 0, as X has them." in case.page.text


def test_a_large_page_says_how_many_rows_its_map_has(cases):
    model = cases["two"].model
    X = np.random.default_rng(0).normal(size=(1700, 8))
    page = Page(make_report(model, X, model.predict(X), n_bootstrap=2).html)
    assert "of a sample of 1,500, placed" in page.section("map")
    assert f"come from {count(1700)} labelled rows" in page.section("data")


# ------------------------------------------------------------------------------------ the slider

HARNESS = """
const fs = require("fs");
const { data, positions } = JSON.parse(fs.readFileSync(0, "utf8"));
const elements = {};
const element = (id) => (elements[id] ??= {
  id, textContent: id === "explorer-data" ? JSON.stringify(data) : "", max: "1001", value: 0,
  style: { setProperty() {} }, on: {},
  addEventListener(what, does) { this.on[what] = does; }, setAttribute() {},
});
global.document = {
  getElementById: (id) => (id === "explorer-class" && data.length < 2 ? null : element(id)),
  querySelector: () => ({}),
};
eval(fs.readFileSync(process.argv[2], "utf8"));
const found = [];
data.forEach((one, number) => {
  const move = (what, to) => { element("explorer-slider").value = to; element(what).on.input(); };
  if (data.length > 1) {
    element("explorer-class").value = number;
    element("explorer-class").on.change();
  }
  const look = (at) => found.push([number, at, Object.fromEntries(
    Object.entries(elements).filter(([id]) => id.startsWith("x-"))
      .map(([id, e]) => [id.slice(2), e.textContent]))]);
  look("own");
  for (const to of positions) { move("explorer-slider", to); look(to); }
});
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    "name", ["two", "three", "weights", "prior", "three, prior", "no positives"]
)
def test_the_slider_shows_what_the_margins_say(cases, name, tmp_path):
    case = cases[name]
    explorers = case.page.explorer()
    (tmp_path / "harness.js").write_text(HARNESS)
    (tmp_path / "page.js").write_text(files("setconv.report").joinpath("page.js").read_text())
    done = subprocess.run(
        ["node", tmp_path / "harness.js", tmp_path / "page.js"],
        input=json.dumps({"data": explorers, "positions": [0, 333, 501, 998, 1000, 1001]}),
        capture_output=True,
        text=True,
        check=True,
    )
    for place, at, texts in json.loads(done.stdout):
        c = case.classes[[str(c) for c in case.classes].index(explorers[place]["name"])]
        margin = case.margin(c)
        if at == "own":
            alarm, cut = case.labels == c, "by 0.000"
        elif at == 1001:
            alarm, cut = np.zeros(len(margin), bool), None
        else:
            wanted = margin.min() + np.ptp(margin) * at / 1000
            alarm = margin >= (margin.max() if at == 1000 else wanted)
            lowest = margin[alarm].min()
            cut = f"by {'+' if lowest > 0 else ''}{shown(lowest)}"
        right = cells(case, c, alarm)
        assert {one: texts[one] for one in right} == right
        if np.array_equal(alarm, case.labels == c):
            cut = "by 0.000"
        assert texts["cut"] == (cut or "above all rows")


# ---------------------------------------------------------------------------------------- honesty


def test_noise_looks_like_noise_out_of_fold():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), np.repeat([1, 0], [30, 270])
    model = SetConvClassifier(max_steps=30, random_state=0, progress=False).fit(X, y)
    page = Page(make_report(model, X, y, out_of_fold=True, n_bootstrap=50).html)
    rows = {r[0]: r for r in page.section_rows("figures") if len(r) == 5}
    null = np.sqrt((30 + 270 + 1) / (12 * 30 * 270))
    assert float(rows["AUC"][1]) < 0.5 + 4 * null
    assert rows["Sens"][1] == f"{model.oof_report_[1].sensitivity:.3f}"
    assert page.ids["x-sens"] == rows["Sens"][1]
    own = [text.rsplit(" ", 1)[1] for text in page.of_class("verdicts")]
    near = [re.search(r"row: row (\d+)", text)[1] for text in page.of_class("near")]
    assert len(own) == len(near) == 10
    assert all(one != other for one, other in zip(own, near, strict=True))


class Counting:
    """A model that keeps every row that it is asked to score."""

    def __init__(self, model, rows=None):
        self.model, self.rows = model, [] if rows is None else rows

    def __getattr__(self, name):
        found = getattr(self.model, name)
        if name not in ("predictions", "predict", "predict_proba", "decision_function"):
            return found

        def asked(X):
            self.rows += [one if isinstance(one, str) else one.tobytes() for one in X]
            return found(X)

        return asked

    def _only(self, members):
        return Counting(self.model._only(members), self.rows)


@pytest.mark.parametrize("name", ["two", "three", "prior"])
def test_each_judged_row_is_scored_once(cases, name):
    case = cases[name]
    model = Counting(case.model)
    make_report(model, case.X, case.y, n_bootstrap=2)
    scored = [model.rows.count(row.tobytes()) for row in case.X]
    assert scored == [1] * len(case.X)
    assert model.rows[: len(case.X)] == [row.tobytes() for row in case.X]
    known = Counting(case.model)
    page = make_report(known, case.X, case.y, predictions=case.said, n_bootstrap=60)
    assert not {row.tobytes() for row in case.X} & set(known.rows)
    assert page.html == case.html


@pytest.mark.parametrize("name", ["out of fold", "three out of fold", "weights"])
def test_no_judged_row_is_scored_out_of_fold(cases, name):
    case = cases[name]
    model = Counting(case.model)
    make_report(model, case.X, case.y, out_of_fold=True, n_bootstrap=2)
    assert model.rows  # copies with a feature at its usual value
    assert not {row.tobytes() for row in case.X} & set(model.rows)


# ------------------------------------------------------------------------- ties and other stubs


def test_exact_ties_are_where_the_model_decided(cases):
    case = cases["two"]
    values = np.round(case.said.decision_values * 2) / 2
    assert (values == 0).sum() > 1
    labels = np.asarray(case.classes)[(values > 0).astype(int)]
    said = replace(case.said, decision_values=values, labels=labels)
    html = make_report(case.model, case.X, case.y, predictions=said, n_bootstrap=2).html
    (explorer,) = Page(html).explorer()
    stub = SimpleNamespace(y=case.y, w=case.w)
    right = cells(stub, case.main, labels == case.main)
    page = Page(html)
    assert {name: page.ids[f"x-{name}"] for name in right} == right
    own = explorer["own"]
    assert explorer["tp"][own] + explorer["fp"][own] == (labels == case.main).sum()
