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

from setconv.messages import needed

with needed("setconv.baselines", "imbalanced-learn", "baselines"):
    import imblearn  # noqa: F401

from setconv.baselines.base import FallbackWarning
from setconv.baselines.catalogue import Baseline, all
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
