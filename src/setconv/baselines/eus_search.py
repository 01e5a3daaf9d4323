"""The evolutionary search of EUS: CHC with a crossover that prefers to leave rows out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

EXCHANGE = 0.5  # probability that a differing bit takes part in a crossover
SWITCH_ON = 0.25  # probability that a 0 that takes part becomes 1, and of a 1 among redrawn bits
REDRAW = 0.35  # probability that a restart draws a bit anew

Evaluate = Callable[[np.ndarray, int], np.ndarray]


def biased_hux(first: np.ndarray, second: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Half uniform crossover, biased towards 0.

    Each bit in which the parents differ takes part with probability 1/2; then the 1 becomes 0, and
    the 0 becomes 1 with probability 1/4.

    Parameters
    ----------
    first, second : bool ndarray of shape (m, g)
        Parents, pair by pair.
    random : RandomState
        Source of chance.

    Returns
    -------
    children : bool ndarray of shape (2m, g)
        The first parents changed, then the second.
    """
    children = np.concatenate([first, second])
    pair, bit = np.nonzero(first != second)
    takes_part = random.random_sample(len(pair)) < EXCHANGE
    pair, bit = pair[takes_part], bit[takes_part]
    on = random.random_sample(len(pair)) < SWITCH_ON
    children[pair, bit] = ~first[pair, bit] & on
    children[pair + len(first), bit] = ~second[pair, bit] & on
    return children


def diverge(best: np.ndarray, number: int, random: np.random.RandomState) -> np.ndarray:
    """Make chromosomes for a restart: copies of the best with some bits drawn anew.

    Parameters
    ----------
    best : bool ndarray of shape (g,)
        The best chromosome.
    number : int
        How many to make.
    random : RandomState
        Source of chance.

    Returns
    -------
    chromosomes : bool ndarray of shape (number, g)
        Each bit is redrawn with probability .35, and then 1 with probability .25.
    """
    shape = (number, len(best))
    redrawn = random.random_sample(shape) < REDRAW
    return np.where(redrawn, random.random_sample(shape) < SWITCH_ON, best)


class CHC:
    """The population and the steps of CHC.

    Parents are paired at random and have children only if half of their Hamming distance exceeds a
    threshold (no incest); parents and children compete for the places of the next generation; the
    threshold falls by one where no child gets in, and at zero the search restarts from the best.

    Parameters
    ----------
    evaluate : callable
        Takes chromosomes (m, g) and the number of the generation; returns their fitness (m,).
        A fitness once given is kept.
    n_genes : int
        Number of bits.
    size : int
        Number of chromosomes.
    random : RandomState
        Source of chance.
    """

    def __init__(
        self, evaluate: Evaluate, n_genes: int, size: int, random: np.random.RandomState
    ) -> None:
        self.evaluate = evaluate
        self.random = random
        self.generation = self.evaluations = 0
        self.threshold = n_genes // 4
        self.population = random.random_sample((size, n_genes)) < 0.5
        self.fitness = self._evaluated(self.population)
        self._survive(self.population, self.fitness)

    def run(self, max_evaluations: int) -> np.ndarray:
        """Search until so many chromosomes have been evaluated; return the best one."""
        while self.evaluations < max_evaluations:
            self.generation += 1
            self._next_generation()
            if self.threshold <= 0:
                self._restart()
        return np.asarray(self.population[0])

    def _next_generation(self) -> None:
        half = len(self.population) // 2
        first, second = self.random.permutation(len(self.population))[: 2 * half].reshape(2, half)
        strangers = self._distances[first, second] // 2 > self.threshold
        if strangers.any():
            parents = self.population[first[strangers]], self.population[second[strangers]]
            children = biased_hux(*parents, self.random)
            fitness = self._evaluated(children)
            if fitness.max() >= self.fitness[-1]:
                # Children come first: of equals, the sort prefers the new.
                self._survive(
                    np.concatenate([children, self.population]),
                    np.concatenate([fitness, self.fitness]),
                )
                return
        self.threshold -= 1

    def _restart(self) -> None:
        size, n_genes = self.population.shape
        others = diverge(self.population[0], size - 1, self.random)
        fitness = np.append(self.fitness[0], self._evaluated(others))
        self._survive(np.concatenate([self.population[:1], others]), fitness)
        self.threshold = int(REDRAW * (1 - REDRAW) * n_genes)

    def _survive(self, chromosomes: np.ndarray, fitness: np.ndarray) -> None:
        """Keep the best, sorted from the best to the worst."""
        order = np.argsort(-fitness, kind="stable")[: len(self.population)]
        self.population, self.fitness = chromosomes[order], fitness[order]
        self._distances = hamming(self.population)

    def _evaluated(self, chromosomes: np.ndarray) -> np.ndarray:
        self.evaluations += len(chromosomes)
        return self.evaluate(chromosomes, self.generation)


def hamming(chromosomes: np.ndarray) -> np.ndarray:
    """Count the bits in which every two chromosomes differ, a matrix."""
    bits = chromosomes.astype(np.float32)
    ones = bits.sum(axis=1)
    return np.asarray(ones[:, None] + ones - 2 * (bits @ bits.T))
