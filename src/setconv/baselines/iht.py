"""IHT: under-sampling by instance hardness; the rows that classifiers find easy are kept.

After M. R. Smith, T. Martinez and C. Giraud-Carrier, "An Instance Level Analysis of Data
Complexity", Machine Learning 95(2), 2014. Original is the definition of hardness; decided here are
the one classifier that tells it, the mode with a threshold, and what is done with classes of few
rows. The class says it in full.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv.baselines.base import Random, Rows, UnderSampler, cloned, parameter
from setconv.validation import at_least, between, one_of


@dataclass(eq=False, repr=False)
class InstanceHardnessSampler(UnderSampler):
    """Instance hardness threshold: leave out the rows that a classifier gets wrong.

    The hardness of row i is ``1 - p(y_i | x_i)`` by a classifier trained on folds without row i.
    ``mode='balance'`` keeps of each larger class the easiest rows, as many as the smallest class
    has; ``mode='threshold'`` leaves out those harder than ``threshold``.

    Original: the definition of hardness, as the mean over nine classifiers; the abstract was at
    hand, the formula is from memory of the paper. The sampler that balances is imbalanced-learn's;
    here its labels may be of any kind, and the numbers are exact, with ties broken at random. Ours:
    ``mode='threshold'`` and its default; one classifier, which a set of 40,000 rows can afford; the
    smallest class is never reduced; a class with fewer rows than folds reduces the folds; the row
    of a class of one is in the training part of every fold, so that the hardness of the others is
    defined, has no hardness of its own and is kept.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Whose errors make a row hard. None is logistic regression on standardised features with
        ``C=0.01``: strongly regularised, so that probabilities are not all 0 or 1.
    cv : int, default=5
        Number of stratified, shuffled folds; imbalanced-learn's default.
    mode : {'balance', 'threshold'}, default='balance'
        Whether a number of rows or a hardness decides.
    threshold : float, default=0.7
        The largest hardness that is kept by ``mode='threshold'``.
    sampling_strategy : float, str, dict or callable, default='auto'
        Which classes are reduced and, for ``mode='balance'``, how far, as in imbalanced-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, the classifier and the breaking of ties.

    Attributes
    ----------
    instance_hardness_ : ndarray of shape (n,)
        Hardness of each row; NaN where it is not defined. Set where there was a class to reduce.
    sample_indices_ : ndarray
        The rows that are kept, in their order.
    n_folds_ : int
        Number of folds that were used. Set where there was a class to reduce.
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    sampling_strategy_ : dict
        How many rows each class is to keep.
    fallbacks_ : list of str
        What could not be done, and what was done instead.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    M. R. Smith, T. Martinez, C. Giraud-Carrier, "An Instance Level Analysis of Data Complexity",
    Machine Learning 95(2), 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.iht import InstanceHardnessSampler
    >>> X, y = make_classification(weights=[0.9], flip_y=0, random_state=0)
    >>> sampler = InstanceHardnessSampler(random_state=0)
    >>> rows, labels = sampler.fit_resample(X, y)
    >>> [int((labels == label).sum()) for label in (0, 1)]
    [9, 9]
    """

    estimator: Any = None
    _: KW_ONLY
    cv: int = parameter(5, at_least(2))
    mode: Literal["balance", "threshold"] = parameter("balance", one_of("balance", "threshold"))
    threshold: float = parameter(0.7, between(0, 1, "both"))
    sampling_strategy: Any = "auto"
    random_state: Any = None

    def _kept_rows(
        self, X: Rows, codes: np.ndarray, targets: dict[int, int], random: Random
    ) -> np.ndarray:
        self.instance_hardness_ = self._instance_hardness(X, codes, random)
        order = np.lexsort((random.permutation(len(codes)), self.instance_hardness_))
        kept = np.ones(len(codes), dtype=bool)
        for code, target in targets.items():
            easiest_first = order[codes[order] == code]
            keep = target if self.mode == "balance" else self._below(easiest_first, code, target)
            kept[easiest_first[keep:]] = False
        if kept.all():
            self._fall_back(
                f"no row of the classes to be reduced is harder than {self.threshold}; the rows "
                "are as they were"
            )
        return np.flatnonzero(kept)

    def _instance_hardness(self, X: Rows, codes: np.ndarray, random: Random) -> np.ndarray:
        alone = np.bincount(codes)[codes] == 1
        splits = self._splits(codes, alone, random)
        scaler = StandardScaler(with_mean=not sparse.issparse(X))
        default = make_pipeline(scaler, LogisticRegression(C=0.01, max_iter=1000))
        seeded = cloned(default if self.estimator is None else self.estimator, random)
        # Columns are in the order of the codes, and a class has its code as its column.
        found = cross_val_predict(seeded, X, codes, cv=splits, method="predict_proba")
        return np.where(alone, np.nan, 1 - found[np.arange(len(codes)), codes])

    def _splits(
        self, codes: np.ndarray, alone: np.ndarray, random: Random
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Stratified folds; rows that are alone in their class are in every training part."""
        counts = np.bincount(codes)
        fewest = int(counts[counts > 1].min())
        self.n_folds_ = min(self.cv, fewest)
        if self.n_folds_ < self.cv:
            label = self.classes_.tolist()[int(np.flatnonzero(counts == fewest)[0])]
            self._fall_back(
                f"class {label!r} has {fewest} rows: hardness was estimated on {self.n_folds_} "
                f"folds instead of {self.cv}"
            )
        if alone.any():
            labels = self.classes_[codes[alone]].tolist()
            self._fall_back(
                f"classes with 1 row cannot be held out: {labels}; each such row was in every "
                "training part, has no hardness and was kept"
            )
        shared, alone_rows = np.flatnonzero(~alone), np.flatnonzero(alone)
        folds = StratifiedKFold(self.n_folds_, shuffle=True, random_state=random)
        splits = [
            (np.concatenate([shared[train], alone_rows]), shared[test])
            for train, test in folds.split(shared, codes[shared])
        ]
        # cross_val_predict wants a prediction for every row; that of these is not used.
        train, test = splits[0]
        return [(train, np.concatenate([test, alone_rows])), *splits[1:]]

    def _below(self, members: np.ndarray, code: int, target: int) -> int:
        """Count the members that are not harder than the threshold; a class never vanishes."""
        keep = int((self.instance_hardness_[members] <= self.threshold).sum())
        if keep == 0:
            self._fall_back(
                f"every row of class {self.classes_.tolist()[code]!r} is harder than "
                f"{self.threshold}: its {target} easiest rows were kept"
            )
        return keep or target
