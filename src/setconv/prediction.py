"""What a fitted classifier computes from rows, and how its decision is moved."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from setconv.decisions import DecisionRule, cross_fit
from setconv.errors import ParameterError
from setconv.judging import Judgement
from setconv.model import SetConvModel
from setconv.predicted import Predictions, check_kept, predicted_tables
from setconv.saving import describe, save
from setconv.storage import write_predictions
from setconv.stored import batches_of

Array = NDArray[Any]


class Predicting(TransformerMixin):
    """The part of the estimator that comes after `fit`."""

    if TYPE_CHECKING:
        classes_: Array
        objective: Any
        batch_size: int
        representatives_: Array
        _judgement: Judgement
        _model: SetConvModel

        def _fitted_model(self) -> SetConvModel: ...
        def _count(self, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Array: ...
        def _publish(self) -> None: ...

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

    def predictions(self, X: Any) -> Predictions:
        """Return labels, probabilities, scores and decision values, from one pass over the rows."""
        return self._answer(self._scores(X))

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
        model = self._fitted_model()
        check_kept(self, keep)
        batches = batches_of(self, X, keep)

        done = 0

        def answer(rows: Any) -> Predictions:
            nonlocal done
            scores = model.scores(rows, self.batch_size, done)
            done += rows.shape[0]
            return self._answer(scores)

        return write_predictions(path, predicted_tables(self, batches, answer))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score minus the threshold: (n_rows,), or (n_rows, n_classes).

        With two classes it is that of the second, and its sign is `predict`; with more the argmax
        is. With a cost matrix over more than two classes it is minus the expected cost.
        """
        return self.predictions(X).decision_values

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the learned embedding of each row, as it is compared with representatives.

        Shape (n_rows, n_embedding); the embeddings of members and heads lie side by side.
        """
        model = self._fitted_model()
        parts = [model.embed(batch.rows, self.batch_size) for batch in batches_of(self, X)]
        embedded = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return embedded.reshape(len(embedded), -1)

    def predict_out_of_fold(self) -> Predictions:
        """Return what the members that left a training row out say of it, for all such rows.

        ``rows`` has their numbers among the rows that were given to `fit`. Decisions and
        probabilities are cross-fitted and weights as in `oof_report_`, which is the report on
        exactly these predictions: what to judge the model by without a test set.
        """
        judgement, evidence = self._judgement_of_fit(), self._rule.evidence
        if judgement.source != "out_of_fold" or evidence is None:
            why = " ".join(judgement.report.remarks())
            raise ParameterError(f"There are no out-of-fold rows. {why}".strip())
        found = cross_fit(judgement.rule, judgement.folds)
        classes, scores = np.asarray(self.classes_), evidence.scores
        rows = np.arange(len(scores)) if judgement.rows is None else judgement.rows
        return Predictions(
            labels=classes[found.codes],
            probabilities=found.probabilities,
            scores=scores[:, 0] if scores.shape[1] == 1 else scores,
            decision_values=found.values,
            rows=rows,
            truth=classes[evidence.codes],
            weights=judgement.row_weights,
            left_out=judgement.left_out,
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002
        """Return names for the columns of `transform`."""
        model = self._fitted_model()
        width = self.representatives_.shape[-1] * model.network.n_stacked
        return np.array([f"setconv{column}" for column in range(width)], dtype=object)

    def set_objective(self, objective: Any) -> Self:
        """Move the decision to another objective, without training.

        Chosen on the out-of-fold scores of the fit; `report_` and `oof_report_` follow.

        Parameters
        ----------
        objective : see `SetConvClassifier`

        Returns
        -------
        self
        """
        self._fitted_model()
        self._judgement = self._judgement.moved(self._rule.with_objective(objective))
        self.objective = self.objective_ = objective
        self._publish_decision()
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
        self._fitted_model()
        self._judgement = self._judgement.moved(self._rule.with_prior(prior))
        self._publish_decision()
        return self

    def save(self, folder: str | Path) -> None:
        """Save the model to a folder: safetensors, JSON and a readable card; no pickle.

        The write is atomic. A folder that holds another setconv model is replaced; any other
        folder that is not empty is refused. Load with `setconv.load`.
        """
        self._fitted_model()
        save(describe(self), Path(folder))

    def _only(self, members: NDArray[np.bool_]) -> Self:
        """Return the classifier as some of its members see it: those that left a row out."""
        part = copy.copy(self)
        part._model = self._fitted_model().only(members)
        part.representatives_ = self.representatives_[members]
        return part

    @property
    def _rule(self) -> DecisionRule:
        return self._judgement_of_fit().rule

    def _judgement_of_fit(self) -> Judgement:
        self._fitted_model()
        return self._judgement

    def _answer(self, scores: NDArray[np.float64]) -> Predictions:
        rule = self._rule
        return Predictions(
            labels=np.asarray(self.classes_)[rule.decide(scores)],
            probabilities=rule.probabilities(scores),
            scores=scores[:, 0] if scores.shape[1] == 1 else scores,
            decision_values=rule.decision_values(scores),
            rows=np.arange(len(scores)),
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        model = self._fitted_model()
        parts: list[NDArray[np.float64]] = []
        done = 0
        for batch in batches_of(self, X):
            parts.append(model.scores(batch.rows, self.batch_size, done))
            done += batch.rows.shape[0]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _publish_decision(self) -> None:
        """Show the decision, and the report on it, as fitted attributes."""
        judgement = self._judgement
        rule = judgement.rule
        self.threshold_ = float(rule.thresholds[0]) if len(self.classes_) == 2 else rule.thresholds
        self.threshold_basis_ = judgement.basis
        self.prior_ = rule.prior
        self.report_, self.report_source_ = judgement.report, judgement.source
        if judgement.source == "out_of_fold":
            self.oof_report_ = judgement.report
        elif hasattr(self, "oof_report_"):
            del self.oof_report_
