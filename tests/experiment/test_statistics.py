"""Ranks and tests against published values, brute force, other computations and each other."""

import itertools
import math

import demsar
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from setconv.errors import DataError, ParameterError
from setconv.experiment.statistics import (
    MINIMUM_SOURCES,
    average_ranks,
    corrected_t_test,
    critical_difference,
    friedman,
    holm,
    nemenyi,
    wilcoxon_holm,
)

SHARES = st.floats(0.05, 2)
# Thousandths: what is left after rounding to the digits of the test is exact.
DIFFERENCES = st.lists(st.integers(-900, 900).map(lambda n: n / 1000), min_size=2, max_size=30)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def random_table(seed, sources=12, methods=4, step=0.5):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(sources, methods)) - step * np.arange(methods)
    return pd.DataFrame(values, columns=[f"m{number}" for number in range(methods)])


# ------------------------------------------------------------------------------------- the ranks


def test_scores_that_agree_to_four_decimals_share_a_rank():
    noisy = pd.DataFrame({"x": [0.9, 0.3], "y": [0.9 + 4e-5, 0.1 + 0.2], "z": [0.9 + 9e-5, 0.1]})
    assert average_ranks(noisy).by_source.to_numpy().tolist() == [[2.5, 2.5, 1], [1.5, 1.5, 3]]
    assert friedman(noisy).chi_square == friedman(noisy.round(4)).chi_square


# -------------------------------------------------------------------------------------- Friedman


def test_the_friedman_test_of_the_published_example():
    table = demsar.scores()
    average, by_source = average_ranks(table)
    assert average.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    assert by_source.loc["mushroom"].tolist() == [2.5] * 4
    result = friedman(table)
    # The publication does not correct for ties; the correction divides by this.
    groups = [np.unique(row, return_counts=True)[1] for row in table.to_numpy()]
    correction = 1 - sum((count**3 - count).sum() for count in groups) / (14 * (4**3 - 4))
    chi_square = result.chi_square * correction
    assert round(chi_square, 2) == 9.28
    assert round(13 * chi_square / (14 * 3 - chi_square), 2) == 3.69
    assert result.significant
    assert (result.n_sources, result.n_methods) == (14, 4)


@given(st.integers(0, 10**6))
def test_iman_and_davenport_is_the_analysis_of_variance_of_ranks(seed):
    table = random_table(seed).round(0)  # with ties
    ranks = table.rank(axis="columns").to_numpy()
    n, k = ranks.shape
    between = n * ((ranks.mean(axis=0) - ranks.mean()) ** 2).sum()
    # Every source has the same mean rank, so it explains nothing.
    within = ((ranks - ranks.mean()) ** 2).sum() - between
    expected = (between / (k - 1)) / (within / ((n - 1) * (k - 1)))
    result = friedman(table)
    assert result.f_statistic == pytest.approx(expected)
    assert result.f_p_value == pytest.approx(stats.f.sf(expected, k - 1, (n - 1) * (k - 1)))


@pytest.mark.parametrize(
    ("row", "f_statistic", "f_p_value"), [([1.0, 2.0, 3.0], math.inf, 0), ([1.0] * 3, 0, 1)]
)
def test_sources_that_all_agree_leave_no_doubt(row, f_statistic, f_p_value):
    result = friedman(pd.DataFrame([row] * 12))
    assert (result.f_statistic, result.f_p_value) == (f_statistic, f_p_value)
    assert result.significant == (f_p_value == 0)


# --------------------------------------------------------------------------------------- Nemenyi


@pytest.mark.parametrize("alpha", demsar.CRITICAL_VALUES)
def test_critical_differences_are_those_of_the_published_table(alpha):
    for k, value in enumerate(demsar.CRITICAL_VALUES[alpha], start=2):
        found = critical_difference(k, 14, alpha) / math.sqrt(k * (k + 1) / (6 * 14))
        # The table has three digits, of which the last is rounded off in one place or the other.
        assert found == pytest.approx(value, abs=0.0011)


def test_the_nemenyi_test_of_the_published_example():
    table = demsar.scores()
    strict, mild = nemenyi(table, 0.05, True), nemenyi(table, 0.10, True)
    assert round(strict.critical_difference, 2) == 1.25
    assert round(mild.critical_difference, 2) == 1.12
    # At 0.05 the test finds nothing, at 0.10 C4.5 differs from +m and from +m+cf.
    assert not strict.significant.to_numpy().any()
    assert strict.groups == [("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")]
    assert mild.significant["C4.5"].to_dict() == {
        **{"C4.5+m+cf": True, "C4.5+m": True},
        **{"C4.5+cf": False, "C4.5": False},
    }
    assert mild.groups == [("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5")]


