"""Episodes of sparse rows, for a network that looks at the columns themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows of one or more groups, each multiplied with the matrices of its own.

    Attributes
    ----------
    groups : sequence of sparse COO Tensors of shape (n_rows, n_features)
        One for all, or one each of the members (of all heads if these do not share an encoder).
    lead : tuple of int
        Shape of the rows of all groups, such as ([groups,] episodes, rows).
    """

    groups: Sequence[Tensor]
    lead: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that dense rows would have."""
        return (*self.lead, int(self.groups[0].shape[-1]))

    def flatten(self, start: int, end: int) -> SparseRows:
        """Return the same rows with the axes of episodes and of rows made one."""
        if (start, end) != (-3, -2):
            raise ValueError("only episodes and their rows can be joined")
        return SparseRows(self.groups, (*self.lead[:-2], self.lead[-2] * self.lead[-1]))

    def masked(self, mask: Tensor) -> SparseRows:
        """Multiply the rows of each episode with its mask, ([groups,] episodes, 1, n_features)."""
        width = self.shape[-1]
        masks = mask.reshape(len(self.groups), -1, width)
        groups = []
        for rows, own in zip(self.groups, masks, strict=True):
            row, column = rows.indices()
            values = rows.values() * own[row // self.lead[-1], column]
            groups.append(_coo(rows.indices(), values, tuple(rows.shape)))
        return SparseRows(groups, self.lead)

    def times(self, weight: Tensor) -> Tensor:
        """Return the product with one matrix or a stack of them, as `stacked_matmul` does."""
        if weight.dim() == 2:
            product: Tensor = torch.sparse.mm(self.groups[0], weight)
            return product
        stack, n_in, n_out = weight.shape
        shared = stack // len(self.groups)
        products = []
        for rows, own in zip(self.groups, weight.view(-1, shared, n_in, n_out), strict=True):
            wide = own.transpose(0, 1).reshape(n_in, shared * n_out)
            product = torch.sparse.mm(rows, wide).view(-1, shared, n_out)
            products.append(product.transpose(0, 1))
        return torch.cat(products)


def sparse_tensor(rows: sparse.csr_matrix, device: torch.device, size: int | None = None) -> Tensor:
    """Return rows, and empty ones up to ``size``, as a float32 tensor for torch's products."""
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    places = torch.from_numpy(np.stack([numbers, rows.indices.astype(np.int64)]))
    values = torch.from_numpy(rows.data.astype(np.float32))
    return _coo(places.to(device), values.to(device), (size or rows.shape[0], rows.shape[1]))


def _coo(places: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    # Rows of a tidy csr matrix name each column once and in order: nothing is left to check.
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)


def sparse_block(rows: sparse.csr_matrix, size: int, device: torch.device) -> SparseRows:
    """Return rows for all groups, with empty ones after them up to a size."""
    return SparseRows([sparse_tensor(rows, device, size)], (size,))


def gather_sparse(
    rows: sparse.csr_matrix, drawn: NDArray[np.int64], device: torch.device
) -> SparseRows:
    """Return drawn rows ([groups,] episodes, rows)."""
    groups = drawn if drawn.ndim == 3 else drawn[None]
    return SparseRows([sparse_tensor(rows[one.ravel()], device) for one in groups], drawn.shape)
