"""Where training takes its rows from: memory, or a sparse matrix or disk as they are needed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from torch import Tensor

from setconv.data import Matrix
from setconv.io.disk import Prefetcher
from setconv.preprocessing import Scaler

Drawn: TypeAlias = NDArray[np.int64]
Batch: TypeAlias = tuple[Drawn, Tensor]
_CHUNK = 8192


class Feed(Protocol):
    """Rows as the members see them."""

    device: torch.device

    def batches(self, draws: Iterator[Drawn]) -> Generator[Batch]:
        """Yield each draw of row numbers ([groups,] episodes, rows) with its rows.

        The rows are (..., n_inputs); each member's are in its own view. Close the iterator to end.
        """
        ...

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield all rows in order, in all views: (n_views, rows, n_inputs)."""
        ...


def open_feed(features: Matrix, scaler: Scaler, device: torch.device, n_members: int) -> Feed:
    """Return the feed for rows, which are dense, sparse or on disk."""
    if not isinstance(features, np.ndarray):
        return LazyFeed(features, scaler, device, n_members)
    return MemoryFeed(torch.from_numpy(scaler(features)).to(device), n_members)


class MemoryFeed:
    """Rows in memory, scaled once.

    Parameters
    ----------
    scaled : Tensor of shape (n_views, n_rows, n_inputs)
        Member ``m`` takes view ``m`` modulo their number.
    n_members : int
    """

    def __init__(self, scaled: Tensor, n_members: int) -> None:
        self.scaled, self.n_members = scaled, n_members
        self.device = scaled.device

    def batches(self, draws: Iterator[Drawn]) -> Generator[Batch]:
        """Yield each draw with its rows."""
        views, n_rows, _ = self.scaled.shape
        flat = self.scaled.flatten(0, 1)
        for drawn in draws:
            places = drawn
            if views > 1:
                places = drawn + n_rows * view_of_groups(len(drawn), self.n_members, views)
            where = torch.from_numpy(places.reshape(-1)).to(self.device)
            # One copy a row: several times as fast as indexing by several numbers.
            yield drawn, flat.index_select(0, where).view(*drawn.shape, -1)

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield all rows in order."""
        for part in gen_batches(self.scaled.shape[1], _CHUNK):
            yield part, self.scaled[:, part]


class LazyFeed:
    """Rows on disk or sparse, read or made dense while the step before them is computed.

    Parameters
    ----------
    rows : DiskRows, RowSubset or csr matrix
    scaler : Scaler
    device : torch.device
    n_members : int
    """

    def __init__(self, rows: Matrix, scaler: Scaler, device: torch.device, n_members: int) -> None:
        self.rows, self.scaler, self.device, self.n_members = rows, scaler, device, n_members

    def batches(self, draws: Iterator[Drawn]) -> Generator[Batch]:
        """Yield each draw with its rows."""
        with Prefetcher(draws, self._read) as ahead:
            for drawn, scaled in ahead:
                yield drawn, torch.from_numpy(scaled).to(self.device)

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield all rows in order."""
        for part in gen_batches(self.rows.shape[0], _CHUNK):
            yield part, torch.from_numpy(self._scaled(part)).to(self.device)

    def _scaled(self, which: slice | Drawn) -> NDArray[np.float32]:
        rows: Any = self.rows[which]
        return self.scaler(rows.toarray() if issparse(rows) else rows)

    def _read(self, drawn: Drawn) -> tuple[Drawn, NDArray[np.float32]]:
        scaled = self._scaled(drawn.ravel())
        scaled = scaled.reshape(len(scaled), *drawn.shape, -1)
        if len(scaled) == 1:
            return drawn, scaled[0]
        view = view_of_groups(len(drawn), self.n_members, len(scaled)).ravel()
        return drawn, scaled[view, np.arange(len(drawn))]


def view_of_groups(n_groups: int, n_members: int, n_views: int) -> NDArray[Any]:
    """Return the view of each group of episodes, to be added to (groups, episodes, rows)."""
    heads = n_groups // n_members
    return (np.arange(n_groups) // heads % n_views).reshape(-1, 1, 1)
