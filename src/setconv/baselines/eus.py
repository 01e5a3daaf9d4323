"""EUS: evolutionary under-sampling, a search for the majority rows worth keeping.

After S. García and F. Herrera, "Evolutionary undersampling for classification with imbalanced
datasets: proposals and taxonomy", Evolutionary Computation 17(3), 2009. Original are the search and
its fitness, with the constants of code that authors of a later paper published; decided here are
the lists of neighbours, the meaning of ``sampling_strategy`` and what counts as an evaluation. The
class says it in full. Below the sampler stand its parts: the genetic algorithm CHC with its
operators, and the fitness of a choice of rows with the search for nearest neighbours that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from setconv.baselines.base import Random, Rows, UnderSampler, parameter
from setconv.baselines.neighbours import smallest
from setconv.errors import LabelError, ParameterError
from setconv.validation import at_least, between

# Neighbours listed for each row: memory and speed depend on it; the result, rounding apart, not.
_LISTED = 300
_EXCHANGE = 0.5  # probability that a differing bit takes part in a crossover
_SWITCH_ON = 0.25  # probability that a 0 that takes part becomes 1, and of a 1 among redrawn bits
_REDRAW = 0.35  # probability that a restart draws a bit anew
_DISTANCES = 2**24  # numbers of a block of distances: 64 MB in single precision
_PAIRS = 2**17  # pairs of a choice and a row that are looked up together
_STEPS = (0, 8, 32, 128)  # most rows have a chosen one among their first few neighbours


@dataclass(kw_only=True, eq=False, repr=False)
class EvolutionaryUnderSampler(UnderSampler):
    """Evolutionary under-sampling (EUS) of García and Herrera, for two classes.

    A genetic algorithm (CHC) chooses which rows to keep. A chromosome has one bit for each row of
    the larger class, the majority. Its fitness is the G-mean of leave-one-out 1-NN with the chosen
    rows as references, less a penalty for classes out of balance:
    ``sqrt(TPR * TNR) - penalty * |1 - chosen majority rows / minority rows|``. Of the eight methods
    of the paper's taxonomy this is EBUS-MS-GM.

    The 1-NN is Euclidean: standardise the features first.

    Parameters
    ----------
    penalty : float, default=0.2
        Weight of the balance term. With 0 the search decides alone how many rows stay.
    population : int, default=50
        Number of chromosomes.
    max_evaluations : int, default=10000
        The search ends with the generation that reaches so many evaluations.
    windowing : bool, default=True
        Whether each generation is evaluated on all minority rows and one stratum of the majority,
        as large as the minority, in turn; else on all rows. A fitness is not computed again when
        the window moves, but the last population is evaluated on all rows, and its best is kept.
        A majority of less than twice the minority is one stratum.
    sampling_strategy : float, str, dict or callable, default='auto'
        As in imbalanced-learn, with one difference: the number of majority rows that it gives is
        where the balance term is zero, not a number that is met exactly. 'auto' is as many as
        there are minority rows.
    random_state : int, RandomState instance or None, default=None
        Seeds the search.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        The rows kept.
    fitness_ : float
        Fitness of the rows kept, evaluated on all rows. Set where there was a class to reduce.
    fallbacks_ : list of str
        What could not be done and was done instead.
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    sampling_strategy_ : dict
        The number of rows at which the balance term is zero.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    Notes
    -----
    Original, by the abstracts: evolutionary search for the rows to keep, and the eight methods.
    The full texts could not be read; the steps and constants are those of the code that authors
    of the second reference published, and of other code: CHC with 50 chromosomes and 10,000
    evaluations, half uniform crossover with a probability of .25 for a bit to be switched on,
    restarts that redraw a bit with probability .35 and as 1 with probability .25, the penalty of
    .2 for a measure of at most 1, the ratio in the balance term (majority over minority; other
    code has the inverse), windowing, and that a child as good as a parent takes its place. Chosen
    here: the lists of neighbours, the meaning of ``sampling_strategy``, that the first population
    counts as evaluations, and that the last one is evaluated on all rows, which does not count.

    References
    ----------
    S. García, F. Herrera, "Evolutionary undersampling for classification with imbalanced
    datasets: proposals and taxonomy", Evolutionary Computation 17(3), 275-306, 2009.

    Triguero, I., M. Galar, S. Vluymans, C. Cornelis, H. Bustince, F. Herrera, Y. Saeys,
    "Evolutionary undersampling for imbalanced big data classification", IEEE CEC 2015, 715-722.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.eus import EvolutionaryUnderSampler
    >>> X, y = make_classification(weights=[0.8], random_state=0)
    >>> sampler = EvolutionaryUnderSampler(max_evaluations=2000, random_state=0)
    >>> X_kept, y_kept = sampler.fit_resample(X, y)
    >>> np.bincount(y), np.bincount(y_kept)
    (array([81, 19]), array([19, 19]))
    """

    _binary_only = True

    penalty: float = parameter(0.2, between(0, None, "left"))
    population: int = parameter(50, at_least(2))
    max_evaluations: int = parameter(10000, at_least(1))
    windowing: bool = parameter(True, "boolean")
    sampling_strategy: Any = "auto"
    random_state: Any = None

    def _kept_rows(
        self, X: Rows, codes: np.ndarray, targets: dict[int, int], random: Random
    ) -> np.ndarray:
        if np.bincount(codes).min() < 2:
            rare = self.classes_.tolist()[np.bincount(codes).argmin()]
            raise LabelError(
                f"class {rare!r} has 1 row; leave-one-out 1-NN needs at least 2 of each class. Add "
                f"rows, or use a sampler without neighbours such as "
                f"imblearn.under_sampling.RandomUnderSampler."
            )
        ((reduced, target), *more) = targets.items()
        if more or target < 1:
            raise ParameterError(
                f"sampling_strategy must reduce one class, to one row at least; it gives "
                f"{self.sampling_strategy_}. Give the number of rows of the larger class only.",
                parameter="sampling_strategy",
            )
        fitness = Fitness(NearestChosen(X, _LISTED), codes == reduced, target, self.penalty)
        everything = np.arange(len(codes))
        parts = windows(fitness.reduced, random) if self.windowing else [everything]
        search = CHC(
            lambda chromosomes, generation: fitness(chromosomes, parts[generation % len(parts)]),
            int(fitness.reduced.sum()),
            self.population,
            random,
        )
        population = search.run(self.max_evaluations)
        # Each was evaluated on a window of its own time; on all rows they compare.
        values = fitness(population, everything)
        self.fitness_ = float(values.max())
        return np.flatnonzero(fitness.choices(population)[values.argmax()])


def windows(reduced: np.ndarray, random: Random) -> list[np.ndarray]:
    """Split the rows of the reduced class into strata as large as the other class.

    Returns
    -------
    windows : list of int ndarray
        The rows of one stratum each, with all rows of the other class.
    """
    others = np.flatnonzero(~reduced)
    mixed = random.permutation(np.flatnonzero(reduced))
    strata = np.array_split(mixed, max(1, len(mixed) // len(others)))
    return [np.concatenate([stratum, others]) for stratum in strata]


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
        self,
        evaluate: Callable[[np.ndarray, int], np.ndarray],
        n_genes: int,
        size: int,
        random: Random,
    ) -> None:
        self.evaluate = evaluate
        self.random = random
        self.generation = self.evaluations = 0
        self.threshold = n_genes // 4
        self.population = random.random_sample((size, n_genes)) < 0.5
        self.fitness = self._evaluated(self.population)
        self._survive(self.population, self.fitness)

    def run(self, max_evaluations: int) -> np.ndarray:
        """Search until so many chromosomes have been evaluated; return the last population."""
        while self.evaluations < max_evaluations:
            self.generation += 1
            self._next_generation()
            if self.threshold <= 0:
                self._restart()
        return self.population

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
                everybody = np.concatenate([children, self.population])
                self._survive(everybody, np.concatenate([fitness, self.fitness]))
                return
        self.threshold -= 1

    def _restart(self) -> None:
        size, n_genes = self.population.shape
        others = diverge(self.population[0], size - 1, self.random)
        fitness = np.append(self.fitness[0], self._evaluated(others))
        self._survive(np.concatenate([self.population[:1], others]), fitness)
        self.threshold = int(_REDRAW * (1 - _REDRAW) * n_genes)

    def _survive(self, chromosomes: np.ndarray, fitness: np.ndarray) -> None:
        """Keep the best, sorted from the best to the worst."""
        order = np.argsort(-fitness, kind="stable")[: len(self.population)]
        self.population, self.fitness = chromosomes[order], fitness[order]
        self._distances = hamming(self.population)

    def _evaluated(self, chromosomes: np.ndarray) -> np.ndarray:
        self.evaluations += len(chromosomes)
        return self.evaluate(chromosomes, self.generation)


def biased_hux(first: np.ndarray, second: np.ndarray, random: Random) -> np.ndarray:
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
    takes_part = random.random_sample(len(pair)) < _EXCHANGE
    pair, bit = pair[takes_part], bit[takes_part]
    on = random.random_sample(len(pair)) < _SWITCH_ON
    children[pair, bit] = ~first[pair, bit] & on
    children[pair + len(first), bit] = ~second[pair, bit] & on
    return children


def diverge(best: np.ndarray, number: int, random: Random) -> np.ndarray:
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
    redrawn = random.random_sample(shape) < _REDRAW
    return np.where(redrawn, random.random_sample(shape) < _SWITCH_ON, best)


def hamming(chromosomes: np.ndarray) -> np.ndarray:
    """Count the bits in which every two chromosomes differ, a matrix."""
    bits = chromosomes.astype(np.float32)
    ones = bits.sum(axis=1)
    return np.asarray(ones[:, None] + ones - 2 * (bits @ bits.T))


@dataclass(frozen=True)
class Fitness:
    """The fitness of a choice of rows: ``G-mean - penalty * |1 - chosen / target|``.

    The G-mean is ``sqrt(TPR * TNR)`` of leave-one-out 1-NN. A chromosome has one bit for each row
    of the class to be reduced; the rows of the other are always chosen.

    Parameters
    ----------
    nearest : NearestChosen
        Finds the nearest chosen row.
    reduced : bool ndarray of shape (n,)
        Whether a row is of the class to be reduced, the majority.
    target : int
        Number of rows of the reduced class at which the classes count as balanced.
    penalty : float
        Weight of the balance term; 0 is without.
    """

    nearest: NearestChosen
    reduced: np.ndarray
    target: int
    penalty: float

    def choices(self, chromosomes: np.ndarray) -> np.ndarray:
        """Turn chromosomes (m, g) into choices of rows (m, n)."""
        chosen = np.ones((len(chromosomes), len(self.reduced)), dtype=bool)
        chosen[:, self.reduced] = chromosomes
        return chosen

    def __call__(self, chromosomes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Evaluate chromosomes on some rows.

        Parameters
        ----------
        chromosomes : bool ndarray of shape (m, g)
            What is chosen.
        rows : int ndarray of shape (k,)
            The rows that are classified, of both classes.

        Returns
        -------
        fitness : ndarray of shape (m,)
            The larger the better, at most 1.
        """
        chosen = self.choices(chromosomes)
        nearest = self.nearest(chosen, rows)
        is_reduced = self.reduced[rows]
        right = self.reduced[nearest] == is_reduced
        reduced_rate = right[:, is_reduced].mean(axis=1)
        other_rate = right[:, ~is_reduced].mean(axis=1)
        imbalance = np.abs(1 - chromosomes.sum(axis=1) / self.target)
        return np.asarray(np.sqrt(reduced_rate * other_rate) - self.penalty * imbalance)


