"""EUS, evolutionary under-sampling: a search for the majority rows worth keeping."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from setconv.baselines.checking import require_rows
from setconv.baselines.deciding import BinaryOnlyMixin
from setconv.baselines.eus_fitness import Fitness, NearestChosen, windows
from setconv.baselines.eus_search import CHC
from setconv.baselines.sampling import Rows, UnderSampler
from setconv.errors import LabelError, ParameterError

__all__ = ["EvolutionaryUnderSampler"]


class EvolutionaryUnderSampler(BinaryOnlyMixin, UnderSampler):
    """Evolutionary under-sampling (EUS) of García and Herrera, for two classes.

    A genetic algorithm (CHC) chooses which rows to keep. A chromosome has one bit for each row of
    the larger class, the majority (``selection='majority'``), or for each row
    (``selection='global'``). Its fitness is a measure of leave-one-out 1-NN with the chosen rows as
    references, less a penalty for classes out of balance:
    ``measure - penalty * |1 - chosen majority rows / chosen minority rows|``. The two selections,
    the two measures, and the balance term or none are the eight methods of the paper's taxonomy;
    the default is EBUS-MS-GM.

    The 1-NN is Euclidean: standardise the features first, as
    :class:`~setconv.baselines.ResampledClassifier` does.

    Parameters
    ----------
    selection : {'majority', 'global'}, default='majority'
        Whether only majority rows may be left out (MS), or all rows (GS).
    measure : {'gmean', 'auc'}, default='gmean'
        ``sqrt(TPR * TNR)``, or ``(1 + TPR - FPR) / 2``.
    balance : bool, default=True
        Whether the fitness has the balance term (EBUS) or not (EUSCM). Without it the search
        decides alone how many rows stay.
    penalty : float, default=0.2
        Weight of the balance term.
    population : int, default=50
        Number of chromosomes.
    max_evaluations : int, default=10000
        The search ends with the generation that reaches so many evaluations.
    windowing : bool, default=True
        Whether each generation is evaluated on all minority rows and one stratum of the majority,
        as large as the minority, in turn; else on all rows. A fitness is not computed again when
        the window moves.
    n_neighbors_cache : int, default=300
        Number of neighbours listed for each row before the search. It changes memory and speed,
        not the result.
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
    history_ : dict of ndarray
        After each generation: 'best' (fitness, on the window in which it was found), 'evaluations'
        and 'restarts' so far. Set where there was a class to reduce.
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
    counts as evaluations, and that without a chosen minority row the balance term counts one.

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
        selection: str = "majority",
        measure: str = "gmean",
        balance: bool = True,
        penalty: float = 0.2,
        population: int = 50,
        max_evaluations: int = 10000,
        windowing: bool = True,
        n_neighbors_cache: int = 300,
        sampling_strategy: Any = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.selection = selection
        self.measure = measure
        self.balance = balance
        self.penalty = penalty
        self.population = population
        self.max_evaluations = max_evaluations
        self.windowing = windowing
        self.n_neighbors_cache = n_neighbors_cache
        self.random_state = random_state

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        self._check_parameters()
        n_classes = len(np.unique(y))
        if n_classes > 2:
            raise LabelError(
                f"EvolutionaryUnderSampler is defined for two classes and the labels have "
                f"{n_classes}. Only binary classification is supported; take one class against the "
                f"rest: sklearn.multiclass.OneVsRestClassifier(ResampledClassifier("
                f"EvolutionaryUnderSampler(...)))."
            )
        return super()._fit_resample(X, y)

    def _kept_rows(
        self,
        X: Rows,
        codes: np.ndarray,
        targets: dict[int, int],
        random: np.random.RandomState,
    ) -> np.ndarray:
        require_rows(
            codes,
            self.classes_,
            2,
            "leave-one-out 1-NN",
            "Add rows, or use a sampler without neighbours such as "
            "imblearn.under_sampling.RandomUnderSampler.",
        )
        reduced, target = self._reduced_class(targets)
        fitness = self._fitness(X, codes == reduced, target)
        everything = np.arange(len(codes))
        parts = windows(fitness.reduced, random) if self.windowing else [everything]
        search = CHC(
            lambda chromosomes, generation: fitness(chromosomes, parts[generation % len(parts)]),
            len(fitness.genes),
            self.population,
            random,
        )
        best = search.run(self.max_evaluations)[None]
        self.history_ = search.history
        self.fitness_ = float(fitness(best, everything)[0])
        return np.flatnonzero(fitness.choices(best)[0])

    def _fitness(self, X: Rows, reduced: np.ndarray, target: int) -> Fitness:
        return Fitness(
            nearest=NearestChosen(X, self.n_neighbors_cache),
            reduced=reduced,
            genes=np.flatnonzero(reduced | (self.selection == "global")),
            target=target,
            measure=self.measure,
            penalty=self.penalty if self.balance else 0.0,
        )

    def _reduced_class(self, targets: dict[int, int]) -> tuple[int, int]:
        ((reduced, target), *more) = targets.items()
        if more or target < 1:
            raise ParameterError(
                f"sampling_strategy must reduce one class, to one row at least, and the balance "
                f"term then counts the other as whole; it gives {self.sampling_strategy_}. "
                f"Give the number of rows of the larger class only."
            )
        return reduced, target

    def _check_parameters(self) -> None:
        choices = {"selection": ("majority", "global"), "measure": ("gmean", "auc")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}; it must be one of {allowed}."
                )
        least = {"population": 2, "max_evaluations": 1, "n_neighbors_cache": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < smallest:
                raise ParameterError(f"{name} is {value!r}; give an integer from {smallest} on.")
        penalty: Any = self.penalty
        if not isinstance(penalty, Real) or not 0 <= float(penalty) < np.inf:
            raise ParameterError(f"penalty is {penalty!r}; give a number from 0 on.")
