"""What new rows do to a classifier: they join the representatives, or make them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv import inputs, targets
from setconv.decisions.evidence import weight_scales
from setconv.errors import DataError, LabelError
from setconv.judging import Judgement
from setconv.model import SetConvModel
from setconv.rows import Matrix, StoredRows
from setconv.stored import rows_of

Array = NDArray[Any]


class Updates:
    """The part of the estimator that learns after, or without, `fit`."""

    if TYPE_CHECKING:
        classes_: Array
        class_counts_: NDArray[np.int64]
        batch_size: int
        _judgement: Judgement
        _weight_scales: NDArray[np.float64]
        _pending: list[tuple[Any, Array, NDArray[np.float64]]]

        def _fitted_model(self) -> SetConvModel: ...
        def _count(self, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Array: ...
        def _publish(self) -> None: ...
        def __sklearn_is_fitted__(self) -> bool: ...
        def _fit(
            self,
            rows: Matrix,
            labels: Array,
            weights: NDArray[np.float64],
        ) -> Self: ...

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
                "occur."
            )
        with rows_of(self, X, y, reset=first) as (rows, given):
            labels = targets.check_labels(given, rows.shape[0])
            weights = targets.check_weights(sample_weight, rows.shape[0])
            if classes is not None:
                self._announce(classes, first=first)
            return self._learn(rows, labels, weights)

    def _announce(self, classes: ArrayLike, *, first: bool) -> None:
        """Take over the classes of the first call of `partial_fit`, or compare with them."""
        announced = targets.check_classes(classes)
        if first:
            self.classes_ = announced
        elif not np.array_equal(announced, self.classes_):
            raise LabelError(
                f"classes={announced.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}: fit a new estimator for other classes."
            )

    def _learn(self, rows: Matrix, labels: Array, weights: NDArray[np.float64]) -> Self:
        """Add rows to the representatives, or keep them until every class has been seen."""
        codes = targets.encode_known_labels(labels, self.classes_, "y")
        if self.__sklearn_is_fitted__():
            weights = weights * self._weight_scales[codes]
            self._fitted_model().add_rows(rows, codes, weights, self.batch_size)
            counted = self._count(codes, weights)
            self.class_counts_ += counted
            known = self._judgement.updates
            rows_added = known.get("partial_fit", 0) + int(counted.sum())
            self._judgement = self._judgement.updated({**known, "partial_fit": rows_added})
            self._publish()
            return self
        if isinstance(rows, StoredRows):
            raise DataError(
                "partial_fit of a new estimator keeps its rows in memory, for which the file is "
                "too large: call fit with it."
            )
        pending = [*getattr(self, "_pending", []), (rows, labels, weights)]
        rows = inputs.stack_rows([part for part, _, _ in pending])
        labels, weights = (np.concatenate([one[place] for one in pending]) for place in (1, 2))
        if len(np.unique(labels[weights > 0])) == len(self.classes_):
            return self._fit(rows, labels, weights)
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
        model = self._fitted_model()
        with rows_of(self, X, y, reset=False) as (rows, given):
            labels = targets.check_labels(given, rows.shape[0])
            weights = targets.check_weights(sample_weight, rows.shape[0])
            codes = targets.encode_known_labels(labels, self.classes_, "y")
            counts = self._count(codes, weights)
            if not counts.all():
                absent = np.asarray(self.classes_)[counts == 0][0]
                raise LabelError(f"y has no rows of class {absent}: give rows of every class.")
            scales = weight_scales(weights, codes, len(self.classes_))
            earlier = model.sums
            model.reset_representatives()
            try:
                model.add_rows(rows, codes, weights * scales[codes], self.batch_size)
            except BaseException:
                model.sums = earlier
                raise
        self.class_counts_, self._weight_scales = counts, scales
        self._judgement = self._judgement.updated({"post_train": int(counts.sum())})
        self._publish()
        return self
