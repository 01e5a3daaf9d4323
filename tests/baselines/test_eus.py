"""EUS: the fitness against brute force, the operators and the search of CHC, the sampler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.baselines import eus
from setconv.baselines.eus import (
    CHC,
    EvolutionaryUnderSampler,
    Fitness,
    NearestChosen,
    biased_hux,
    diverge,
    hamming,
    windows,
)

SHORT = {"max_evaluations": 600, "random_state": 0}


def two_clouds(n_majority=120, n_minority=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_majority + n_minority, 3))
    y = np.repeat([0, 1], [n_majority, n_minority])
    X[y == 1] += 1
    order = rng.permutation(len(y))
    return X[order], y[order]


def slow_nearest(X, chosen, row):
    """The nearest other chosen row, or None, by looking at each in turn."""
    best, shortest = None, np.inf
    for other in np.flatnonzero(chosen):
        distance = np.sum((X[row] - X[other]) ** 2)
        if other != row and distance < shortest:
            best, shortest = other, distance
    return best


def slow_fitness(X, reduced, chosen, rows, penalty, target):
    right = {True: [], False: []}
    for row in rows:
        nearest = slow_nearest(X, chosen, row)
        right[reduced[row]].append(nearest is not None and reduced[nearest] == reduced[row])
    tnr, tpr = np.mean(right[True]), np.mean(right[False])
    return np.sqrt(tpr * tnr) - penalty * abs(1 - np.sum(chosen & reduced) / target)


@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 30),
    density=st.sampled_from([0.05, 0.3, 0.9]),
)
def test_fitness_is_that_of_brute_force_leave_one_out(seed, length, density):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, 2)) + 100
    reduced = np.arange(24) % 4 > 0
    chromosomes = rng.random((5, reduced.sum())) < density
    chosen = np.ones((5, 24), dtype=bool)
    chosen[:, reduced] = chromosomes
    rows = rng.permutation(24)[:15]
    rows = np.union1d(rows, [0, 1])
    fitness = Fitness(NearestChosen(X, length), reduced, 9, 0.3)
    slow = [slow_fitness(X, reduced, one, rows, 0.3, 9) for one in chosen]
    assert np.allclose(fitness(chromosomes, rows), slow)


def test_duplicates_are_neighbours_of_each_other_but_no_row_is_its_own():
    X = np.array([[1.0], [1.0], [5.0], [5.0]])
    nearest = NearestChosen(X, 1)
    assert nearest(np.ones((1, 4), dtype=bool), np.arange(4)).tolist() == [[1, 0, 3, 2]]
    assert nearest(np.array([[True, False, True, False]]), np.arange(4)).tolist() == [[2, 0, 0, 2]]


def test_windows_are_disjoint_strata_as_large_as_the_minority_and_all_of_it():
    reduced = np.arange(103) % 10 > 0  # 92 and 11
    parts = windows(reduced, np.random.RandomState(0))
    assert len(parts) == 8
    strata = [part[reduced[part]] for part in parts]
    assert sorted(np.concatenate(strata)) == np.flatnonzero(reduced).tolist()
    assert {len(stratum) for stratum in strata} == {11, 12}
    for part in parts:
        assert sorted(part[~reduced[part]]) == np.flatnonzero(~reduced).tolist()


def test_crossover_changes_differing_bits_only_with_the_stated_probabilities():
    first = np.tile([True, True, False, False], (30_000, 1))
    second = np.tile([True, False, True, False], (30_000, 1))
    children = biased_hux(first, second, np.random.RandomState(0))
    means = children.reshape(2, -1, 4).mean(axis=1)
    # A 1 stays with probability 1/2; a 0 becomes 1 with probability 1/2 * 1/4.
    expected = [[1, 0.5, 0.125, 0], [1, 0.125, 0.5, 0]]
    assert np.allclose(means, expected, atol=0.01)
    assert np.array_equal(means[:, [0, 3]], [[1, 0], [1, 0]])


def test_a_restart_redraws_about_a_third_of_the_bits_of_the_best():
    made = diverge(np.array([True, False]), 30_000, np.random.RandomState(0))
    assert np.allclose(made.mean(axis=0), [0.65 + 0.35 * 0.25, 0.35 * 0.25], atol=0.01)


def agreement(wanted):
    return lambda chromosomes, _generation: (chromosomes == wanted).mean(axis=1)


def test_the_best_fitness_never_falls_and_the_search_finds_what_is_wanted():
    wanted = np.arange(40) % 5 == 0
    search = CHC(agreement(wanted), 40, 20, np.random.RandomState(0))
    assert search.evaluations == 20
    best = [search.fitness[0]]
    for limit in range(100, 3001, 100):
        chosen = search.run(limit)[0]
        best.append(search.fitness[0])
        assert limit <= search.evaluations < limit + 20
    assert np.all(np.diff(best) >= 0)
    assert np.array_equal(chosen, wanted)


def test_no_children_until_the_threshold_lies_below_half_the_distance_of_the_parents():
    search = CHC(agreement(True), 60, 2, np.random.RandomState(3))
    half = int(hamming(search.population)[0, 1]) // 2
    assert half <= 60 // 4
    search.run(4)
    assert search.generation == 60 // 4 - half + 2
    assert search.evaluations == 4


@pytest.mark.parametrize("majority", [60, 29])
def test_of_the_last_population_the_best_on_all_rows_is_kept(majority, monkeypatch):
    searches = []

    class KeptCHC(CHC):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            searches.append(self)

    monkeypatch.setattr(eus, "CHC", KeptCHC)
    first_is_best = []
    for seed in range(5):
        X, y = two_clouds(majority, 15, seed)
        sampler = EvolutionaryUnderSampler(max_evaluations=200, random_state=seed)
        sampler.fit_resample(X, y)
        slow = []
        for chromosome in searches[-1].population:
            chosen = y == 1
            chosen[y == 0] = chromosome
            slow.append(slow_fitness(X, y == 0, chosen, range(len(y)), 0.2, 15))
        chosen = np.isin(np.arange(len(y)), sampler.sample_indices_)
        kept = slow_fitness(X, y == 0, chosen, range(len(y)), 0.2, 15)
        assert sampler.fitness_ == pytest.approx(kept) == pytest.approx(max(slow))
        first_is_best.append(np.array_equal(chosen[y == 0], searches[-1].population[0]))
    # Under twice the minority there is one window, all rows, and the order of the search holds.
    assert all(first_is_best) is (majority < 30)


def test_the_balance_term_pulls_towards_the_number_wanted_and_all_of_the_minority_stays():
    X, y = two_clouds()
    for strategy, wanted in [(0.5, 40), ({0: 30}, 30), ("majority", 20)]:
        sampler = EvolutionaryUnderSampler(penalty=5, sampling_strategy=strategy, **SHORT)
        _, y_kept = sampler.fit_resample(X, y)
        assert abs(np.sum(y_kept == 0) - wanted) <= 1
        assert np.sum(y_kept == 1) == 20


@pytest.mark.parametrize("equal_distances", [False, True])
def test_the_length_of_the_lists_does_not_change_the_result(equal_distances, monkeypatch):
    X, y = two_clouds()
    if equal_distances:  # exactly: whole numbers whose mean is 0
        X = np.round(np.concatenate([X[:70], -X[:70]]))
    kept = []
    for length in (1, 7, 300):
        monkeypatch.setattr(eus, "_LISTED", length)
        sampler = EvolutionaryUnderSampler(**SHORT)
        sampler.fit_resample(X, y)
        kept.append(sampler.sample_indices_.tolist())
    assert kept[0] == kept[1] == kept[2]
