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
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from setconv._version import __version__
from setconv.decisions.rule import DecisionRule, FittedDecision
from setconv.episodes import count_heads
from setconv.errors import ModelFileError
from setconv.io.files import replace_folder
from setconv.linear import Discriminants, SparseLines
from setconv.metrics.report import WHY_NOT_THE_LARGEST, Report
from setconv.model import SetConvModel, SideSums
from setconv.nn.network import SetConvNetwork, resolve_device
from setconv.preprocessing import (
    Densify,
    Normal,
    Pieces,
    Scaler,
    SparseFront,
    SparseProjection,
    Standard,
    View,
)

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
    tensors : dict of str to Tensor
    files : dict of str to Path
        Files to copy into the folder, by their names there; only for writing.
    """

    kind: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    files: dict[str, Path] = field(default_factory=dict)


def save(saved: SavedModel, folder: Path) -> None:
    """Write a model folder in one move; see `setconv.SetConvClassifier.save`."""
    _refuse_foreign(folder)
    tensors = save_tensors({k: t.detach().cpu().contiguous() for k, t in saved.tensors.items()})
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
    return SavedModel(str(config.get("kind")), config, tensors)


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
    model: SetConvModel = estimator._model
    decision: FittedDecision = estimator._decision
    linear, linear_tensors = _describe_linear(model.linear)
    front, front_tensors = _describe_front(model.front)
    views, view_tensors = describe_views(model.scaler)
    tensors = {
        **{f"network/{name}": t for name, t in model.network.state_dict().items()},
        "anchors": torch.from_numpy(model.anchors),
        "sums/total": model.sums.total,
        "sums/weight": model.sums.weight,
        "levels": torch.from_numpy(model.levels),
        "spreads": torch.from_numpy(model.spreads),
        **linear_tensors,
        **front_tensors,
        **view_tensors,
        **{f"rule/{name}": torch.from_numpy(a) for name, a in _decision_arrays(decision).items()},
    }
    names = getattr(estimator, "feature_names_in_", None)
    # The objective of the decision that is saved, whatever was set for the next fit.
    parameters = {**estimator.get_params(deep=False), "objective": estimator.objective_}
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
        "n_features": estimator.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "network": model.network.spec,
        "views": views,
        "front": front,
        "linear": linear,
        "offset": model.offset,
        "rule": decision.rule.to_dict(),
        "n_steps": estimator.n_steps_,
        "history": estimator.history_,
        "report": decision.report.to_dict(),
        "report_source": decision.source,
        "threshold_basis": decision.basis,
        "notes": list(decision.notes),
        "updates": dict(decision.updates),
    }
    return SavedModel(type(estimator).__name__, config, tensors)


def restore(estimator: Any, saved: SavedModel, device: str) -> None:
    """Make a new estimator what the saved one was; errors name the damage."""
    target = resolve_device(device)
    config, tensors = saved.config, saved.tensors
    try:
        parameters = {
            name: _decode_parameter(value) for name, value in config["parameters"].items()
        }
        if parameters["anchor"] is None:
            parameters["anchor"] = tensors["anchors"].numpy()
        estimator.set_params(**parameters, device=device)
        classes = _decode_labels(config["classes"])
        model = _restore_model(config, tensors, len(classes))
        decision = _restore_decision(config, tensors, classes)
        _check_shapes(model, decision.rule, config, classes)
        estimator.n_features_in_ = int(config["n_features"])
        if config["feature_names"] is not None:
            estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
        estimator.classes_ = classes
        estimator.class_counts_ = np.array(config["class_counts"])
        estimator._weight_scales = np.array(config["weight_scales"], dtype=np.float64)
        estimator.objective_ = estimator.objective
        estimator.history_ = config["history"]
        estimator.n_steps_ = config["n_steps"]
        estimator._decision = decision
        estimator._model = model.to(target)
        estimator._publish()
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The model's files do not fit together ({type(error).__name__}: {error}): copy the "
            "model folder again."
        ) from error


def _restore_model(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], n_classes: int
) -> SetConvModel:
    network = SetConvNetwork(**config["network"])
    network.load_state_dict(_under("network/", tensors))
    return SetConvModel(
        network=network,
        scaler=restore_views(config["views"], tensors),
        anchors=tensors["anchors"].numpy(),
        n_classes=n_classes,
        offset=config["offset"],
        front=_restore_front(config["front"], tensors),
        linear=_restore_linear(config["linear"], tensors),
        sums=SideSums(tensors["sums/total"], tensors["sums/weight"]),
        levels=tensors["levels"].numpy(),
        spreads=tensors["spreads"].numpy(),
        chosen=np.ones(network.n_members, dtype=np.bool_),
    )


def arrays_under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return the tensors of one part of a model as arrays, by their names without the prefix."""
    return {name: tensor.numpy() for name, tensor in _under(prefix, tensors).items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


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
        "linear": not _linear_fits(model),
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


def describe_views(scaler: Scaler) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Return the views as JSON, and the tensors that go with it."""
    described, tensors = [], {}
    for number, view in enumerate(scaler.views):
        described.append({"kind": view.kind})
        for name, array in view.arrays().items():
            tensors[f"views/{number}/{name}"] = torch.from_numpy(np.ascontiguousarray(array))
    return described, tensors


def restore_views(described: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> Scaler:
    """Return what `describe_views` described."""
    views: list[View] = []
    for number, one in enumerate(described):
        parts = arrays_under(f"views/{number}/", tensors)
        if one["kind"] == "normal":
            views.append(Normal(parts["knots"], parts["values"], parts["starts"]))
            continue
        standard = Standard(parts["mean"], parts["scale"])
        if one["kind"] == "standard":
            views.append(standard)
        elif one["kind"] == "pieces":
            views.append(Pieces(parts["low"], parts["high"], parts["column"], standard))
        else:
            raise ValueError(f"a view of kind {one['kind']!r} is not known")
    return Scaler(tuple(views))


def views_fit(scaler: Scaler, n_features: int) -> bool:
    """Say whether the arrays of every view are of the shapes that go with the features."""
    return all(_view_fits(view, n_features) for view in scaler.views)


def _view_fits(view: View, n_features: int) -> bool:
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


def _describe_front(front: SparseFront | None) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return the front of a model as JSON, and the tensors that go with it."""
    if front is None:
        return None, {}
    if isinstance(front, Densify):
        return {"kind": "unpacked", "n_features": front.n_features}, {}
    return {"kind": "projection", "n_features": front.n_features}, {
        "front/columns": torch.from_numpy(front.columns),
        "front/directions": torch.from_numpy(front.directions),
    }


def _restore_front(
    described: Mapping[str, Any] | None, tensors: Mapping[str, Tensor]
) -> SparseFront | None:
    """Return what `_describe_front` described."""
    if described is None:
        return None
    n_features = int(described["n_features"])
    if described["kind"] == "unpacked":
        return Densify(n_features)
    columns, directions = tensors["front/columns"].numpy(), tensors["front/directions"].numpy()
    inside = len(columns) and columns.min() >= 0 and columns.max() < n_features
    if directions.ndim != 2 or len(columns) != len(directions) or not inside:
        raise ValueError("the projection's parts do not fit together")
    return SparseProjection(columns, directions, n_features)


def _describe_linear(
    linear: Discriminants | SparseLines | None,
) -> tuple[str | None, dict[str, Tensor]]:
    """Return the kind of the linear part, and its tensors."""
    if linear is None:
        return None, {}
    weights, intercepts = torch.as_tensor(linear.weights), torch.as_tensor(linear.intercepts)
    kind = "lines" if isinstance(linear, SparseLines) else "discriminants"
    return kind, {"linear/weights": weights, "linear/intercepts": intercepts}


def _restore_linear(
    kind: str | None, tensors: Mapping[str, Tensor]
) -> Discriminants | SparseLines | None:
    """Return what `_describe_linear` described."""
    if kind is None:
        return None
    weights, intercepts = tensors["linear/weights"], tensors["linear/intercepts"]
    if kind == "lines":
        return SparseLines(weights.numpy(), intercepts.numpy())
    return Discriminants(weights, intercepts)


def _linear_fits(model: SetConvModel) -> bool:
    """Say whether the linear part has the shapes that go with the model."""
    found, stacked = model.linear, model.network.n_stacked
    if found is None:
        return True
    shape = (stacked, model.network.spec["in_features"])
    if isinstance(found, SparseLines):
        shape = (model.n_features, stacked)
    return tuple(found.weights.shape) == shape and tuple(found.intercepts.shape) == (stacked,)


def _decision_arrays(decision: FittedDecision) -> dict[str, NDArray[Any]]:
    """Return the rows that the decision and the report rest on, in few bytes each."""
    arrays = decision.rule.arrays()
    if decision.left_out is not None:
        arrays["left_out"] = np.packbits(decision.left_out, axis=0)
        arrays["n_folds"] = np.array(len(decision.left_out))
    if decision.rows is not None and (decision.rows != np.arange(len(decision.rows))).any():
        arrays["rows"] = decision.rows
    return arrays


def _restore_decision(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], classes: NDArray[Any]
) -> FittedDecision:
    arrays = arrays_under("rule/", tensors)
    left_out, rows = arrays.pop("left_out", None), arrays.pop("rows", None)
    if left_out is not None:
        n_folds = int(arrays.pop("n_folds"))
        left_out = np.unpackbits(left_out, axis=0, count=n_folds).astype(np.bool_)
    rule = DecisionRule.from_dict(config["rule"], arrays, classes.tolist())
    report = Report.from_dict(config["report"])
    n_rows = 0 if rule.evidence is None else len(rule.evidence.codes)
    if any(a is not None and a.shape[-1] != n_rows for a in (left_out, rows)):
        raise ValueError("wrong: rows of the rule")
    return FittedDecision(
        rule,
        report,
        config["report_source"],
        left_out=left_out,
        rows=rows,
        unjudged=report.unjudged,
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


_COLUMNS = {
    "specificity": "Spec",
    "sensitivity": "Sens",
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "average_precision": "AP",
}

_SOURCES = {
    "validation": "Measured on validation rows that training did not see.",
    "out_of_fold": "Measured out of fold: on training rows, each by members that had not seen it.",
    "none": "Not measured: the model has seen every row. Judge it on others.",
}


def write_card(config: Mapping[str, Any]) -> str:
    """Return the text of README.md for a model described by its configuration."""
    classes = config["classes"]["values"]
    counts = config["class_counts"]
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    source = _SOURCES[config["report_source"]]
    takes = config.get("takes", f"rows with {config['n_features']} numeric features")
    encoder = config.get("encoder", {})
    encoded_by = " ".join(encoder[name] for name in ("kind", "model") if name in encoder)
    lines = [
        "# SetConv model",
        "",
        f"A classifier of {takes} into {len(classes)} classes, made for data in which some class "
        "is rare.",
        "",
        "```python",
        "import setconv",
        "",
        'model = setconv.load("path/to/this/folder")',
        "model.predict(X)",
        "```",
        "",
        "## Data",
        "",
        f"{sum(counts)} {config.get('takes', 'rows')}, {config['n_features']} features"
        + (f", made by {_cell(encoded_by)}." if encoded_by else "."),
        "",
        *_table(
            ["class", "rows", "share"],
            [
                [_cell(label), str(count), f"{count / sum(counts):.1%}"]
                for label, count in zip(classes, counts, strict=True)
            ],
        ),
        "",
        "## Metrics",
        "",
        f"{source} Each class against the rest.",
        "",
        *_table(
            ["class", *_COLUMNS.values()],
            [
                [_cell(row["class"]), *(_number(row[name]) for name in _COLUMNS)]
                for row in config["report"]["per_class"]
            ],
        ),
        "",
        *(line for remark in Report.from_dict(config["report"]).remarks() for line in (remark, "")),
        "## Decision",
        "",
        f"Objective: {config['parameters']['objective']!r}. Its threshold rests on this: "
        f"{config['threshold_basis']}. {WHY_NOT_THE_LARGEST}",
        "",
        "## Training",
        "",
        f"{config['n_steps']} steps. All parameters are in `config.json`.",
        "",
        f"Versions: {versions}.",
        "",
        "The folder holds safetensors, JSON and this text; loading it runs no code from it.",
        "",
    ]
    return "\n".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(cells)} |" for cells in (head, ["---"] + ["--:"] * (len(head) - 1), *rows)
    ]


def _cell(label: Any) -> str:
    """Return a label that cannot break the table."""
    return " ".join(str(label).replace("|", "\\|").split()) or "(empty)"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