class NearestChosen:
    """Finds the nearest chosen row of each row, itself left out.

    The neighbours of every row are listed once, nearest first (rows at the same distance in their
    order); the nearest chosen row is then the first of the list that is chosen. Where the list has
    none, all chosen rows are looked at. Of every choice two rows or more are chosen.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows; the distance is Euclidean.
    length : int
        Number of neighbours listed for each row, all the others at most.
    """

    def __init__(self, X: Any, length: int) -> None:
        rows = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        # Distances come from products, which lose digits if the rows lie far from the origin.
        dense = isinstance(rows, np.ndarray)
        self._rows = rows - rows.mean(axis=0) if dense else rows.tocsr()
        self._squares = row_norms(self._rows, squared=True)
        n = self._rows.shape[0]
        self.length = min(length, n - 1)
        self._lists = np.empty((n, self.length), dtype=np.int32)
        for block in gen_batches(n, max(1, _DISTANCES // n)):
            distances = self._distances(np.arange(n)[block], slice(None))
            self._lists[block] = smallest(distances, self.length)

    def __call__(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Find the nearest chosen row of each row.

        Parameters
        ----------
        chosen : bool ndarray of shape (m, n)
            ``m`` choices of rows.
        rows : int ndarray of shape (k,)
            The rows whose nearest is asked for.

        Returns
        -------
        nearest : int ndarray of shape (m, k)
            Numbers of rows.
        """
        parts = gen_batches(len(chosen), max(1, _PAIRS // len(rows)))
        return np.concatenate([self._look_up(chosen[part], rows) for part in parts])

    def _look_up(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        nearest = np.full((len(chosen), len(rows)), -1)
        open_pairs = np.arange(nearest.size)
        steps = [step for step in _STEPS if step < self.length]
        for start, stop in pairwise([*steps, self.length]):
            choice, place = np.divmod(open_pairs, len(rows))
            neighbours = self._lists[rows[place], start:stop]
            hits = chosen.ravel()[neighbours + choice[:, None] * chosen.shape[1]]
            found = hits.any(axis=1)
            nearest.flat[open_pairs[found]] = neighbours[found, hits[found].argmax(axis=1)]
            open_pairs = open_pairs[~found]
        for choice in np.unique(open_pairs // len(rows)):
            places = np.flatnonzero(nearest[choice] < 0)
            nearest[choice, places] = self._scan(chosen[choice], rows[places])
        return nearest

    def _scan(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        candidates = np.flatnonzero(chosen)
        parts = gen_batches(len(rows), max(1, _DISTANCES // len(candidates)))
        best = [self._distances(rows[part], candidates).argmin(axis=1) for part in parts]
        return np.asarray(candidates[np.concatenate(best)])

    def _distances(self, rows: np.ndarray, others: Any) -> np.ndarray:
        """Squared distances but for what is the same in a line; infinite to the row itself."""
        distances: np.ndarray = safe_sparse_dot(
            self._rows[rows], self._rows[others].T, dense_output=True
        )
        distances *= -2
        distances += self._squares[others]
        distances[rows[:, None] == np.arange(len(self._squares))[others]] = np.inf
        return distances
