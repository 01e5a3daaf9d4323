"""Minimums: against brute force over order statistics and tests, and how often they are kept."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from statsmodels.stats.proportion import proportion_confint

from setconv.decisions.minimums import (
    alarm_counts,
    lower_share,
    promises,
    rows_for_recall,
    threshold_by_rates,
    threshold_by_tests,
    threshold_for_precision,
    threshold_for_recall,
    upper_share,
)
from setconv.decisions.objective import Grounds, Objective, OutOfFoldScores, parse_objective
from setconv.decisions.rule import DecisionRule
from setconv.errors import ParameterError, SetConvError

TWO = np.array(["no", "fire"])


def rows_of(scores, codes, weights=None, n_classes=2, units=None):
    codes = np.asarray(codes, dtype=np.int64)
    return OutOfFoldScores(
        scores=np.asarray(scores, dtype=float).reshape(len(codes), -1),
        codes=codes,
        weights=np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float),
        n_classes=n_classes,
        units=units,
    )


def recall_of(scores, member, level, confidence=None, weights=None, units=None):
    rows = rows_of(scores, member, weights, units=units)
    return threshold_for_recall(scores, member, rows, Objective("recall", level, confidence))


def rule_for(rows, objective, prior=None, classes=TWO, **given):
    known = {
        "classes": classes,
        "positive": 1,
        "train_prior": rows.prior,
        "class_weights": np.ones(len(classes)),
        "evidence": rows,
    }
    return DecisionRule.choose(Grounds(**known | given), parse_objective(objective, classes), prior)


# ------------------------------------------------------------------------------------- on average


@pytest.mark.parametrize(("n", "level"), [(19, 0.95), (99, 0.9), (40, 0.9), (200, 0.95), (9, 0.5)])
def test_recall_takes_the_conformal_order_statistic(n, level):
    generator = np.random.default_rng(n)
    own, rest = np.sort(generator.normal(1, 1, n)), generator.normal(-1, 1, 300)
    scores, member = np.append(own, rest), np.repeat([True, False], [n, 300])
    found, twice = (
        recall_of(scores, member, level, weights=np.full(n + 300, weight)) for weight in (1.0, 2.0)
    )
    k = int(np.floor(round((n + 1) * (1 - level), 9)))
    lower = np.max(scores[scores < own[k - 1]])
    assert found == twice
    assert (found.threshold, found.met) == (pytest.approx((lower + own[k - 1]) / 2), True)
    # Fewer than k of n fall below what a row in twenty falls below: too high a threshold.
    assert found.may_miss == pytest.approx(binom.cdf(k - 1, n, 1 - level), abs=1e-6)


def test_recall_holds_on_average_for_new_rows_and_is_missed_as_often_as_said():
    generator = np.random.default_rng(0)
    member = np.repeat([True, False], [30, 100])
    recalls, missed, said = [], 0, 0.0
    for _ in range(1000):
        scores = generator.normal(member * 1.5)
        found = recall_of(scores, member, 0.9)
        recalls.append(np.mean(generator.normal(1.5, size=50) > found.threshold))
        missed += 1 - _normal(found.threshold - 1.5) < 0.9
        said += found.may_miss
    assert 0.9 < np.mean(recalls) < 0.94
    # The middle of a gap lies a little lower than the order statistic itself.
    assert said / 1000 - 0.08 < missed / 1000 < said / 1000 + 0.03


def _normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize("level", [0.95, 1.0])
def test_too_few_rows_for_the_recall_are_told(level):
    scores, member = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([False, False, True, True])
    found = recall_of(scores, member, level)
    assert (found.threshold, found.met) == (0.5, False)
    assert "there are 2" in found.problem
    assert ("takes 19 rows" if level < 1 else "takes inf rows") in found.problem


def test_unequal_weights_count_as_fewer_rows():
    scores, member = np.arange(40.0), np.ones(40, dtype=bool)
    assert recall_of(scores, member, 0.95).met
    found = recall_of(scores, member, 0.95, weights=np.where(scores < 5, 10, 1))
    assert not found.met
    assert "recall>=0.95" in found.problem


def precision_of(scores, member, weights, level):
    rows = rows_of(scores, member, weights)
    return threshold_for_precision(scores, member, rows, Objective("precision", level))


def test_precision_takes_the_lowest_threshold_that_has_it():
    scores = np.arange(12.0)
    member = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1], dtype=bool)
    precisions = {t: member[scores > t].mean() for t in scores - 0.5}
    for level in (0.6, 0.75, 0.85):
        found = precision_of(scores, member, np.ones(12), level)
        cut = min(t for t, p in precisions.items() if p >= level)
        assert found[:2] == (cut, True)
        right, n = member[scores > cut].sum(), (scores > cut).sum()
        assert found.may_miss == pytest.approx(beta.cdf(level, right + 0.5, n - right + 0.5))


@pytest.mark.parametrize(
    ("members", "heavy", "expected"),
    [
        ([0, 2, 4, 6, 8], 1.0, (-0.5, False)),  # 0.5 on all ten rows is the most
        ([6, 9], 1.0, (8.5, False)),  # reached, but on one row
        ([5, 7, 8, 9], 100.0, (6.5, False)),  # reached on three rows, for weights count
    ],
)
def test_precision_out_of_reach_is_told(members, heavy, expected):
    scores, member = np.arange(10.0), np.isin(np.arange(10), members)
    found = precision_of(scores, member, np.where(member, 1.0, heavy), 0.9)
    assert found[:2] == expected
    assert "precision>=0.9" in found.problem


# ------------------------------------------------------------------------ recall with a confidence


def brute_force_recall(own, level, confidence):
    """The largest order statistic that enough samples have below the share 1 - level; None."""
    n, best = len(own), None
    for k in range(1, n + 1):
        if sum(binom.pmf(j, n, 1 - level) for j in range(k, n + 1)) >= confidence:
            best = np.sort(own)[k - 1]
    return best


@given(
    n=st.integers(1, 150),
    level=st.sampled_from([0.5, 0.7, 0.8, 0.9, 0.95, 0.99]),
    confidence=st.sampled_from([0.6, 0.8, 0.9, 0.95]),
    ties=st.booleans(),
    seed=st.integers(0, 5),
)
def test_the_threshold_lies_just_under_the_order_statistic(n, level, confidence, ties, seed):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=n + 50)
    scores = scores.round(0) if ties else scores
    member = np.arange(n + 50) < n
    found = recall_of(scores, member, level, confidence)
    right = brute_force_recall(scores[member], level, confidence)
    assert found.met == (right is not None)
    first = scores[member].min() if right is None else right
    np.testing.assert_array_equal(scores > found.threshold, scores >= first)
    if right is None:
        assert f"takes {rows_for_recall(level, confidence)} rows" in found.problem
    else:
        assert found.may_miss <= 1 - confidence + 1e-9


@pytest.mark.parametrize(
    ("level", "confidence", "missed", "n"),
    [(0.95, 0.9, 0, 45), (0.95, 0.9, 1, 77), (0.95, 0.9, 2, 105), (0.99, 0.95, 0, 299)],
)
def test_rows_that_a_recall_takes(level, confidence, missed, n):
    assert rows_for_recall(level, confidence, missed) == n
    chances = [1 - binom.cdf(missed, size, 1 - level) for size in (n - 1, n)]
    assert chances[0] < confidence <= chances[1]


def test_of_groups_and_copies_one_row_counts():
    generator = np.random.default_rng(0)
    scores = np.append(generator.normal(2, 1, 200), generator.normal(-2, 1, 400))
    codes = np.repeat([1, 0], [200, 400])
    alone = rule_for(rows_of(scores, codes), "recall>=0.9 @ 90%")
    assert alone.met
    assert alone.may_miss <= 0.1
    units = np.append(np.repeat(np.arange(10), 20), np.arange(10, 410))
    tied = rows_of(scores, codes, units=units)
    with pytest.raises(ParameterError, match=r"takes 22 rows.*there are 10") as caught:
        rule_for(tied, "balanced").with_objective("recall>=0.9 @ 90%")
    assert caught.value.parameter == "objective"
    kept = tied.one_a_unit(seed=3)
    assert len(kept) == 410
    assert np.bincount(kept.codes).tolist() == [400, 10]
    assert sorted(units[np.isin(scores, kept.scores)]) == list(range(410))
    # On average the rows decide, and groups only say how sure that is.
    average, sure = (rule_for(one, "recall>=0.9") for one in (tied, rows_of(scores, codes)))
    assert average.thresholds == sure.thresholds
    assert sure.may_miss == pytest.approx(binom.cdf(19, 200, 0.1), abs=1e-6)
    assert average.may_miss == pytest.approx(0.9**10, abs=1e-6)  # as the lowest of ten rows
    with pytest.raises(ParameterError, match="hang together"):
        rule_for(tied, "balanced", doubt="all hang together").with_objective("precision>=0.5 @ 80%")


# --------------------------------------------------------------------- precision with a confidence


def plain_counts(level, confidence, most):
    """The least numbers of alarms that show the precision with 1, 2, ... wrong ones."""
    found, wrong = [], 1
    for alarms in range(1, most + 1):
        if binom.cdf(wrong, alarms, 1 - level) <= 1 - confidence:
            found.append(alarms)
            wrong += 1
    return found


@pytest.mark.parametrize("level", [0.3, 0.5, 0.8, 0.9, 0.97])
@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.9, 0.99])
def test_the_sequence_of_tests_is_fixed_by_level_and_confidence(level, confidence):
    counts = alarm_counts(level, confidence, 400).tolist()
    assert counts == plain_counts(level, confidence, 400)
    many = alarm_counts(level, confidence, 10**6)
    assert many[: len(counts)].tolist() == counts
    assert len(many) < 2500
    assert (np.diff(many) > 0).all()


def plain_sequence(scores, member, level, confidence):
    """Test one number of alarms after the other, until one fails; None or the last that passed."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    last = None
    for count in plain_counts(level, confidence, len(scores)):
        alarms = order[:count]
        # Of equal scores none or all.
        if count < len(scores) and scores[order[count]] == scores[order[count - 1]]:
            alarms = [i for i in alarms if scores[i] > scores[order[count]]]
        if not alarms:
            continue
        wrong = sum(not member[i] for i in alarms)
        if binom.cdf(wrong, len(alarms), 1 - level) > 1 - confidence:
            break
        last = set(alarms)
    return last


