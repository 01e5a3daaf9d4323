"""The catalogue of the ten systems that the SetConv paper compares with or names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from imblearn.pipeline import Pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from setconv.baselines.base import draw_seed
from setconv.baselines.clems import CLEMSClassifier
from setconv.baselines.cs_dmlp import CostSensitiveDMLPClassifier
from setconv.baselines.cs_mlp import CostSensitiveMLPClassifier
from setconv.baselines.eus import EvolutionaryUnderSampler
from setconv.baselines.iht import InstanceHardnessSampler
from setconv.baselines.iml import IMLClassifier
from setconv.baselines.mwmote import MWMOTESampler
from setconv.baselines.smote import KMeansSMOTESampler, SMOTESampler
from setconv.baselines.weob import WEOB2Classifier


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
    citation : str
        Authors, title, where and when.
    estimator : type
        The sampler or classifier; it says what is original and what had to be reconstructed.
    binary_only : bool
        Whether it takes two classes only.
    """

    name: str
    kind: Literal["under-sampling", "over-sampling", "ensemble", "metric", "cost"]
    role: Literal["compared", "related work"]
    citation: str
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
    Baseline(
        "IHT",
        "under-sampling",
        "compared",
        "Smith, Martinez, Giraud-Carrier: An instance level analysis of data complexity. Machine "
        "Learning 95(2), 2014",
        InstanceHardnessSampler,
    ),
    Baseline(
        "WEOB2",
        "ensemble",
        "compared",
        "Wang, Minku, Yao: Resampling-based ensemble methods for online class imbalance "
        "learning. IEEE TKDE 27(5), 2015",
        WEOB2Classifier,
        binary_only=True,
    ),
    Baseline(
        "KMeans-SMOTE",
        "over-sampling",
        "compared",
        "Douzas, Bacao, Last: Improving imbalanced learning through a heuristic oversampling "
        "method based on k-means and SMOTE. Information Sciences 465, 2018",
        KMeansSMOTESampler,
    ),
    Baseline(
        "IML",
        "metric",
        "compared",
        "Wang, Zhao, Jiang, Gao: Iterative metric learning for imbalance data classification. "
        "IJCAI 2018",
        IMLClassifier,
    ),
    Baseline(
        "CS-DMLP",
        "cost",
        "compared",
        "Díaz-Vico, Figueiras-Vidal, Dorronsoro: Deep MLPs for imbalanced classification. IJCNN "
        "2018",
        CostSensitiveDMLPClassifier,
    ),
    Baseline(
        "SMOTE",
        "over-sampling",
        "related work",
        "Chawla, Bowyer, Hall, Kegelmeyer: SMOTE: synthetic minority over-sampling technique. "
        "JAIR 16, 2002",
        SMOTESampler,
    ),
    Baseline(
        "MWMOTE",
        "over-sampling",
        "related work",
        "Barua, Islam, Yao, Murase: MWMOTE: majority weighted minority oversampling technique "
        "for imbalanced data set learning. IEEE TKDE 26(2), 2014",
        MWMOTESampler,
    ),
    Baseline(
        "EUS",
        "under-sampling",
        "related work",
        "García, Herrera: Evolutionary undersampling for classification with imbalanced "
        "datasets. Evolutionary Computation 17(3), 2009; Triguero et al., CEC 2015, for large data",
        EvolutionaryUnderSampler,
        binary_only=True,
    ),
    Baseline(
        "CS-MLP",
        "cost",
        "related work",
        "Castro, Braga: Novel cost-sensitive approach to improve the multilayer perceptron "
        "performance on imbalanced data. IEEE TNNLS 24(6), 2013",
        CostSensitiveMLPClassifier,
        binary_only=True,
    ),
    Baseline(
        "CLEMS",
        "cost",
        "related work",
        "Huang, Lin: Cost-sensitive label embedding for multi-label classification. Machine "
        "Learning 106, 2017",
        CLEMSClassifier,
    ),
)
