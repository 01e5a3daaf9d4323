"""The way of sparse rows and the linear part of the scores as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from setconv.discriminant import Discriminants
from setconv.model import SetConvModel
from setconv.sparse import Front, Projection, SparseLines, Unpacked

Described = dict[str, Any] | None
Linear = Discriminants | SparseLines


def describe_front(front: Front | None) -> tuple[Described, dict[str, Tensor]]:
    """Return the front of a model as JSON, and the tensors that go with it."""
    if front is None:
        return None, {}
    if isinstance(front, Unpacked):
        return {"kind": "unpacked", "n_features": front.n_features}, {}
    return {"kind": "projection", "n_features": front.n_features}, {
        "front/columns": torch.from_numpy(front.columns),
        "front/directions": torch.from_numpy(front.directions),
    }


def restore_front(
    described: Mapping[str, Any] | None, tensors: Mapping[str, Tensor]
) -> Front | None:
    """Return what `describe_front` described."""
    if described is None:
        return None
    n_features = int(described["n_features"])
    if described["kind"] == "unpacked":
        return Unpacked(n_features)
    columns, directions = tensors["front/columns"].numpy(), tensors["front/directions"].numpy()
    inside = len(columns) and columns.min() >= 0 and columns.max() < n_features
    if directions.ndim != 2 or len(columns) != len(directions) or not inside:
        raise ValueError("the projection's parts do not fit together")
    return Projection(columns, directions, n_features)


def describe_linear(linear: Linear | None) -> tuple[str | None, dict[str, Tensor]]:
    """Return the kind of the linear part, and its tensors."""
    if linear is None:
        return None, {}
    weights, intercepts = torch.as_tensor(linear.weights), torch.as_tensor(linear.intercepts)
    kind = "lines" if isinstance(linear, SparseLines) else "discriminants"
    return kind, {"linear/weights": weights, "linear/intercepts": intercepts}


def restore_linear(kind: str | None, tensors: Mapping[str, Tensor]) -> Linear | None:
    """Return what `describe_linear` described."""
    if kind is None:
        return None
    weights, intercepts = tensors["linear/weights"], tensors["linear/intercepts"]
    if kind == "lines":
        return SparseLines(weights.numpy(), intercepts.numpy())
    return Discriminants(weights, intercepts)


def linear_fits(model: SetConvModel) -> bool:
    """Say whether the linear part has the shapes that go with the model."""
    found, stacked = model.discriminants, model.network.n_stacked
    if found is None:
        return True
    shape = (stacked, model.network.spec["in_features"])
    if isinstance(found, SparseLines):
        shape = (model.n_features, stacked)
    return tuple(found.weights.shape) == shape and tuple(found.intercepts.shape) == (stacked,)