@given(
    n1=st.integers(1, 60),
    n0=st.integers(1, 60),
    gap=st.sampled_from([0.0, 1.0, 2.0, 4.0]),
    level=st.sampled_from([0.3, 0.5, 0.7, 0.8, 0.9]),
    confidence=st.sampled_from([0.6, 0.8, 0.9]),
    ties=st.booleans(),
    seed=st.integers(0, 9),
)
def test_precision_is_tested_as_an_independent_sequence_does(
    n1, n0, gap, level, confidence, ties, seed
):
    member = np.repeat([True, False], [n1, n0])
    scores = np.random.default_rng(seed).normal(size=n1 + n0) + gap * member
    scores = scores.round(0) if ties else scores
    found = threshold_by_tests(scores, member, Objective("precision", level, confidence))
    right = plain_sequence(scores, member, level, confidence)
    assert found.met == (right is not None)
    if right is None:
        assert f"precision>={level:g} @ {100 * confidence:g}%" in found.problem
    else:
        assert set(np.flatnonzero(scores > found.threshold)) == right
        # At the score of the row after the last alarm.
        rest = [scores[i] for i in range(len(scores)) if i not in right]
        assert not rest or found.threshold == max(rest)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7), (41, 300)])
@pytest.mark.parametrize("error", [0.025, 0.1])
def test_bounds_are_those_of_clopper_and_pearson(k, n, error):
    low, high = proportion_confint(k, n, alpha=2 * error, method="beta")
    assert lower_share(k, n, error) == pytest.approx(low if k else 0)
    assert upper_share(k, n, error) == pytest.approx(high if k < n else 1)


