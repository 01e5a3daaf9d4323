"""What the user may ask for, and what is refused."""

import json

import numpy as np
import pytest

from setconv.decisions.objective import (
    Objective,
    OutOfFoldScores,
    parse_objective,
    parse_prior,
    weight_scales,
)
from setconv.errors import ParameterError

TWO = np.array(["no", "fire"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Objective("paper")),
        ("balanced", Objective("balanced")),
        (" F1 ", Objective("f1")),
        ("recall >= 95 %", Objective("recall", 0.95)),
        ("precision ≥ 90%", Objective("precision", 0.9)),
        ({"recall": 1, "class": "no"}, Objective("recall", 1.0, target=0)),
        (
            {"precision": np.float64(0.5), "class": np.str_("fire")},
            Objective("precision", 0.5, target=1),
        ),
        ("recall >= 95 % @ 90 %", Objective("recall", 0.95, 0.9)),
        ("precision>=.8@0.95", Objective("precision", 0.8, 0.95)),
        (
            {"recall": 0.9, "confidence": 0.5, "class": "no"},
            Objective("recall", 0.9, 0.5, target=0),
        ),
        ([[0, 1], [20, -3]], Objective("cost", cost=((0.0, 1.0), (20.0, -3.0)))),
    ],
)
def test_objectives_are_read_and_survive_json(given, expected):
    parsed = parse_objective(given, TWO)
    assert parsed == expected
    assert Objective.from_dict(json.loads(json.dumps(parsed.to_dict()))) == expected


@pytest.mark.parametrize(
    "given",
    [
        *("auc", "recall>0.9", "recall>=95", "recall>=0", 3),
        *(
            "recall>=0.9 @",
            "recall>=0.9 @ 90",
            "recall>=0.9 @ 100%",
            "recall>=0.9 @ 40%",
            "f1 @ 90%",
        ),
        *({"recall": 0.9, "confidence": sure} for sure in (1, True, "0.9", float("nan"))),
        *("recall>=1 @ 90%", {"confidence": 0.9}),
        *({"recall": level} for level in (float("nan"), True, "0.9")),
        *({}, {"recall": 0.9, "precision": 0.9}, {"recall": 0.9, "label": 1}),
        {"recall": 0.9, "class": "water"},
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        [["a", 1], [1, 0]],
        [[0, np.inf], [1, 0]],
        [[0, 1], [1, 5]],  # a right decision that is dearer than a wrong one
        [[0, 0], [1, 0]],  # a class that would never be decided on
    ],
)
def test_what_is_wrong_is_refused_by_name(given):
    with pytest.raises(ParameterError) as caught:
        parse_objective(given, TWO)
    assert caught.value.parameter == "objective"
    with pytest.raises(ValueError, match="kind"):
        Objective.from_dict({"kind": "luck"})


@pytest.mark.parametrize("given", [[0.9, 0.1], {"fire": 0.1}, {"no": 0.9, "fire": 0.1}, 0.1])
def test_priors_in_order_and_by_label(given):
    np.testing.assert_allclose(parse_prior(given, TWO, 1), [0.9, 0.1])
    assert parse_prior(None, TWO, 1) is None


@pytest.mark.parametrize(
    "given",
    [[0.5], [0.9, 0.2], [1.0, 0.0], [np.nan, 1], {"water": 0.1}, {}, {"fire": 1.2}, "half", 1.3],
)
def test_priors_that_are_none_are_refused(given):
    with pytest.raises(ParameterError) as caught:
        parse_prior(given, TWO, 1)
    assert caught.value.parameter == "prior"


# --------------------------------------------------------- rows that stand for more than themselves


def sampled(stands_for=(10.0, 1.0, 2.5), counts=(60, 20, 30), seed=0):
    """Rows with weights of their own, in units of up to three."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], counts)
    rows = OutOfFoldScores(
        scores=rng.normal(size=(len(codes), 3)),
        codes=codes,
        weights=rng.choice([0.5, 1.0, 4.0], len(codes)),
        n_classes=3,
        units=rng.integers(0, 60, len(codes)),
        stands_for=stands_for,
    )
    return rows.evened()


def test_rows_have_the_prevalence_of_all_that_they_stand_for():
    rows = sampled()
    np.testing.assert_allclose(rows.totals, [600, 20, 75])
    np.testing.assert_allclose(rows.prior, np.array([600, 20, 75]) / 695)
    plain = sampled(None)
    np.testing.assert_allclose(rows.own_weights, plain.weights)
    np.testing.assert_array_equal(plain.own_weights, plain.weights)
    # Some of them, as another fold has them, are as rare as the same part of all rows.
    part = rows.part(np.arange(len(rows)) % 2 == 0).evened()
    np.testing.assert_allclose(part.totals, [300, 10, 37.5])
    alone = rows.one_a_unit(0)
    counts = np.bincount(alone.codes)
    assert alone.units is None
    np.testing.assert_allclose(alone.totals, counts * [10, 1, 2.5])
    np.testing.assert_array_equal(alone.codes, plain.one_a_unit(0).codes)
    # Evened twice, or after a prior, they are what they were.
    again = rows.weighed(np.array([0.1, 7.0, 1.0])).evened()
    np.testing.assert_allclose(again.weights, rows.weights)


def test_a_class_without_rows_is_half_a_row_of_those_that_would_stand_there():
    rows = sampled(counts=(60, 20, 0))
    np.testing.assert_allclose(rows.prior, np.array([600, 20, 0.5 * 2.5]) / 621.25)


@pytest.mark.parametrize("stands_for", [None, (10.0, 1.0, 2.5)])
def test_fewer_of_the_rows_stand_for_as_many(stands_for):
    rows = sampled(stands_for)
    few = rows.thinned(40, 10, seed=0)
    assert np.bincount(few.codes).tolist() == [21, 10, 10]
    np.testing.assert_allclose(few.totals, rows.totals)
    np.testing.assert_allclose(few.evened().totals, rows.totals)
    np.testing.assert_allclose(few.stands_for, np.bincount(rows.codes, minlength=3)
                               / [21, 10, 10] * (stands_for or 1))  # fmt: skip
    assert rows.thinned(200, 10, seed=0) is rows


def test_rows_that_stand_for_themselves_are_as_ever_to_the_bit():
    rng = np.random.default_rng(1)
    codes, weights = rng.integers(0, 3, 100), rng.random(100)
    given = {"scores": rng.normal(size=(100, 3)), "codes": codes, "n_classes": 3}
    rows = OutOfFoldScores(weights=weights, **given).evened()
    right = weights * weight_scales(weights, codes, 3)[codes]
    np.testing.assert_array_equal(rows.weights, right)
    totals = np.bincount(codes, right)
    np.testing.assert_array_equal(rows.prior, totals / totals.sum())
    ones = OutOfFoldScores(weights=np.ones(100), **given)
    assert ones.evened() is ones
