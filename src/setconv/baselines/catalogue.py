"""The ten systems that the SetConv paper compares with or names, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from setconv.baselines.clems import CLEMSClassifier
from setconv.baselines.cs_dmlp import CostSensitiveDMLPClassifier
from setconv.baselines.cs_mlp import CostSensitiveMLPClassifier
from setconv.baselines.eus import EvolutionaryUnderSampler
from setconv.baselines.iht import InstanceHardnessSampler
from setconv.baselines.iml import IMLClassifier
from setconv.baselines.kmeans_smote import KMeansSMOTESampler
from setconv.baselines.mwmote import MWMOTESampler
from setconv.baselines.resampled import ResampledClassifier
from setconv.baselines.smote import SMOTESampler
from setconv.baselines.weob import WEOB2Classifier

Kind = Literal["under-sampling", "over-sampling", "ensemble", "metric", "cost"]
Role = Literal["compared", "related work"]


@dataclass(frozen=True)
class Baseline:
    """One system.

    Attributes
    ----------
    name : str
        As in the paper.
    kind : {"under-sampling", "over-sampling", "ensemble", "metric", "cost"}
    role : {"compared", "related work"}
        Whether the paper reports figures of it or only names it.
    citation : str
    original : str
        What is done as its authors wrote it, or as a second source has it.
    reconstructed : str
        What their texts do not say, or what had to be decided here.
    estimator : type
        The sampler or classifier.
    binary_only : bool
    """

    name: str
    kind: Kind
    role: Role
    citation: str
    original: str
    reconstructed: str
    estimator: type[Any]
    build: Callable[..., Any]
    binary_only: bool = False

    def make(self, random_state: Any = None) -> Any:
        """Return an unfitted classifier with the default parameters; samplers come inside one."""
        return self.build(random_state=random_state)


def _inside(sampler: Callable[[], Any]) -> Callable[..., Any]:
    return lambda random_state: ResampledClassifier(sampler(), random_state=random_state)


_DOWNSTREAM = "the classifier trained on the resampled rows (here logistic regression)"


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
        "hardness as one minus the out-of-fold probability of the row's own class, averaged over "
        "learners; the sampler as imbalanced-learn defines it, easiest rows kept",
        "the learner (logistic regression, C = 0.01, instead of nine learners), exact counts with "
        f"ties drawn at random, {_DOWNSTREAM}",
        InstanceHardnessSampler,
        _inside(InstanceHardnessSampler),
    ),
    Baseline(
        "WEOB2",
        "ensemble",
        "compared",
        "Wang, Minku, Yao: Resampling-based ensemble methods for online class imbalance learning. "
        "IEEE TKDE 27(5), 2015",
        "decayed class sizes, Poisson rates of the improved rule, decayed and smoothed recalls, "
        "the better of both ensembles decides",
        "size of the networks, their step, online standardisation, one pass over shuffled rows of "
        "a fixed set; constants come from others' code",
        WEOB2Classifier,
        WEOB2Classifier,
        binary_only=True,
    ),
    Baseline(
        "KMeans-SMOTE",
        "over-sampling",
        "compared",
        "Douzas, Bacao, Last: Improving imbalanced learning through a heuristic oversampling "
        "method based on k-means and SMOTE. Information Sciences 465, 2018",
        "clusters of all rows, safe clusters kept, sparse ones get more rows, SMOTE inside them",
        "weights in logarithms with exponent 2 (the number of features, the authors' default, "
        "puts all rows into one cluster of an embedding), exact counts, the number of clusters, "
        f"{_DOWNSTREAM}",
        KMeansSMOTESampler,
        _inside(KMeansSMOTESampler),
    ),
    Baseline(
        "IML",
        "metric",
        "compared",
        "Wang, Zhao, Jiang, Gao: Iterative metric learning for imbalance data classification. "
        "IJCAI 2018",
        "metrics learned by LMNN one on top of the other, a class-balanced neighbourhood of each "
        "query, stop when it is stable (after an implementation by others; the paper's abstract "
        "alone could be read)",
        "neighbours a class, matching threshold, the vote, principal components first, the metric "
        "learned on a subset of the rows",
        IMLClassifier,
        IMLClassifier,
    ),
    Baseline(
        "CS-DMLP",
        "cost",
        "compared",
        "Díaz-Vico, Figueiras-Vidal, Dorronsoro: Deep MLPs for imbalanced classification. IJCNN "
        "2018",
        "ReLU layers, softmax, cross-entropy, dropout and L2, Adam",
        "sizes, rates and stopping; the cost: the abstract has none, the SetConv paper calls it "
        "cost-sensitive, so the default weighs classes equally and cost='none' is the abstract",
        CostSensitiveDMLPClassifier,
        CostSensitiveDMLPClassifier,
    ),
    Baseline(
        "SMOTE",
        "over-sampling",
        "related work",
        "Chawla, Bowyer, Hall, Kegelmeyer: SMOTE: synthetic minority over-sampling technique. JAIR "
        "16, 2002",
        "a new row between a minority row and one of its five nearest, by imbalanced-learn",
        f"fewer neighbours where a class is small, {_DOWNSTREAM}",
        SMOTESampler,
        _inside(SMOTESampler),
    ),
    Baseline(
        "MWMOTE",
        "over-sampling",
        "related work",
        "Barua, Islam, Yao, Murase: MWMOTE: majority weighted minority oversampling technique for "
        "imbalanced data set learning. IEEE TKDE 26(2), 2014",
        "the seven steps and constants (k1 = 5, k2 = 3, k3 half of the minority, C_p = 3, "
        "C_th = 5, C_max = 2), after second sources",
        f"clustering of at most 10,000 rows, {_DOWNSTREAM}",
        MWMOTESampler,
        _inside(MWMOTESampler),
    ),
    Baseline(
        "EUS",
        "under-sampling",
        "related work",
        "García, Herrera: Evolutionary undersampling for classification with imbalanced datasets. "
        "Evolutionary Computation 17(3), 2009; Triguero et al., CEC 2015, for large data",
        "CHC search over the majority rows, biased HUX, incest prevention, restarts, 1-NN G-mean "
        "with a balance term, windows; EUSEnsembleClassifier has one tree for each partition",
        "neighbour lists that make the fitness cheap, the number of partitions of the ensemble, "
        f"{_DOWNSTREAM}",
        EvolutionaryUnderSampler,
        _inside(EvolutionaryUnderSampler),
        binary_only=True,
    ),
    Baseline(
        "CS-MLP",
        "cost",
        "related work",
        "Castro, Braga: Novel cost-sensitive approach to improve the multilayer perceptron "
        "performance on imbalanced data. IEEE TNNLS 24(6), 2013",
        "one tanh layer, one cost parameter set from the priors, Levenberg-Marquardt",
        "joint steps that are taken back when they are bad, principal components beyond 50 "
        "features, early stopping on held-out rows",
        CostSensitiveMLPClassifier,
        CostSensitiveMLPClassifier,
        binary_only=True,
    ),
    Baseline(
        "CLEMS",
        "cost",
        "related work",
        "Huang, Lin: Cost-sensitive label embedding for multi-label classification. Machine "
        "Learning 106, 2017",
        "mirrored weighted multidimensional scaling of the label costs, regression, nearest point "
        "decides",
        "its use for one label a row with costs from class frequencies, ridge regression, scores "
        "from distances",
        CLEMSClassifier,
        CLEMSClassifier,
    ),
)