def plain_rates(scores, member, level, confidence, share):
    """From rates, one row of the class after the other: the least margin that passed; or None."""
    own, rest = sorted(scores[member], reverse=True), scores[~member]
    n1, n0, error = len(own), len(rest), 1 - confidence

    def least(k, false):
        recall = proportion_confint(k, n1, alpha=error, method="beta")[0]
        alarms = (
            1.0 if false == n0 else proportion_confint(false, n0, alpha=error, method="beta")[1]
        )
        return share * recall / (share * recall + (1 - share) * alarms)

    for allowed in (1, 0):
        first = next((k for k in range(1, n1 + 1) if least(k, min(allowed, n0)) >= level), None)
        if first is not None:
            break
    last = None
    for k in range(first or n1 + 1, n1 + 1):
        if least(k, int((rest >= own[k - 1]).sum())) < level:
            break
        last = own[k - 1]
    return last


@given(
    n1=st.integers(2, 80),
    n0=st.integers(2, 300),
    gap=st.sampled_from([1.0, 3.0, 6.0]),
    level=st.sampled_from([0.1, 0.3, 0.6, 0.8]),
    share=st.sampled_from([0.02, 0.2, 0.5]),
    seed=st.integers(0, 9),
)
def test_precision_at_another_prevalence_by_rates(n1, n0, gap, level, share, seed):
    member = np.repeat([True, False], [n1, n0])
    scores = np.random.default_rng(seed).normal(size=n1 + n0) + gap * member
    objective = Objective("precision", level, 0.9)
    found, heavy = (
        threshold_by_rates(
            scores, member, rows_of(scores, member, [w] * (n1 + n0)), objective, share
        )
        for w in (1.0, 3.0)
    )
    right = plain_rates(scores, member, level, 0.9, share)
    assert found.met == heavy.met == (right is not None)
    assert found.threshold == heavy.threshold
    if right is not None:
        np.testing.assert_array_equal(scores > found.threshold, scores >= right)


