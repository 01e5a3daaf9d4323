"""The systems that the SetConv paper compares with or names, as scikit-learn estimators.

`all` lists the ten with their kind; `Baseline.make` gives a classifier of each with its
defaults::

    from setconv import baselines

    for one in baselines.all():
        model = one.make(random_state=0).fit(X, y)
        model.predict_proba(X_new)

Samplers follow imbalanced-learn (``fit_resample``, ``sample_indices_``) and become a classifier in
its pipeline, which resamples training rows only. Methods for two classes raise on more and name the
wrapper to use. What a method could not do is warned of (`FallbackWarning`) and kept in its
``fallbacks_``. Needs ``pip install 'setconv[baselines]'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from setconv.messages import needed

with needed("setconv.baselines", "imbalanced-learn", "baselines"):
    from imblearn.pipeline import Pipeline

from setconv.baselines.base import FallbackWarning, draw_seed
from setconv.baselines.clems import CLEMSClassifier
from setconv.baselines.cs_dmlp import CostSensitiveDMLPClassifier
from setconv.baselines.cs_mlp import CostSensitiveMLPClassifier
from setconv.baselines.eus import EvolutionaryUnderSampler
from setconv.baselines.iht import InstanceHardnessSampler
from setconv.baselines.iml import IMLClassifier
from setconv.baselines.mwmote import MWMOTESampler
from setconv.baselines.smote import KMeansSMOTESampler, SMOTESampler
from setconv.baselines.weob import WEOB2Classifier

__all__ = [
    "Baseline",
    "CLEMSClassifier",
    "CostSensitiveDMLPClassifier",
    "CostSensitiveMLPClassifier",
    "EvolutionaryUnderSampler",
    "FallbackWarning",
    "IMLClassifier",
    "InstanceHardnessSampler",
    "KMeansSMOTESampler",
    "MWMOTESampler",
    "SMOTESampler",
    "WEOB2Classifier",
    "all",
]


@dataclass(frozen=True)
class Baseline:
    """One system.

    Attributes
    ----------
    name : str
        As in the paper.
    kind : {"under-sampling", "over-sampling", "ensemble", "metric", "cost"}
        What it changes: the rows, the number of models, the distances or the costs.
    role : {"compared", "related work"}
        Whether the paper reports figures of it or only names it.
    estimator : type
        The sampler or classifier. Its documentation has the reference, and says what is original
        and what had to be reconstructed.
    binary_only : bool
        Whether it takes two classes only.
    """

    name: str
    kind: Literal["under-sampling", "over-sampling", "ensemble", "metric", "cost"]
    role: Literal["compared", "related work"]
    estimator: type[Any]
    binary_only: bool = False

    def make(self, random_state: Any = None) -> Any:
        """Return an unfitted classifier with the default parameters.

        A sampler comes in a pipeline of imbalanced-learn, after standardisation and before logistic
        regression, which are choices of this library: no paper says what is trained afterwards.
        """
        if not hasattr(self.estimator, "fit_resample"):
            return self.estimator(random_state=random_state)
        seed = None if random_state is None else draw_seed(check_random_state(random_state))
        return Pipeline(
            [
                ("scaler", StandardScaler()),
                ("sampler", self.estimator(random_state=seed)),
                ("classifier", LogisticRegression(max_iter=1000)),
            ]
        )


def all() -> list[Baseline]:
    """Return the ten systems, those that the paper compares with first."""
    return list(_SYSTEMS)


_SYSTEMS = (
    Baseline("IHT", "under-sampling", "compared", InstanceHardnessSampler),
    Baseline("WEOB2", "ensemble", "compared", WEOB2Classifier, binary_only=True),
    Baseline("KMeans-SMOTE", "over-sampling", "compared", KMeansSMOTESampler),
    Baseline("IML", "metric", "compared", IMLClassifier),
    Baseline("CS-DMLP", "cost", "compared", CostSensitiveDMLPClassifier),
    Baseline("SMOTE", "over-sampling", "related work", SMOTESampler),
    Baseline("MWMOTE", "over-sampling", "related work", MWMOTESampler),
    Baseline("EUS", "under-sampling", "related work", EvolutionaryUnderSampler, binary_only=True),
    Baseline("CS-MLP", "cost", "related work", CostSensitiveMLPClassifier, binary_only=True),
    Baseline("CLEMS", "cost", "related work", CLEMSClassifier),
)
