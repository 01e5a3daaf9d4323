"""What the user may ask for, and what is refused."""

import json

import numpy as np
import pytest

from setconv.decisions.objective import Objective, parse_objective, parse_prior
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