def test_which_way_a_precision_is_tested():
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [900, 200])
    scores = generator.normal(codes * 4.0)
    rows, objective = rows_of(scores, codes), "precision>=0.8 @ 90%"
    asked = Objective("precision", 0.8, 0.9)
    member = codes == 1
    plain = rule_for(rows, objective)
    assert plain.thresholds[0] == threshold_by_tests(scores, member, asked).threshold
    prior = np.array([0.95, 0.05])
    moved = rule_for(rows, objective, prior)
    by_rates = threshold_by_rates(scores, member, rows, asked, 0.05)
    assert moved.met
    assert moved.thresholds[0] == by_rates.threshold > plain.thresholds[0]
    # A prevalence is a fact, not a wish: where the minimum is not shown at it, that is said.
    with pytest.warns(UserWarning, match=r"at a share of 0\.0001 of the class"):
        assert plain.with_prior({"fire": 0.0001}).met is False
    # Rows that were left aside: the evidence has another prevalence than the training data.
    thinned = rule_for(rows, objective, train_prior=prior)
    assert thinned.thresholds[0] == by_rates.threshold
    # Of groups one row a class; the prevalence is that of all rows.
    units = np.append(np.arange(900) // 3, 300 + np.arange(200) // 2)
    grouped = rows_of(scores, codes, units=units)
    alone = grouped.one_a_unit(0)
    right = threshold_by_rates(alone.scores[:, 0], alone.codes == 1, alone, asked, 200 / 1100)
    assert rule_for(grouped, objective).thresholds[0] == right.threshold


def test_class_0_and_one_of_three_classes():
    generator = np.random.default_rng(1)
    codes = np.repeat([0, 1], [300, 900])
    scores = generator.normal(codes * 3.0)
    for text in ("recall>=0.9 @ 90%", "precision>=0.7 @ 90%"):
        asked = parse_objective(text, TWO)
        rule = rule_for(
            rows_of(scores, codes), {asked.kind: asked.level, "confidence": 0.9, "class": "no"}
        )
        mirrored = rule_for(rows_of(-scores, 1 - codes), text)
        said = rule.predictions(scores[:, None]).labels == "no"
        other = mirrored.predictions(-scores[:, None]).labels == "fire"
        np.testing.assert_array_equal(said, other)
    codes = np.repeat([0, 1, 2], [600, 200, 100])
    columns = generator.normal(size=(900, 3)) + 3 * np.eye(3)[codes]
    asked = {"recall": 0.9, "confidence": 0.9, "class": 2}
    rule = rule_for(rows_of(columns, codes, n_classes=3), asked, classes=np.arange(3))
    margins = columns[:, 2] - columns[:, :2].max(axis=1)
    right = brute_force_recall(margins[codes == 2], 0.9, 0.9)
    np.testing.assert_array_equal(rule.predictions(columns).labels == 2, margins >= right)


# ------------------------------------------------------------------------ what is said and refused


def test_what_cannot_be_shown_is_warned_of_in_a_fit_and_refused_afterwards():
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [300, 30])
    rows = rows_of(generator.normal(codes * 1.0), codes)
    with pytest.warns(UserWarning, match="cannot be shown: it takes at least 38 alarms"):
        rule = rule_for(rows, "precision>=0.9 @ 90%")
    assert rule.met is False
    again = DecisionRule.from_dict(rule.to_dict(), rule.arrays(), TWO)
    assert (again.met, again.may_miss, again.objective) == (False, None, rule.objective)
    for objective in ("precision>=0.9 @ 90%", "recall>=0.99 @ 90%"):
        with pytest.raises(ParameterError):
            rule.with_objective(objective)
    with pytest.warns(UserWarning, match="precision>=0.9"):
        assert rule.with_objective("precision>=0.9").met is False


