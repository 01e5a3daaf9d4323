"""The corrected resampled t test and Holm's correction, against other computations of them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from setconv.errors import DataError, ParameterError
from setconv.experiment.statistics import corrected_t_test, holm

SHARES = st.floats(0.05, 2)
# Thousandths: what is left after rounding to the digits of the test is exact.
DIFFERENCES = st.lists(st.integers(-900, 900).map(lambda n: n / 1000), min_size=2, max_size=30)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


# ------------------------------------------------------------------------------------- the t test


def test_three_splits_worked_by_hand():
    # t^2 = .02^2 / ((1/3 + 1/2) * .01^2) = 4.8; with 2 degrees of freedom p = 1 - t / sqrt(t^2 + 2)
    assert corrected_t_test([0.01, 0.02, 0.03], 0.5) == pytest.approx(1 - math.sqrt(4.8 / 6.8))


def test_two_splits_worked_by_hand():
    # t = .02 / sqrt((1/2 + 3/7) * .0002), and one degree of freedom is Cauchy's distribution
    t = 0.02 / math.sqrt((1 / 2 + 3 / 7) * 0.0002)
    expected = 1 - 2 / math.pi * math.atan(t)
    assert corrected_t_test([0.01, 0.03], 3 / 7) == pytest.approx(expected)


def test_the_example_in_the_documentation_of_scikit_learn():
    # "Statistical comparison of models using grid search": 10 times 10 folds of 100 rows. The
    # plain t of 2.611 (one-sided p .005) becomes .750 (.227) by the correction.
    shape = np.random.default_rng(0).normal(size=100)
    shape = (shape - shape.mean()) / shape.std(ddof=1)
    differences = shape + 2.611 / math.sqrt(100)
    plain = stats.ttest_1samp(differences, 0, alternative="greater")
    assert (round(plain.statistic, 3), round(plain.pvalue, 3)) == (2.611, 0.005)
    assert round(corrected_t_test(differences, 10 / 90) / 2, 3) == 0.227


@given(DIFFERENCES, SHARES)
def test_it_is_the_paired_t_test_with_a_wider_variance(differences, share):
    assume(len(set(differences)) > 1)
    j = len(differences)
    plain = stats.ttest_1samp(differences, 0)
    expected = 2 * stats.t.cdf(-abs(plain.statistic) / math.sqrt(1 + j * share), j - 1)
    assert corrected_t_test(differences, share) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert corrected_t_test(differences, share) >= plain.pvalue - 1e-12


@given(DIFFERENCES, SHARES)
def test_the_order_of_the_two_methods_and_of_the_splits_does_not_matter(differences, share):
    assume(len(set(differences)) > 1)
    p = corrected_t_test(differences, share)
    assert 0 <= p <= 1
    assert corrected_t_test([-one for one in differences], share) == pytest.approx(p)
    assert corrected_t_test(differences[::-1], share) == pytest.approx(p)


@given(DIFFERENCES, SHARES, SHARES)
def test_the_more_rows_are_tested_on_the_less_certain_it_is(differences, share, other):
    assume(len(set(differences)) > 1)
    low, high = sorted([share, other])
    assert corrected_t_test(differences, low) <= corrected_t_test(differences, high) + 1e-12


def test_the_correction_keeps_the_error_rate_where_splits_share_rows():
    # Splits whose differences are correlated by n_test / (n_test + n_train) and have no mean:
    # the model behind the correction. The plain test errs far more often than it says.
    rng, share, j, studies = np.random.default_rng(1), 3 / 7, 10, 1500
    common = math.sqrt(0.3) * rng.normal(size=(studies, 1))
    differences = common + math.sqrt(0.7) * rng.normal(size=(studies, j))
    corrected = np.mean([corrected_t_test(row, share) <= 0.05 for row in differences])
    plain = np.mean(stats.ttest_1samp(differences, 0, axis=1).pvalue <= 0.05)
    assert plain > 0.25
    assert 0.035 < corrected < 0.065


def test_nothing_differs_where_the_methods_are_equal_on_every_split():
    assert corrected_t_test([0.0, 0.0, 0.0], 3 / 7) == 1
    # Not 0 to the last bit.
    assert corrected_t_test([0.3 - 0.2 - 0.1, 0.0, 0.0], 3 / 7) == 1


def test_the_same_difference_on_every_split_has_no_spread_to_test_by():
    assert math.isnan(corrected_t_test([0.25, 0.25, 0.25], 3 / 7))
    assert math.isnan(corrected_t_test([0.3 - 0.1, 0.9 - 0.7, 0.2], 3 / 7))


def test_one_split_says_nothing():
    assert math.isnan(corrected_t_test([0.1], 3 / 7))
    assert math.isnan(corrected_t_test([], 3 / 7))


@pytest.mark.parametrize("differences", [[0.1, math.nan], [0.1, math.inf], [[0.1], [0.2]]])
def test_differences_must_be_finite_numbers_in_a_row(differences):
    with pytest.raises(DataError, match="one finite number a split"):
        corrected_t_test(differences, 3 / 7)


@pytest.mark.parametrize("share", [0, -1, math.nan])
def test_a_share_must_be_above_0(share):
    with pytest.raises(ParameterError, match="test_share"):
        corrected_t_test([0.1, 0.2], share)


# ------------------------------------------------------------------------------------------- Holm


def test_holm_worked_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(P_VALUES)
@settings(max_examples=8)  # statsmodels collects garbage in every call
def test_holm_equals_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


@given(P_VALUES, st.integers(0, 12))
def test_a_comparison_that_could_not_be_made_does_not_count(p_values, place):
    place = min(place, len(p_values))
    with_hole = [*p_values[:place], math.nan, *p_values[place:]]
    corrected = holm(with_hole)
    assert math.isnan(corrected.pop(place))
    assert corrected == pytest.approx(holm(p_values))


def test_no_comparison_needs_no_correction():
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
