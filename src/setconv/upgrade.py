"""Models of earlier formats, brought to the present one in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from setconv.decisions import paper_rule
from setconv.persistence import SavedModel


def upgrade(saved: SavedModel) -> SavedModel:
    """Return the model as the present format has it."""
    version = saved.config["format_version"]
    if version == 1:
        saved = _from_1(saved)
    if version <= 2:
        saved = _from_2(saved)
    return saved if version > 3 else _from_3(saved)


def _from_3(saved: SavedModel) -> SavedModel:
    """Format 3 knew no sparse rows, and one kind of linear part."""
    prefix = "discriminants/"
    tensors = {
        f"linear/{name.removeprefix(prefix)}" if name.startswith(prefix) else name: tensor
        for name, tensor in saved.tensors.items()
    }
    linear = "discriminants" if "linear/weights" in tensors else None
    config = {**saved.config, "front": None, "direct": False, "linear": linear}
    return replace(saved, config=config, tensors=tensors)


def _from_2(saved: SavedModel) -> SavedModel:
    """Format 2 had no linear part."""
    parameters = {**saved.config["parameters"], "linear_share": 0.0}
    return replace(saved, config={**saved.config, "parameters": parameters})


def _from_1(saved: SavedModel) -> SavedModel:
    """Format 1 had one member, one standardised view and the paper's rule."""
    config: dict[str, Any] = dict(saved.config)
    tensors = dict(saved.tensors)
    scaled, clip = config.pop("scaled"), config.pop("clip")
    if scaled:
        for name in ("mean", "scale"):
            tensors[f"views/0/{name}"] = tensors.pop(f"scaler/{name}")
    config["views"] = [{"kind": "standard", "clip": clip}] if scaled else []
    config["parameters"] = {**config["parameters"], "n_members": 1, "objective": None}
    config["rule"] = paper_rule(config["classes"]["values"]).to_dict()
    stacked = len(tensors["anchors"])
    tensors["levels"] = torch.zeros(stacked, dtype=torch.float64)
    tensors["spreads"] = torch.ones(stacked, dtype=torch.float64)
    return replace(saved, config=config, tensors=tensors)