@pytest.mark.parametrize(("n", "confidence"), [(40, 0.9), (1, 0.9), (300, 0.95)])
def test_what_labels_alone_can_promise(n, confidence):
    found = promises(["fire"] * n + ["no"] * 900, confidence=confidence)
    assert (found.label, found.n_rows) == ("fire", n)
    own, member = np.arange(n + 1.0), np.ones(n + 1, dtype=bool)
    # A hair below it can be asked for, a hair above it cannot.
    for side in (-1e-6, 1e-6):
        level = found.recall + side
        assert recall_of(own[1:], member[1:], level, confidence).met == (side < 0)
        member[0] = False  # all found, and one wrong alarm
        asked = Objective("precision", found.precision + side, confidence)
        assert threshold_by_tests(own, member, asked).met == (side < 0)
    low, high = proportion_confint(n / 2, n, method="wilson")
    assert found.margin == pytest.approx((high - low) / 2)
    grouped = promises(["fire"] * n + ["no"] * 900, groups=[0] * n + list(range(900)))
    assert grouped.n_rows == 1


@pytest.mark.parametrize(
    ("y", "given", "parameter"),
    [
        ([0, 0, 1], {"confidence": 90}, "confidence"),
        ([0, 0, 1], {"groups": [1]}, "groups"),
        ([0, 0, 1], {"groups": [None, "a", "b"]}, "groups"),
        ([1, 1], {}, "y"),
        ([], {}, "y"),
        ([0.0, float("nan")], {}, "y"),
    ],
)
def test_what_cannot_promise_anything_is_refused_by_name(y, given, parameter):
    with pytest.raises(SetConvError) as caught:
        promises(y, **given)
    assert caught.value.parameter == parameter


def simulate(objective, n1, n0, gap, repeats=400):
    """Return how often a minimum was stated, and stated and missed, on fresh normal scores."""
    generator, codes = np.random.default_rng(0), np.repeat([0, 1], [n0, n1])
    stated = missed = 0
    for _ in range(repeats):
        # Whether a row is of the class is drawn with its score, as in real samples.
        drawn = generator.random(n0 + n1) < n1 / (n0 + n1)
        codes = drawn.astype(int)
        scores = generator.normal(gap * codes)
        asked = parse_objective(objective, TWO)
        if asked.kind == "recall":
            found = recall_of(scores, drawn, asked.level, asked.confidence)
        else:
            found = threshold_by_tests(scores, drawn, asked)
        recall, false = (1 - _normal(found.threshold - middle) for middle in (gap, 0.0))
        truth = recall if asked.kind == "recall" else n1 * recall / (n1 * recall + n0 * false)
        stated += found.met
        missed += found.met and truth < asked.level
    return stated / repeats, missed / repeats


