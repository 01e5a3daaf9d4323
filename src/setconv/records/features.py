"""From a table of numbers, categories and gaps to a matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from setconv.errors import DataError, NotFittedError, ParameterError
from setconv.names import did_you_mean, listed
from setconv.records.frames import as_table
from setconv.records.planning import plan_column
from setconv.records.plans import Plan, VectorPlan, described, restored, write_columns

_ROWS = 16384


class FeatureEncoder(TransformerMixin, BaseEstimator):
    """Turn the feature columns of a table into a float32 matrix.

    - Numbers, and strings that all are numbers: missing values ("", NA, nan, null, ?) become the
      median of training; a column that had any in training gets a second one that says where.
    - Categories: one column for each of the most frequent, one for all others (also those that
      training did not see), and one for missing values if training had any.
    - True and false: 1 and 0. Dates: days since 1970-01-01. Lists of numbers: a column a place.
    - Left out: columns that are constant, whose strings differ in (almost) every row, or whose
      type cannot be a feature.

    Parameters
    ----------
    max_categories : int, default=30
        Categories of a column that get a column of their own.

    Attributes
    ----------
    notes_ : list of str
        Plain sentences on what was filled, encoded and left out.
    feature_names_in_ : ndarray of str
        All columns of the training table.
    n_features_in_ : int
    """

    def __init__(self, max_categories: int = 30) -> None:
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn medians and categories.

        Parameters
        ----------
        X : pyarrow table, pandas or polars frame, or dict of columns
        y : ignored

        Returns
        -------
        self
        """
        if self.max_categories < 1:
            raise ParameterError(f"max_categories={self.max_categories!r}: at least 1 is needed.")
        table = as_table(X)
        if table.num_rows == 0:
            raise DataError("The table has no rows. Give at least two.")
        plans: list[Plan] = []
        notes: list[str] = []
        for name in table.column_names:
            plan, said = plan_column(name, table[name], self.max_categories)
            notes += said
            if plan is not None:
                plans.append(plan)
        if not plans:
            raise DataError(
                f"No column of {listed(table.column_names)} can be a feature: {' '.join(notes)}"
            )
        self._set(plans, notes, table.column_names)
        return self

    def transform(self, X: Any, *, first_row: int = 1) -> NDArray[np.float32]:
        """Return the matrix; a row's numbers do not depend on the other rows.

        Parameters
        ----------
        X : pyarrow table, pandas or polars frame, or dict of columns
            With the columns that `fit` used, in any order; others are ignored.
        first_row : int, default=1
            Number of the first row, for messages on later batches of a file.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float32
        """
        plans = self._fitted_plans()
        table = as_table(X)
        known = table.column_names
        for plan in plans:
            if plan.name not in known:
                raise DataError(
                    f"There is no column {plan.name!r}, which the model was trained with."
                    f"{did_you_mean(plan.name, known)} The columns are {listed(known)}."
                )
        out = np.empty((table.num_rows, len(self._names())), np.float32)
        start = 0
        for batch in table.select([plan.name for plan in plans]).to_batches(_ROWS):
            self._write(batch, out[start : start + len(batch)], first_row + start)
            start += len(batch)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the columns of the matrix: "age", "city=Rome", "city=(other)"."""
        return np.array(self._names(), dtype=object)

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as JSON-able data and arrays; `restore` takes them."""
        plans = self._fitted_plans()
        config = {
            "max_categories": self.max_categories,
            "columns_in": [str(name) for name in self.feature_names_in_],
            "columns": [described(plan) for plan in plans],
            "notes": list(self.notes_),
        }
        medians = [getattr(plan, "median", np.nan) for plan in plans]
        return config, {"medians": np.array(medians, dtype=np.float64)}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder that was described.

        Parameters
        ----------
        config : dict
        arrays : dict of str to ndarray

        Returns
        -------
        FeatureEncoder
        """
        encoder = cls(max_categories=config["max_categories"])
        plans = [
            restored(one, float(median))
            for one, median in zip(config["columns"], arrays["medians"], strict=True)
        ]
        encoder._set(plans, list(config["notes"]), config["columns_in"])
        return encoder

    def _set(self, plans: list[Plan], notes: list[str], names: list[str]) -> None:
        self._plans = plans
        self.notes_ = notes
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _write(self, batch: pa.RecordBatch, out: NDArray[np.float32], first_row: int) -> None:
        place = 0
        waiting: list[NDArray[Any]] = []
        for plan, column in zip(self._plans, batch.columns, strict=True):
            if isinstance(plan, VectorPlan):
                write_columns(waiting, out[:, place - len(waiting) : place])
                waiting = []
                out[:, place : place + plan.width] = plan.matrix(column, first_row)
                place += plan.width
            else:
                made = plan.columns(column, first_row)
                waiting += made
                place += len(made)
        write_columns(waiting, out[:, place - len(waiting) : place])

    def _names(self) -> list[str]:
        return [name for plan in self._fitted_plans() for name in plan.names]

    def _fitted_plans(self) -> list[Plan]:
        if not hasattr(self, "_plans"):
            raise NotFittedError("This FeatureEncoder is not fitted yet. Call fit first.")
        return self._plans
