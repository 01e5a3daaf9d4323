"""CS-DMLP: a deep multilayer perceptron whose loss or decision weighs the classes.

After D. Díaz-Vico, A. R. Figueiras-Vidal and J. R. Dorronsoro, "Deep MLPs for imbalanced
classification", IJCNN 2018. Original are deep, regularised networks with ReLU, softmax and
cross-entropy, judged by AUC; decided here are the costs, the sizes and rates of the network, and
early stopping. The class says it in full. Below it stand its parts: the rows that it is trained on,
the network, the loss and the AUC.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.class_weight import compute_class_weight
from torch import Generator, Tensor

from setconv.baselines.base import EarlyStoppingMixin, LogScoresClassifier, draw_seed, parameter
from setconv.errors import DivergedError
from setconv.validation import at_least, between, check_parameter, one_of

_CHUNK = 4096  # rows that are predicted together
_WEIGHTS = {"balanced": "balanced", "none": None, "posterior": "balanced"}  # for scikit-learn
_Layers = list[tuple[Tensor, Tensor]]  # weights and bias of each


@dataclass(kw_only=True, eq=False, repr=False)
class CostSensitiveDMLPClassifier(EarlyStoppingMixin, LogScoresClassifier):
    r"""A deep perceptron with ReLU units, softmax and cross-entropy, made cost-sensitive.

    With hidden layers ``h_l = ReLU(h_{l-1} W_l + b_l)``, dropout after each, and
    ``p = softmax(h_D W_o + b_o)``, Adam minimises

    .. math:: -\frac{\sum_i w_{y_i} \log p_{y_i}(x_i)}{\sum_i w_{y_i}} + \alpha \sum_l \|W_l\|^2 .

    In a batch the denominator is the batch's share of the whole sum, so that the steps are
    unbiased. Features are standardised by the training rows. Without a cost, probabilities are for
    the prevalence of the training rows; costs move them towards the classes that cost more.

    What is original and what is not. Of the paper only the abstract could be read: large, deep,
    fully connected networks with ReLU, softmax and categorical cross-entropy, properly regularised,
    judged by AUC for two and more classes. It names no cost; ``cost="none"`` is that. The SetConv
    paper calls the method cost-sensitive and says that it regularises the posterior:
    ``cost="balanced"``, the default, and ``cost="posterior"`` are two readings of this. Layers,
    dropout, penalty, learning rate, batches and early stopping are choices made here.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(256, 128)
        Units of each hidden layer; () is a linear model.
    cost : {"balanced", "none", "posterior"} or dict, default="balanced"
        The weight of each class. "balanced" trains with ``w_c = n / (C n_c)``, "none" with 1.
        "posterior" trains with 1 and then multiplies the probabilities by ``n / (C n_c)``: the
        decision, the largest of them, is that of least risk if an error on a class costs so much.
        A dict gives the weight in the loss by label; a label that it lacks has 1.
    dropout : float, default=0.2
        Share of hidden units left out at each step.
    alpha : float, default=1e-4
        Weight of the squared weights, biases left out.
    lr : float, default=1e-3
        Step of Adam.
    batch_size : int, default=200
        Rows of a step.
    max_epochs : int, default=100
        Passes over the training rows at most.
    early_stopping : bool, default=True
        Whether a stratified share of the rows is set aside, training stops when their AUC (the mean
        of one against the rest) has not risen for ``patience`` epochs, and the best epoch is kept.
        Of epochs with the same AUC that with the lower weighted loss on these rows is the better.
    validation_fraction : float, default=0.1
        Share of the rows of each class set aside for early stopping.
    patience : int, default=10
        Epochs without a better one before training stops.
    random_state : int, RandomState instance or None, default=None
        Seeds the first weights, batches, dropout and the rows set aside.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    costs_ : ndarray of shape (C,)
        The weight of each class in the loss or, for "posterior", in the decision.
    coefs_ : list of ndarray
        The weights of each layer.
    intercepts_ : list of ndarray
        The biases of each layer.
    loss_curve_ : list of float
        The training loss of each epoch.
    validation_auc_ : list of float
        The AUC of the rows set aside after each epoch; empty without early stopping.
    n_epochs_ : int
        Epochs that were run.
    scaler_ : StandardScaler
        The fitted standardisation.
    fallbacks_ : list of str
        What could not be done and what was done instead, such as a class with too few rows to set
        some aside.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    D. Díaz-Vico, A. R. Figueiras-Vidal and J. R. Dorronsoro. Deep MLPs for imbalanced
    classification. International Joint Conference on Neural Networks (IJCNN), 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.cs_dmlp import CostSensitiveDMLPClassifier
    >>> X, y = make_classification(300, weights=[0.9], class_sep=2, random_state=0)
    >>> clf = CostSensitiveDMLPClassifier(hidden_layer_sizes=(16,), random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (300, 2)
    """

    hidden_layer_sizes: tuple[int, ...] = parameter((256, 128), tuple, list)
    cost: Any = parameter("balanced", one_of(*_WEIGHTS), dict)
    dropout: float = parameter(0.2, between(0, 1, "left"))
    alpha: float = parameter(1e-4, between(0, None, "left"))
    lr: float = parameter(1e-3, between(0, None))
    batch_size: int = parameter(200, at_least(1))
    max_epochs: int = parameter(100, at_least(1))
    early_stopping: bool = parameter(True, "boolean")
    validation_fraction: float = parameter(0.1, between(0, 1))
    patience: int = parameter(10, at_least(1))
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels of two or more classes.

        Returns
        -------
        self : CostSensitiveDMLPClassifier
            Fitted.
        """
        rows, codes, random = self._check_training(X, y)
        for size in self.hidden_layer_sizes:
            check_parameter(self, "hidden_layer_sizes", size, [at_least(1)])
        weights = _WEIGHTS[self.cost] if isinstance(self.cost, str) else self.cost
        labels = self.classes_[codes]
        self.costs_ = compute_class_weight(weights, classes=self.classes_, y=labels)
        held_out = self._held_out(codes, random)
        self.scaler_ = StandardScaler().fit(rows)
        scaled = torch.from_numpy(self.scaler_.transform(rows).astype(np.float32, copy=False))
        in_loss = np.ones_like(self.costs_) if self.cost == "posterior" else self.costs_
        data = _Data(scaled, torch.from_numpy(codes), torch.from_numpy(in_loss[codes]).float())
        generator = Generator().manual_seed(draw_seed(random))
        self._train(data.part(~held_out), data.part(held_out), generator)
        return self

    def _train(self, data: _Data, validation: _Data, generator: Generator) -> None:
        widths = (data.rows.shape[1], *self.hidden_layer_sizes, len(self.classes_))
        layers = _first_layers(widths, generator)
        optimizer = torch.optim.Adam([tensor for layer in layers for tensor in layer], lr=self.lr)
        # The mean weight is then 1, and a batch's mean loss estimates that of all rows.
        data.weights.div_(data.weights.mean())
        self.loss_curve_: list[float] = []
        self.validation_auc_: list[float] = []
        best, best_epoch, kept = (-np.inf, -np.inf), -1, None
        for epoch in range(self.max_epochs):
            self.loss_curve_.append(self._epoch(data, layers, optimizer, generator))
            if not np.isfinite(self.loss_curve_[-1]):
                raise DivergedError(
                    f"the loss of epoch {epoch} is {self.loss_curve_[-1]} with "
                    f"lr={self.lr!r}: give a smaller one."
                )
            if len(validation.rows):
                auc, loss = _judge(validation, layers)
                self.validation_auc_.append(auc)
                if (auc, -loss) > best:
                    best, best_epoch, kept = (auc, -loss), epoch, _arrays(layers)
                if epoch - best_epoch >= self.patience:
                    break
        self.coefs_, self.intercepts_ = kept or _arrays(layers)
        self.n_epochs_ = len(self.loss_curve_)

    def _epoch(
        self, data: _Data, layers: _Layers, optimizer: torch.optim.Adam, generator: Generator
    ) -> float:
        """Go over the rows once; return the mean loss."""
        total = 0.0
        order = torch.randperm(len(data.rows), generator=generator)
        for places in order.split(self.batch_size):
            batch = data.part(places)
            logits = forward(batch.rows, layers, self.dropout, generator)
            loss = _weighted_cross_entropy(logits, batch.codes, batch.weights)
            loss = loss + self.alpha * sum(weights.square().sum() for weights, _ in layers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(places)
        return total / len(data.rows)

    def _log_scores(self, X: Any) -> np.ndarray:
        rows = self._check_rows(X)
        parts = gen_batches(len(rows), _CHUNK)
        logits = np.concatenate([self._logits(rows[part]) for part in parts])
        return logits + np.log(self.costs_) if self.cost == "posterior" else logits

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        # In double precision, so that a row's score does not depend on the rows next to it.
        inputs = self.scaler_.transform(rows.astype(np.float64))
        for weights, bias in zip(self.coefs_[:-1], self.intercepts_[:-1], strict=True):
            inputs = np.maximum(inputs @ weights + bias, 0)
        return np.asarray(inputs @ self.coefs_[-1] + self.intercepts_[-1])


class _Data(NamedTuple):
    """Rows, their codes, and the weight of each in the loss."""

    rows: Tensor
    codes: Tensor
    weights: Tensor

    def part(self, which: Any) -> _Data:
        """Return some of the rows, by numbers or by a mask."""
        which = torch.as_tensor(which)
        return _Data(self.rows[which], self.codes[which], self.weights[which])


def _first_layers(widths: tuple[int, ...], generator: Generator) -> _Layers:
    """Draw weights that keep the variance through ReLU (He), with biases of 0."""
    layers = []
    for before, after in pairwise(widths):
        bound = np.sqrt(6 / before)
        weights = (torch.rand(before, after, generator=generator) * 2 - 1) * bound
        layers.append((weights.requires_grad_(), torch.zeros(after, requires_grad=True)))
    return layers


def _arrays(layers: _Layers) -> list[list[np.ndarray]]:
    """Copy all weights and all biases as they are now, in double precision."""
    parts = zip(*layers, strict=True)
    return [[tensor.detach().numpy().astype(np.float64) for tensor in part] for part in parts]


def forward(rows: Tensor, layers: _Layers, dropout: float, generator: Generator | None) -> Tensor:
    """Return the logits; units are dropped where there is a share to drop."""
    for weights, bias in layers[:-1]:
        rows = torch.relu(torch.addmm(bias, rows, weights))
        if dropout > 0:
            kept = torch.rand(rows.shape, generator=generator) >= dropout
            rows = rows * kept / (1 - dropout)
    weights, bias = layers[-1]
    return torch.addmm(bias, rows, weights)


def _weighted_cross_entropy(logits: Tensor, codes: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over rows of ``-w_i log p_{y_i}(x_i)``."""
    losses = torch.nn.functional.cross_entropy(logits, codes, reduction="none")
    return (weights * losses).mean()


@torch.no_grad()
def _judge(data: _Data, layers: _Layers) -> tuple[float, float]:
    """Return the mean AUC of one class against the rest, and the weighted loss."""
    logits = forward(data.rows, layers, 0.0, None)
    loss = _weighted_cross_entropy(logits, data.codes, data.weights).item()
    codes = data.codes.numpy()
    scores = logits.double().softmax(dim=1).numpy()
    aucs = [_auc(codes == code, scores[:, code]) for code in np.unique(codes)]
    return float(np.mean(aucs)), loss


def _auc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the AUC by ranks, which is faster than by the curve."""
    n_positive = int(positive.sum())
    above = rankdata(scores)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * (len(positive) - n_positive)))
