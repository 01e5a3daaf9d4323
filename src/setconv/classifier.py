"""The scikit-learn estimator for rows of numbers.

`SetConvClassifier` checks what it is given (`setconv.validation`), has a model and a decision made
of it (`setconv.fitting`) and answers with them. Its methods stand in the order of a user's life:
fit, update, predict, decide otherwise, save. At the end are its predictions as columns of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from setconv.data import Features, Rows, StoredRows, choose, count_each, joined
from setconv.decisions.objective import weight_scales
from setconv.decisions.rule import FittedDecision, Predictions
from setconv.episodes import HeadSharing, QuerySource
from setconv.errors import DataError, LabelError, ParameterError
from setconv.fitting import Parameters, fit_model
from setconv.io.disk import Batch
from setconv.io.opening import write_predictions
from setconv.metrics.report import Report
from setconv.model import Anchor, SetConvModel
from setconv.nn.network import Similarity
from setconv.persistence import describe, describe_fitted, restore_fitted, save
from setconv.preprocessing import Scaling
from setconv.sampling import Keys, Ties, check_groups, row_keys
from setconv.survey import look_through
from setconv.training.early_stopping import split_validation
from setconv.training.loop import Callback, Progress, gather_callbacks
from setconv.training.optimizer import Optimizer, Schedule
from setconv.validation import (
    LabelColumn,
    Labels,
    at_least,
    between,
    check_class_weight,
    check_classes,
    check_parameter,
    check_weights,
    columns_kept_on_error,
    encode_labels,
    iter_batches,
    one_of,
    open_rows,
    stack_rows,
    warn_of_equal_counts,
)

Array = NDArray[Any]


Monitor = Literal["loss", "auc", "average_precision", "g_mean", "macro_f1", "minimum_of_five"]
_AUTO = one_of("auto")
_SHARE = between(0, 1, "left")
_POSITIVE = between(0, None)

# What objective, class_weight, scaling, anchor and device may be, the rooms say that read them.
_CONSTRAINTS: Mapping[str, list[Any]] = {
    "n_members": [at_least(1), _AUTO],
    "linear_share": [_SHARE, _AUTO],
    "encoder": [tuple, _AUTO],
    "out_features": [at_least(1), _AUTO],
    "output": [at_least(1), None],
    "similarity": [one_of("cosine", "dot")],
    "dropout": [_SHARE, _AUTO],
    "input_dropout": [_SHARE, _AUTO],
    "heads": [one_of("shared", "separate")],
    "support_size": [at_least(2)],
    "n_queries": [at_least(1)],
    "n_episodes": [at_least(1), _AUTO],
    "query_source": [one_of("leave_one_out", "disjoint", "support")],
    "post_size": [at_least(2), None],
    "max_steps": [at_least(0), _AUTO],
    "lr": [_POSITIVE, dict, _AUTO],
    "optimizer": [one_of("adamw", "adam")],
    "weight_decay": [between(0, None, "left")],
    "schedule": [one_of("one_cycle", "cosine", "constant")],
    "early_stopping": ["boolean"],
    "validation_fraction": [between(0, 1)],
    "patience": [at_least(1), None],
    "monitor": [one_of(*Monitor.__args__)],  # type: ignore[attr-defined]
    "progress": ["boolean", _AUTO],
    "callbacks": [list, tuple],
    "checkpoint_dir": [str, Path, None],
    "random_state": [at_least(0), np.random.RandomState, np.random.Generator, None],
}
# Of the values inside a sequence or mapping.
_PARTS = {"encoder": at_least(1), "lr": _POSITIVE, "callbacks": HasMethods("on_step_end")}
_LEAST_WEIGHT = 1e-30  # of a mean of 1: less is 0 in the network, and rows of it alone no set
_LR_GROUPS = ("encoder", "setconv", "output")  # of weights: each may have its own learning rate


@dataclass(frozen=True)
class EncodedRows:
    """Rows that an encoder made, which `SetConvClassifier.fit` takes as it takes others.

    Attributes
    ----------
    rows : array-like or sparse matrix of shape (n_rows, n_features)
    keys : uint64 array of shape (n_rows,), optional
        Equal for rows that are copies; None: for those of equal features.
    names : array of shape (n_features,), optional
        What messages call the features; None: what the rows call them.
    """

    rows: Any
    keys: Keys | None = None
    names: Array | None = None


def _fitted_attribute(path: str) -> property:
    """Return a property that reads a part of the fitted model or decision."""
    read = attrgetter(path)
    return property(lambda self: read(self._fitted()))


class SetConvClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Classification when the class that matters is rare, by set convolution.

    The rows of each class are compressed into one representative by a permutation-invariant set
    convolution, so that the classifier always sees a balanced problem; training is episodic. Two
    classes are one head; more are one-vs-all heads trained together, the class with the largest
    P(y=c|x) winning. The presets `setconv.presets.PAPER` and `setconv.presets.REFERENCE` are what
    the paper states and what the authors' code does; the defaults are what works better.

    Parameters
    ----------
    Decision: what `predict` is good at, and what it rests on

    objective : str, dict, array-like or None, default="balanced"
        What the decision of `predict` is to be good at: "balanced" (the geometric mean of the
        classes' recalls), "f1" (of the rarer class; the mean over classes if there are more than
        two), "mcc", "accuracy"; a minimum as in "recall>=0.95" or "precision>=90%" of the rarer
        class, or of another one, ``{"recall": 0.95, "class": label}``; or a cost matrix
        ``cost[true, predicted]``. None is the paper's rule. A minimum is met on average; with a
        confidence, "recall>=0.95 @ 90%" or ``{"recall": 0.95, "confidence": 0.9}``, it is kept in
        so many of 100 fits. What recall needs is checked before training; a precision that is not
        reached is warned of. See also `set_objective`.
    class_weight : dict, "balanced" or None, default=None
        How much a class matters, on top of the equal weight that all have; "balanced" is therefore
        the same as None. A weight scales the loss, moves the log-odds by its logarithm, is the
        power of the class's recall in "balanced" and multiplies its row of a cost matrix.
        Probabilities, and what "f1", "mcc", "accuracy" and a minimum mean, do not depend on it.
    n_members : int or "auto", default="auto"
        Networks that are trained at once, each without a stratified fold of its own; their scores
        are averaged. The left-out rows give the threshold, calibrated probabilities and
        `oof_report_`. "auto" is 10 up to 5,000 rows and 5 above. With 1 there are no such rows.
        With ``time`` half of them judge later rows, and the others are averaged, see `fit`.
    linear_share : float or "auto", default="auto"
        Share of a linear discriminant in each member's scores, by their spread: a straight line
        holds better where rows are few or new rows come from elsewhere. "auto" is, for more than
        100 and up to 4,096 features, 0.5 with up to 50 ``groups``, else 0.25 up to 5,000 rows and
        falling with their number beyond; else 0. On sparse rows that are projected it is a
        logistic regression over all columns, and "auto" is 0.8. It is learned in `fit` and stays
        in `partial_fit`.

    Network: what it sees, how it is built, and what it compares rows with

    scaling : {"auto", "standard", "normal", "pieces"}, list of these or None, default="auto"
        What members see: features that are standardised (up to ±5), mapped to a normal distribution
        by their quantiles, or cut at their quantiles into pieces, each an input of its own. With a
        list members take turns. "auto" is all three for up to 100 features and "standard" for more.
        Sparse rows of more than 512 columns are projected to 128 before that (a quarter of the rows
        if that is less), see `setconv.preprocessing`. With None, as in the presets, features stay
        as they are; of sparse rows, too, all columns are then made dense, a block of rows at a
        time.
    encoder : sequence of int or "auto", default="auto"
        Widths of the ReLU layers before the set convolution; "auto" is (128,) for up to 100
        features, else (256,).
    out_features : int or "auto", default="auto"
        Output features of the set convolution, ``d_o``; "auto" is 64 for up to 100 features, else
        128.
    output : int or None, default=None
        Width of a bias-free ReLU layer after the set convolution.
    similarity : {"cosine", "dot"}, default="cosine"
        How a row is compared with a representative.
    dropout : float or "auto", default="auto"
        Share of encoder outputs zeroed in training, to the nearest 1/256; "auto" is 0.2 for up to
        100 features, else 0.4.
    input_dropout : float or "auto", default="auto"
        Share of inputs zeroed in training, the same ones for all rows of an episode; it falls to
        half of this towards the end of training. "auto" is 0 for up to 100 features, else 0.5.
    heads : {"shared", "separate"}, default="shared"
        Whether the one-vs-all heads share encoder and episodes or are wholly separate models.
    anchor : {"mean", "subset", "kmeans"}, callable or array, default="mean"
        What the kernel compares rows with, made from the smaller side of each head: the mean of its
        rows, or of 100 random ones (the paper's footnote for a large minority), or four centroids,
        for each of which there is an embedding. A callable takes the rows of that side and returns
        one anchor or several; an array is the anchor itself, in the units of ``X``.

    Episodes: which rows a step sees, and which the representatives are made of

    support_size : int, default=64
        Rows in the support set of an episode, in the class ratio of the data.
    n_queries : int, default=8
        Queries a class in an episode.
    n_episodes : int or "auto", default="auto"
        Episodes a step and member; "auto" is 2 up to 2,000 rows and 4 above, 1 for up to 500 rows
        of up to 100 features, and fewer where many classes make an episode longer.
    query_source : {"leave_one_out", "disjoint", "support"}, default="leave_one_out"
        Whether all rows of an episode are queries, each against the others, or queries come on top
        of the support set or out of it; see `setconv.episodes.plan_quotas`, also for classes with
        very few rows.
    post_size : int or None, default=None
        Representatives from a random subset of this size, in the class ratio, instead of all rows.

    Training: how long, how fast, and when it stops

    max_steps : int or "auto", default="auto"
        Optimiser steps; "auto" is one for 20 rows, at least 300 (200 for up to 500 rows, 600 for
        more than 100 features) and at most 1500. With 0 the weights stay as they are and only the
        representatives are computed.
    lr : float, dict or "auto", default="auto"
        Peak learning rate, or one for each of "encoder", "setconv" and "output"; "auto" is 0.003
        for up to 100 features, else 0.001.
    optimizer : {"adamw", "adam"}, default="adamw"
    weight_decay : float, default=0.01
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
    early_stopping : bool, default=False
        Hold out rows (or use ``X_val``), look at them every ``max_steps / 20`` steps, stop when
        they improve no more, restore the best weights.
    validation_fraction : float, default=0.1
        Share of rows held out, stratified, with ``groups`` kept together.
    patience : int or None, default=10
        Looks without improvement before training stops; None only restores the best weights.
    monitor : {"loss", "auc", "average_precision", "g_mean", "macro_f1", "minimum_of_five"}
        What is watched on the validation rows, default "loss".

    Run: where it happens, and what is seen and kept of it

    device : str, default="auto"
        A torch device; "auto" is CUDA where there is one, else the CPU.
    progress : {"auto"} or bool, default="auto"
        A progress bar on standard error; "auto" shows one on terminals.
    callbacks : sequence of `setconv.training.Callback`, default=()
    checkpoint_dir : path or None, default=None
        Folder for checkpoints, one every 100 steps; go on after an interruption with
        ``fit(..., resume_from=...)``.
    random_state : int, numpy RandomState, Generator or None, default=None
        Same data, seed and machine: same result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_counts_ : ndarray of shape (n_classes,)
        Rows of each class that the representatives know.
    anchor_ : ndarray of shape (n_members, n_features)
        In the units of ``X``; with several anchors (n_members, n_anchors, n_features). With more
        than two classes there is an axis of one-vs-all heads after that of the members, and with
        one member none of members.
    representatives_ : ndarray of shape (n_members, 2, n_embedding)
        One a class; with more than two classes (n_members, n_classes, 2, n_embedding): the rest,
        the class. With one member there is no axis of members. Those that judge are not among them.
    threshold_ : float or ndarray of shape (n_classes,)
        What `decision_function` takes off the scores.
    threshold_basis_ : str
        What it rests on: how many rows of which kind, and whether a minimum is known to be met.
    objective_ : str, dict, array-like or None
        What the decision was made for, in `fit` or by `set_objective`.
    prior_ : ndarray of shape (n_classes,) or None
        The prevalence of `set_prior`; None: that of the training data.
    oof_report_ : `setconv.metrics.Report`
        Metrics on the training rows, each scored by the members that left it out and decided on by
        a threshold and calibrator that other folds gave, with 95 % intervals. A class of which no
        row was left out has no figures and stands in its ``unjudged`` with the reason. Only with
        members.
    network_ : `setconv.nn.SetConvNetwork`
        The torch module.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if ``X`` has column names.
    history_ : list of dict
        Records of the training run, see `setconv.training.TrainingState`.
    n_steps_ : int
        Steps that were taken.
    report_ : `setconv.metrics.Report`
        `oof_report_` where there are members, else metrics on ``X_val``. If these chose the weights
        (``early_stopping``), or there are none, every row was seen: there are no figures.
    report_source_ : {"out_of_fold", "validation", "none"}

    References
    ----------
    Gao et al., "SetConv: A New Approach for Learning from Imbalanced Data", EMNLP 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv import SetConvClassifier
    >>> X, y = make_classification(400, weights=[0.9], class_sep=2.0, random_state=0)
    >>> clf = SetConvClassifier(max_steps=50, random_state=0).fit(X, y)
    >>> clf.predict(X[:3]).shape
    (3,)
    >>> clf.set_objective("recall>=0.9").predict(X[:3]).shape
    (3,)
    >>> clf.representatives_.shape
    (10, 2, 64)
    """

    _model: SetConvModel
    _decision: FittedDecision

    def __init__(
        self,
        *,
        objective: Any = "balanced",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_members: int | Literal["auto"] = "auto",
        linear_share: float | Literal["auto"] = "auto",
        scaling: Scaling | Sequence[Scaling] | None = "auto",
        encoder: Sequence[int] | Literal["auto"] = "auto",
        out_features: int | Literal["auto"] = "auto",
        output: int | None = None,
        similarity: Similarity = "cosine",
        dropout: float | Literal["auto"] = "auto",
        input_dropout: float | Literal["auto"] = "auto",
        heads: HeadSharing = "shared",
        anchor: Anchor = "mean",
        support_size: int = 64,
        n_queries: int = 8,
        n_episodes: int | Literal["auto"] = "auto",
        query_source: QuerySource = "leave_one_out",
        post_size: int | None = None,
        max_steps: int | Literal["auto"] = "auto",
        lr: float | Mapping[str, float] | Literal["auto"] = "auto",
        optimizer: Optimizer = "adamw",
        weight_decay: float = 0.01,
        schedule: Schedule = "one_cycle",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = 10,
        monitor: Monitor = "loss",
        device: str = "auto",
        progress: Progress = "auto",
        callbacks: Sequence[Callback] = (),
        checkpoint_dir: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.objective = objective
        self.class_weight = class_weight
        self.n_members = n_members
        self.linear_share = linear_share
        self.scaling = scaling
        self.encoder = encoder
        self.out_features = out_features
        self.output = output
        self.similarity = similarity
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.heads = heads
        self.anchor = anchor
        self.support_size = support_size
        self.n_queries = n_queries
        self.n_episodes = n_episodes
        self.query_source = query_source
        self.post_size = post_size
        self.max_steps = max_steps
        self.lr = lr
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.monitor = monitor
        self.device = device
        self.progress = progress
        self.callbacks = callbacks
        self.checkpoint_dir = checkpoint_dir
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: ArrayLike | None = None,
        time: Any = None,
        resume_from: str | Path | None = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), path or Arrow dataset
            numpy, pandas, polars (a LazyFrame is collected), lists or scipy.sparse; or rows that
            lie on disk: a Parquet file, a folder of them, a pyarrow Dataset or Table, a
            numpy.memmap. Beyond 256 MB, or what the environment variable SETCONV_IN_MEMORY says,
            these are never in memory as a whole: they are read three times, and those that
            training draws are copied to a scratch file in the system's folder for temporary files,
            which TMPDIR names. Results are those of rows in memory. Beyond 200,000 rows a sample
            is judged out of fold, and beyond a million folds are hashes, wherever rows lie.
        y : array-like of shape (n_rows,) or str
            Labels: strings, bools or integers; or the name of the column of the file that has them.
        sample_weight : array-like of shape (n_rows,), optional
            How much a row matters within its class: in the scaling, the anchor, the
            representatives, the loss, the decision and the report. Only ratios within a class
            count: how frequent a class is stays its number of rows, see `set_prior`. Rows of weight
            0 are left out; others lie between 1e-120 and 1e120.
        X_val, y_val : array-like, optional
            Validation rows, instead of held-out ones. No figure and no threshold is taken from
            copies of training rows among them.
        groups : array-like of shape (n_rows,), optional
            Names or numbers, one for each row and of one type. Rows of one group stay on one side
            of the validation split and in one fold. So do copies of a row, with or without groups.
        time : array-like of shape (n_rows,) or str, optional
            When each row was, as numbers, dates or ISO 8601 strings, or the name of the column of
            the file that has it; it is no feature. Rows are then judged forward in time, not by
            random folds, which flatter where things drift: half of the members are *judges*, each
            of which learns from what lies before a moment and judges what lies between it and the
            next, and the others, each without a random fold, predict. Rows before the first moment
            are not judged, nor is one whose copy, or group, its judge has seen. What is learned
            without labels (scaling, projection) is from all rows. ``n_members`` is 3 at least, and
            no confidence can be stated.
        resume_from : path, optional
            Folder with a checkpoint of this very fit (same data, parameters and random_state);
            the result is identical to that of the uninterrupted run.

        Returns
        -------
        self
        """
        check_parameters(self)  # before anything is read
        X, X_val = (one if isinstance(one, EncodedRows) else EncodedRows(one) for one in (X, X_val))
        looks = "X_val" if X_val.rows is not None else ""
        given: Any = {"time": time, "looks": "early_stopping" if self.early_stopping else looks}
        with columns_kept_on_error(self):
            rows, labels, moments = open_rows(self, X.rows, y, reset=True, **given)
            validation = self._open_validation(X_val, y_val)
            weights = None if sample_weight is None else check_weights(sample_weight, rows.shape[0])
            groups, apart = check_groups(groups, rows.shape[0]), not isinstance(y, str)
            X = replace(X, rows=rows)
            return self._fit_checked(
                X, labels, weights, groups, moments, validation, resume_from, y_apart=apart
            )

    def _open_validation(
        self, given: EncodedRows, y_val: Any
    ) -> tuple[Features, Labels, Keys | None] | None:
        """Return validation rows, their labels and keys, if there are any."""
        X_val = given.rows
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise DataError("Give both X_val and y_val, or neither.", parameter=missing)
        try:
            rows, labels, _ = open_rows(self, X_val, y_val, reset=False)
        except DataError as error:
            why, name = f"In X_val or y_val: {error}", f"{error.parameter or 'X'}_val"
            place: Any = {"row": error.row, "column": error.column}
            raise type(error)(why, parameter=name, **place) from error
        return rows, labels, given.keys

    def _fit_checked(
        self,
        given: EncodedRows,
        labels: Labels,
        weights: NDArray[np.float64] | None,
        groups: Array | None = None,
        time: Array | None = None,
        validation: tuple[Features, Labels, Keys | None] | None = None,
        resume_from: str | Path | None = None,
        *,
        y_apart: bool = False,
    ) -> Self:
        """Fit on rows that were checked; those of weight 0 take no part."""
        rows, keys, names, numbers = given.rows, given.keys, given.names, None
        if weights is not None and not weights.all():  # else no copy of the rows is made
            numbers = np.flatnonzero(weights)
            rows, labels, weights = choose(rows, numbers), labels.take(numbers), weights[numbers]
            groups, time, keys = (a if a is None else a[numbers] for a in (groups, time, keys))
        classes, codes = encode_labels(labels)
        warn_of_equal_counts(classes, codes)
        parameters = check_parameters(self)
        seed = seed_from(self.random_state)
        scales, row_weights = np.ones(len(classes)), np.broadcast_to(np.float64(1), len(codes))
        if weights is not None:
            scales = weight_scales(weights, codes, len(classes))
            row_weights = np.maximum(weights * scales[codes], _LEAST_WEIGHT)
        names = getattr(self, "feature_names_in_", None) if names is None else names
        moments = None if time is None else np.unique(time, return_inverse=True)[1]
        train = Rows(rows, codes, row_weights, groups, numbers=numbers, moments=moments)
        column = LabelColumn(labels, names) if y_apart and isinstance(rows, StoredRows) else None
        seen = look_through(train, classes, keys, names, column)
        train = seen.rows
        held_out = None
        if validation is not None:
            held_out = _validation_rows(*validation, classes, seen.keys_of(rows), seen.ties)
        elif self.early_stopping:
            if time is not None:
                raise ParameterError(
                    "early_stopping=True with time: rows that are held out at random would choose "
                    "the weights by later rows. Give X_val and y_val, or no early_stopping.",
                    parameter="early_stopping",
                )
            fraction = parameters.validation_fraction
            together = train.units if train.buckets is None else train.buckets
            inside, outside = split_validation(codes, fraction, together, seed)
            train, held_out = train.take(inside), train.take(outside)
        result = fit_model(
            parameters,
            classes,
            train,
            validation=held_out,
            class_weights=check_class_weight(self.class_weight, classes),
            seed=seed,
            spread=seen.spread,
            digest=seen.digest,
            notes=seen.ties.notes(forward=time is not None),
            callbacks=gather_callbacks(self.callbacks, self.progress),
            resume_from=resume_from,
        )
        self.classes_ = classes
        self._weight_scales = scales
        self._model = result.model
        self._decision = result.decision
        self.history_ = result.state.history
        self.n_steps_ = result.state.step
        self.objective_ = self.objective
        self.class_counts_ = self._count(train.codes, train.weights)
        if hasattr(self, "_pending"):
            del self._pending
        return self

    def _count(self, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of rows of each class that have a weight."""
        return count_each(codes[weights > 0], len(self.classes_))

    network_ = _fitted_attribute("_model.network")
    threshold_basis_ = _fitted_attribute("_decision.basis")
    prior_ = _fitted_attribute("_decision.rule.prior")
    report_ = _fitted_attribute("_decision.report")
    report_source_ = _fitted_attribute("_decision.source")

    @property
    def oof_report_(self) -> Report:
        """`report_` where it is out of fold; described above, like the other fitted attributes."""
        if self.report_source_ != "out_of_fold":
            raise AttributeError("There are no out-of-fold rows, see report_source_.")
        return self._decision.report

    @property
    def threshold_(self) -> float | NDArray[np.float64]:
        """One number for two classes."""
        thresholds = self._fitted()._decision.rule.thresholds
        return float(thresholds[0]) if len(self.classes_) == 2 else thresholds

    @property
    def anchor_(self) -> NDArray[np.float64]:
        """Without an axis of anchors where there is one."""
        anchors = self._fitted()._model.anchors
        return self._unstacked(anchors[:, 0] if anchors.shape[1] == 1 else anchors)

    @property
    def representatives_(self) -> NDArray[np.float32]:
        """Of the members that speak."""
        model = self._fitted()._model
        found = self._unstacked(model.representatives.cpu().numpy())
        return found if model.chosen.all() else found[model.chosen]

    def _unstacked(self, stacked: Array) -> Array:
        """Give members and heads an axis each, where there are several."""
        lead = (self.network_.n_members, self.network_.n_heads)
        return stacked.reshape(tuple(size for size in lead if size > 1) + stacked.shape[1:])

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Let new rows take part in the representatives, exactly.

        The network, the anchor and the scaling stay as they were; the representatives become what
        they would be with all rows seen so far. Decision and `report_` stay those of the model
        before these rows, and the report says so. A batch may lack classes. On a new estimator the
        first call needs ``classes``; rows are kept until every class has been seen, then the model
        is fitted on them as `fit` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), path or Arrow dataset
        y : array-like of shape (n_rows,) or str
        classes : array-like of shape (n_classes,), optional
            All labels that will ever occur; needed in the first call, optional afterwards.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        first = not (self.__sklearn_is_fitted__() or hasattr(self, "_pending"))
        if first and classes is None:
            raise LabelError(
                "The first call of partial_fit needs classes=: the list of all labels that will "
                "occur.",
                parameter="classes",
            )
        rows, labels, _ = open_rows(self, X, y, reset=first)
        weights = check_weights(sample_weight, rows.shape[0])
        if classes is not None:
            self._announce(classes, first=first)
        codes = labels.encoded(self.classes_)
        if self.__sklearn_is_fitted__():
            return self._add_rows(rows, codes, weights)
        return self._fit_once_all_are_seen(rows, labels, weights)

    def _announce(self, classes: ArrayLike, *, first: bool) -> None:
        """Take over the classes of the first call of `partial_fit`, or compare with them."""
        announced = check_classes(classes)
        if first:
            self.classes_ = announced
        elif not np.array_equal(announced, self.classes_):
            raise LabelError(
                f"classes={announced.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}: fit a new estimator for other classes.",
                parameter="classes",
            )

    def _add_rows(
        self, rows: Features, codes: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> Self:
        """Let rows take part in the representatives of a fitted model."""
        weights = weights * self._weight_scales[codes]
        self._model = self._model.with_rows(rows, codes, weights)
        counted = self._count(codes, weights)
        self.class_counts_ += counted
        known = self._decision.updates
        rows_added = known.get("partial_fit", 0) + int(counted.sum())
        self._decision = self._decision.updated({**known, "partial_fit": rows_added})
        return self

    def _fit_once_all_are_seen(
        self, rows: Features, labels: Labels, weights: NDArray[np.float64]
    ) -> Self:
        """Fit on the rows of all calls so far, or keep them until every class has been seen."""
        if isinstance(rows, StoredRows):
            raise DataError(
                "partial_fit of a new estimator keeps its rows in memory, for which the file is "
                "too large: call fit with it."
            )
        pending = [*getattr(self, "_pending", []), (rows, labels.names[labels.codes], weights)]
        rows = stack_rows([part for part, _, _ in pending])
        values, weights = (np.concatenate([one[place] for one in pending]) for place in (1, 2))
        if len(np.unique(values[weights > 0])) == len(self.classes_):
            return self._fit_checked(EncodedRows(rows), Labels.of(values), weights)
        self._pending = pending
        return self

    def post_train(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Make the representatives anew, from these rows alone: the paper's post-training.

        The network, the anchor, the scaling and the thresholds stay as they were, and so does
        `report_`, which says so. `partial_fit` adds rows instead.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), path or Arrow dataset
        y : array-like of shape (n_rows,) or str
            Every class must occur.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        self._fitted()
        rows, labels, _ = open_rows(self, X, y, reset=False)
        weights = check_weights(sample_weight, rows.shape[0])
        codes = labels.encoded(self.classes_)
        counts = self._count(codes, weights)
        if not counts.all():
            absent = np.asarray(self.classes_)[counts == 0][0]
            why = f"y has no rows of class {absent}: give rows of every class."
            raise LabelError(why, parameter="y")
        scales = weight_scales(weights, codes, len(self.classes_))
        model = self._model.without_rows().with_rows(rows, codes, weights * scales[codes])
        self._model = model
        self.class_counts_, self._weight_scales = counts, scales
        self._decision = self._decision.updated({"post_train": int(counts.sum())})
        return self

    def predict(self, X: Any) -> Array:
        """Return the class of each row: the decision for the `objective`.

        It is the sign (two classes) or the argmax of `decision_function`. It is the argmax of
        `predict_proba` only where the objective asks for that ("accuracy"): a class of 5 % is
        worth predicting for "balanced" at a probability far below one half.
        """
        return self.predictions(X).labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (n_rows, n_classes).

        Calibrated on out-of-fold rows, for the prevalence of the training data or for that of
        `set_prior`. With ``objective=None`` they are the paper's (equations 5-7), for equally
        frequent classes; with more than two, P(y=c|x) of each head is then divided by their sum.
        """
        return self.predictions(X).probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score minus the threshold: (n_rows,), or (n_rows, n_classes).

        With two classes it is that of the second, and its sign is `predict`; with more the argmax
        is. With a cost matrix over more than two classes it is minus the expected cost.
        """
        return self.predictions(X).decision_values

    def predictions(self, X: Any) -> Predictions:
        """Return labels, probabilities, scores and decision values, from one pass over the rows."""
        self._fitted()
        return self._decision.rule.predictions(joined(one for _, one in self._score_batches(X)))

    def _score_batches(
        self, X: Any, keep: Sequence[str] = ()
    ) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
        """Yield the rows of X, all at once or batch by batch, with their scores."""
        done = 0
        for batch in iter_batches(self, X, keep):
            yield batch, self._model.scores(batch.rows, done)
            done += batch.rows.shape[0]

    def predict_to(self, X: Any, path: str | Path, *, keep: Sequence[str] = ()) -> int:
        """Write labels and probabilities to a Parquet file, batch by batch.

        Columns: those of ``keep``, ``predicted_label``, and ``probability_<class>`` for each class.
        The file is there whole or not at all.

        Parameters
        ----------
        X : path, Arrow dataset, memmap, or array-like
            As for `fit`.
        path : path
            The Parquet file to write.
        keep : sequence of str, default=()
            Columns of the file ``X`` to copy.

        Returns
        -------
        int
            Rows written.
        """
        self._fitted()
        say, scored = self._decision.rule.predictions, self._score_batches(X, keep)
        batches = ((batch.extra, say(scores)) for batch, scores in scored)
        return write_predictions(path, batches, self.classes_, keep)

    def predict_out_of_fold(self) -> Predictions:
        """Return what the members that left a training row out say of it, for all such rows.

        ``rows`` has their numbers among the rows that were given to `fit`. Decisions and
        probabilities are cross-fitted and weights as in `oof_report_`, which is the report on
        exactly these predictions: what to judge the model by without a test set.
        """
        self._fitted()
        decision = self._decision
        if decision.source != "out_of_fold" or not len(decision.rule.evidence):
            why = " ".join(decision.report.remarks())
            raise ParameterError(f"There are no out-of-fold rows. {why}".strip())
        return decision.cross_fitted()

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the learned embedding of each row, as it is compared with representatives.

        Shape (n_rows, n_embedding); the embeddings of members and heads lie side by side.
        """
        self._fitted()
        parts = (self._model.embed(batch.rows) for batch in iter_batches(self, X))
        embedded: NDArray[np.float32] = joined(parts)
        return embedded.reshape(len(embedded), -1)

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return names for the columns of `transform`."""
        self._fitted()
        n_embeddings = int(self._model.chosen.sum()) * self.network_.n_heads
        width = self.representatives_.shape[-1] * n_embeddings
        return np.array([f"setconv{column}" for column in range(width)], dtype=object)

    def set_objective(self, objective: Any) -> Self:
        """Move the decision to another objective, without training.

        Chosen on the out-of-fold scores of the fit; `report_` and `oof_report_` follow. A minimum
        with a confidence that these do not show is an error, and nothing changes.

        Parameters
        ----------
        objective : see `SetConvClassifier`

        Returns
        -------
        self
        """
        self._fitted()
        self._decision = self._decision.moved(self._decision.rule.with_objective(objective))
        self.objective = self.objective_ = objective
        return self

    def set_prior(self, prior: Any) -> Self:
        """Say how frequent the classes are where the model is used.

        Probabilities follow, and so does the threshold of an objective that depends on it
        (precision, F1, MCC, accuracy, costs; not recall and "balanced"). `report_` and
        `oof_report_` are then of rows that are weighted to that prevalence, and say so.

        Parameters
        ----------
        prior : float, mapping of label to float, array-like of shape (n_classes,) or None
            Shares of the classes; one number is that of the rarer class of two. None: those of
            the training data.

        Returns
        -------
        self
        """
        self._fitted()
        self._decision = self._decision.moved(self._decision.rule.with_prior(prior))
        return self

    def save(self, folder: str | Path) -> None:
        """Save the model to a folder: safetensors, JSON and a readable card; no pickle.

        The write is atomic: the folder has the old model or the new one. Other files in it stay;
        one that has a model's name and is not of a setconv model is never replaced. Load with
        `setconv.load`.
        """
        self._fitted()
        save(describe(self), Path(folder))

    def _only(self, members: NDArray[np.bool_]) -> Self:
        """Return the classifier as some of its members see it: those that left a row out."""
        part = type(self)(**self.get_params(deep=False))
        part.__dict__.update(vars(self), _model=self._fitted()._model.only(members))
        return part

    def _fitted(self) -> Self:
        """Return the classifier; say what is missing if it is not fitted."""
        if hasattr(self, "_pending"):
            seen = np.unique(np.concatenate([part[w > 0] for _, part, w in self._pending]))
            missing = [label for label in self.classes_.tolist() if label not in seen.tolist()]
            raise NotFittedError(
                f"partial_fit has not seen rows of every class yet; missing: {missing}. The rows "
                "so far are kept: go on calling partial_fit."
            )
        check_is_fitted(self)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the embedding is float32, as the network
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return arrays and plain data, so that what pickles, or skops, carry opens anywhere."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_model" in state:
            state["_fitted_state"] = describe_fitted(state.pop("_model"), state.pop("_decision"))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the model of what `__getstate__` gave, on the CPU."""
        plain = dict(state)
        fitted = plain.pop("_fitted_state", None)
        super().__setstate__(plain)
        if fitted is not None:
            (config, arrays), cpu = fitted, torch.device("cpu")
            self._model, self._decision = restore_fitted(config, arrays, self.classes_, cpu)


def check_parameters(estimator: Any) -> Parameters:
    """Return the parameters of a classifier as plain values; refuse what cannot work.

    A list or a number of numpy's means the same as Python's own everywhere.
    """
    given: dict[str, Any] = estimator.get_params(deep=False)
    plain = {name: _plain(v) if name in _CONSTRAINTS else v for name, v in given.items()}
    for name, constraints in _CONSTRAINTS.items():
        value = plain[name]
        check_parameter(estimator, name, value, constraints)
        if name in _PARTS and not isinstance(value, str | float | int):
            for part in value.values() if isinstance(value, dict) else value:
                check_parameter(estimator, name, part, [_PARTS[name]])
    if isinstance(plain["lr"], dict) and set(plain["lr"]) != set(_LR_GROUPS):
        keys = ", ".join(_LR_GROUPS)
        why = f"lr={plain['lr']!r}: give one number, or exactly the keys {keys}."
        raise ParameterError(why, parameter="lr")
    return SimpleNamespace(**plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in sorted(value.items())}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_plain, value))
    return value


def seed_from(random_state: Any) -> int:
    """Return a seed: fresh entropy for None, a draw from a generator, or the number itself."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    return int(random_state)


def _validation_rows(
    rows: Features, labels: Labels, keys: Keys | None, classes: Array, train_keys: Keys, ties: Ties
) -> Rows:
    """Return validation rows; copies of training rows have weight 0, for they prove nothing."""
    codes = labels.encoded(classes, "y_val")
    weights = np.ones(len(codes))
    if ties.natural:
        return Rows(rows, codes, weights)
    keys = row_keys(rows) if keys is None else keys
    weights[np.isin(keys, train_keys)] = 0
    return Rows(rows, codes, weights, units=np.unique(keys, return_inverse=True)[1])
