"""The tests of significance against published values, brute force and each other."""

import itertools
import math
import sys

import demsar
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from setconv.errors import DataError, MissingDependencyError, ParameterError
from setconv.experiment.statistics import (
    MINIMUM_SOURCES,
    average_ranks,
    critical_difference,
    friedman,
    nemenyi,
    wilcoxon_holm,
)


def random_table(seed, sources=12, methods=4, step=0.5):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(sources, methods)) - step * np.arange(methods)
    return pd.DataFrame(values, columns=[f"m{number}" for number in range(methods)])


# -------------------------------------------------------------------------------------- Friedman


def test_the_friedman_test_of_the_published_example():
    table = demsar.scores()
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


def test_friedman_takes_scores_and_ranks_alike():
    table = demsar.scores()
    assert vars(friedman(table)) == vars(friedman(average_ranks(table).by_source))


def test_sources_that_all_agree_leave_no_doubt():
    result = friedman(pd.DataFrame([[1.0, 2.0, 3.0]] * 12))
    assert result.f_statistic == math.inf
    assert result.f_p_value == 0
    assert result.significant


def test_methods_that_are_all_equal_do_not_differ():
    result = friedman(pd.DataFrame(np.ones((12, 3))))
    assert (result.chi_square, result.p_value, result.f_p_value) == (0, 1, 1)
    assert not result.significant


def test_friedman_of_two_methods_is_refused():
    with pytest.raises(DataError, match="wilcoxon_holm"):
        friedman(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 3.0]}))


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


@given(st.integers(0, 10**6))
@settings(max_examples=12)
def test_groups_are_the_longest_runs_without_a_difference(seed):
    result = nemenyi(random_table(seed, sources=20, methods=6), higher_is_better=True)
    names, apart = list(result.ranks.index), result.significant
    runs = [tuple(names[i:j]) for i in range(6) for j in range(i + 2, 7)]
    equal = [run for run in runs if not apart.loc[list(run), list(run)].to_numpy().any()]
    longest = [run for run in equal if not any(set(run) < set(other) for other in equal)]
    assert result.groups == longest


def test_averaged_ranks_of_a_source_are_ranked_again():
    by_source = pd.DataFrame({"x": [1.2] * 10, "y": [1.3] * 10, "z": [3.5] * 10})
    assert nemenyi(by_source).ranks.tolist() == [1, 2, 3]


@pytest.mark.parametrize("arguments", [(1, 10, 0.05), (3, 0, 0.05), (3, 10, 0), (3, 10, 1)])
def test_critical_differences_of_nothing_are_refused(arguments):
    with pytest.raises(ParameterError):
        critical_difference(*arguments)


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


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_the_correction_is_that_of_holm(seed):
    comparisons = wilcoxon_holm(random_table(seed, methods=5), "m2").comparisons
    p_values = comparisons["p_value"].to_numpy()
    assert comparisons.index.tolist() == ["m0", "m1", "m3", "m4"]
    corrected, largest = np.empty(4), 0.0
    for step, place in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (4 - step) * p_values[place]))
        corrected[place] = largest
    np.testing.assert_allclose(comparisons["p_holm"], corrected)


def test_wilcoxon_counts_sources_not_data_sets():
    table = random_table(0, sources=24, methods=3)
    sources = {row: f"source {row // 2}" for row in table.index}
    result = wilcoxon_holm(table, "m0", sources)
    halves = (table[::2].to_numpy() + table[1::2].to_numpy()) / 2
    same = wilcoxon_holm(pd.DataFrame(halves, columns=table.columns), "m0")
    assert result.n_sources == 12
    pd.testing.assert_frame_equal(result.comparisons, same.comparisons)


def test_differences_that_are_equal_in_decimals_are_ties():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit.
    x = pd.Series([0.3, 0.1, 0.5, 0.9])
    table = pd.DataFrame({"x": x, "y": [0.2, 0.2, 0.5, 0.5]})
    assert wilcoxon_holm(table, "x").comparisons.loc["y", "statistic"] == 3


def test_a_method_that_is_equal_everywhere_does_not_differ():
    table = pd.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0)})
    result = wilcoxon_holm(table, "x")
    assert result.comparisons.loc["y", ["p_value", "ties", "wins"]].tolist() == [1, 12, 0]
    assert not result.significant["y"]


def test_a_win_is_a_lower_score_where_lower_is_better():
    table = pd.DataFrame({"x": [1.0, 1.0, 3.0], "y": [2.0, 2.0, 2.0]})
    row = wilcoxon_holm(table, "x", higher_is_better=False).comparisons.loc["y"]
    assert (row["wins"], row["losses"]) == (2, 1)


def test_a_control_that_is_no_method_is_refused():
    with pytest.raises(ParameterError, match="choose one of m0, m1"):
        wilcoxon_holm(random_table(0, methods=2), "ours")


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


def test_the_reason_names_the_sources():
    assert friedman(random_table(0, 6)).reason.startswith("6 independent sources are fewer than 10")


def test_many_data_sets_of_few_sources_claim_nothing():
    table = random_table(0, sources=40, methods=3, step=10)
    sources = {row: f"source {row % 4}" for row in table.index}
    assert not wilcoxon_holm(table, "m0", sources).significant.any()
    assert not friedman(average_ranks(table, sources).by_source).claimed


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="alpha=5"):
        friedman(random_table(0), alpha=5)


# -------------------------------------------------------------------------------- missing packages


def test_without_a_package_the_error_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[experiment\]'"):
        nemenyi(random_table(0))