@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=12)
def test_two_methods_differ_exactly_from_the_critical_difference_on(seed, alpha):
    result = nemenyi(random_table(seed, methods=5), alpha, higher_is_better=True)
    ranks = result.ranks.to_numpy()
    apart = np.abs(ranks[:, None] - ranks[None, :])
    p_values = result.p_values.to_numpy()
    expected = stats.studentized_range.sf(apart / math.sqrt(5 * 6 / (12 * 12)), 5, np.inf)
    np.testing.assert_allclose(p_values, np.where(np.eye(5), 1, expected), rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(
        result.significant.to_numpy(), apart >= result.critical_difference
    )
    assert (np.diff(ranks) >= 0).all()


# -------------------------------------------------------------------------------------- Wilcoxon


def test_the_wilcoxon_test_of_the_published_example():
    result = wilcoxon_holm(demsar.scores()[["C4.5", "C4.5+m"]], "C4.5+m")
    row = result.comparisons.loc["C4.5"]
    assert row["statistic"] == 12  # R- of the publication; R+ is 93
    assert (row["wins"], row["ties"], row["losses"]) == (10, 2, 2)
    # z = -2.54 there, without the correction for ties.
    assert row["p_value"] == pytest.approx(2 * stats.norm.sf(2.54), abs=2e-4)
    assert row["p_holm"] == row["p_value"]
    assert result.significant["C4.5"]


@pytest.mark.parametrize("seed", range(3))
def test_wilcoxon_is_exact_by_all_signs(seed):
    table = random_table(seed, sources=10, methods=2)
    differences = (table["m0"] - table["m1"]).to_numpy()
    ranks = stats.rankdata(np.abs(differences))
    sums = [np.dot(signs, ranks) for signs in itertools.product([0, 1], repeat=10)]
    positive = ranks[differences > 0].sum()
    far = abs(positive - 27.5)
    expected = np.mean([abs(one - 27.5) >= far - 1e-9 for one in sums])
    found = wilcoxon_holm(table, "m0").comparisons.loc["m1"]
    assert found["p_value"] == pytest.approx(expected)
    assert found["statistic"] == min(positive, 55 - positive)


def test_wilcoxon_counts_sources_not_data_sets():
    table = random_table(0, sources=24, methods=3)
    sources = {row: f"source {row // 2}" for row in table.index}
    result = wilcoxon_holm(table, "m0", sources)
    halves = (table[::2].to_numpy() + table[1::2].to_numpy()) / 2
    same = wilcoxon_holm(pd.DataFrame(halves, columns=table.columns), "m0")
    assert result.n_sources == 12
    assert result.comparisons["p_holm"].tolist() == holm(result.comparisons["p_value"].tolist())
    pd.testing.assert_frame_equal(result.comparisons, same.comparisons)


def test_differences_that_are_equal_in_decimals_are_ties():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit.
    x = pd.Series([0.3, 0.1, 0.5, 0.9])
    table = pd.DataFrame({"x": x, "y": [0.2, 0.2, 0.5, 0.5]})
    assert wilcoxon_holm(table, "x").comparisons.loc["y", "statistic"] == 3


# ---------------------------------------------------------------------------- what may be claimed


@pytest.mark.parametrize("sources", [MINIMUM_SOURCES - 1, MINIMUM_SOURCES])
def test_fewer_than_ten_sources_claim_nothing_whatever_the_p_values(sources):
    table = random_table(0, sources, 3, step=10)
    enough = sources == 10
    omnibus, posthoc = friedman(table), nemenyi(table)
    pairs = wilcoxon_holm(table, "m0")
    for result in (omnibus, posthoc, pairs):
        assert result.claimed is enough
        assert bool(result.reason) is not enough
    assert omnibus.f_p_value < 0.001
    assert posthoc.p_values.loc["m0", "m2"] < 0.001
    assert (pairs.comparisons["p_holm"] < 0.05).all()
    assert omnibus.significant is enough
    assert posthoc.significant.loc["m0", "m2"] == enough
    assert pairs.significant.all() == pairs.significant.any() == enough


# ------------------------------------------------------------------------------------- the t test


@given(DIFFERENCES, SHARES)
def test_it_is_the_paired_t_test_with_a_wider_variance(differences, share):
    assume(len(set(differences)) > 1)
    j = len(differences)
    plain = stats.ttest_1samp(differences, 0)
    expected = 2 * stats.t.cdf(-abs(plain.statistic) / math.sqrt(1 + j * share), j - 1)
    assert corrected_t_test(differences, share) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert corrected_t_test(differences, share) >= plain.pvalue - 1e-12


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.0, 0.0, 0.0], 1),
        ([0.3 - 0.2 - 0.1, 0.0, 0.0], 1),  # not 0 to the last bit
        ([0.3 - 0.1, 0.9 - 0.7, 0.2], math.nan),  # no spread to test by
        ([0.1], math.nan),
        ([], math.nan),
    ],
)
def test_differences_without_spread_show_nothing(differences, expected):
    assert corrected_t_test(differences, 3 / 7) == pytest.approx(expected, abs=0, nan_ok=True)


TWO = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 3.0]}, ["a", "b"])


@pytest.mark.parametrize(
    ("error", "function", "arguments"),
    [
        (DataError, average_ranks, [TWO.replace(3.0, np.nan)]),
        (DataError, average_ranks, [TWO.set_axis(["a", "a"])]),
        (DataError, average_ranks, [TWO[["x"]]]),
        (DataError, average_ranks, [TWO, {"a": "s"}]),
        (DataError, friedman, [TWO]),
        (ParameterError, friedman, [random_table(0), 5]),
        (ParameterError, wilcoxon_holm, [TWO, "ours"]),
        (DataError, corrected_t_test, [[0.1, math.nan], 3 / 7]),
        (DataError, corrected_t_test, [[[0.1], [0.2]], 3 / 7]),
        (ParameterError, corrected_t_test, [[0.1, 0.2], 0]),
        (ParameterError, corrected_t_test, [[0.1, 0.2], math.nan]),
    ],
)
def test_what_cannot_be_compared_is_refused(error, function, arguments):
    with pytest.raises(error):
        function(*arguments)


# ------------------------------------------------------------------------------------------- Holm


@given(P_VALUES)
@settings(max_examples=8)  # statsmodels collects garbage in every call
def test_holm_equals_statsmodels_and_counts_only_comparisons_that_were_made(p_values):
    first, *others = holm([math.nan, *p_values])
    assert math.isnan(first)
    assert others == pytest.approx(multipletests(p_values, method="holm")[1].tolist())
