"""A fitted classifier as plain data, and back."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from setconv._version import __version__
from setconv.anchors import KMeans, Mean, Subset
from setconv.card import write_card
from setconv.decisions import DecisionRule
from setconv.errors import ModelFileError
from setconv.fitting import resolve_device
from setconv.heads import count_heads
from setconv.judging import Judgement
from setconv.metrics import Report
from setconv.model import SetConvModel
from setconv.nn import SetConvNetwork
from setconv.persistence import SavedModel, write_model
from setconv.representatives import SideSums
from setconv.saved_parts import (
    describe_front,
    describe_linear,
    linear_fits,
    restore_front,
    restore_linear,
)
from setconv.saved_views import describe_views, restore_views, views_fit

_ANCHOR_RULES: dict[str, Any] = {"Mean": Mean, "Subset": Subset, "KMeans": KMeans}
# Not part of a model: what only makes sense in the process that fitted it.
_LEFT_OUT = ("callbacks", "device", "checkpoint_dir", "scratch_dir")


def save(saved: SavedModel, folder: Path) -> None:
    """Write a described estimator to a folder, with its card."""
    write_model(folder, saved, write_card(saved.config))


def describe(estimator: Any) -> SavedModel:
    """Return everything that `restore` needs of a fitted classifier."""
    model: SetConvModel = estimator._model
    tensors = {f"network/{name}": t for name, t in model.network.state_dict().items()}
    tensors |= {
        "anchors": torch.from_numpy(model.anchors),
        "sums/total": model.sums.total,
        "sums/weight": model.sums.weight,
    }
    tensors |= {
        "levels": torch.from_numpy(model.levels),
        "spreads": torch.from_numpy(model.spreads),
    }
    linear, linear_tensors = describe_linear(model.discriminants)
    front, front_tensors = describe_front(model.front)
    tensors |= linear_tensors | front_tensors
    views, view_tensors = describe_views(model.scaler)
    tensors |= view_tensors
    judgement = estimator._judgement
    tensors |= {f"rule/{k}": torch.from_numpy(a) for k, a in _kept_rows(judgement).items()}
    names = getattr(estimator, "feature_names_in_", None)
    config = {
        "versions": {
            "setconv": __version__,
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "parameters": {
            name: _encode_parameter(name, value)
            # The decision that is saved, whatever was set for the next fit.
            for name, value in {
                **estimator.get_params(deep=False),
                "objective": estimator.objective_,
            }.items()
            if name not in _LEFT_OUT
        },
        "classes": _encode_labels(estimator.classes_),
        "class_counts": estimator.class_counts_.tolist(),
        "weight_scales": estimator._weight_scales.tolist(),
        "n_features": estimator.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "network": model.network.spec,
        "views": views,
        "front": front,
        "linear": linear,
        "offset": model.offset,
        "rule": judgement.rule.to_dict(),
        "n_steps": estimator.n_steps_,
        "history": estimator.history_,
        "report": judgement.report.to_dict(),
        "report_source": judgement.source,
        "threshold_basis": judgement.basis,
        "notes": list(judgement.notes),
        "updates": dict(judgement.updates),
    }
    return SavedModel(type(estimator).__name__, config, tensors)


def restore(estimator: Any, saved: SavedModel, device: str) -> None:
    """Make a new estimator what the saved one was; errors name the damage."""
    target = resolve_device(device)
    try:
        _restore(estimator, saved, device)
        estimator._model = estimator._model.to(target)
        estimator._publish()
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The model's files do not fit together ({type(error).__name__}: {error}): copy the "
            "model folder again."
        ) from error


def _restore(estimator: Any, saved: SavedModel, device: str) -> None:
    config, tensors = saved.config, saved.tensors
    anchors = tensors["anchors"].numpy()
    parameters = {
        name: _decode_parameter(value, anchors) for name, value in config["parameters"].items()
    }
    estimator.set_params(**parameters, device=device)
    classes = _decode_labels(config["classes"])
    network = SetConvNetwork(**config["network"])
    prefix = "network/"
    network.load_state_dict(
        {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
    )
    scaler = restore_views(config["views"], tensors)
    model = SetConvModel(
        network,
        scaler,
        anchors,
        len(classes),
        config["offset"],
        front=restore_front(config["front"], tensors),
    )
    model.sums = SideSums(tensors["sums/total"], tensors["sums/weight"])
    model.levels, model.spreads = tensors["levels"].numpy(), tensors["spreads"].numpy()
    model.discriminants = restore_linear(config["linear"], tensors)
    judgement = _restore_judgement(config, tensors, classes)
    _check_shapes(model, judgement.rule, config, classes)
    estimator.n_features_in_ = int(config["n_features"])
    if config["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    estimator.classes_ = classes
    estimator.class_counts_ = np.array(config["class_counts"])
    estimator._weight_scales = np.array(config["weight_scales"], dtype=np.float64)
    estimator.objective_ = estimator.objective
    estimator.history_ = config["history"]
    estimator.n_steps_ = config["n_steps"]
    estimator._judgement = judgement
    estimator._model = model


def _kept_rows(judgement: Judgement) -> dict[str, NDArray[Any]]:
    """Return the rows that the decision and the report rest on, in few bytes each."""
    arrays = judgement.rule.arrays()
    if judgement.left_out is not None:
        arrays["left_out"] = np.packbits(judgement.left_out, axis=0)
        arrays["n_folds"] = np.array(len(judgement.left_out))
    if judgement.rows is not None and (judgement.rows != np.arange(len(judgement.rows))).any():
        arrays["rows"] = judgement.rows
    return arrays


def _restore_judgement(
    config: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], classes: NDArray[Any]
) -> Judgement:
    prefix = "rule/"
    arrays = {k.removeprefix(prefix): t.numpy() for k, t in tensors.items() if k.startswith(prefix)}
    left_out, rows = arrays.pop("left_out", None), arrays.pop("rows", None)
    if left_out is not None:
        n_folds = int(arrays.pop("n_folds"))
        left_out = np.unpackbits(left_out, axis=0, count=n_folds).astype(np.bool_)
    rule = DecisionRule.from_dict(config["rule"], arrays, classes.tolist())
    report = Report.from_dict(config["report"])
    source = config["report_source"]
    n_rows = 0 if rule.evidence is None else len(rule.evidence.codes)
    if any(a is not None and a.shape[-1] != n_rows for a in (left_out, rows)):
        raise ValueError("wrong: rows of the rule")
    return Judgement(
        rule,
        report,
        source,
        left_out,
        rows,
        report.unjudged,
        tuple(map(str, config["notes"])),
        {str(name): int(n) for name, n in config["updates"].items()},
    )


def _check_shapes(
    model: SetConvModel, rule: DecisionRule, config: Mapping[str, Any], classes: NDArray[Any]
) -> None:
    """Refuse parts that would only be noticed, or not noticed at all, in a prediction."""
    width, heads = config["n_features"], count_heads(len(classes))
    names, scaler, stacked = config["feature_names"], model.scaler, model.network.n_stacked
    seen = width if model.front is None else model.front.width
    wrong = {
        "n_features": scaler.width(seen) != model.network.spec["in_features"],
        "heads": model.network.n_heads != heads,
        "classes": len(np.unique(classes)) != len(classes),
        "class_counts": len(config["class_counts"]) != len(classes),
        "weight_scales": len(config["weight_scales"]) != len(classes),
        "feature_names": names is not None and len(names) != width,
        "offset": len(model.offset) != heads,
        "anchors": model.anchors.ndim != 3 or model.anchors.shape[::2] != (stacked, seen),
        "views": not views_fit(scaler, seen),
        "front": model.front is not None and model.front.n_features != width,
        "levels": model.levels.shape != (stacked,) or model.spreads.shape != (stacked,),
        "linear": not linear_fits(model),
        "rule": rule.thresholds.shape != (heads,),
    }
    if not wrong["anchors"]:
        wrong["sums"] = model.sums.total.shape != (stacked, 2, model.embedding_size) or (
            model.sums.weight.shape != (stacked, 2)
        )
    if any(wrong.values()):
        raise ValueError(
            f"wrong: {', '.join(name for name, is_wrong in wrong.items() if is_wrong)}"
        )


def _encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    dtype = "object" if labels.dtype.kind == "O" else labels.dtype.str
    values = labels.tolist()
    if not all(isinstance(value, (str, bool, int, float)) for value in values):
        raise ModelFileError(
            f"Labels of type {type(values[0]).__name__} cannot be saved: use strings, bools or "
            "numbers."
        )
    return {"dtype": dtype, "values": values}


def _decode_labels(encoded: Mapping[str, Any]) -> NDArray[Any]:
    return np.array(encoded["values"], dtype=np.dtype(encoded["dtype"]))


def _encode_parameter(name: str, value: Any) -> Any:
    """Return a parameter as JSON; what JSON cannot hold is left to `_decode_parameter`."""
    if name == "anchor" and not isinstance(value, str):
        rule = type(value).__name__
        if type(value) is _ANCHOR_RULES.get(rule):
            return {"rule": rule, "arguments": dataclasses.asdict(value)}
        return {"rule": "array"}  # an array or a callable: the anchors that it gave
    if name == "random_state":
        return int(value) if isinstance(value, (int, np.integer)) else None
    if name == "class_weight" and isinstance(value, Mapping):
        return {"pairs": [[_plain(label), float(weight)] for label, weight in value.items()]}
    return _plain(value)


def _decode_parameter(value: Any, anchors: NDArray[Any]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict) and "rule" in value:
        if value["rule"] == "array":
            return anchors
        return _ANCHOR_RULES[value["rule"]](**value["arguments"])
    if isinstance(value, dict) and "pairs" in value:
        return dict(value["pairs"])
    return value


def _plain(value: Any) -> Any:
    """Return numpy scalars, tuples and paths as what JSON knows."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