@pytest.mark.parametrize(
    ("objective", "n1", "gap"),
    [
        ("recall>=0.9 @ 90%", 60, 2.0),
        ("recall>=0.8 @ 80%", 40, 1.0),
        ("precision>=0.8 @ 90%", 200, 3.0),
        ("precision>=0.5 @ 90%", 40, 2.0),
        ("precision>=0.6 @ 80%", 60, 0.0),
    ],
)
def test_a_stated_minimum_is_missed_no_more_often_than_stated(objective, n1, gap):
    stated, missed = simulate(objective, n1, 10 * n1, gap)
    error = 1 - parse_objective(objective, TWO).confidence
    assert missed <= error + 2.5 * math.sqrt(error * (1 - error) / 400)
    assert (stated > 0.8) == (gap > 0 and "0.5" not in objective) or stated > 0.5


# --------------------------------------------------------- rows that stand for more than themselves


def stood_for(rows, stands_for):
    return replace(rows, stands_for=stands_for).evened()


@pytest.mark.parametrize("confidence", ["", " @ 90%"])
def test_a_recall_rests_on_the_rows_that_there_are_whatever_they_stand_for(confidence):
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [900, 200])
    rows = rows_of(generator.normal(codes * 2.0), codes)
    for asked in ({"recall": 0.9}, {"recall": 0.9, "class": "no"}):
        asked = asked | ({"confidence": 0.9} if confidence else {})
        plain, other = (rule_for(one, asked) for one in (rows, stood_for(rows, (20.0, 3.0))))
        assert other.thresholds[0] == plain.thresholds[0]
        assert (other.met, other.may_miss) == (plain.met, pytest.approx(plain.may_miss))


def test_a_precision_of_rows_that_stand_for_others_is_never_tested_row_by_row():
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1], [900, 200])
    scores = generator.normal(codes * 4.0)
    rows, objective = rows_of(scores, codes), "precision>=0.8 @ 90%"
    asked, member = Objective("precision", 0.8, 0.9), codes == 1
    tested = threshold_by_tests(scores, member, asked).threshold
    assert rule_for(stood_for(rows, (1.0, 1.0)), objective).thresholds[0] == tested
    for stands_for in ((3.0, 1.0), (20.0, 20.0)):
        share = 200 * stands_for[1] / (200 * stands_for[1] + 900 * stands_for[0])
        by_rates = threshold_by_rates(scores, member, rows, asked, share)
        moved = rule_for(stood_for(rows, stands_for), objective)
        assert moved.thresholds[0] == pytest.approx(by_rates.threshold, abs=1e-12)
        assert moved.thresholds[0] != tested


def test_false_alarms_may_all_be_of_the_class_whose_rows_stand_for_most():
    codes = np.repeat([0, 1, 2], [50, 2000, 300])
    scores = np.eye(3)[codes] * 5
    rows = rows_of(scores, codes, n_classes=3)
    heavy = stood_for(rows, (40.0, 1.0, 1.0))
    asked, member = Objective("precision", 0.5, 0.9), codes == 2
    margins = scores[:, 2] - scores[:, :2].max(axis=1)
    found = threshold_by_rates(margins, member, heavy, replace(asked, level=0.99), 0.01)
    # 2,000 rows of weight 1 and 50 of weight 40 know a rate like 100 rows, not 195.
    rest = float(re.search("and (.*) others", found.problem)[1])
    assert rest == pytest.approx(100, abs=1)
    plain = threshold_by_rates(margins, member, rows, replace(asked, level=0.99), 0.01)
    assert "and 2050 others" in plain.problem


def test_how_many_fits_miss_a_precision_follows_from_what_the_wrong_alarms_stand_for():
    # 1,000 right alarms, and 10 wrong ones that stand for 9 each: a precision of 0.917.
    scores = np.r_[np.full(1010, 1.0), np.full(990, -1.0)]
    codes = np.r_[np.ones(1000), np.zeros(1000)].astype(int)
    rows = stood_for(rows_of(scores, codes), (9.0, 1.0))
    rule = rule_for(rows, "precision>=0.88")
    assert rule.met
    rng = np.random.default_rng(0)
    right, wrong = rng.poisson(1000, 20_000), 9 * rng.poisson(10, 20_000)
    assert rule.may_miss == pytest.approx(np.mean(right / (right + wrong) < 0.88), abs=0.03)
    # As if every alarm knew as much, it would be next to never.
    even = rule_for(rows_of(scores, codes), "precision>=0.88")
    assert even.may_miss < 1e-6
