"""What happens to the features before the network: the views of the rows that members take.

Members can look at the same rows in different ways, which makes their average better than any of
them: standardised, by their quantiles, or cut into pieces, one input a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError
from setconv.rows import Matrix
from setconv.views import View, fit_normal, fit_pieces, fit_standard

Scaling = Literal["auto", "standard", "normal", "pieces"]
VIEWS = ("standard", "normal", "pieces")
# Up to so many columns each is taken to mean something by itself, so that quantiles and pieces of
# it help and its loss hurts; the columns of an embedding mean something together.
FEW_COLUMNS = 100
# Three views of a larger table would take too much memory.
_MOST_VALUES = 20_000_000


@dataclass(frozen=True)
class Scaler:
    """Rows as the members see them; the identity without any view.

    Attributes
    ----------
    views : tuple of View
        Member ``m`` takes view ``m`` modulo their number.
    """

    views: tuple[View, ...] = ()

    def width(self, n_features: int) -> int:
        """Return the number of inputs of the network; narrower views are padded with zeros."""
        return max((view.width for view in self.views), default=n_features)

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scaled rows as float32, shape (views, n_rows, width)."""
        if not self.views:
            return _narrow(rows)[None]
        if len(self.views) == 1:
            return _narrow(self.views[0](rows))[None]
        width = self.width(rows.shape[1])
        scaled = np.zeros((len(self.views), len(rows), width), dtype=np.float32)
        for place, view in zip(scaled, self.views, strict=True):
            place[:, : view.width] = _narrow(view(rows))
        return scaled


def _narrow(rows: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(rows, dtype=np.float32)
    if narrow is not rows and not np.isfinite(narrow).all():
        column = int(np.flatnonzero(~np.isfinite(narrow).all(axis=0))[0])
        raise DataError(
            f"Column {column} of X has values too large for float32: rescale it, or use "
            'scaling="auto".'
        )
    return narrow


def choose_views(scaling: Any, n_rows: int, n_features: int, n_members: int) -> tuple[str, ...]:
    """Return the names of the views; "auto" follows the shape of the data.

    All three for tables of up to 100 columns, the standardised one alone for wider data, such as
    embeddings. There are never more views than members.
    """
    if scaling is None:
        return ()
    if isinstance(scaling, str) and scaling == "auto":
        small = n_features <= FEW_COLUMNS and n_rows * n_features <= _MOST_VALUES
        return VIEWS[:n_members] if small and n_members > 1 else ("standard",)
    names = (scaling,) if isinstance(scaling, str) else scaling
    if not isinstance(names, Sequence) or not names or any(name not in VIEWS for name in names):
        raise ParameterError(
            f"scaling={scaling!r}: choose "
            f'"auto", {", ".join(map(repr, VIEWS))}, a list of the last three, or None.'
        )
    return tuple(names)[:n_members]


def fit_scaler(
    names: Sequence[str], clip: float | None, rows: Matrix, weights: NDArray[Any]
) -> Scaler:
    """Learn the views of the columns.

    Parameters
    ----------
    names : sequence of {"standard", "normal", "pieces"}
    clip : float or None
        Bound on the absolute value of a standardised feature.
    rows : array of shape (n_rows, n_features), or on disk
    weights : array of shape (n_rows,)
    """
    if clip is not None and not clip > 0:
        raise ParameterError(f"clip={clip!r}: give a positive bound, or None for none.")
    fitted: list[View] = []
    for name in names:
        if name == "standard":
            fitted.append(fit_standard(rows, weights, clip))
        elif not isinstance(rows, np.ndarray):
            raise ParameterError(
                f"scaling={name!r} sorts whole columns, which rows on disk do not allow: choose "
                '"standard", "auto" or None.'
            )
        elif name == "normal":
            fitted.append(fit_normal(rows, weights))
        else:
            fitted.append(fit_pieces(rows, weights, clip))
    return Scaler(tuple(fitted))


__all__ = ["FEW_COLUMNS", "VIEWS", "Scaler", "Scaling", "choose_views", "fit_scaler"]
