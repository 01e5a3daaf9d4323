"""The views of the rows as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setconv.scaling import Scaler
from setconv.views import Normal, Pieces, Standard, View


def describe_views(scaler: Scaler) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Return the views as JSON, and the tensors that go with it."""
    described, tensors = [], {}
    for number, view in enumerate(scaler.views):
        standard = view.standard if isinstance(view, Pieces) else view
        clip = standard.clip if isinstance(standard, Standard) else None
        described.append({"kind": view.kind, "clip": clip})
        for name, array in view.arrays().items():
            tensors[f"views/{number}/{name}"] = torch.from_numpy(np.ascontiguousarray(array))
    return described, tensors


def restore_views(described: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> Scaler:
    """Return what `describe_views` described."""
    views: list[View] = []
    for number, one in enumerate(described):
        prefix = f"views/{number}/"
        parts = {
            key.removeprefix(prefix): tensor.numpy()
            for key, tensor in tensors.items()
            if key.startswith(prefix)
        }
        clip = None if one["clip"] is None else float(one["clip"])
        if one["kind"] == "normal":
            views.append(Normal(parts["knots"], parts["values"], parts["starts"]))
            continue
        standard = Standard(parts["mean"], parts["scale"], clip)
        if one["kind"] == "standard":
            views.append(standard)
        elif one["kind"] == "pieces":
            views.append(Pieces(parts["low"], parts["high"], parts["column"], standard))
        else:
            raise ValueError(f"a view of kind {one['kind']!r} is not known")
    return Scaler(tuple(views))


def views_fit(scaler: Scaler, n_features: int) -> bool:
    """Say whether the arrays of every view are of the shapes that go with the features."""
    return all(_fits(view, n_features) for view in scaler.views)


def _fits(view: View, n_features: int) -> bool:
    if isinstance(view, Standard):
        return view.mean.shape == view.scale.shape == (n_features,)
    if isinstance(view, Normal):
        ends = view.starts.shape == (n_features + 1,) and view.starts[-1] == len(view.knots)
        return bool(ends and view.knots.shape == view.values.shape)
    width = (view.width,)
    shapes = {part.shape for part in (view.low, view.high, view.column, view.standard.mean)}
    return shapes == {width, view.standard.scale.shape} and bool(
        ((view.column >= 0) & (view.column < n_features)).all()
    )
