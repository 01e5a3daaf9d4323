"""A model folder: a fitted classifier as plain data, and back.

A folder holds tensors (safetensors), everything else (JSON) and a card for people (Markdown), and
no code. `describe` makes a fitted classifier a `SavedModel`, `save` writes that to a folder,
`read_model` reads it and `restore` makes a new classifier what the saved one was. Each part of a
classifier (model, views, sparse front, linear part, decision, labels, parameters) is described and
restored side by side; the card is at the end.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from setconv._version import __version__
from setconv.decisions.rule import DecisionRule, FittedDecision
from setconv.errors import ModelFileError
from setconv.io.files import replace_folder
from setconv.metrics.report import (
    HEADINGS,
    WHY_NOT_THE_LARGEST,
    ClassMetrics,
    Report,
    show_bounds,
)
from setconv.model import SetConvModel, under
from setconv.nn.network import resolve_device

Array = NDArray[Any]
_FORMAT = "setconv-model"
FORMAT_VERSION = 1
_CONFIG, _TENSORS, _CARD = "config.json", "model.safetensors", "README.md"


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds.

    Attributes
    ----------
    kind : str
        Name of the estimator's class.
    config : dict
        Everything but tensors, ready for JSON.
    arrays : dict of str to array
    files : dict of str to Path
        Files to copy into the folder, by their names there; only for writing.
    """

    kind: str
    config: dict[str, Any]
    arrays: dict[str, Array]
    files: dict[str, Path] = field(default_factory=dict)


def save(saved: SavedModel, folder: Path) -> None:
    """Write a model folder in one move; see `setconv.SetConvClassifier.save`."""
    _refuse_foreign(folder)
    tensors = save_tensors(
        {name: torch.from_numpy(np.asarray(one, order="C")) for name, one in saved.arrays.items()}
    )
    config = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": saved.kind,
        "sha256": hashlib.sha256(tensors).hexdigest(),
        **saved.config,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False)
    own = {_CONFIG: text.encode(), _TENSORS: tensors, _CARD: write_card(saved.config).encode()}
    replace_folder(folder.resolve(), {**saved.files, **own})  # behind a link, what it points to


