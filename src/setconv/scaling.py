"""What happens to the features before the network: standardised and clipped, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError

Scaling = Literal["standard"]
_CHUNK = 4096  # rows at a time, so that no float64 copy of all rows is made


@dataclass(frozen=True)
class Scaler:
    """Centre, scale and clip the columns; the identity where ``mean`` is None.

    Attributes
    ----------
    mean, scale : float64 arrays of shape (n_features,), or None
    clip : float or None
        Bound on the absolute scaled value.
    """

    mean: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None
    clip: float | None = None

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scaled rows as float32."""
        if self.mean is None or self.scale is None:
            return self._narrow(rows)
        # Rows that are float32 already stay so: half the memory traffic, and the network is too.
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        scaled = (rows - self.mean.astype(dtype)) / self.scale.astype(dtype)
        if self.clip is not None:
            np.clip(scaled, -self.clip, self.clip, out=scaled)
        return self._narrow(scaled)

    @staticmethod
    def _narrow(rows: NDArray[Any]) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):
            narrow = np.ascontiguousarray(rows, dtype=np.float32)
        if narrow is not rows and not np.isfinite(narrow).all():
            column = int(np.flatnonzero(~np.isfinite(narrow).all(axis=0))[0])
            raise DataError(
                f"Column {column} of X has values too large for float32: rescale it, or use "
                'scaling="standard".'
            )
        return narrow


def fit_scaler(
    scaling: Scaling | None, clip: float | None, rows: NDArray[Any], weights: NDArray[Any]
) -> Scaler:
    """Learn the scaling of the columns.

    Parameters
    ----------
    scaling : {"standard"} or None
    clip : float or None
    rows : array of shape (n_rows, n_features)
    weights : array of shape (n_rows,)

    Returns
    -------
    Scaler
        A constant column is centred and left at scale 1.
    """
    if scaling is None:
        return Scaler()
    if scaling != "standard":
        raise ParameterError(f'scaling={scaling!r}: choose "standard" or None.')
    if clip is not None and not clip > 0:
        raise ParameterError(f"clip={clip!r}: give a positive bound, or None for none.")
    shares = weights / weights.sum()
    mean = np.zeros(rows.shape[1])
    variance = np.zeros(rows.shape[1])
    parts = [slice(start, start + _CHUNK) for start in range(0, len(rows), _CHUNK)]
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts:
            mean += shares[part] @ rows[part].astype(np.float64)
        for part in parts:
            variance += shares[part] @ np.square(rows[part] - mean)
    if not np.isfinite(variance).all():
        column = int(np.flatnonzero(~np.isfinite(variance))[0])
        raise DataError(f"Column {column} of X has values too large to standardise: rescale it.")
    # A constant column has a variance of rounding errors only (scikit-learn's bound).
    error = len(rows) * np.finfo(np.float64).eps
    constant = variance <= error * variance + (error * mean) ** 2
    return Scaler(mean, np.where(constant, 1.0, np.sqrt(variance)), clip)
