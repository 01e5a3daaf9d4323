"""EUS, evolutionary under-sampling: a search for the majority rows worth keeping."""

from __future__ import annotations

from typing import Any

import numpy as np

from setconv.baselines.checking import check_class_number, check_number
from setconv.baselines.eus_fitness import Fitness, NearestChosen, windows
from setconv.baselines.eus_search import CHC
from setconv.baselines.sampling import Rows, UnderSampler
from setconv.checks import check_integer
from setconv.errors import LabelError, ParameterError

__all__ = ["EvolutionaryUnderSampler"]

_LISTED = 300  # neighbours listed for each row: memory and speed depend on it, the result does not


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
        the window moves.
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
    here: the lists of neighbours, the meaning of ``sampling_strategy``, and that the first
    population counts as evaluations.

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

    def __init__(
        self,
        *,
        penalty: float = 0.2,
        population: int = 50,
        max_evaluations: int = 10000,
        windowing: bool = True,
        sampling_strategy: Any = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.penalty = penalty
        self.population = population
        self.max_evaluations = max_evaluations
        self.windowing = windowing
        self.random_state = random_state

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        check_integer("population", self.population, least=2)
        check_integer("max_evaluations", self.max_evaluations, least=1)
        check_number("penalty", self.penalty, 0, np.inf, "left")
        check_class_number(type(self).__name__, np.unique(y), binary=True)
        return super()._fit_resample(X, y)

    def _kept_rows(
        self,
        X: Rows,
        codes: np.ndarray,
        targets: dict[int, int],
        random: np.random.RandomState,
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
                f"{self.sampling_strategy_}. Give the number of rows of the larger class only."
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
        best = search.run(self.max_evaluations)[None]
        self.fitness_ = float(fitness(best, everything)[0])
        return np.flatnonzero(fitness.choices(best)[0])