def _refuse_foreign(folder: Path) -> None:
    """Never replace what is not a model of ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is a file: give a folder to save the model in.")
    if any(folder.iterdir()) and _peek_format(folder) != _FORMAT:
        raise ModelFileError(
            f"{folder} is not empty and is not a setconv model: choose another folder, or empty it."
        )


def _peek_format(folder: Path) -> str | None:
    try:
        config = json.loads((folder / _CONFIG).read_bytes())
    except (OSError, ValueError):
        return None
    return config.get("format") if isinstance(config, dict) else None


def read_model(folder: Path) -> SavedModel:
    """Read a model folder; a damaged, foreign or newer one is a clear error."""
    config = _read_config(folder)
    version = config.get("format_version")
    if version != FORMAT_VERSION:
        versions = config.get("versions")
        wrote = versions.get("setconv", "") if isinstance(versions, dict) else ""
        raise ModelFileError(
            f"{folder} has format version {version!r}, written by setconv {wrote}; this version "
            f"reads {FORMAT_VERSION}. Upgrade: pip install --upgrade setconv"
        )
    path = folder / _TENSORS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{folder} has no readable {_TENSORS} ({error.strerror}): copy the whole model folder."
        ) from error
    if hashlib.sha256(content).hexdigest() != config.get("sha256"):
        raise ModelFileError(
            f"{path} is truncated or damaged (its checksum is not the one in {_CONFIG}): copy the "
            "model folder again."
        )
    try:
        tensors = load_tensors(content)
    except SafetensorError as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    return SavedModel(str(config.get("kind")), config, arrays)


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        aside = sorted(folder.absolute().parent.glob(f".{folder.name}.old-*"))
        hint = f" A save was cut short; the earlier model is in {aside[-1]}." if aside else ""
        raise ModelFileError(f"{folder} is not a folder: give the folder of a saved model.{hint}")
    try:
        config = json.loads((folder / _CONFIG).read_bytes())
    except OSError as error:
        raise ModelFileError(
            f"{folder} is not a setconv model: it has no readable {_CONFIG} ({error.strerror})."
        ) from error
    except ValueError as error:
        raise ModelFileError(
            f"{folder / _CONFIG} is truncated or damaged ({error}): copy the model folder again."
        ) from error
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise ModelFileError(f"{folder} is not a setconv model: {_CONFIG} is of another kind.")
    return config


# Not part of a model: what only makes sense in the process that fitted it.
_LEFT_OUT = ("callbacks", "device", "checkpoint_dir")


def describe(estimator: Any) -> SavedModel:
    """Return everything that `restore` needs of a fitted classifier."""
    names = getattr(estimator, "feature_names_in_", None)
    # The objective of the decision that is saved, whatever was set for the next fit.
    parameters = {**estimator.get_params(deep=False), "objective": estimator.objective_}
    fitted, arrays = describe_fitted(estimator._model, estimator._decision)
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
            for name, value in parameters.items()
            if name not in _LEFT_OUT
        },
        "classes": _encode_labels(estimator.classes_),
        "class_counts": estimator.class_counts_.tolist(),
        "weight_scales": estimator._weight_scales.tolist(),
        "feature_names": None if names is None else names.tolist(),
        "n_steps": estimator.n_steps_,
        "history": estimator.history_,
        **fitted,
    }
    return SavedModel(type(estimator).__name__, config, arrays)


def restore(estimator: Any, saved: SavedModel, device: str) -> None:
    """Make a new estimator what the saved one was; errors name the damage."""
    target = resolve_device(device)
    config, arrays = saved.config, saved.arrays
    try:
        parameters = {
            name: _decode_parameter(value) for name, value in config["parameters"].items()
        }
        if parameters["anchor"] is None:
            parameters["anchor"] = arrays["anchors"]
        classes = _decode_labels(config["classes"])
        model, decision = restore_fitted(config, arrays, classes, target)
        names, width = config["feature_names"], model.n_features
        lengths = {len(config["class_counts"]), len(config["weight_scales"]), model.n_classes}
        if lengths != {len(np.unique(classes))} or len(names or range(width)) != width:
            raise ValueError("wrong: classes or feature_names")
        estimator.set_params(**parameters, device=device)
        estimator.n_features_in_ = width
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.classes_ = classes
        estimator.class_counts_ = np.array(config["class_counts"])
        estimator._weight_scales = np.array(config["weight_scales"], dtype=np.float64)
        estimator.objective_ = estimator.objective
        estimator.history_ = config["history"]
        estimator.n_steps_ = config["n_steps"]
        estimator._model, estimator._decision = model, decision
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The model's files do not fit together ({type(error).__name__}: {error}): copy the "
            "model folder again."
        ) from error


def describe_fitted(
    model: SetConvModel, decision: FittedDecision
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a model and its decision as plain data and arrays: what pickles hold, too."""
    described, arrays = model.describe()
    evidence = decision.rule.arrays()
    if decision.left_out is not None:  # in few bytes a row
        evidence["left_out"] = np.packbits(decision.left_out, axis=0)
        evidence["n_folds"] = np.array(len(decision.left_out))
    if decision.rows is not None and (decision.rows != np.arange(len(decision.rows))).any():
        evidence["rows"] = decision.rows
    arrays |= {f"rule/{name}": array for name, array in evidence.items()}
    return {
        "model": described,
        "rule": decision.rule.to_dict(),
        "report": decision.report.to_dict(),
        "report_source": decision.source,
        "threshold_basis": decision.basis,
        "notes": list(decision.notes),
        "updates": dict(decision.updates),
    }, arrays


def restore_fitted(
    config: Mapping[str, Any],
    arrays: Mapping[str, Array],
    classes: Array,
    device: torch.device,
) -> tuple[SetConvModel, FittedDecision]:
    """Return what `describe_fitted` described; a ValueError says what does not fit together."""
    model = SetConvModel.restore(config["model"], arrays, device)
    evidence = under("rule/", arrays)
    left_out, rows = evidence.pop("left_out", None), evidence.pop("rows", None)
    if left_out is not None:
        n_folds = int(evidence.pop("n_folds"))
        left_out = np.unpackbits(left_out, axis=0, count=n_folds).astype(np.bool_)
    rule = DecisionRule.from_dict(config["rule"], evidence, classes)
    given = enumerate((rows, left_out))
    right_rows = all(a is None or a.shape[axis:] == (len(rule.evidence),) for axis, a in given)
    if not right_rows or rule.thresholds.shape != (len(model.offset),):
        raise ValueError("wrong: rule")
    return model, FittedDecision(
        rule=rule,
        report=Report.from_dict(config["report"]),
        source=config["report_source"],
        left_out=left_out,
        rows=rows,
        notes=tuple(map(str, config["notes"])),
        updates={str(name): int(n) for name, n in config["updates"].items()},
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
        return None  # an array or a callable: the anchors that it gave
    if name == "random_state":
        return int(value) if isinstance(value, (int, np.integer)) else None
    if name == "class_weight" and isinstance(value, Mapping):
        return {"pairs": [[_plain(label), float(weight)] for label, weight in value.items()]}
    return _plain(value)


def _decode_parameter(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
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


_COLUMNS = ("specificity", "sensitivity", "f1", "g_mean", "auc", "average_precision")

_SOURCES = {
    "validation": "Measured on validation rows that training did not see.",
    "out_of_fold": "Measured out of fold: on training rows, each by members that had not seen it.",
    "none": "Not measured: the model has seen every row. Judge it on others.",
}


def write_card(config: Mapping[str, Any]) -> str:
    """Return the text of README.md for a model described by its configuration."""
    classes, counts = config["classes"]["values"], config["class_counts"]
    width, takes = config["model"]["n_features"], config.get("takes")
    encoder = config.get("encoder", {})
    made_by = " ".join(encoder[name] for name in ("kind", "model") if name in encoder)
    data = f"{sum(counts)} {takes or 'rows'}, {width} features"
    shares = [[n, f"{n / sum(counts):.1%}"] for n in counts]
    report = Report.from_dict(config["report"])
    figures = [[_figure(of, name) for name in _COLUMNS] for of in report.per_class.values()]
    card = files("setconv").joinpath("card.md").read_text(encoding="utf-8")
    return card.format(
        takes=takes or f"rows with {width} numeric features",
        n_classes=len(classes),
        data=f"{data}, made by {_cell(made_by)}" if made_by else data,
        classes=_table(["class", "rows", "share"], classes, shares),
        source=_SOURCES[config["report_source"]],
        metrics=_table(["class", *(HEADINGS[name] for name in _COLUMNS)], classes, figures),
        remarks="".join(f"{remark}\n\n" for remark in report.remarks()),
        objective=config["parameters"]["objective"],
        basis=config["threshold_basis"],
        why=WHY_NOT_THE_LARGEST,
        n_steps=config["n_steps"],
        versions=", ".join(f"{name} {version}" for name, version in config["versions"].items()),
    )


def _figure(of: ClassMetrics, name: str) -> str:
    """Return a figure with its 95 % interval."""
    value, bounds = getattr(of, name), show_bounds(of.intervals.get(name))
    if value != value:
        return "n/a"
    return f"{value:.3f} ({bounds})" if bounds else f"{value:.3f}"


def _table(head: list[str], labels: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1)]
    lines += [[_cell(label), *row] for label, row in zip(labels, rows, strict=True)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cell(label: Any) -> str:
    """Return a label that cannot break the table."""
    return " ".join(str(label).replace("|", "\\|").split()) or "(empty)"
